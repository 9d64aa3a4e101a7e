"""Single cells in SCDL, under the names BioNeMo users know.

    from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset

    ds = SingleCellMemMapDataset.from_remote("s3://bucket/chunked_scdl")
    loader = DataLoader(ds, batch_size=64, sampler=ChunkAwareSampler(ds, seed=0))
    for batch in loader:                # a sparse CSR tensor of 64 rows and as many columns as there are genes
        ...

Plain and chunked SCDL directories are read; nothing is written. numpy and torch are imported when they are used.
"""

from __future__ import annotations

_LATER = {
    "ChunkAwareSampler": "_sampler",
    "SingleCellMemMapDataset": "_dataset",
    "collate_sparse_matrix_batch": "_rows",
    "remote_worker_init_fn": "_sampler",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'headrace.scdl' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"headrace.scdl.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


TYPE_CHECKING = False
if TYPE_CHECKING:
    from headrace.scdl._dataset import SingleCellMemMapDataset
    from headrace.scdl._rows import collate_sparse_matrix_batch
    from headrace.scdl._sampler import ChunkAwareSampler, remote_worker_init_fn

__all__ = ["ChunkAwareSampler", "SingleCellMemMapDataset", "collate_sparse_matrix_batch", "remote_worker_init_fn"]
