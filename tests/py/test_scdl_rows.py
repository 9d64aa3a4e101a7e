"""Rows of the drop-in: of every layout, with features and neighbours, and batches of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import headrace as hr
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset, collate_sparse_matrix_batch
from scdl_make import Cells, Server, write
from scdl_use import GENES, ROWS, check, order, remote

pytest_plugins = ["scdl_use"]
warnings.filterwarnings("ignore", "Sparse")


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
