"""`Loader` as a torch dataset."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from headrace._device import Cuda, ahead


class Dataset(IterableDataset):
    """Yields dicts of tensors; carries the loader's state for ``StatefulDataLoader``.

    Whole batches come out, so wrap it with ``batch_size=None`` and no workers: the loader has threads of its own.
    """

    def __init__(self, loader: Any, device: torch.device | None = None) -> None:
        self.loader = loader
        self.device = device
        self._state: dict[str, Any] | None = None  # of what was handed out, where more than that was taken

    def __iter__(self) -> Any:
        info = get_worker_info()
        if info is not None:
            from headrace._errors import ForkError

            raise ForkError(
                f"a Headrace loader runs in the process that opened it, not in one of {info.num_workers} DataLoader "
                "workers: use num_workers=0 (it decodes on threads of its own)"
            )
        if self.device is not None and self.device.type == "cuda":
            return self._ahead(Cuda(self.device))
        return self._each()

    def _each(self) -> Any:
        for batch in self.loader:
            tensors = batch.torch()
            yield tensors if self.device is None else {name: x.to(self.device) for name, x in tensors.items()}

    def _ahead(self, cuda: Any) -> Any:
        self._state = None
        for tensors, state in ahead(self.loader, cuda):
            self._state = state  # it stays where the loop is left
            yield tensors
        self._state = None

    def __len__(self) -> int:
        return len(self.loader)

    def __repr__(self) -> str:
        from headrace._report import loader_text

        return loader_text(self.loader, "Dataset of torch tensors")

    def set_epoch(self, epoch: int) -> None:
        self._state = None
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict() if self._state is None else self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = None
        self.loader.load_state_dict(state)


def dataset(loader: Any, device: object = None) -> Dataset:
    return Dataset(loader, None if device is None else _device(device))


def _device(device: Any) -> torch.device:
    from headrace._arguments import refuse

    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as e:
        refuse("torch: device", device, f"a torch.device, or its name, is expected ({str(e).splitlines()[0]})")
    if found.type == "cuda" and not torch.cuda.is_available():
        refuse("torch: device", device, "torch finds no CUDA device here")
    return found
