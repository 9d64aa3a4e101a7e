"""SCDL archives: plain, chunked and zipped; on disk, behind every kind of server, from a store of the caller's."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from faults import KINDS, QUICK, opened, serving
from scdl_writer import (
    Matrix,
    header,
    index_files,
    random_matrix,
    smallest,
    write_chunked,
    write_neighbors,
    write_npz,
    write_plain,
)
from test_store_bridge import Own, objects_of

M = random_matrix(250, 300)
ROWS = 100  # of a chunk


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write_plain(tmp_path / "plain", M)


@pytest.fixture
def chunked(tmp_path: Path) -> Path:
    return write_chunked(tmp_path / "chunked", M, ROWS)


def same(archive: hr.Archive, group: str, m: Matrix) -> None:
    for name, array in (("data", m.data), ("indices", m.indices), ("indptr", m.indptr)):
        got = archive[f"{group}/{name}"].read()
        assert got.dtype == array.dtype
        assert np.array_equal(got, array)


def same_chunks(archive: hr.Archive) -> None:
    for k, first in enumerate(range(0, M.rows, ROWS)):
        same(archive, f"chunk_{k:05d}", M.part(first, min(first + ROWS, M.rows)))


# ---- what is read


def test_a_plain_archive_is_a_csr_matrix(plain: Path) -> None:
    archive = hr.open(plain)
    assert archive.info["format"] == "SCDL"
    assert archive.arrays == ["X/data", "X/indices", "X/indptr"]
    same(archive, "X", M)
    group = next(n for n in archive.info["nodes"] if n["path"] == "X")
    assert group["attributes"]["encoding-type"] == "csr_matrix"
    assert group["attributes"]["shape"] == [250, None]
    assert archive.attributes["n_obs"] == 250
    assert archive.attributes["nnz"] == len(M.data)
    assert archive.attributes["obs_features"]["files"] == index_files("obs_features")
    assert "obsp/neighbors/data" not in archive


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("genes", [200, 300, 70000])
def test_every_type_of_values_and_places(tmp_path: Path, dtype: str, genes: int) -> None:
    m = random_matrix(40, genes, density=0.05, dtype=dtype)
    assert m.indices.dtype == smallest(genes - 1)
    same(hr.open(write_plain(tmp_path / "a", m)), "X", m)


def test_neighbours_are_a_matrix_of_their_own(plain: Path) -> None:
    near = random_matrix(250, 250, density=0.02)
    write_neighbors(plain, near)
    archive = hr.open(plain)
    want = Matrix(near.data, near.indices.astype("u4"), near.indptr.astype("u8"), 250)
    same(archive, "obsp/neighbors", want)
    assert len(hr.open(plain).arrays) == 6


def test_chunks_are_matrices_and_found_by_name(chunked: Path) -> None:
    archive = hr.open(chunked)
    assert archive.info["format"] == "SCDL chunked"
    assert archive.attributes["n_chunks"] == 3
    assert archive.attributes["chunk_rows"] == ROWS
    assert len(archive.arrays) == 9
    same_chunks(archive)
    with pytest.raises(hr.NotFoundError, match="has 3 chunks"):
        hr.open(chunked)["chunk_00003/data"]


@pytest.mark.parametrize("compress", [True, False])
def test_zipped_chunks_give_the_same_numbers(tmp_path: Path, compress: bool) -> None:
    archive = hr.open(write_npz(tmp_path / "npz", M, ROWS, compress=compress))
    same_chunks(archive)
    assert archive["chunk_00000/data"][3:7].tolist() == M.data[3:7].tolist()


def test_a_thousand_chunks_cost_nothing_until_they_are_asked_for(tmp_path: Path) -> None:
    m = random_matrix(1007, 50)
    path = write_chunked(tmp_path / "many", m, 1, only=(0, 1006))
    archive = hr.open(path)
    same(archive, "chunk_00000", m.part(0, 1))
    same(archive, "chunk_01006", m.part(1006, 1007))
    with pytest.raises(hr.DataError, match=r"chunk_00500: neither row_ptr.npy nor chunk.npz"):
        archive["chunk_00500/data"].read()


@pytest.mark.parametrize("key", [slice(0, 10), slice(7, 7), slice(None, None, -3), slice(5, 900, 17), -1, slice(3, 4)])
def test_slices_of_raw_arrays(plain: Path, key: slice | int) -> None:
    archive = hr.open(plain)
    assert np.array_equal(archive["X/data"][key], M.data[key])


def test_slices_with_large_steps(tmp_path: Path) -> None:
    values = np.arange(3 << 20, dtype="f8")
    m = Matrix(values, np.zeros(len(values), "u1"), np.array([0, len(values)], "u4"), 1)
    array = hr.open(write_plain(tmp_path / "wide", m))["X/data"]
    for key in (slice(None, None, 900_000), slice(None, None, -700_001), slice(2_000_000, 9, -2), slice(5, None, 2)):
        assert np.array_equal(array[key], values[key])


def test_a_slice_reads_its_bytes_alone(tmp_path: Path) -> None:
    """An array may be larger than memory: here a terabyte that takes no room on disk."""
    path = write_plain(tmp_path / "huge", Matrix(M.data[:0], M.indices[:0], np.array([0, 0], "u8"), 9))
    n = 1 << 38
    for name, item in (("data", 4), ("col_ptr", 1)):
        with open(path / f"{name}.npy", "wb") as file:
            file.truncate(n * item)
    (path / "row_ptr.npy").write_bytes(struct.pack("<QQ", 0, n))
    empty = Matrix(M.data[:0], M.indices[:0].astype("u1"), np.zeros(2, "u8"), 9)
    (path / "header.sch").write_bytes(header(empty, DATA=n, COLPTR=n))
    archive = hr.open(path)
    assert archive["X/data"].shape == (n,)
    assert archive["X/data"][n - 3 :].tolist() == [0, 0, 0]


def test_no_rows_and_no_values(tmp_path: Path) -> None:
    none = Matrix(M.data[:0], M.indices[:0], np.zeros(1, "u1"), 300)
    archive = hr.open(write_plain(tmp_path / "none", none))
    same(archive, "X", none)
    dark = Matrix(M.data[:0], M.indices[:0], np.zeros(5, "u1"), 300)
    same(hr.open(write_plain(tmp_path / "dark", dark)), "X", dark)
    assert hr.open(write_chunked(tmp_path / "no_chunks", none, ROWS)).attributes["n_chunks"] == 0
    zipped = hr.open(write_npz(tmp_path / "zipped", dark, ROWS))
    same(zipped, "chunk_00000", dark)


def test_old_archives_have_no_header(tmp_path: Path) -> None:
    old = Matrix(M.data, M.indices.astype("u4"), M.indptr.astype("u8"), 300)
    same(hr.open(write_plain(tmp_path / "old", old, head=None)), "X", old)
    archive = hr.open(write_plain(tmp_path / "other", M, head=None))
    with pytest.raises(hr.DataError, match=r"without header\.sch"):
        archive["X/data"].read()


@pytest.mark.parametrize("more", [None, False])
def test_headers_may_lack_what_is_optional(tmp_path: Path, more: bool | None) -> None:
    features = None if more is None else {}
    same(hr.open(write_plain(tmp_path / "a", M, head=header(M, features=features, info=more))), "X", M)
    head = header(M, chunk_rows=ROWS, features=features, info=more)
    archive = hr.open(write_chunked(tmp_path / "b", M, ROWS, head=head))
    assert archive.attributes["n_chunks"] == 3
    same_chunks(archive)


# ---- where it is read from


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_server(tmp_path: Path, kind: str) -> None:
    write_plain(tmp_path, M)
    with serving(str(tmp_path), kind=kind) as server:
        same(opened(server, **QUICK), "X", M)


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_chunks_behind_servers(tmp_path: Path, kind: str) -> None:
    for write in (write_chunked, write_npz):
        with serving(str(write(tmp_path / write.__name__, M, ROWS)), kind=kind) as server:
            archive = opened(server, **QUICK)
            same_chunks(archive)
            assert len(archive.arrays) == 9


def test_opening_asks_for_little(tmp_path: Path) -> None:
    write_plain(tmp_path, M)
    with serving(str(tmp_path)) as server:
        opened(server, **QUICK)
        assert server.requests == 4 + 1 + 4  # zarr's documents, the header, the ends of three arrays


def test_a_store_of_the_callers(plain: Path) -> None:
    same(hr.open(Own(objects_of(str(plain)))), "X", M)


# ---- what does not fit


def test_a_header_that_lies_is_told_of_the_array(tmp_path: Path) -> None:
    n = len(M.data)
    archive = hr.open(write_plain(tmp_path / "a", M, head=header(M, DATA=n - 1)))
    with pytest.raises(hr.DataError, match=rf"data\.npy has {4 * n} bytes where {n - 1} items"):
        archive["X/data"].read()
    with pytest.raises(hr.DataError, match=rf"row_ptr\.npy ends with {n}, but there are {n - 1} values"):
        archive["X/indptr"].read()
    archive = hr.open(write_plain(tmp_path / "b", M, head=header(M, ROWPTR=77)))
    assert np.array_equal(archive["X/data"].read(), M.data)
    with pytest.raises(hr.DataError, match=r"row_ptr\.npy has 502 bytes where 77 items"):
        archive["X/indptr"].read()


@pytest.mark.parametrize("name", ["data", "row_ptr", "col_ptr"])
@pytest.mark.parametrize("change", [-1, 1])
def test_objects_of_other_sizes(chunked: Path, name: str, change: int) -> None:
    path = chunked / "chunk_00001" / f"{name}.npy"
    os.truncate(path, path.stat().st_size + change)
    array = {"data": "data", "row_ptr": "indptr", "col_ptr": "indices"}[name]
    archive = hr.open(chunked)
    with pytest.raises(hr.DataError, match=rf"chunk_00001/{name}\.npy has \d+ bytes"):
        archive[f"chunk_00001/{array}"].read()
    same(archive, "chunk_00000", M.part(0, ROWS))


def test_an_object_that_vanishes_is_no_fill_value(plain: Path) -> None:
    archive = hr.open(plain)
    (plain / "data.npy").unlink()
    with pytest.raises(hr.DataError, match=r"data\.npy is gone"):
        archive["X/data"].read()


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("write", [write_plain, lambda path, m: write_chunked(path, m, ROWS)])
def test_a_damaged_header_is_an_error_of_opening(tmp_path: Path, write: Callable[[Path, Matrix], Path]) -> None:
    path = write(tmp_path / "a", M)
    whole = (path / "header.sch").read_bytes()
    for text, words in ((whole[:30], "cut short"), (b"XXXX" + whole[4:], "does not begin"), (b"", "does not begin")):
        (path / "header.sch").write_bytes(text)
        with pytest.raises(hr.DataError, match=rf"header\.sch.*{words}"):
            hr.open(path)
    damage(path / "metadata.json", 0)
    (path / "header.sch").write_bytes(whole[:8] + b"\0\0\0\x09" + whole[12:])
    with pytest.raises(hr.UnsupportedError, match="backend 9"):
        hr.open(path)


def test_a_chunked_archive_without_header_says_so(tmp_path: Path) -> None:
    path = write_chunked(tmp_path / "a", M, ROWS, head=None)
    with pytest.raises(hr.DataError, match=r"metadata\.json .* header\.sch"):
        hr.open(path)


def test_zips_that_are_damaged_or_hold_something_else(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "npz", M, ROWS, compress=False)
    archive = hr.open(path)
    zips = [path / f"chunk_{k:05d}" / "chunk.npz" for k in range(3)]
    with zipfile.ZipFile(zips[0]) as z:
        damage(zips[0], z.getinfo("data.npy").header_offset + 300)
    with pytest.raises(hr.DataError, match=r"chunk_00000/chunk\.npz.*checksum"):
        archive["chunk_00000/data"].read()
    os.truncate(zips[1], zips[1].stat().st_size - 1)
    with pytest.raises(hr.DataError, match=r"chunk_00001/chunk\.npz: it does not end as a zip"):
        archive["chunk_00001/data"].read()
    piece = M.part(200, 250)
    np.savez(zips[2], data=piece.data.astype("i4"), row_ptr=piece.indptr, col_ptr=piece.indices)
    with pytest.raises(hr.DataError, match=r"type <i4 and \d+ items .* of type <f4"):
        archive["chunk_00002/data"].read()
    np.savez(zips[2], data=piece.data, col_ptr=piece.indices)
    with pytest.raises(hr.DataError, match=r"no member row_ptr\.npy"):
        hr.open(path)["chunk_00002/data"].read()


def test_what_is_no_archive_is_told_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(hr.NotFoundError, match=r"Zarr .*AnnData.*SCDL.*zarr\.json.*header\.sch"):
        hr.open(tmp_path)
    (tmp_path / "metadata.json").write_text("{}")
    with pytest.raises(hr.NotFoundError, match=r"header\.sch"):
        hr.open(tmp_path)


# ---- as the format's own library writes it

BIONEMO = """
import sys, anndata, numpy as np, scipy.sparse as sp, warnings
warnings.simplefilter("ignore")
from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset
where = sys.argv[1]
parts = [[np.load(f"{where}/{kind}_{name}.npy") for name in ("data", "indices", "indptr")] for kind in ("x", "near")]
x, near = (sp.csr_matrix((d, i.astype("i4"), p.astype("i4")), shape=(len(p) - 1, n)) for (d, i, p), n in zip(parts, (300, 250)))
cells = anndata.AnnData(x.copy(), obsp={"next_cell_ids": near})
cells.raw = cells.copy()
cells.write_h5ad(f"{where}/x.h5ad")
SingleCellMemMapDataset(f"{where}/theirs", f"{where}/x.h5ad", load_neighbors=True).save()
"""


def test_the_librarys_files_are_byte_for_byte_ours(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("bionemo.scdl")
    near = random_matrix(250, 250, density=0.02)
    for kind, m in (("x", M), ("near", near)):
        for name, array in (("data", m.data), ("indices", m.indices), ("indptr", m.indptr)):
            np.save(tmp_path / f"{kind}_{name}.npy", array)
    subprocess.run([sys.executable, "-c", BIONEMO, str(tmp_path)], check=True, capture_output=True)
    ours = write_plain(tmp_path / "ours", M)
    write_neighbors(ours, near)
    for file in (f for f in ours.iterdir() if f.name != "version.json"):
        assert (tmp_path / "theirs" / file.name).read_bytes() == file.read_bytes(), file.name
    assert json.loads((tmp_path / "theirs/metadata.json").read_text()) == {"num_rows": 250}
    same(hr.open(tmp_path / "theirs"), "X", M)
