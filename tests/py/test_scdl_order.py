"""The order of the drop-in's sampler: seeds, epochs, ranks, and where one was left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import headrace as hr
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset
from scdl_make import Cells, Server
from scdl_use import GENES, ROWS, check, order, remote

pytest_plugins = ["scdl_use"]
warnings.filterwarnings("ignore", "Sparse")


def test_the_order_is_that_of_seed_and_epoch(folder: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    sampler = ChunkAwareSampler(ds, seed=7, chunks_per_window=3)
    assert len(sampler) == ROWS
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second
    windows = [{r // 100 for r in first[i : i + 300]} for i in range(0, ROWS, 300)]
    assert sum(map(len, windows)) == 20  # a chunk is read in one window
    again = ChunkAwareSampler(ds, seed=7, chunks_per_window=3)
    next(iter(again))  # broken off: the next epoch is the same
    assert list(again) == second
    again.set_epoch(0)
    assert list(again) == first
    assert list(ChunkAwareSampler(ds, False, False)) == list(range(ROWS))
    assert list(ChunkAwareSampler(ds)) != list(ChunkAwareSampler(ds))


def test_ranks_take_as_many_rows_and_all_of_them(folder: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    for world in (2, 3, 7, 24):
        for shuffle in (True, False):
            parts = [list(ChunkAwareSampler(ds, shuffle, shuffle, seed=5, rank=r, world=world)) for r in range(world)]
            assert (
                {len(p) for p in parts}
                == {-(-ROWS // world)}
                == {len(ChunkAwareSampler(ds, seed=5, rank=0, world=world))}
            )
            assert set().union(*parts) == set(range(ROWS))
            touched = sum(len({r // 100 for r in p}) for p in parts)
            assert touched <= 20 + 2 * world
    with pytest.raises(ValueError, match="give them all one seed"):
        ChunkAwareSampler(ds, rank=0, world=2)


def test_the_rank_is_that_of_the_environment(folder: Path) -> None:
    code = f"""
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset
s = ChunkAwareSampler(SingleCellMemMapDataset({str(folder)!r}, n_cols=300), seed=0)
print(s.rank, s.world, len(s))
"""
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "4"}
    assert subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True,
                          text=True).stdout.split() == ["1", "4", "500"]  # fmt: skip


def test_an_epoch_is_taken_up_where_it_was_left(folder: Path, server: Server, cells: Cells) -> None:
    ds = remote(server)
    sampler = ChunkAwareSampler(ds, seed=7)
    rows, next_rows = order(ds, 0, seed=7), order(ds, 1, seed=7)
    it = iter(DataLoader(ds, 64, sampler=sampler))
    for _ in range(9):
        next(it)
    state = json.loads(json.dumps(sampler.state_dict()))
    assert state["position"] == 9 * 64
    local = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    other = ChunkAwareSampler(local, seed=1)
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert list(other) == rows[9 * 64 :]
    assert list(other) == next_rows
    assert other.state_dict()["epoch"] == 2
    other.load_state_dict(sampler.state_dict(rows=ROWS))
    assert list(other) == next_rows
    for wrong in ({**state, "world": 2}, {**state, "rows": 5}, {}, None):
        with pytest.raises(hr.StateError):
            other.load_state_dict(wrong)  # type: ignore[arg-type]


def test_a_stateful_dataloader_resumes(folder: Path, cells: Cells) -> None:
    stateful: Any = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    rows = order(ds, seed=7)
    for workers in (0, 2):
        loader = stateful(ds, 64, sampler=ChunkAwareSampler(ds, seed=7), num_workers=workers)
        it = iter(loader)
        for _ in range(9):
            next(it)
        state = loader.state_dict()
        resumed = stateful(ds, 64, sampler=ChunkAwareSampler(ds, seed=7), num_workers=workers)
        resumed.load_state_dict(state)
        check(cells, resumed, rows[9 * 64 :])


@pytest.mark.parametrize("windows", [0, -1])
def test_a_window_has_chunks(folder: Path, windows: int) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    with pytest.raises(hr.InvalidError, match=rf"chunks_per_window={windows}: an integer from 1"):
        ChunkAwareSampler(ds, chunks_per_window=windows)
