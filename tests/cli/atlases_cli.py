"""Atlases for the tests of `headrace cells`: written by anndata and bionemo-scdl."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ad = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")
sp = pytest.importorskip("scipy.sparse")


def cells(n: int = 900, genes: int = 300, seed: int = 0, dtype: str = "f4") -> Any:
    """Counts with empty rows, first and last among them, and one full row; all kinds of what stands beside them."""
    rng = np.random.default_rng(seed)
    x = sp.random(n, genes, density=0.1, format="lil", random_state=seed)
    x[0], x[n - 1], x[n // 2] = 0, 0, 1
    x = sp.csr_matrix(x)
    x.data = np.ceil(x.data * 20).astype(dtype)
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical(rng.choice(["B cell", "T cell", "NK"], n)),
            "n_counts": rng.integers(0, 1000, n),
            "score": rng.normal(size=n).astype("f4"),
        },
        index=[f"cell{i}" for i in range(n)],
    )
    var = pd.DataFrame({"symbol": [f"S{i}" for i in range(genes)]}, index=[f"gene{i}" for i in range(genes)])
    made = ad.AnnData(x, obs=obs, var=var)
    made.layers["twice"] = sp.csr_matrix(x * 2)
    made.layers["dense"] = x.toarray()
    made.obsm["pca"] = rng.normal(size=(n, 5))
    made.uns["notes"] = {"a": np.arange(3), "b": "text"}
    made.raw = made.copy()
    return made


def old_h5ad(path: Path, made: Any) -> Path:
    """As anndata before 0.7 wrote it: data frames and obsm as compounds, categories in uns, raw beside X."""
    import h5py

    def compound(df: Any) -> Any:
        names = np.array([s.encode() for s in df.index])
        columns = {c: df[c].cat.codes.to_numpy() if hasattr(df[c], "cat") else df[c].to_numpy() for c in df.columns}
        columns = {c: v.astype("S") if v.dtype.kind == "O" else v for c, v in columns.items()}
        out = np.zeros(len(df), [("index", names.dtype), *((c, v.dtype) for c, v in columns.items())])
        out["index"] = names
        for c, v in columns.items():
            out[c] = v
        return out

    with h5py.File(path, "w") as file:
        for name, x in (("X", made.X), ("raw.X", made.raw.X)):
            group = file.create_group(name)
            group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", np.array(x.shape)
            for part in ("indptr", "indices", "data"):
                group[part] = getattr(x, part)
        file["obs"], file["var"], file["raw.var"] = (compound(df) for df in (made.obs, made.var, made.raw.var))
        pca = made.obsm["pca"]
        file["obsm"] = np.array([(row,) for row in pca], [("pca", pca.dtype, pca.shape[1:])])
        file["uns/cell_type_categories"] = np.array([str(c) for c in made.obs["cell_type"].cat.categories], "S")
    return path


def scdl(folder: Path, made: Any, **options: Any) -> Path:
    """As bionemo-scdl converts it."""
    theirs = pytest.importorskip("bionemo.scdl.io.single_cell_memmap_dataset")
    folder.parent.mkdir(exist_ok=True)
    h5ad = folder.with_name(f"{folder.name}.source.h5ad")
    made.write_h5ad(h5ad)
    theirs.SingleCellMemMapDataset(str(folder), h5ad_path=str(h5ad), use_X_not_raw=True, **options)
    return folder


def reference_chunks(source: Path, chunk_size: int) -> dict[str, bytes]:
    """Files of the chunked layout by its letter, from a plain SCDL: contents by name."""
    header = pytest.importorskip("bionemo.scdl.schema.header").SCDLHeader.load(str(source / "header.sch"))
    names = {"DATA": "data.npy", "ROWPTR": "row_ptr.npy", "COLPTR": "col_ptr.npy"}
    arrays = {a.name: np.fromfile(source / names[a.name], a.dtype.numpy_dtype_string) for a in header.arrays}
    rows = len(arrays["ROWPTR"]) - 1
    n = -(-rows // chunk_size)
    files = {}
    for k in range(n):
        ends = arrays["ROWPTR"][k * chunk_size : (k + 1) * chunk_size + 1]
        a, b = int(ends[0]), int(ends[-1])
        files[f"chunk_{k:05d}/row_ptr.npy"] = (ends - ends[0]).tobytes()
        files[f"chunk_{k:05d}/data.npy"] = arrays["DATA"][a:b].tobytes()
        files[f"chunk_{k:05d}/col_ptr.npy"] = arrays["COLPTR"][a:b].tobytes()
    for path in source.rglob("*"):
        if path.is_file() and path.suffix != ".sch" and str(path.relative_to(source)) not in names.values():
            files[str(path.relative_to(source))] = path.read_bytes()
    plain = (source / "header.sch").read_bytes()
    backend = plain[:8] + struct.pack(">I", 2) + plain[12:]
    files["header.sch"] = backend + b"\1" + struct.pack(">IIQ", chunk_size, n, rows)
    return files


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def same(a: Any, b: Any) -> None:
    """Two AnnData of the same contents."""
    for x, y in ((a.X, b.X), (a.raw.X, b.raw.X), (a.layers["twice"], b.layers["twice"])):
        assert x.shape == y.shape and (sp.csr_matrix(x) != sp.csr_matrix(y)).nnz == 0
    np.testing.assert_array_equal(np.asarray(a.layers["dense"]), np.asarray(b.layers["dense"]))
    pd.testing.assert_frame_equal(a.obs, b.obs)
    pd.testing.assert_frame_equal(a.var, b.var)
    np.testing.assert_array_equal(a.obsm["pca"], b.obsm["pca"])
    np.testing.assert_array_equal(a.uns["notes"]["a"], b.uns["notes"]["a"])
    assert a.uns["notes"]["b"] == b.uns["notes"]["b"]
