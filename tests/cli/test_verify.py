"""headrace verify: what is whole passes, and what is broken is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from program import climate, good, run


def verify(path: object, *words: str) -> dict[str, Any]:
    done = run("verify", path, "--json", *words)
    assert done.returncode in (0, 1) and not done.stderr, done
    found: dict[str, Any] = json.loads(done.stdout)
    assert bool(found["broken"]) == (done.returncode == 1)
    return found


def places(found: dict[str, Any]) -> list[str]:
    return [b["place"] for b in found["broken"]]


def test_a_whole_archive_is_read_once() -> None:
    found = verify(climate())
    assert not found["broken"] and not found["absent_chunks"] and found["arrays"] == 9
    assert found["bytes"] == 4 * 60 * (48 + 48 + 144 + 3) + 60 * 8 + 3 * 4 + 6 * 4 + 8 * 4 + 3 * 12
    assert good("verify", climate()).endswith("all is well\n")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    root = zarr.create_group(tmp_path / "dense.zarr", zarr_format=3)
    values = np.arange(40 * 30, dtype="f8").reshape(40, 30)
    for name, more in (("plain", {}), ("sharded", {"shards": (20, 30)})):
        root.create_array(name, shape=(40, 30), chunks=(5, 10), dtype="f8", **more)[...] = values
    old = zarr.create_group(tmp_path / "dense.zarr" / "old", zarr_format=2)
    old.create_array("v2", shape=(40, 30), chunks=(5, 10), dtype="f8")[...] = values
    return tmp_path / "dense.zarr"


def test_broken_chunks_are_named_one_by_one(dense: Path) -> None:
    assert not verify(dense)["broken"]
    for key in ("plain/c/2/1", "plain/c/7/2"):
        os.truncate(dense / key, 9)
    shard = bytearray((dense / "sharded/c/1/0").read_bytes())
    shard[-3] ^= 1  # of the crc32c of the index
    (dense / "sharded/c/1/0").write_bytes(shard)
    found = verify(dense, "--memory", "100kB")
    assert [b["what"].partition("]")[0] + "]" for b in found["broken"] if b["place"] == "plain"] == [
        "[10:15, 10:20]",
        "[35:40, 20:30]",
    ]
    assert set(places(found)) == {"plain", "sharded"}
    done = run("verify", dense)
    assert done.returncode == 1 and "plain: [10:15, 10:20] cannot be read" in done.stdout and "BROKEN" in done.stdout


def test_absent_chunks_are_counted_and_broken_when_asked(dense: Path) -> None:
    for key in ("plain/c/2/1", "old/v2/3.0"):
        (dense / key).unlink()
    found = verify(dense)
    assert not found["broken"]
    assert {a["array"]: a["names"] for a in found["absent_chunks"]} == {
        "plain": ["plain/c/2/1"],
        "old/v2": ["old/v2/3.0"],
    }
    assert set(places(verify(dense, "--complete"))) == {"plain", "old/v2"}


def test_what_cannot_be_verified_is_said() -> None:
    done = run("verify", "/nothing/here")
    assert done.returncode == 1 and done.stderr.startswith("headrace: ")
    assert run("verify").returncode == 2
    assert "usage: headrace verify" in run("verify", "--help").stdout


# ---- atlases ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("anndata")
    from atlases_cli import ad, cells

    before = ad.settings.zarr_write_format
    ad.settings.zarr_write_format = 3
    path = tmp_path_factory.mktemp("atlas") / "a.zarr"
    cells().write_zarr(path)
    ad.settings.zarr_write_format = before
    cells().write_h5ad(path.with_suffix(".h5ad"))
    return path


def cells_nnz() -> int:
    from atlases_cli import cells

    return int(cells().X.nnz)


def test_atlases_are_held_against_themselves(atlas: Path, tmp_path: Path) -> None:
    assert not verify(atlas)["broken"]
    path = tmp_path / "a.zarr"
    shutil.copytree(atlas, path)
    root = zarr.open_group(path, mode="r+", use_consolidated=False)
    root["X/indptr"][200] = root["X/indptr"][210]
    root["layers/twice/indices"][55] = 300
    root["obs/cell_type/codes"][7] = 3
    root["raw/X/indptr"][900] = 5
    shutil.rmtree(path / "layers/twice/data/c")
    found = {b["place"]: b["what"] for b in verify(path)["broken"]}
    assert "row 200 ends before it begins" in found["X/indptr"]
    assert "item 55 is column 300, and there are 300 genes" in found["layers/twice/indices"]
    assert "item 7 is code 3, and there are 3 categories" in found["obs/cell_type/codes"]
    assert "chunks are missing" in found["layers/twice/data"]
    assert found["raw/X/indptr"] == f"ends with 5, and there are {cells_nnz():,} values", "the last of its two"
    assert len(found) == 5, found


def test_frames_are_as_long_as_the_matrix(atlas: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    shutil.copytree(atlas, path)
    root = zarr.open_group(path, mode="r+", use_consolidated=False)
    root["obs/score"].resize((899,))
    zarr.consolidate_metadata(path)
    found = verify(path)["broken"]
    assert found == [{"place": "obs/score", "what": "899 rows, where 900 are expected"}]


def test_h5ad(atlas: Path, tmp_path: Path) -> None:
    import h5py

    path = tmp_path / "a.h5ad"
    shutil.copy(atlas.with_suffix(".h5ad"), path)
    assert not verify(path)["broken"]
    with h5py.File(path, "r+") as file:
        file["X/indices"][3] = -1
    assert [b["what"] for b in verify(path)["broken"]] == ["item 3 is column -1, and there are 300 genes"]


def test_scdl_plain_and_chunked(tmp_path: Path) -> None:
    pytest.importorskip("bionemo.scdl")
    from atlases_cli import cells, scdl

    plain = scdl(tmp_path / "plain", cells())
    good("cells", "chunk", plain, tmp_path / "chunked", "--chunk-size", 250)
    for path in (plain, tmp_path / "chunked"):
        assert not verify(path)["broken"]
    np.memmap(plain / "col_ptr.npy", "uint16", "r+")[10] = 300
    assert places(verify(plain)) == ["X/indices"]
    chunk = tmp_path / "chunked" / "chunk_00002"
    np.memmap(chunk / "row_ptr.npy", "uint16", "r+")[20] = 0
    os.truncate(tmp_path / "chunked" / "chunk_00001" / "data.npy", 40)
    assert {p.partition("/")[0] for p in places(verify(tmp_path / "chunked"))} == {"chunk_00001", "chunk_00002"}


def test_a_matrix_by_genes_is_told_as_cells_by_genes(tmp_path: Path) -> None:
    pytest.importorskip("anndata")
    from atlases_cli import cells

    made = cells()[:500]
    made.X = made.X.tocsc()
    made.write_zarr(tmp_path / "c.zarr")
    assert f"X: 500 × {made.n_vars}, {made.X.nnz:,} non-zeros" in good("verify", tmp_path / "c.zarr")
