"""Batches on their way to a device: the order of copies, checked with a device that copies as late as it may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch")


class Event:
    def __init__(self, queue: list[Any]) -> None:
        self.queue = queue
        self.until = len(queue)

    def synchronize(self) -> None:
        for i in range(self.until):
            copy, self.queue[i] = self.queue[i], None
            if copy:
                copy()


class Late:
    """Takes orders to copy, and copies when somebody waits: a buffer that is filled too early is seen."""

    def __init__(self) -> None:
        self.queue: list[Any] = []
        self.buffers = 0
        self.begun = self.handed = self.most = 0

    def pinned(self, like: Any) -> Any:
        self.buffers += 1
        return torch.empty_like(like)

    def copy(self, tensors: dict[str, Any]) -> tuple[dict[str, Any], Event]:
        moved = {name: torch.full_like(x, -1) for name, x in tensors.items()}
        for name, x in tensors.items():
            self.queue.append(lambda to=moved[name], x=x: to.copy_(x))
        self.begun += 1
        self.most = max(self.most, self.begun - self.handed)
        return moved, Event(self.queue)

    def hand_over(self, moved: dict[str, Any], event: Event) -> None:
        self.handed += 1
        event.synchronize()


def ordered(samples: hr.Samples, **options: Any) -> list[np.ndarray]:
    return [b["x"].numpy().copy() for b in samples.batches(8, **options)]


@pytest.mark.parametrize(
    "options", [{}, {"shuffle": True, "seed": 3}], ids=["archive order, last one short", "shuffled"]
)
def test_no_buffer_is_filled_before_it_was_copied(climate: str, options: dict[str, Any]) -> None:
    from headrace._device import ahead

    samples = hr.open(climate).samples(along="time", x="t2m", y=hr.view("z", dtype="f2"))
    device = Late()
    loader = samples.batches(8, **options)
    for _ in range(2):
        got = [tensors["x"].numpy() for tensors, _ in ahead(loader, device)]
    want = ordered(samples, **options)
    if not options:
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)), "byte for byte"
    assert len(got) == len(want) and device.most == 2, "one batch ahead"
    assert device.buffers == 2 * 2 * 2, "two for each tensor, made once an epoch"


def test_the_state_is_that_of_what_was_handed_out(climate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace import _torch

    samples = hr.open(climate).samples(along="time", x="t2m")
    make = lambda: samples.batches(8, shuffle=True, seed=3)
    monkeypatch.setattr(_torch, "Cuda", lambda device: Late())
    want = ordered(samples, shuffle=True, seed=3)
    for stop in range(1, len(want) + 1):
        dataset = _torch.Dataset(make(), torch.device("cuda"))
        for number, _ in enumerate(dataset, 1):
            if number == stop:
                inside = dataset.state_dict()
                break
        assert dataset.state_dict() == inside, "after the loop was left, too"
        other = _torch.Dataset(make(), torch.device("cuda"))
        other.load_state_dict(inside)
        rest = [b["x"].numpy() for b in other]
        if stop < len(want):
            assert all(np.array_equal(a, b) for a, b in zip(rest, want[stop:], strict=True))
        else:
            assert inside["epoch"] == 1
    dataset.set_epoch(0)
    assert all(np.array_equal(a["x"].numpy(), b) for a, b in zip(dataset, want, strict=True))
    assert dataset.state_dict()["epoch"] == 1


def test_other_devices(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    for batch, want in zip(samples.batches(8).torch("cpu"), ordered(samples), strict=True):
        assert batch["x"].device.type == "cpu" and np.array_equal(batch["x"].numpy(), want)
    assert next(iter(samples.batches(8).torch("meta")))["x"].device.type == "meta"
    with pytest.raises(hr.InvalidError, match="torch: device='nowhere'"):
        samples.batches(8).torch("nowhere")
    if not torch.cuda.is_available():
        with pytest.raises(hr.InvalidError, match="finds no CUDA device here"):
            samples.batches(8).torch("cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    for epoch in range(2):
        got = [batch["x"].cpu().numpy() for batch in samples.batches(8).torch("cuda")]
        assert all(np.array_equal(a, b) for a, b in zip(got, ordered(samples), strict=True)), epoch
