"""Samples of single cells: every row of AnnData's matrices, its obs and obsm, in every encoding that anndata writes."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from atlases import ad, atlas, rows_of, same, sp, write


@pytest.fixture(scope="module", params=[2, 3])
def stored(request: Any, tmp_path_factory: Any) -> tuple[str, Any]:
    """(path, AnnData as anndata reads it back), as Zarr v2 and v3."""
    path = write(atlas(), tmp_path_factory.mktemp("cells") / "a.zarr", request.param, chunks=(32, 32))
    return path, ad.read_zarr(path)


def every(samples: Any, n: int = 16, **options: Any) -> Any:
    """(batch, ids) of an epoch in which every cell comes once."""
    seen: list[int] = []
    for batch in samples.batches(n, shuffle=True, seed=5, remainder="short", **options):
        ids = batch.index.numpy()
        seen += ids.tolist()
        yield batch, ids
    assert sorted(seen) == samples.ids.tolist()


@pytest.mark.parametrize("layer", [None, "counts", "raw"])
def test_every_row_is_that_of_anndata(stored: tuple[str, Any], layer: str | None) -> None:
    path, a = stored
    x = a.X if layer is None else a.raw.X if layer == "raw" else a.layers[layer]
    samples = hr.open(path).cells(layer=layer)
    assert len(samples) == a.n_obs
    assert list(samples.genes) == list(a.raw.var_names if layer == "raw" else a.var_names)
    for batch, ids in every(samples):
        assert batch["X.data"].dtype == x.dtype.name
        same(rows_of(batch, "X", x.shape[1]), x[ids])


def test_columns_of_obs_come_with_every_batch(stored: tuple[str, Any]) -> None:
    path, a = stored
    samples = hr.open(path).cells(obs=list(a.obs.columns), obsm=["X_pca"])
    for batch, ids in every(samples):
        for name in ("cell_type", "stage", "batch", "donor"):
            column = samples.obs[name]
            assert batch[name].dtype == "int8"
            codes = batch[name].numpy()
            given = a.obs[name].iloc[ids].tolist()
            assert [column.categories[c] if c >= 0 else None for c in codes] == [g if g == g else None for g in given]
        for name in ("n_genes", "score", "share", "is_doublet", "count", "pct counts"):
            np.testing.assert_array_equal(batch[name].numpy(), a.obs[name].to_numpy()[ids])
        np.testing.assert_array_equal(batch["age"].numpy(), a.obs["age"].to_numpy(float, na_value=np.nan)[ids])
        treated = a.obs["treated"].astype("Int8").to_numpy(int, na_value=-1)[ids]
        np.testing.assert_array_equal(batch["treated"].numpy(), treated)
        np.testing.assert_array_equal(batch["X_pca"].numpy(), a.obsm["X_pca"][ids])


def test_genes_are_chosen_by_name_and_by_mask(stored: tuple[str, Any]) -> None:
    path, a = stored
    names = ["g7", "g3", "g39", "g0"]
    for batch, ids in every(hr.open(path).cells(genes=names)):
        same(rows_of(batch, "X", 4), a[ids, names].X)
    for batch, ids in every(hr.open(path).cells("dense", genes=a.var["highly"])):
        np.testing.assert_array_equal(batch["X"].numpy(), a[ids, a.var["highly"]].X.toarray())
    ids_of_genes = hr.open(path).cells(genes=["ENSg5", "ENSg1"], var="gene_ids")
    for batch, ids in every(ids_of_genes):
        same(rows_of(batch, "X", 2), a[ids, ["g5", "g1"]].X)
    absent = hr.open(path).cells("dense", genes=["g5", "nowhere", "g1"], missing="ignore")
    for batch, ids in every(absent):
        got = batch["X"].numpy()
        assert not got[:, 1].any()
        np.testing.assert_array_equal(got[:, ::2], a[ids, ["g5", "g1"]].X.toarray())


def test_dense_layers_are_read_as_arrays(stored: tuple[str, Any]) -> None:
    path, a = stored
    for batch, ids in every(hr.open(path).cells("dense", layer="dense", genes=["g9", "g2"], obs=["n_genes"])):
        np.testing.assert_array_equal(batch["X"].numpy(), a[ids, ["g9", "g2"]].layers["dense"])
        np.testing.assert_array_equal(batch["n_genes"].numpy(), a.obs["n_genes"].to_numpy()[ids])
    for batch, ids in every(hr.open(path).cells(layer="dense")):
        same(rows_of(batch, "X", a.n_vars), sp.csr_matrix(a.layers["dense"][ids]))


def test_pickled_cells_are_the_same_cells(stored: tuple[str, Any]) -> None:
    path, _ = stored
    samples = hr.open(path).cells(hr.padded(6), obs=["cell_type"], genes=["g1", "g2", "g5"])
    some = samples.isel(obs=slice(3, 150, 4))
    again = pickle.loads(pickle.dumps(some))
    assert again.ids.tolist() == some.ids.tolist()
    assert list(again.genes) == ["g1", "g2", "g5"]
    for one, other in zip(some.batches(8, shuffle=True, seed=1), again.batches(8, shuffle=True, seed=1)):
        for name in one:
            np.testing.assert_array_equal(one[name].numpy(), other[name].numpy())


def test_real_cells(tmp_path: Path) -> None:
    """700 cells of blood, which scanpy brings along: its file alone is read, scanpy is not imported."""
    found = importlib.util.find_spec("scanpy")
    if found is None or found.origin is None:
        pytest.skip("scanpy is not installed")
    a = ad.read_h5ad(Path(found.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad")
    path = write(a, tmp_path / "pbmc.zarr", chunks=(1000, 1000))
    samples = hr.open(path).cells(layer="raw", obs=["bulk_labels", "n_counts"], obsm=["X_umap"])
    counts = a.raw.X.tocsr()
    for batch, ids in every(samples, 64):
        same(rows_of(batch, "X", counts.shape[1]), counts[ids])
        assert batch.obs("bulk_labels").tolist() == a.obs["bulk_labels"].iloc[ids].tolist()
        np.testing.assert_array_equal(batch["n_counts"].numpy(), a.obs["n_counts"].to_numpy()[ids])
        np.testing.assert_array_equal(batch["X_umap"].numpy(), a.obsm["X_umap"][ids])
    some = samples.where("bulk_labels == 'Dendritic' and n_counts > 1000")
    assert len(some) == ((a.obs["bulk_labels"] == "Dendritic") & (a.obs["n_counts"] > 1000)).sum() > 0


WRONG = {
    "layer='cunts'.*did you mean 'counts'.*counts, dense, raw": {"layer": "cunts"},
    "obs has no column 'celltype'; did you mean 'cell_type'.*n_genes": {"obs": ["celltype"]},
    "obsm: .* has no 'X_pac'; did you mean 'X_pca'": {"obsm": ["X_pac"]},
    "genes: 2 of 3 are not in this archive: h1, h2": {"genes": ["g1", "h1", "h2"]},
    "genes='g1'.*named once": {"genes": ["g1", "g1"]},
    "group='rna': there is no such group": {"group": "rna"},
    "X='csc'.*did you mean 'csr'": {"X": "csc"},
    "X='padded'.*hr.padded": {"X": "padded"},
    "normalize=0.*above 0": {"normalize": 0},
}


@pytest.mark.parametrize("says", WRONG)
def test_what_cannot_be_is_refused_by_name(stored: tuple[str, Any], says: str) -> None:
    with pytest.raises(hr.Error, match=says):
        hr.open(stored[0]).cells(**WRONG[says])


def test_what_is_no_atlas_is_refused(climate: str, tmp_path: Path) -> None:
    with pytest.raises(hr.UnsupportedError, match="is no atlas of single cells: AnnData has X, obs and var"):
        hr.open(climate).cells()
    a = atlas()
    a.X = a.X.tocsc()
    path = write(a, tmp_path / "c.zarr")
    with pytest.raises(hr.UnsupportedError, match=r"X is stored by genes \(CSC\).*layer=\"counts\" is by cells.*tocsr"):
        hr.open(path).cells()
