"""The cache of the drop-in: each defect that the published loader is known for has a test that would catch it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader

import headrace as hr
from headrace.scdl import ChunkAwareSampler
from scdl_make import Cells, Server, until, write
from scdl_use import GENES, ROWS, check, order, remote, used

pytest_plugins = ["scdl_use"]
warnings.filterwarnings("ignore", "Sparse")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("cached", "window"), [(2, 1), (4, 2), (1, 1), (8, 4)])
def test_batches_across_windows_download_nothing_again(
    server: Server, cells: Cells, workers: int, cached: int, window: int
) -> None:
    ds = remote(server, max_cached_chunks=cached)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = ChunkAwareSampler(ds, seed=1, chunks_per_window=window)
    check(cells, DataLoader(ds, 64, sampler=sampler, num_workers=workers), order(ds, seed=1, chunks_per_window=window))
    stats = ds.stats()
    again = 2 if workers and cached <= 2 else 0  # one that falls behind the other by all that the cache holds
    assert 20 <= stats["download_count"] <= 20 + again
    assert stats["redownload_count"] <= again
    assert server.bytes < 1.3 * sum(f.stat().st_size for f in server.root.rglob("*.npy"))
    assert stats["total_bytes_downloaded_mb"] > 0
    assert stats["total_wait_time_sec"] >= stats["cold_start_time_sec"] * 0.5
    assert set(stats) >= {"wall_clock_time_sec", "cache_hits", "throughput_mbps", "per_thread_throughput_mbps"}


def test_what_is_mapped_survives_eviction_and_another_download(server: Server, cells: Cells, tmp_path: Path) -> None:
    ds = remote(server, tmp_path, max_cached_chunks=1)
    values, rows, columns = ds._chunk_loader.get_chunk(0)  # type: ignore[union-attr]
    ds.get_row(150)
    assert not list(tmp_path.rglob("chunk_00000-*"))
    ds.get_row(50)
    assert list(tmp_path.rglob("chunk_00000-*"))
    end = int(cells.indptr[100])
    np.testing.assert_array_equal(values, cells.values[:end])
    np.testing.assert_array_equal(columns, cells.columns[:end])
    np.testing.assert_array_equal(rows, cells.indptr[:101])


def test_chunks_of_the_window_in_use_are_not_the_victims_of_the_next_epoch(server: Server, cells: Cells) -> None:
    ds = remote(server, max_cached_chunks=12)
    loader = DataLoader(ds, 64, sampler=ChunkAwareSampler(ds, seed=1))
    for epoch in range(4):
        check(cells, loader, order(ds, epoch, seed=1))
    assert ds.stats()["download_count"] <= 4 * 20 - 3 * 8  # what is kept is what the next epoch reads first


def test_a_cache_serves_the_next_run_but_not_another_version(tmp_path: Path, cells: Cells) -> None:
    path = write(tmp_path / "a", cells, 500)
    for etags in (True, False):
        with Server(path) as server:
            server.etags = etags
            for run in range(3):
                ds = remote(server, tmp_path / "cache", max_cached_chunks=4)
                check(cells, DataLoader(ds, 64), list(range(ROWS)))
                fresh = ds.stats()["download_count"]
                assert fresh == (4 if run == 0 or not etags else 0)  # without versions, a run trusts nobody else's
            other = Cells(ROWS, GENES, seed=9)
            write(path, other, 500)
            check(other, DataLoader(remote(server, tmp_path / "cache", max_cached_chunks=4), 64), list(range(ROWS)))
            write(path, cells, 500)


def test_a_miss_does_not_wait_behind_what_is_fetched_ahead(server: Server, cells: Cells) -> None:
    held = threading.Event()
    ds = remote(server, max_cached_chunks=3, batch_download_size=2)
    sampler = ChunkAwareSampler(ds, seed=1, shuffle_chunks=False)
    server.rule = lambda path, handler: (
        held.wait(20) and None if path.startswith(("chunk_00001", "chunk_00002")) else None
    )
    next(iter(sampler))
    until(lambda: any(path.startswith("chunk_00001") for path in server.asked))
    np.testing.assert_array_equal(ds.get_row(1234)[0][0], cells.row(1234)[0])
    assert not held.is_set()
    held.set()


def test_the_bytes_of_the_cache_are_bounded(server: Server, cells: Cells, tmp_path: Path) -> None:
    size = max(sum(f.stat().st_size for f in d.iterdir()) for d in server.root.glob("chunk_*"))
    ds = remote(server, tmp_path, max_cached_chunks=10, max_cached_bytes=3 * size)
    most = 0
    for _ in DataLoader(ds, 64, sampler=ChunkAwareSampler(ds, seed=1)):
        most = max(most, min(used(tmp_path) for _ in range(3)))  # a walk may see what goes and what comes for it
    assert 0 < most <= 3 * size
    assert ds.stats()["redownload_count"] == 0


def test_a_directory_of_its_own_is_gone_at_the_end(server: Server, tmp_path: Path) -> None:
    code = f"""
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset as D
from torch.utils.data import DataLoader
ds = D.from_remote({server.url!r}, n_cols=300)
for batch in DataLoader(ds, 64, sampler=ChunkAwareSampler(ds), num_workers=1): pass
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], check=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert not list(tmp_path.glob("scdl_cache_*"))


def test_cleanup_removes_what_the_dataset_has(server: Server, tmp_path: Path) -> None:
    ds = remote(server, tmp_path)
    ds.get_row(5)
    assert ds._chunk_loader is not None
    ds._chunk_loader.cleanup()
    assert not list(tmp_path.rglob("*.npy"))
    with pytest.raises(hr.ClosedError, match="cleaned up"):
        ds.get_row(5)
