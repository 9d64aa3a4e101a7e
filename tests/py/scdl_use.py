"""What tests of the drop-in share: cells in 20 chunks, a server of them, and how datasets are opened and compared."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset
from scdl_make import Cells, Server, write

ROWS, GENES = 2000, 300


@pytest.fixture(scope="module")
def cells() -> Cells:
    return Cells(ROWS, GENES)


@pytest.fixture(scope="module")
def folder(cells: Cells, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 chunks of 100 rows."""
    return write(tmp_path_factory.mktemp("scdl") / "chunked", cells, 100)


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with Server(folder) as s:
        yield s


def remote(server: Any, cache: Any = None, **options: Any) -> SingleCellMemMapDataset:
    return SingleCellMemMapDataset.from_remote(server.url, cache, n_cols=GENES, **options)


def check(cells: Cells, loader: Any, rows: list[int]) -> None:
    """Batches in the order of `rows`."""
    at = 0
    for batch in loader:
        n = batch.shape[0]
        assert batch.layout == torch.sparse_csr
        assert batch.shape == (n, GENES)
        np.testing.assert_array_equal(batch.to_dense().numpy(), cells.dense(rows[at : at + n]))
        at += n
    assert at == len(rows)


def used(folder: Path) -> int:
    """Bytes of arrays there, while files come and go."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(f"{where}/{name}").st_size if name.endswith(".npy") else 0
            except FileNotFoundError:
                pass
    return total


def order(dataset: Any, epoch: int = 0, **options: Any) -> list[int]:
    """What a sampler yields, asked of one that tells nobody."""
    sampler = ChunkAwareSampler(dataset, **options)
    sampler._follow = lambda *_: None  # type: ignore[method-assign]
    sampler.set_epoch(epoch)
    return list(sampler)
