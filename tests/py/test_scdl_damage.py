"""What the drop-in says of files that are cut, lie, or do not come."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import headrace as hr
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset
from scdl_make import FILES, Cells, Server, header, write
from scdl_use import GENES, check, order, remote

pytest_plugins = ["scdl_use"]
warnings.filterwarnings("ignore", "Sparse")


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
