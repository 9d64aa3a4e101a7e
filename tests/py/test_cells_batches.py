"""Batches of cells in the hands of frameworks, over ranks and after a resume; forms against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from atlases import atlas, same, write

MADE = atlas(240, 30)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: Any) -> Any:
    return hr.open(write(MADE, tmp_path_factory.mktemp("batches") / "a.zarr", chunks=(40, 40)))


def test_a_sparse_view_is_one_object(archive: Any) -> None:
    for batch in archive.cells(obs=["cell_type"]).batches(16, shuffle=True):
        x = batch["X"]
        assert batch.keys() == ["X", "cell_type"] and [name for name, _ in batch.items()] == ["X", "cell_type"]
        assert "X" in batch and "X.data" in batch and "Y" not in batch
        assert x.shape == (16, 30) and len(x) == 16 and x.nnz == len(batch["X.data"])
        same(x.scipy(), MADE.X[batch.index.numpy()])
        assert x.scipy().data.ctypes.data == batch["X.data"].numpy().ctypes.data
        assert set(x.numpy()) == {"data", "indices", "indptr"}
        assert repr(x) == f"<Sparse X: 16 × 30 float32, {x.nnz} values>"
        assert batch.obs("donor").tolist() == MADE.obs.donor.iloc[batch.index.numpy()].tolist()
    with pytest.raises(hr.NotFoundError, match="no view 'Y' in this batch"):
        batch["Y"]
    with pytest.raises(hr.UnsupportedError, match=r"X is csr, which xarray has no array for"):
        batch.xarray()


def test_torch_has_it_as_one_tensor(archive: Any) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    loader = archive.cells(obs=["cell_type"]).batches(16)
    n = 0
    for i, tensors in enumerate(DataLoader(loader.torch(), batch_size=None)):
        assert list(tensors) == ["X", "cell_type"]
        assert tensors["X"].layout == torch.sparse_csr and tensors["X"].shape == (16, 30)
        np.testing.assert_array_equal(tensors["X"].to_dense(), MADE.X[16 * i : 16 * i + 16].toarray())
        n += 1
    assert n == len(loader)
    (first, *_) = loader.numpy()
    assert set(first["X"]) == {"data", "indices", "indptr"}


def test_sparse_tensors_go_to_a_device_as_three(archive: Any) -> None:
    torch = pytest.importorskip("torch")
    from headrace._device import ahead

    class Still:
        """A device that is memory."""

        def pinned(self, like: Any) -> Any:
            return torch.empty_like(like)

        def copy(self, tensors: Any) -> Any:
            return {name: x.clone() for name, x in tensors.items()}, self

        def synchronize(self) -> None:
            pass

        def hand_over(self, moved: Any, event: Any) -> None:
            pass

    loader = archive.cells(obs=["n_genes"]).batches(16)
    for i, (tensors, _) in enumerate(ahead(loader, Still())):
        assert list(tensors) == ["X", "n_genes"]
        np.testing.assert_array_equal(tensors["X"].to_dense(), MADE.X[16 * i : 16 * i + 16].toarray())


def test_jax_has_it_as_bcsr(archive: Any) -> None:
    pytest.importorskip("jax")
    (first, *_) = archive.cells().batches(16).jax()
    np.testing.assert_array_equal(first["X"].todense(), MADE.X[:16].toarray())


def test_ranks_share_an_epoch_and_a_state_goes_on(archive: Any) -> None:
    samples = archive.cells(hr.padded(5), obs=["cell_type"])
    options: dict[str, Any] = {"global_batch": 16, "shuffle": True, "seed": 7, "streams": 4}
    whole = [
        (b.index.numpy().copy(), {k: v.numpy().copy() for k, v in b.items()})
        for b in samples.batches(rank=0, world=1, **options)
    ]
    parts = [list(samples.batches(rank=r, world=2, **options)) for r in range(2)]
    for step, (ids, _) in enumerate(whole):
        dealt = np.concatenate([part[step].index.numpy() for part in parts])
        assert sorted(dealt) == sorted(ids)
    loader = samples.batches(rank=0, world=1, **options)
    for _ in range(5):
        loader.next()
    again = samples.batches(rank=0, world=1, **options)
    again.load_state_dict(loader.state_dict())
    for ids, tensors in whole[5:]:
        batch = again.next()
        assert batch.index.numpy().tolist() == ids.tolist()
        for name, values in tensors.items():  # the draw of genes too
            np.testing.assert_array_equal(batch[name].numpy(), values)


def test_top_genes_and_their_values(archive: Any) -> None:
    samples = archive.cells(hr.padded(6, pick="top", pad=99, cls=77), normalize=1e4, log1p=True)
    total = MADE.X.sum(1).A1
    for batch in samples.batches(24, remainder="short"):
        for row, i in enumerate(batch.index.numpy()):
            x = MADE.X[i]
            order = np.lexsort((x.indices, -x.data))[:5]
            genes, values, mask = (batch[f"X.{p}"].numpy()[row] for p in ("genes", "values", "mask"))
            assert genes.tolist() == [77, *x.indices[order], *[99] * (5 - len(order))]
            want = np.log1p(x.data[order] * (1e4 / max(total[i], 1)))
            np.testing.assert_allclose(values[1 : 1 + len(order)], want, rtol=1e-6)
            assert mask.tolist() == [True] * (1 + len(order)) + [False] * (5 - len(order))


def test_geneformer_tokens(archive: Any) -> None:
    names = list(MADE.var_names)
    vocabulary = {g: 10 + 3 * i for i, g in enumerate(names) if i % 4}
    medians = {g: 1.0 + i % 5 for i, g in enumerate(names) if i != 7}
    samples = archive.cells(hr.ranked(12, factors=medians, tokens=vocabulary, cls=2, eos=3, pad=0), normalize=1e4)
    kept = [i for i, g in enumerate(names) if g in vocabulary and g in medians]
    for batch in samples.batches(24, remainder="short"):
        for row, i in enumerate(batch.index.numpy()):
            dense = MADE.X[i].toarray()[0].astype("f8")
            value = np.float32(
                dense
                * (1e4 / max(dense.sum(), 1))
                * (1 / np.array([medians.get(g, 1.0) for g in names], "f4").astype("f8"))
            )
            order = [j for j in sorted(kept, key=lambda j: (-value[j], j)) if dense[j]][:10]
            want = [2, *(vocabulary[names[j]] for j in order), 3]
            assert batch["X.tokens"].numpy()[row].tolist() == want + [0] * (12 - len(want))
            assert batch["X.mask"].numpy()[row].tolist() == [True] * len(want) + [False] * (12 - len(want))


def test_forms_say_what_they_are(archive: Any) -> None:
    assert repr(hr.padded(1200, bins=51)) == "padded(1200, bins=51)"
    assert repr(hr.ranked(2048, tokens={"g": 1}, cls=2)) == "ranked(2048, tokens={'g': 1}, cls=2)"
    assert repr(hr.csr(index_dtype="int64")) == "csr(index_dtype='int64')"
    text = repr(archive.cells(obs=["cell_type"]))
    assert (
        "240 cells × 30 genes" in text
        and "csr float32" in text
        and "4 categories: B cell, T cell, NK, mast cell" in text
    )
    for wrong in (
        lambda: hr.padded(0),
        lambda: hr.padded(5, pick="best"),
        lambda: hr.csr(index_dtype="u1"),
        lambda: hr.padded(9, bins=1),
    ):
        with pytest.raises(hr.InvalidError):
            wrong()
    with pytest.raises(hr.InvalidError, match=r"it has none of the genes.*var="):
        archive.cells(hr.ranked(9, tokens={"ENSG1": 4}))


def test_xarray_and_predictions_know_cells(archive: Any, tmp_path: Any) -> None:
    xr = pytest.importorskip("xarray")
    samples = archive.cells("dense", genes=["g3", "g1"], obs=["n_genes"], obsm=["X_pca"])
    for batch in samples.batches(80):
        ds = batch.xarray()
        ids = batch.index.numpy()
        assert ds["gene"].values.tolist() == ["g3", "g1"]
        np.testing.assert_array_equal(ds["X"].sel(gene="g1"), MADE[ids, "g1"].X.toarray()[:, 0])
        np.testing.assert_array_equal(ds["n_genes"], MADE.obs.n_genes.iloc[ids])
        assert ds["X_pca"].shape == (80, 5)
        hr.write_predictions(tmp_path / "p.zarr", batch, {"embedding": batch["X_pca"].numpy() * 2})
    written = xr.open_zarr(tmp_path / "p.zarr", consolidated=False)["embedding"]
    np.testing.assert_array_equal(written, MADE.obsm["X_pca"] * 2)
    with pytest.raises(hr.UnsupportedError, match=r"moments: X has the rows of an atlas"):
        samples.moments("X")


def test_truths_are_numbers_in_batches(tmp_path: Any) -> None:
    made = atlas(12, 5)
    made.X = made.X.astype(bool)
    cells = hr.open(write(made, tmp_path / "b.zarr")).cells
    (csr,) = cells().batches(12)
    assert csr["X"].dtype == "uint8"
    np.testing.assert_array_equal(csr["X"].scipy().toarray(), made.X.toarray())
    (dense,) = cells("dense", dtype="float32").batches(12)
    np.testing.assert_array_equal(dense["X"].numpy(), made.X.toarray().astype("f4"))
