"""Several data sets of cells as one: genes joined by name, obs unified, collections of annbatch, SCDL."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from atlases import atlas, pd, same, sp, write
from scdl_writer import Matrix, smallest, write_chunked, write_plain

GENES = (
    ["g0", "g1", "g2", "g3", "g4", "g5"],
    ["g4", "g9", "g2", "g0", "g8"],
    ["g8", "g2", "g4", "g1", "g7", "g6", "g0"],
)


@pytest.fixture(scope="module")
def three(tmp_path_factory: Any) -> tuple[dict[str, str], list[Any]]:
    folder = tmp_path_factory.mktemp("union")
    made = [
        atlas(40 + 10 * i, seed=i, genes=genes, dtype=t) for i, (genes, t) in enumerate(zip(GENES, ("u2", "i4", "f4")))
    ]
    made[1].obs["cell_type"] = pd.Categorical.from_codes(np.arange(50) % 2, ["T cell", "platelet"])
    paths = {
        name: write(a, folder / f"{name}.zarr", 2 + i % 2)
        for i, (name, a) in enumerate(zip(("lung", "liver", "skin"), made))
    }
    return paths, made


def joined(made: list[Any], names: list[str]) -> Any:
    blocks = []
    for a in made:
        block = np.zeros((a.n_obs, len(names)))
        for i, g in enumerate(names):
            if g in a.var_names:
                block[:, i] = a.X[:, a.var_names.get_loc(g)].toarray()[:, 0]
        blocks.append(block)
    return np.concatenate(blocks)


@pytest.mark.parametrize(
    "join, names",
    [
        ("inner", ["g0", "g2", "g4"]),
        ("outer", ["g0", "g1", "g2", "g3", "g4", "g5", "g9", "g8", "g7", "g6"]),
        (["g8", "g0", "g3"], ["g8", "g0", "g3"]),
    ],
)
def test_genes_are_joined_by_name(three: Any, join: Any, names: list[str]) -> None:
    paths, made = three
    samples = hr.cells(paths, join=join, obs=["cell_type", "n_genes", "age"])
    assert list(samples.genes) == names and len(samples) == 150
    want = joined(made, names)
    obs = pd.concat([a.obs.astype({"cell_type": object}) for a in made])
    seen = 0
    for batch in samples.batches(16, shuffle=True, remainder="short"):
        ids = batch.index.numpy()
        assert batch["X"].dtype == "float64"  # of uint16, int32 and float32
        same(batch["X"].scipy(), sp.csr_matrix(want[ids]))
        assert batch.obs("cell_type").tolist() == [t if isinstance(t, str) else None for t in obs.cell_type.iloc[ids]]
        np.testing.assert_array_equal(batch["n_genes"].numpy(), obs.n_genes.to_numpy()[ids])
        names_of_sets = samples.obs["dataset"].categories[batch["dataset"].numpy()]
        assert names_of_sets.tolist() == np.repeat(["lung", "liver", "skin"], [40, 50, 60])[ids].tolist()
        seen += len(batch)
    assert seen == 150
    assert samples.obs["cell_type"].categories.tolist() == ["B cell", "T cell", "NK", "mast cell", "platelet"]


def test_unions_are_samples_like_others(three: Any) -> None:
    paths, made = three
    samples = hr.cells(list(paths.values()), "dense", join="inner", dtype="float32", obs=["cell_type"])
    some = samples.where("dataset in ('0', '2') and cell_type == 'NK'")
    want = np.concatenate([made[0].obs.cell_type == "NK", np.zeros(50, bool), made[2].obs.cell_type == "NK"])
    assert some.ids.tolist() == np.flatnonzero(want).tolist()
    again = pickle.loads(pickle.dumps(some))
    dense = joined(made, list(samples.genes))
    for one, other in zip(some.batches(8), again.batches(8)):
        np.testing.assert_array_equal(one["X"].numpy(), dense[one.index.numpy()])
        np.testing.assert_array_equal(one["X"].numpy(), other["X"].numpy())
    train, val = samples.split(0.5, 0.5, by="dataset", seed=2)
    assert not set(samples.obs["dataset"].codes[train.ids]) & set(samples.obs["dataset"].codes[val.ids])


def test_what_cannot_be_joined_is_refused(three: Any, tmp_path: Path) -> None:
    paths, _ = three
    with pytest.raises(
        hr.NotFoundError, match=r"join: 2 of 3 are not in any of the 3 data sets: x1, x2.*missing=\"ignore\""
    ):
        hr.cells(paths, join=["g0", "x1", "x2"])
    assert list(hr.cells(paths, join=["g0", "x1"], missing="ignore").genes) == ["g0", "x1"]
    with pytest.raises(hr.InvalidError, match=r"join='iner'.*did you mean 'inner'"):
        hr.cells(paths, join="iner")
    twice = atlas(20, genes=["a", "b", "a", "c", "b"])
    other = write(twice, tmp_path / "t.zarr")
    with pytest.raises(
        hr.InvalidError,
        match=r"genes of twice='a, b': 2 names are there twice.*var=\"gene_ids\"; it has gene_ids, highly",
    ):
        hr.cells({"lung": paths["lung"], "twice": other})
    apart = write(atlas(20, genes=["x", "y"]), tmp_path / "x.zarr")
    with pytest.raises(hr.InvalidError, match=r"no gene in common \(lung has g0, g1, g2.*var="):
        hr.cells({"lung": paths["lung"], "x": apart})
    less = atlas(20)
    del less.obs["donor"]
    with pytest.raises(
        hr.NotFoundError, match=r"not all data sets have a column 'donor': there is none in less; all have .*cell_type"
    ):
        hr.cells({"lung": paths["lung"], "less": write(less, tmp_path / "l.zarr")}, obs=["donor"])


def test_genes_are_chosen_as_of_one_data_set(three: Any) -> None:
    paths, made = three
    for genes in (["g8", "g0", "g3"], {"g8": 5, "g0": 6, "g3": 7}):
        samples = hr.cells(paths, genes=genes, obs=["n_genes"])
        assert list(samples.genes) == ["g8", "g0", "g3"]
        (batch, *_) = samples.batches(150)
        same(batch["X"].scipy(), sp.csr_matrix(joined(made, ["g8", "g0", "g3"])))
    assert list(pickle.loads(pickle.dumps(samples)).genes) == ["g8", "g0", "g3"]
    with pytest.raises(hr.NotFoundError, match=r"^genes: 1 of 2 are not in any of the 3 data sets: x1"):
        hr.cells(paths, genes=["g0", "x1"])
    assert list(hr.cells(paths, genes=["g0", "x1"], missing="ignore").genes) == ["g0", "x1"]
    with pytest.raises(ValueError, match=r"join='outer'.*genes= says which"):
        hr.cells(paths, genes=["g0"], join="outer")
    with pytest.raises(TypeError, match=r"genes.*positions and truths are of one data set alone"):
        hr.cells(paths, genes=[0, 1])


@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_genes_join_as_their_definition_says(data: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("join")
    pool = [f"g{i}" for i in range(8)]
    lists = data.draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, unique=True), min_size=2, max_size=3))
    made = [atlas(7 + i, seed=i, genes=genes) for i, genes in enumerate(lists)]
    paths = [write(a, folder / f"{i}.zarr") for i, a in enumerate(made)]
    names = list(dict.fromkeys(g for genes in lists for g in genes))
    samples = hr.cells(paths, join="outer")
    assert list(samples.genes) == names
    want = joined(made, names)
    for batch in samples.batches(5, remainder="short"):
        same(batch["X"].scipy(), sp.csr_matrix(want[batch.index.numpy()]))
    common = [g for g in lists[0] if all(g in genes for genes in lists)]
    if common:
        assert list(hr.cells(paths, join="inner").genes) == common


def test_a_collection_of_annbatch_is_one_union(tmp_path: Path) -> None:
    made = [atlas(20 + i, seed=i) for i in range(11)]
    root = zarr.open_group(tmp_path / "c.zarr", mode="w", zarr_format=3)
    root.attrs.update({"encoding-type": "annbatch-preshuffled", "encoding-version": "0.1.0"})
    for i, a in enumerate(made):
        write(a, tmp_path / "c.zarr" / f"dataset_{i}")
    samples = hr.open(tmp_path / "c.zarr").cells(obs=["n_genes"])
    assert len(samples) == sum(a.n_obs for a in made)
    x, n_genes = sp.vstack([a.X for a in made]).tocsr(), np.concatenate([a.obs.n_genes for a in made])
    for batch in samples.batches(16, shuffle=True, remainder="short"):
        ids = batch.index.numpy()
        same(batch["X"].scipy(), x[ids])
        np.testing.assert_array_equal(batch["n_genes"].numpy(), n_genes[ids])


# ---- SCDL


def scdl(folder: Path, a: Any, chunk: int, names: str | None = "gene_id") -> Path:
    """An SCDL archive of it, with features."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x = a.X
    m = Matrix(x.data.astype("f4"), x.indices.astype(smallest(a.n_vars - 1)), x.indptr.astype("u8"), a.n_vars)
    folder = write_chunked(folder, m, chunk) if chunk else write_plain(folder, m)
    tables = {"obs": a.obs[["cell_type", "donor", "n_genes", "score"]].astype({"cell_type": object, "donor": object})}
    tables["var"] = pd.DataFrame({names or "symbol": list(a.var_names)})
    for name, table in tables.items():
        (folder / f"{name}_features").mkdir()
        np.save(folder / f"{name}_features" / "cumulative_sum_index.npy", np.array([-1, a.n_obs]))
        pq.write_table(
            pa.Table.from_pandas(table, preserve_index=False), folder / f"{name}_features" / "dataframe_0.parquet"
        )
    return folder


@pytest.mark.parametrize("chunk", [0, 32])
def test_scdl_with_its_features(tmp_path: Path, chunk: int) -> None:
    a = atlas(100)
    samples = hr.open(scdl(tmp_path / "s", a, chunk)).cells(obs=["cell_type", "n_genes", "score"])
    assert list(samples.genes) == list(a.var_names)
    for batch in samples.batches(16, shuffle=True, remainder="short"):
        ids = batch.index.numpy()
        same(batch["X"].scipy(), a.X[ids])
        np.testing.assert_array_equal(batch["n_genes"].numpy(), a.obs.n_genes.to_numpy()[ids])
        np.testing.assert_array_equal(batch["score"].numpy(), a.obs.score.to_numpy()[ids])
        given = [g if g == g else None for g in a.obs.cell_type.iloc[ids].tolist()]
        assert batch.obs("cell_type").tolist() == given
    assert samples.where("donor == 'donor 2'").ids.tolist() == np.flatnonzero(a.obs.donor == "donor 2").tolist()
    again = pickle.loads(pickle.dumps(samples.isel(obs=slice(5, 50))))
    assert again.ids.tolist() == list(range(5, 50))


def test_scdl_that_does_not_say_its_genes(tmp_path: Path) -> None:
    a = atlas(50)
    where = scdl(tmp_path / "s", a, 20, names=None)
    with pytest.raises(
        hr.InvalidError,
        match=r"0: nothing says which column of var has the names of its 40 genes: give it, as var=\"…\"; there are symbol",
    ):
        hr.cells([where, write(a, tmp_path / "a.zarr")])
    both = hr.cells([where, scdl(tmp_path / "t", a, 0, names="symbol")], var="symbol")
    assert list(both.genes) == list(a.var_names) and len(both) == 100
    for name in ("var", "obs"):
        for file in (where / f"{name}_features").iterdir():
            file.unlink()
    with pytest.raises(hr.InvalidError, match=r"has no var_features.*cells\(genes=20000\)"):
        hr.open(where).cells()
    (batch, *_) = hr.open(where).cells(genes=40).batches(8)
    same(batch["X"].scipy(), a.X[:8])


def test_broken_features_of_scdl_are_refused(tmp_path: Path) -> None:
    where = scdl(tmp_path / "s", atlas(50), 0)
    file = where / "obs_features" / "dataframe_0.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(hr.DataError, match=r"obs_features/dataframe_0\.parquet is no parquet file"):
        hr.open(where).cells()


def test_what_is_missing_in_one_is_missing_in_all(tmp_path: Path) -> None:
    """NaN in numbers of one data set, a mask over the integers of another."""
    first, second = atlas(20, 5), atlas(20, 5, seed=1)
    second.obs["score"] = pd.array([None if i % 3 else 1 for i in range(20)], dtype="Int64")
    for name, made in (("a", first), ("b", second)):
        write(made, tmp_path / f"{name}.zarr")
    cells = hr.cells([str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")])
    missing = [*first.obs["score"].isna(), *second.obs["score"].isna()]
    assert cells.where("score.isna()").ids.tolist() == [i for i, m in enumerate(missing) if m]


def numbers_of_two(tmp_path: Path, first: Any, second: Any) -> hr.Samples:
    for name, column in (("a", first), ("b", second)):
        made = atlas(4, 5)
        made.obs["number"] = column
        write(made, tmp_path / f"{name}.zarr")
    return hr.cells([tmp_path / "a.zarr", tmp_path / "b.zarr"], obs=["number"])


BIG = 2**53 + 1  # float64 does not have it


@pytest.mark.parametrize(
    "signed, unsigned, dtype",
    [([-1, 2, 3, BIG], [5, 6, 7, BIG + 2], "int64"), ([1, 2, 3, BIG], [5, 6, 7, 2**64 - 1], "uint64")],
)
def test_signed_and_unsigned_numbers_stay_exact(tmp_path: Path, signed: Any, unsigned: Any, dtype: str) -> None:
    samples = numbers_of_two(tmp_path, np.array(signed, "i8"), np.array(unsigned, "u8"))
    (batch, *_) = samples.batches(8)
    got = batch["number"].numpy()
    assert got.dtype == dtype and got.tolist() == [*signed, *unsigned]
    assert samples.where(f"number == {BIG}").ids.tolist() == [3]


def test_missing_numbers_decide_nothing_about_the_type(tmp_path: Path) -> None:
    missing = pd.array([None, 2, 3, BIG], dtype="UInt64")
    samples = numbers_of_two(tmp_path, missing, np.array([-5, -6, -7, -BIG], "i8"))
    assert samples.obs["number"].numbers.dtype == "int64"
    assert samples.where("number.isna()").ids.tolist() == [0]
    assert samples.where(f"number == -{BIG}").ids.tolist() == [7]


def test_numbers_that_no_integers_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        hr.InvalidError, match=r"obs='number': no type of integers holds .* from -1 to 18446744073709551615"
    ):
        numbers_of_two(tmp_path, np.array([-1, 2, 3, 4], "i8"), np.array([1, 2, 3, 2**64 - 1], "u8"))
