"""headrace.scdl as BioNeMo users use it: rows, batches, the cache, the order. Each defect that the published remote loader
is known for has a test that would catch it."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import headrace as hr
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset, collate_sparse_matrix_batch
from scdl_make import FILES, Cells, Server, header, until, write

warnings.filterwarnings("ignore", "Sparse")
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


# ---- rows of every layout


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "f2", "f4", "f8"])
@pytest.mark.parametrize("kind", ["plain", "chunked", "remote", "packed", "remote plain"])
def test_rows_are_those_that_were_written(tmp_path: Path, kind: str, dtype: str) -> None:
    m = Cells(130, 70000 if dtype == "f4" else 90, dtype=dtype)
    path = write(tmp_path / "a", m, 0 if "plain" in kind else 50, packed=kind == "packed")
    opened: Any = SingleCellMemMapDataset if kind in ("plain", "chunked") else SingleCellMemMapDataset.from_remote
    ds = opened(str(path), n_cols=m.genes)
    assert len(ds) == 130
    for i in range(130):
        (values, columns), var, obs = ds.get_row(i)
        assert (var, obs) == (None, None)
        np.testing.assert_array_equal(values, m.row(i)[0])
        np.testing.assert_array_equal(columns, m.row(i)[1])
        assert values.dtype == m.values.dtype
        assert columns.dtype == m.columns.dtype
    np.testing.assert_array_equal(ds.get_row_padded(7)[0], m.dense([7])[0])
    assert ds.number_nonzero_values() == len(m.values)
    batch = next(iter(DataLoader(ds, 130)))
    np.testing.assert_array_equal(batch.to_dense().numpy(), m.dense())
    assert batch.shape == (130, m.genes)


def test_a_row_is_a_tensor_of_values_over_columns(folder: Path, cells: Cells) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    values, columns = cells.row(42)
    for row in (ds[42], ds[np.int64(42)], ds[42 - ROWS], ds.__getitems__([3, 42])[1]):
        assert isinstance(row, torch.Tensor)
        assert row.shape == (2, len(values))
        np.testing.assert_array_equal(row[0].numpy(), values)
        np.testing.assert_array_equal(row[1].numpy(), columns)
    assert float(ds.get_row_column(42, int(columns[0])) or 0) == values[0]
    absent = next(g for g in range(GENES) if g not in columns)
    assert ds.get_row_column(42, absent) == 0.0
    assert ds.get_row_column(42, absent, impute_missing_zeros=False) is None
    for bad in (ROWS, -ROWS - 1):
        with pytest.raises(IndexError, match=f"row {bad} .* which has {ROWS}"):
            ds.get_row(bad)
        with pytest.raises(IndexError):
            ds[bad]


def test_features_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    m = Cells(200, 80)
    with Server(write(tmp_path / "a", m, 50, features=True)) as server:
        ds = SingleCellMemMapDataset.from_remote(server.url)
        assert ds.shape() == (200, [80])
        assert ds.number_of_values() == 200 * 80
        assert ds.sparsity() == pytest.approx(1 - len(m.values) / 16000)
        assert next(iter(DataLoader(ds, 8))).shape == (8, 80)
        assert server.count("obs_features/dataframe_0.parquet") == 0
        _, var, obs = ds.get_row(5, True, ["feature_id"], True, ["cell_type", "n"])
        assert var is not None
        assert var[0][79] == "gene 79"
        assert obs == ["type 2", 5]
        assert ds.obs_features().number_of_rows() == 200
        assert ds.obs_features()[3:9:2][0][0]["n"].tolist() == [3, 5, 7]
        with pytest.raises(ValueError, match="did you mean 'cell_type'"):
            ds.get_row(5, return_obs_features=True, obs_feature_names=["cell_tpe"])
        assert server.count("obs_features/dataframe_0.parquet") == 1
        assert ds.version() == "0.1.3"
        (tmp_path / "a" / "var_features" / "dataframe_0.parquet").write_bytes(b"PAR1 not")
        with pytest.raises(hr.FormatError, match="var_features: the table of block 0 cannot be read"):
            SingleCellMemMapDataset(str(tmp_path / "a")).shape()


def test_neighbours_are_sampled(tmp_path: Path) -> None:
    m = Cells(50, 40)
    path = write(tmp_path / "a", m)
    indptr = np.concatenate([[0, 0], np.arange(1, 50) * 2]).astype("u8")
    indices = np.arange(98, dtype="u4") % 50
    for name, array in (("indptr", indptr), ("indices", indices), ("values", np.ones(98, "f4"))):
        (path / f"neighbor_{name}.npy").write_bytes(array.tobytes())
    ds = SingleCellMemMapDataset(str(path), load_neighbors=True, neighbor_sampling_strategy="first", n_cols=40)
    found = ds.get_row_with_neighbor(3)
    assert found["next_cell_index"] == indices[4]
    np.testing.assert_array_equal(found["next_cell"][1], m.row(int(indices[4]))[1])
    assert ds.get_row_padded_with_neighbor(3)["current_cell"].shape == (40,)
    assert ds.sample_neighbor_index(0) == 0
    assert ds.get_neighbor_stats()["cells_with_no_neighbors"] == 1
    (path / "neighbor_values.npy").write_bytes(b"1234")
    with pytest.raises(hr.DataError, match=r"neighbor_indptr.npy: .* do not fit"):
        SingleCellMemMapDataset(str(path), load_neighbors=True)


def damaged_neighbors(path: Path, name: str, array: Any) -> SingleCellMemMapDataset:
    (path / f"neighbor_{name}.npy").write_bytes(bytes(array))
    return SingleCellMemMapDataset(str(path), load_neighbors=True, neighbor_sampling_strategy="first", n_cols=40)


def test_damaged_neighbours_are_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a", Cells(50, 40))
    indptr, indices = np.arange(51, dtype="u8") * 2, np.arange(100, dtype="u4") % 50
    for name, array in (("indptr", indptr), ("indices", indices), ("values", np.ones(100, "f4"))):
        (path / f"neighbor_{name}.npy").write_bytes(array.tobytes())
    with pytest.raises(hr.DataError, match=r"neighbor_values.npy: 397 bytes, no multiple of 4"):
        damaged_neighbors(path, "values", np.ones(100, "f4").tobytes()[:-3])
    (path / "neighbor_values.npy").write_bytes(np.ones(100, "f4").tobytes())
    falling = np.where(np.arange(51) == 7, 2, indptr).astype("u8")
    with pytest.raises(hr.DataError, match=r"neighbours of cell 6 go from 12 to 2, of 100"):
        damaged_neighbors(path, "indptr", falling.tobytes()).sample_neighbor_index(6)
    (path / "neighbor_indptr.npy").write_bytes(indptr.tobytes())
    with pytest.raises(hr.DataError, match=r"cell 3 has the neighbour 50, of 50 cells"):
        damaged_neighbors(
            path, "indices", np.where(np.arange(100) == 7, 50, indices).astype("u4").tobytes()
        ).sample_neighbor_index(3)


# ---- batches


@pytest.mark.parametrize("context", [None, "fork", "spawn"])
def test_batches_under_torchs_own_collate(server: Server, cells: Cells, context: str | None) -> None:
    ds = remote(server)
    loader = DataLoader(
        ds,
        batch_size=64,
        sampler=ChunkAwareSampler(ds, seed=3),
        num_workers={None: 0, "fork": 2, "spawn": 1}[context],
        multiprocessing_context=context,
    )
    for epoch in range(
        1 if context == "spawn" else 2
    ):  # the second time workers are forked after this process has read
        check(cells, loader, order(ds, epoch, seed=3))
    ds.get_row(5)
    check(cells, DataLoader(ds, 64, num_workers=1), list(range(ROWS)))


def test_workers_that_persist_follow_every_epoch(server: Server, cells: Cells) -> None:
    ds = remote(server)
    loader = DataLoader(ds, batch_size=64, sampler=ChunkAwareSampler(ds, seed=3), num_workers=2,
                        persistent_workers=True)  # fmt: skip
    for epoch in range(3):
        check(cells, loader, order(ds, epoch, seed=3))
    assert ds.stats()["download_count"] <= 60


def test_the_width_is_that_of_the_dataset_and_values_stay_exact(tmp_path: Path) -> None:
    m = Cells(64, 65000, dtype="f2")  # column numbers are no float16
    ds = SingleCellMemMapDataset(str(write(tmp_path / "a", m, 16)), n_cols=65000)
    fast = next(iter(DataLoader(ds, 64)))
    slow = next(iter(DataLoader([ds[i] for i in range(64)], 64)))  # type: ignore[arg-type]
    for batch in (fast, slow, collate_sparse_matrix_batch([ds[i] for i in range(64)])):
        assert batch.shape == (64, 65000)
        assert batch.dtype == torch.float16
        np.testing.assert_array_equal(batch.to_dense().numpy(), m.dense())


def test_bionemos_collate_function_takes_the_rows(folder: Path, cells: Cells) -> None:
    collate: Any = pytest.importorskip("bionemo.scdl.util.torch_dataloader_utils").collate_sparse_matrix_batch
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    for workers in (0, 2):
        at = 0
        for batch in DataLoader(ds, 64, collate_fn=collate, num_workers=workers):
            rows = range(at, at + batch.shape[0])
            np.testing.assert_array_equal(batch.to_dense().numpy(), cells.dense(rows)[:, : batch.shape[1]])
            at += batch.shape[0]


def test_the_width_has_to_be_known(folder: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder))
    assert ds.number_of_variables() == [0]
    with pytest.raises(ValueError, match="give n_cols= to the dataset"):
        next(iter(DataLoader(ds, 4)))


# ---- the cache: the defects of the published loader


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
    assert stats["download_count"] == 20
    assert stats["redownload_count"] == 0
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


def test_packed_chunks_give_the_rows_that_were_packed(tmp_path: Path) -> None:
    m = Cells(500, GENES, seed=5)
    with Server(write(tmp_path / "a", m, 50, packed=True)) as server:
        ds = remote(server)
        check(m, DataLoader(ds, 64, sampler=ChunkAwareSampler(ds, seed=1)), order(ds, seed=1))
        assert ds.number_nonzero_values() == len(m.values)
        file = tmp_path / "a" / "chunk_00003" / "chunk.npz"
        file.write_bytes(file.read_bytes()[:-100])
        with pytest.raises(hr.DataError, match=r"chunk_00003/chunk.npz: cut or broken"):
            remote(server).get_row(170)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["cut", "torn", "longer", "empty", "absent"])
def test_files_of_another_size_are_refused_by_name(tmp_path: Path, cells: Cells, name: str, change: str) -> None:
    path = write(tmp_path / "a", cells, 500)
    file = path / "chunk_00001" / name
    content = file.read_bytes()
    if change == "absent":
        file.unlink()
    else:
        file.write_bytes(
            {"cut": content[:-8], "torn": content[:-3], "longer": content + b"\1" * 8, "empty": b""}[change]
        )
    with Server(path) as server:
        for ds in (remote(server), SingleCellMemMapDataset(str(path), n_cols=GENES)):
            assert len(ds.get_row(70)[0][0]) == len(cells.row(70)[0])
            with pytest.raises(
                (hr.DataError, hr.FormatError), match=r"chunk_00001/(data|row_ptr|col_ptr)\.npy|chunk_00001: neither"
            ):
                ds.get_row(600)
            with pytest.raises((hr.DataError, hr.FormatError)):
                ds.__getitems__([70, 600])


def test_a_file_that_is_cut_while_it_comes_is_not_kept(server: Server, tmp_path: Path) -> None:
    def rule(path: str, handler: Any) -> int | None:
        if path.endswith("chunk_00003/data.npy") and "=-" not in handler.headers.get("Range", ""):
            handler.send_response(206)
            handler.send_header("Content-Range", "bytes 0-99/100")
            handler.send_header("Content-Length", "100")
            handler.end_headers()
            handler.wfile.write(b"x" * 100)
            raise ConnectionError
        return None

    server.rule = rule
    ds = remote(server, tmp_path)
    with pytest.raises(hr.Error, match=r"chunk_00003/data\.npy"):
        ds.get_row(350)
    assert not list(tmp_path.rglob("chunk_00003-*"))
    assert not list(tmp_path.rglob("*.part-*"))
    server.rule = lambda path, handler: None
    ds.get_row(250)


def test_what_row_ptr_and_columns_say_is_checked(tmp_path: Path, cells: Cells) -> None:
    path = write(tmp_path / "a", cells, 500)
    wrong = np.fromfile(path / "chunk_00002" / "row_ptr.npy", "u8")
    wrong[17], wrong[18] = wrong[18] + 1, wrong[17]
    wrong.tofile(path / "chunk_00002" / "row_ptr.npy")
    columns = np.fromfile(path / "chunk_00003" / "col_ptr.npy", "u2")
    columns[int(cells.indptr[1550] - cells.indptr[1500])] = GENES
    columns.tofile(path / "chunk_00003" / "col_ptr.npy")
    with Server(path) as server:
        for ds in (remote(server), SingleCellMemMapDataset(str(path), n_cols=GENES)):
            with pytest.raises(hr.DataError, match=r"chunk_00002/row_ptr\.npy: row 10\d\d ends before it begins"):
                ds[1400]
            with pytest.raises(hr.DataError, match=r"chunk_00003/col_ptr\.npy: row 1550 has column 300"):
                ds.__getitems__(range(1540, 1560))


def test_headers_that_lie_are_refused(tmp_path: Path, cells: Cells) -> None:
    path = write(tmp_path / "a", cells, 500)
    good = (path / "header.sch").read_bytes()
    cases = {
        "DATA.*cut or header|data.npy: .* names another type": header(cells, 500, data_type="f8"),
        "header.sch: 2000 rows in chunks of 500 are not 5 chunks": good[:-12] + b"\0\0\0\5" + good[-8:],
        "header.sch: the header ends within": good[:40],
        "header.sch: this is no SCDL header": b"ABCD" + good[4:],
        "header.sch: backend 9": good[:11] + b"\x09" + good[12:],
        "header.sch: backend 2 .* does not say how": good[:-17] + b"\0",
    }
    for message, data in cases.items():
        (path / "header.sch").write_bytes(data)
        with pytest.raises((hr.FormatError, hr.DataError), match=message):
            SingleCellMemMapDataset(str(path), n_cols=GENES)[0]
    (path / "header.sch").unlink()
    with pytest.raises(hr.Error, match=r"row_ptr\.npy: missing"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SingleCellMemMapDataset(str(path))
    with pytest.raises(KeyError, match="no SCDL dataset"):
        SingleCellMemMapDataset.from_remote(str(tmp_path))


def test_a_server_that_fails_is_not_a_missing_file(server: Server) -> None:
    server.rule = lambda path, handler: 403 if path == "header.sch" else None
    with pytest.raises(hr.StoreError, match=r"header\.sch.*403"):
        remote(server)
    works = threading.Event()
    server.rule = lambda path, handler: 503 if path.endswith("chunk_00000/col_ptr.npy") and not works.is_set() else None
    ds = remote(server)
    threading.Timer(0.3, works.set).start()
    assert len(ds.get_row(50)[0]) == 2  # tried again until it works
    assert all("." in path.rsplit("/", 1)[-1] for path in server.asked)  # nothing is listed


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


def test_what_fails_ahead_is_raised_when_it_is_needed(server: Server, cells: Cells) -> None:
    (server_rows,) = (order(remote(server), seed=1),)
    bad = server_rows[150] // 100
    server.rule = lambda path, handler: 404 if path.startswith(f"chunk_{bad:05d}/data") else None
    ds = remote(server, max_cached_chunks=3)
    seen = 0
    with pytest.raises(hr.FormatError, match=f"chunk_{bad:05d}/data.npy: missing"):
        for batch in DataLoader(ds, 25, sampler=ChunkAwareSampler(ds, seed=1)):
            seen += batch.shape[0]
    assert seen == 100
    server.rule = lambda path, handler: None
    np.testing.assert_array_equal(ds.get_row(bad * 100 + 5)[0][0], cells.row(bad * 100 + 5)[0])


def test_a_server_without_ranges_gives_whole_files(server: Server, cells: Cells) -> None:
    server.ranges = False
    ds = remote(server)
    check(cells, DataLoader(ds, 64, sampler=ChunkAwareSampler(ds, seed=1)), order(ds, seed=1))


# ---- processes

_CHILD = """
import sys, time
from headrace.scdl import SingleCellMemMapDataset as D
ds = D.from_remote(sys.argv[1], sys.argv[2], max_cached_chunks=int(sys.argv[3]), n_cols=300)
print("begun", flush=True)
for row in map(int, sys.argv[4:]):
    ds.get_row(row)
print(ds.stats()["download_count"], flush=True)
"""


def child(server: Server, cache: Path, *rows: int, cached: int = 20) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _CHILD, server.url, str(cache), str(cached), *map(str, rows)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_what_one_downloads(server: Server, tmp_path: Path) -> None:
    server.rule = lambda path, handler: time.sleep(0.05)
    rows = range(50, ROWS, 100)
    both = [child(server, tmp_path, *rows) for _ in range(2)]
    counts = [int(p.communicate(timeout=60)[0].split()[-1]) for p in both]
    assert sum(counts) == 20
    assert all(server.count(f"chunk_{i:05d}/data.npy") <= 3 for i in range(20))


def test_a_process_that_is_killed_while_it_downloads_leaves_nothing_in_the_way(
    server: Server, cells: Cells, tmp_path: Path
) -> None:
    stuck, come = threading.Event(), threading.Event()

    def rule(path: str, handler: Any) -> None:
        if path.endswith("chunk_00000/data.npy") and "=-" not in handler.headers.get("Range", "") and not come.is_set():
            stuck.set()
            come.wait(20)

    server.rule = rule
    process = child(server, tmp_path, 50)
    assert stuck.wait(30)
    assert list(tmp_path.rglob("chunk_00000.part-*"))
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    come.set()
    ds = remote(server, tmp_path)
    np.testing.assert_array_equal(ds.get_row(50)[0][0], cells.row(50)[0])
    assert not list(tmp_path.rglob("*.part-*"))
    assert process.stdout
    process.stdout.close()


def test_chunks_that_another_process_holds_are_not_evicted(server: Server, tmp_path: Path) -> None:
    holder, other = remote(server, tmp_path, max_cached_chunks=2), remote(server, tmp_path, max_cached_chunks=1)
    holder.get_row(50)
    for row in range(150, 1000, 100):
        other.get_row(row)
    assert len(list(tmp_path.rglob("chunk_00000-*"))) == 1
    assert len(list(tmp_path.rglob("chunk_*-*"))) == 2
    holder.get_row(60)
    assert holder.stats()["download_count"] == 1


def _rows_in_child(ds: Any, out: Any) -> None:
    out.put([ds.get_row(i)[0][0].tolist() for i in (50, 150, 50)])


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_dataset_works_in_processes_that_are_made_of_this_one(server: Server, cells: Cells, how: str) -> None:
    ds = remote(server, max_cached_chunks=1)
    ds.get_row(50)
    context: Any = multiprocessing.get_context(how)
    out = context.Queue()
    process = context.Process(target=_rows_in_child, args=(ds, out))
    process.start()
    got = out.get(timeout=60)
    process.join(30)
    assert process.exitcode == 0
    assert got == [cells.row(i)[0].tolist() for i in (50, 150, 50)]
    ds.get_row(250)
    copy = pickle.loads(pickle.dumps(ds))
    np.testing.assert_array_equal(copy.get_row(350)[0][0], cells.row(350)[0])


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


# ---- the order


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


def test_arguments_are_checked(folder: Path, tmp_path: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    plain = SingleCellMemMapDataset(str(write(tmp_path / "p", Cells(10, 10))), n_cols=10)
    with pytest.raises(ValueError, match="requires a chunked dataset"):
        ChunkAwareSampler(plain)
    with pytest.raises(ValueError, match=r"open a URL by .*from_remote"):
        SingleCellMemMapDataset("s3://bucket/x")
    with pytest.raises(KeyError, match="no such directory"):
        SingleCellMemMapDataset(str(tmp_path / "absent"))
    with pytest.raises(hr.UnsupportedError, match="datasets are read here, not made"):
        SingleCellMemMapDataset(str(tmp_path / "new"), h5ad_path="x.h5ad")
    with pytest.raises(ValueError, match="max_cached_chunks=0"):
        SingleCellMemMapDataset.from_remote(str(folder), max_cached_chunks=0)
    with pytest.warns(UserWarning, match="at least 6"):
        ChunkAwareSampler(SingleCellMemMapDataset.from_remote(str(folder)), chunks_per_window=3)
    assert ds.stats() == {}


def test_errors_say_where_else_it_is_done(folder: Path, tmp_path: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    plain = SingleCellMemMapDataset(str(write(tmp_path / "p", Cells(10, 10))), n_cols=10)
    with pytest.raises(ValueError, match="`headrace cells chunk SRC DST` makes one"):
        ChunkAwareSampler(plain)
    for h5ad in ({"h5ad_path": "x.h5ad"}, {}):
        with pytest.raises(hr.Error, match=r"and so does, chunked, `headrace cells chunk atlas\.h5ad DIRECTORY`"):
            SingleCellMemMapDataset(str(tmp_path / "new"), **h5ad)
    with pytest.raises(hr.UnsupportedError, match="mode='w': datasets are read here"):
        SingleCellMemMapDataset(str(folder), mode="w")
    assert len(SingleCellMemMapDataset(str(folder), mode="r+")) == ROWS
    with pytest.raises(hr.InvalidTypeError, match=r"slice\(3, 6, None\)\]: the number of a row is expected"):
        ds[3:6]  # type: ignore[index]
    with pytest.raises(hr.InvalidTypeError, match="the number of a row is expected"):
        ds[np.array([3, 5, 8])]  # type: ignore[index]
    for name, words in (("to_chunked", "headrace cells chunk"), ("concat", "hr.cells"), ("save", "nothing is changed")):
        assert not hasattr(ds, name)
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': .*{words}"):
            getattr(ds, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        ds.nonsense  # noqa: B018
    (tmp_path / "zarr").mkdir()
    (tmp_path / "zarr" / "zarr.json").write_text("{}")
    with pytest.raises(hr.NotFoundError, match=r"there is a Zarr archive: headrace\.open"):
        SingleCellMemMapDataset(str(tmp_path / "zarr"))


def test_all_print_as_what_they_are(folder: Path, tmp_path: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    assert repr(ds) == f"<SingleCellMemMapDataset {folder}: 2,000 cells × 300 genes in 20 chunks of 100>"
    sampler = ChunkAwareSampler(ds, seed=7, chunks_per_window=2, rank=0, world=2)
    words = "1,000 rows in windows of 2 of 20 chunks, seed 7, rank 0 of 2; next epoch 0"
    assert repr(sampler) == f"<ChunkAwareSampler: {words}>"
    featured = SingleCellMemMapDataset(str(write(tmp_path / "f", Cells(10, 8), features=True)))
    assert repr(featured).endswith("/f: 10 cells × 8 genes>")
    assert len(featured.var_features()) == 1
    assert repr(featured.var_features()) == "<VariableFeatureIndex var_features: 10 rows in 1 block>"
    assert repr(ds.var_features()) == "<VariableFeatureIndex of nothing: 0 rows in 0 blocks>"


# ---- the published usage, but for the import


def usage(
    remote_path: str, storage_options: dict[str, Any] | None, cache_dir: Path, cells: Cells, collate: Any
) -> None:
    ds = SingleCellMemMapDataset.from_remote(
        remote_path, cache_dir=str(cache_dir), max_cached_chunks=4, storage_options=storage_options or None
    )
    assert len(ds) == ROWS
    assert ds.header is not None
    assert ds.header.chunked_info is not None
    assert (ds.header.chunked_info.num_chunks, ds.header.chunked_info.chunk_size) == (20, 100)
    sampler = ChunkAwareSampler(ds, shuffle_chunks=True, shuffle_within_window=True, chunks_per_window=2, seed=42)
    rows = order(ds, seed=42, chunks_per_window=2)
    loader = DataLoader(ds, sampler=sampler, batch_size=64, collate_fn=collate)
    at = 0
    for batch in loader:
        n = batch.shape[0]
        np.testing.assert_array_equal(batch.to_dense().numpy(), cells.dense(rows[at : at + n])[:, : batch.shape[1]])
        at += n
    assert at == ROWS
    if ds._chunk_loader:
        assert ds._chunk_loader.stats.summary()["download_count"] == 20
        ds._chunk_loader.cleanup()


def collates() -> list[Any]:
    own = [None, collate_sparse_matrix_batch]
    try:
        from bionemo.scdl.util.torch_dataloader_utils import collate_sparse_matrix_batch as theirs
    except ImportError:
        return own
    return [*own, theirs]


@pytest.fixture(scope="module")
def featured(tmp_path_factory: pytest.TempPathFactory, cells: Cells) -> Path:
    pytest.importorskip("pyarrow")
    return write(tmp_path_factory.mktemp("scdl") / "chunked_scdl", cells, 100, features=True)


def test_the_published_usage_over_http(featured: Path, cells: Cells, tmp_path: Path) -> None:
    for i, collate in enumerate(collates()):
        with Server(featured) as server:
            usage(server.url, None, tmp_path / str(i), cells, collate)


@pytest.mark.parametrize("kind", ["moto", "rgw"])
def test_the_published_usage_over_s3(featured: Path, cells: Cells, tmp_path: Path, kind: str) -> None:
    from test_s3 import Bucket

    bucket = Bucket(kind)
    try:
        bucket.upload(featured, "atlas/chunked scdl/")
        options = {
            "key": bucket.options["key"],
            "secret": bucket.options["secret"],
            "client_kwargs": {"endpoint_url": bucket.options["endpoint_url"]},
        }
        for i, collate in enumerate(collates()):
            usage("s3://bkt/atlas/chunked scdl", options, tmp_path / str(i), cells, collate)
        with pytest.raises(hr.Error, match="no SCDL dataset"):
            SingleCellMemMapDataset.from_remote("s3://bkt/atlas/absent", storage_options=options)
    finally:
        bucket.close()


def test_the_published_usage_on_a_path(featured: Path, cells: Cells, tmp_path: Path) -> None:
    usage(str(featured), None, tmp_path / "a", cells, None)
    usage(f"file://{featured}", None, tmp_path / "b", cells, None)
