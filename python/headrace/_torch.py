"""`Loader` as a torch dataset."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info


class Dataset(IterableDataset):
    """Yields dicts of tensors; carries the loader's state for ``StatefulDataLoader``.

    Whole batches come out, so wrap it with ``batch_size=None`` and no workers: the loader has threads of its own.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Any:
        info = get_worker_info()
        if info is not None:
            from headrace._errors import ForkError

            raise ForkError(
                f"a Headrace loader runs in the process that opened it, not in one of {info.num_workers} DataLoader "
                "workers: use num_workers=0 (it decodes on threads of its own)"
            )
        for batch in self.loader:
            yield {name: torch.from_dlpack(tensor) for name, tensor in batch.items()}

    def __len__(self) -> int:
        return len(self.loader)

    def __repr__(self) -> str:
        from headrace._report import loader_text

        return loader_text(self.loader, "Dataset of torch tensors")

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()  # type: ignore[no-any-return]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(state)


def dataset(loader: Any) -> Dataset:
    return Dataset(loader)
