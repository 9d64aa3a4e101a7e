"""Data frames of older anndata, and damaged ones; patterns of values that come seldom; where the archive may lie."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from atlases import atlas, same, sp, write
from conftest import Quiet


def old(path: Path, x: Any) -> str:
    """As anndata 0.7 wrote it: categories beside the columns, no encoding at the root."""
    root = zarr.open_group(path, mode="w", zarr_format=2)
    matrix = root.create_group("X")
    matrix.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(x.shape)})
    for name in ("data", "indices", "indptr"):
        matrix.create_array(name, data=getattr(x, name))
    n, m = x.shape
    obs, var = root.create_group("obs"), root.create_group("var")
    obs.attrs.update(
        {"encoding-type": "dataframe", "encoding-version": "0.1.0", "_index": "index", "column-order": ["kind", "n"]}
    )
    var.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.1.0", "_index": "index", "column-order": []})
    obs.create_array("index", data=np.array([f"c{i}" for i in range(n)]))
    var.create_array("index", data=np.array([f"g{i}" for i in range(m)]))
    kind = obs.create_array("kind", data=(np.arange(n) % 3 - 1).astype("i1"))
    kind.attrs["categories"] = "__categories/kind"
    obs.create_group("__categories").create_array("kind", data=np.array(["B", "T"]))
    obs.create_array("n", data=np.arange(n))
    return str(path)


def test_frames_of_anndata_0_7(tmp_path: Path) -> None:
    x = atlas(30, 8).X
    samples = hr.open(old(tmp_path / "o.zarr", x)).cells(obs=["kind", "n"])
    assert samples.obs.columns == ["kind", "n"] and list(samples.genes) == [f"g{i}" for i in range(8)]
    (batch,) = samples.batches(30)
    same(batch["X"].scipy(), x)
    assert batch.obs("kind").tolist() == [(None, "B", "T")[i % 3] for i in range(30)]
    assert samples.where("kind == 'T' and n > 9").ids.tolist() == [11, 14, 17, 20, 23, 26, 29]


DAMAGE = {
    r"obs/cell_type: codes from -1 to 9 for 4 categories": lambda root: root["obs/cell_type/codes"].__setitem__(0, 9),
    r"obs column 'n_genes' has 30 values for 40 rows": lambda root: root["obs/n_genes"].resize((30,)),
    r"X: its attribute shape is \[41, 10\], and its indptr has 41 items": lambda root: root["X"].attrs.update(
        shape=[41, 10]
    ),
    r"X: a sparse matrix has arrays indptr, indices and data; there is no indices": lambda root: root["X"].__delitem__(
        "indices"
    ),
    r"column 10, of 10|column id 10|10 columns": lambda root: root["X/indices"].__setitem__(0, 10),
    r"fall|rise|indptr": lambda root: root["X/indptr"].__setitem__(5, 0),
}


@pytest.mark.parametrize("says", DAMAGE)
def test_damage_is_refused_by_name(tmp_path: Path, says: str) -> None:
    path = write(atlas(40, 10), tmp_path / "d.zarr", 2)
    (Path(path) / ".zmetadata").unlink()
    DAMAGE[says](zarr.open_group(path, mode="r+", use_consolidated=False))
    with pytest.raises(hr.Error, match=says):
        for _ in hr.open(path).cells(obs=["cell_type", "n_genes"]).batches(40):
            pass


def test_hints_lead_to_where_cells_are(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "m.zarr", mode="w", zarr_format=3)
    root.attrs["encoding-type"] = "MuData"
    root.create_group("mod")
    write(atlas(20, 5), tmp_path / "m.zarr" / "mod" / "rna")
    archive = hr.open(tmp_path / "m.zarr")
    with pytest.raises(hr.UnsupportedError, match=r"no atlas of single cells.*there is one in it: group='mod/rna'"):
        archive.cells()
    assert len(archive.cells(group="mod/rna", obs=["cell_type"])) == 20


@pytest.mark.parametrize("consolidated", [True, False])
def test_cells_behind_a_web_server(tmp_path: Path, consolidated: bool) -> None:
    a = atlas(60, 12)
    path = write(a, tmp_path / "w.zarr", 2)
    if not consolidated:
        (Path(path) / ".zmetadata").unlink()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            samples = hr.open(f"http://127.0.0.1:{server.server_port}").cells(obs=["cell_type", "n_genes"])
            assert list(samples.genes) == list(a.var_names)
            for batch in samples.batches(16, shuffle=True, remainder="short"):
                ids = batch.index.numpy()
                same(batch["X"].scipy(), a.X[ids])
                np.testing.assert_array_equal(batch["n_genes"].numpy(), a.obs.n_genes.to_numpy()[ids])
        finally:
            server.shutdown()


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_pattern_of_values(data: Any, tmp_path_factory: Any) -> None:
    """Empty rows first, last and in between, one giant row, any types and chunks."""
    m = data.draw(st.integers(1, 300))
    lengths = data.draw(st.lists(st.sampled_from([0, 0, 1, 2, m]), min_size=1, max_size=30))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = [np.sort(rng.choice(m, min(k, m), replace=False)) for k in lengths]
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    values = rng.integers(1, 100, indptr[-1]).astype(data.draw(st.sampled_from(["u1", "i4", "u2", "f4", "f8", "i8"])))
    ids = data.draw(st.sampled_from(["u2", "i4", "i8", "u4"]))
    where = data.draw(st.sampled_from(["i4", "i8", "u8"]))
    x = sp.csr_matrix((values, np.concatenate(columns), indptr), shape=(len(lengths), m))
    path = tmp_path_factory.mktemp("any") / "a.zarr"
    version = data.draw(st.sampled_from([2, 3]))
    root = zarr.open_group(path, mode="w", zarr_format=version)
    root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    matrix = root.create_group(
        "X", attributes={"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(x.shape)}
    )
    for name, array in (
        ("data", values),
        ("indices", np.concatenate(columns).astype(ids)),
        ("indptr", indptr.astype(where)),
    ):
        chunks = (data.draw(st.integers(1, max(1, len(array)))),)
        matrix.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks)[...] = array
    for name, n in (("obs", len(lengths)), ("var", m)):
        frame = root.create_group(
            name,
            attributes={
                "encoding-type": "dataframe",
                "encoding-version": "0.2.0",
                "_index": "_index",
                "column-order": [],
            },
        )
        frame.create_array("_index", data=np.arange(n))
    samples = hr.open(path).cells(row_chunk=data.draw(st.sampled_from([None, 1, 3, 50])))
    for batch in samples.batches(data.draw(st.integers(1, len(lengths))), shuffle=True, remainder="short"):
        assert batch["X"].dtype == values.dtype.name
        same(batch["X"].scipy(), x[batch.index.numpy()])
