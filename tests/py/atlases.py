"""Atlases of the tests: small, written by anndata itself, read back by it too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

ad = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")
sp = pytest.importorskip("scipy.sparse")

TYPES = ("B cell", "T cell", "NK", "mast cell")


def matrix(n: int, m: int, density: float = 0.2, dtype: str = "f4", seed: int = 0) -> Any:
    """Counts, with empty rows at the beginning, at the end and in between."""
    rng = np.random.default_rng(seed)
    x = sp.random(n, m, density, "csr", random_state=rng, data_rvs=lambda k: rng.integers(1, 90, k)).tolil()
    for i in {0, n // 2, n - 1}:
        x[i] = 0
    return x.tocsr().astype(dtype)


def frame(n: int, seed: int = 0) -> Any:
    """A column of every kind that anndata writes."""
    rng = np.random.default_rng(seed)
    kind = pd.Categorical.from_codes(rng.integers(-1, len(TYPES), n), TYPES)
    stage = pd.Categorical.from_codes(rng.integers(0, 3, n), ["early", "mid", "late"], ordered=True)
    columns = {
        "cell_type": kind,
        "stage": stage,
        "batch": pd.Categorical(rng.integers(0, 5, n) * 10),
        "n_genes": rng.integers(0, 900, n),
        "score": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
        "share": rng.random(n).astype("f4"),
        "is_doublet": rng.random(n) < 0.2,
        "donor": [f"donor {i}" for i in rng.integers(0, 6, n)],
        "age": pd.array([None if i % 7 == 0 else int(i) for i in range(n)], dtype="Int64"),
        "count": pd.array([int(i) for i in range(n)], dtype="Int32"),
        "treated": pd.array([None if i % 5 == 0 else bool(i % 2) for i in range(n)], dtype="boolean"),
        "pct counts": rng.random(n),
    }
    return pd.DataFrame(columns, index=[f"cell{i}" for i in range(n)])


def atlas(n: int = 200, m: int = 40, seed: int = 0, dtype: str = "f4", genes: Any = None) -> Any:
    names = [f"g{i}" for i in range(m)] if genes is None else list(genes)
    var = pd.DataFrame({"gene_ids": [f"ENS{g}" for g in names], "highly": np.arange(len(names)) % 3 == 0}, index=names)
    x = matrix(n, len(names), seed=seed, dtype=dtype)
    made = ad.AnnData(x, obs=frame(n, seed), var=var)
    rng = np.random.default_rng(seed)
    made.obsm["X_pca"] = rng.normal(size=(n, 5)).astype("f4")
    made.layers["counts"] = matrix(n, len(names), seed=seed + 1, dtype="u2")
    made.layers["dense"] = made.layers["counts"].toarray().astype("f8")
    made.raw = ad.AnnData(matrix(n, len(names) + 3, seed=seed + 2), var=pd.DataFrame(index=[*names, "r0", "r1", "r2"]))
    return made


def write(made: Any, path: Any, version: int = 3, **options: Any) -> str:
    """As Zarr; `options` are those of write_zarr."""
    old = ad.settings.zarr_write_format
    strings = getattr(ad.settings, "allow_write_nullable_strings", None)
    try:
        ad.settings.zarr_write_format = version
        if strings is not None or hasattr(ad.settings, "allow_write_nullable_strings"):
            ad.settings.allow_write_nullable_strings = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.write_zarr(path, **options)
    finally:
        ad.settings.zarr_write_format = old
        if hasattr(ad.settings, "allow_write_nullable_strings"):
            ad.settings.allow_write_nullable_strings = strings
    return str(path)


def rows_of(batch: Any, name: str, genes: int) -> Any:
    """A CSR view of a batch as scipy's."""
    three = tuple(batch[f"{name}.{part}"].numpy() for part in ("data", "indices", "indptr"))
    return sp.csr_matrix(three, shape=(len(batch), genes))


def same(a: Any, b: Any) -> None:
    """Two sparse matrices, one of which may have zeros stored."""
    assert a.shape == b.shape
    np.testing.assert_array_equal(a.toarray(), b.toarray())
