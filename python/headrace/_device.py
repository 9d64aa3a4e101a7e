"""Batches on their way to a CUDA device: two pinned buffers, a stream of its own, one batch ahead.

A copy runs beside what the device computes only if it comes from pinned memory and on another stream. Batches lie in
plain memory, for pinning costs a system call each time; so each is copied into one of two pinned buffers, made once,
and from there to the device. A buffer is filled again when the copy out of it has ended; the consumer's stream waits
for the copy of the batch it is given, and for no other.
"""

from __future__ import annotations

from typing import Any

import torch


class Cuda:
    """What the way to a device is made of. Tests put one in its place that copies as late as it may."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)

    def pinned(self, like: torch.Tensor) -> torch.Tensor:
        return torch.empty(like.shape, dtype=like.dtype, pin_memory=True)

    def copy(self, tensors: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], Any]:
        """Begin to copy pinned tensors; the event comes when that has ended."""
        with torch.cuda.stream(self.stream):
            moved = {name: x.to(self.device, non_blocking=True) for name, x in tensors.items()}
            return moved, self.stream.record_event()

    def hand_over(self, moved: dict[str, torch.Tensor], event: Any) -> None:
        """The consumer's work comes after the copy, and the memory is kept until that work is done."""
        consumer = torch.cuda.current_stream(self.device)
        consumer.wait_event(event)
        for x in moved.values():
            x.record_stream(consumer)


class Slot:
    """A pinned buffer for each tensor of a batch, and the copy that was begun from them last."""

    def __init__(self) -> None:
        self.buffers: dict[Any, torch.Tensor] = {}
        self.event: Any = None

    def fill(self, cuda: Any, tensors: dict[Any, torch.Tensor]) -> dict[Any, torch.Tensor]:
        if self.event is not None:
            self.event.synchronize()
        filled = {}
        for name, x in tensors.items():
            buffer = self.buffers.get(name)
            if buffer is None or buffer.shape[1:] != x.shape[1:] or buffer.dtype != x.dtype or len(buffer) < len(x):
                room = (
                    x.new_empty(len(x) * 5 // 4) if isinstance(name, tuple) else x
                )  # items of a sparse view: they vary
                buffer = self.buffers[name] = cuda.pinned(room)
            filled[name] = buffer[: len(x)]  # a last batch may be short
            filled[name].copy_(x)
        return filled


def apart(tensors: dict[Any, torch.Tensor]) -> tuple[dict[Any, torch.Tensor], dict[str, torch.Size]]:
    """Sparse tensors as the three that they consist of, (name, 0 … 2), and their shapes."""
    plain: dict[Any, torch.Tensor] = {}
    shapes: dict[str, torch.Size] = {}
    for name, x in tensors.items():
        if x.layout == torch.sparse_csr:
            shapes[name] = x.shape
            three = x.crow_indices(), x.col_indices(), x.values()
            plain.update({(name, i): part for i, part in enumerate(three)})
        else:
            plain[name] = x
    return plain, shapes


def together(plain: dict[Any, torch.Tensor], shapes: dict[str, torch.Size]) -> dict[str, torch.Tensor]:
    """The tensors that `apart` took apart, in their order."""
    whole: dict[str, torch.Tensor] = {}
    for key, x in plain.items():
        if not isinstance(key, tuple):
            whole[key] = x
        elif key[1] == 2:
            name = key[0]
            whole[name] = torch.sparse_csr_tensor(
                plain[name, 0], plain[name, 1], x, shapes[name], check_invariants=False
            )
    return whole


def ahead(loader: Any, cuda: Any) -> Any:
    """(tensors on the device, the loader's state when they were taken) of each batch of an epoch."""
    slots = [Slot(), Slot()]
    waiting: Any = None
    for number, batch in enumerate(loader):
        state = loader.state_dict()
        slot = slots[number % 2]
        plain, shapes = apart(batch.torch())
        moved, slot.event = cuda.copy(slot.fill(cuda, plain))
        following = moved, slot.event, state, shapes
        del batch
        if waiting is not None:
            cuda.hand_over(*waiting[:2])
            yield together(waiting[0], waiting[3]), waiting[2]
        waiting = following
    if waiting is not None:
        cuda.hand_over(*waiting[:2])
        yield together(waiting[0], waiting[3]), waiting[2]
