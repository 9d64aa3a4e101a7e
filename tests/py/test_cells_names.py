"""Names in a batch of cells, and what is said where something cannot be: each names what it is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from atlases import atlas, pd, write


@pytest.fixture(scope="module")
def paths(tmp_path_factory: Any) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("names")
    lung, liver = atlas(40, 6, seed=1), atlas(30, 6, seed=2)
    lung.obs["dataset"] = pd.Categorical(["own"] * 40)
    lung.obs["X"] = np.arange(40)
    return {"lung": write(lung, folder / "lung.zarr"), "liver": write(liver, folder / "liver.zarr")}


def test_the_code_of_the_data_set_is_never_a_column_of_obs(paths: dict[str, str]) -> None:
    both = hr.cells(paths)
    want = np.repeat(["lung", "liver"], [40, 30])
    assert both.obs["dataset"].categories.tolist() == ["lung", "liver"]
    for batch in both.batches(16):
        assert both.obs["dataset"].categories[batch["dataset"].numpy()].tolist() == want[batch.index.numpy()].tolist()
    assert both.where("dataset == 'liver'").ids.tolist() == list(range(40, 70))
    one, other = both.split(0.5, 0.5, by="dataset", seed=1)
    assert {len(one), len(other)} == {40, 30}
    next(iter(both.batches(8, shuffle=True, weights={"dataset": "balanced"})))
    twice = hr.cells({"a": paths["lung"], "b": paths["lung"]}, obs=["cell_type"])  # both have the column
    assert twice.obs["dataset"].categories.tolist() == ["a", "b"]


def test_a_column_called_like_the_data_sets_code_is_refused(paths: dict[str, str]) -> None:
    says = r"obs='dataset': obs of lung has a column of that name.*give dataset= another name, or None"
    with pytest.raises(hr.InvalidError, match=says):
        hr.cells(paths, obs=["dataset"])
    twice = {"a": paths["lung"], "b": paths["lung"]}
    for name in ("study", None):
        named = hr.cells(twice, obs=["dataset"], dataset=name)
        assert named.obs["dataset"].categories.tolist() == ["own"]
        assert next(iter(named.batches(4))).obs("dataset").tolist() == ["own"] * 4
    assert "dataset" in next(iter(hr.cells([paths["liver"]], obs=["dataset"]).batches(4)))


@pytest.mark.parametrize("form", ["csr", "dense", hr.ranked(8)])
def test_names_that_are_taken_are_refused(paths: dict[str, str], form: Any) -> None:
    with pytest.raises(hr.InvalidError, match="obs='X': the matrix is called that in a batch"):
        hr.open(paths["lung"]).cells(form, obs=["X"])
    with pytest.raises(hr.InvalidError, match="dataset='X': the matrix is called that"):
        hr.cells(paths, form, dataset="X")


def test_a_matrix_by_genes_says_whose_it_is(paths: dict[str, str], tmp_path: Any) -> None:
    made = atlas(20)
    made.X = made.X.tocsc()
    with pytest.raises(hr.UnsupportedError, match=r"^heart: X is stored by genes \(CSC\)"):
        hr.cells({**paths, "heart": write(made, tmp_path / "c.zarr")})


@pytest.mark.parametrize("wrong", [0.0, -1.5, float("inf")])
def test_factors_are_above_0(paths: dict[str, str], wrong: float) -> None:
    archive = hr.open(paths["liver"])
    factors = {"g0": 1.0, "g2": wrong, "g3": float("nan")}
    with pytest.raises(hr.InvalidError, match=rf"ranked: factors\['g2'\]={wrong}: a number above 0"):
        archive.cells(hr.ranked(8, factors=factors))
    with pytest.raises(hr.InvalidError, match=r"factors\['g5'\]"):
        archive.cells(hr.ranked(8, factors=np.array([1, 1, 1, 1, np.nan, wrong])))


def test_rows_of_a_sparse_batch(paths: dict[str, str]) -> None:
    x = next(iter(hr.open(paths["liver"]).cells().batches(10)))["X"]
    whole = x.scipy()
    assert (x[3] != whole[3]).nnz == 0 and x[3].shape == (1, 6)
    assert (x[2:5] != whole[2:5]).nnz == 0
    np.testing.assert_array_equal(np.asarray(x, "f8"), whole.toarray())
    with pytest.raises(ValueError, match="a copy"):
        np.array(x, copy=False)


def test_states_of_other_cells_say_what_differs(paths: dict[str, str]) -> None:
    archive = hr.open(paths["liver"])
    state = archive.cells("dense", obs=["cell_type"], normalize=1e4, genes=["g0", "g1"]).batches(4).state_dict()
    others: dict[str, dict[str, Any]] = {
        r"normalize=10000\.0 \(now None\)$": {"genes": ["g0", "g1"]},
        r"normalize=10000\.0 \(now 100\.0\), genes=\['g0', 'g1'\] \(now \['g1', 'g0'\]\)|"
        r"genes=\['g0', 'g1'\] \(now \['g1', 'g0'\]\), normalize=10000\.0 \(now 100\.0\)":
            {"genes": ["g1", "g0"], "normalize": 100.0},
        r"log1p=None \(now True\)": {"genes": ["g0", "g1"], "normalize": 1e4, "log1p": True},
    }  # fmt: skip
    for says, options in others.items():
        with pytest.raises(hr.StateError, match=says):
            archive.cells("dense", obs=["cell_type"], **options).batches(4).load_state_dict(state)
    archive.cells("dense", obs=["cell_type"], normalize=1e4, genes=["g0", "g1"]).batches(4).load_state_dict(state)


def test_states_of_other_sentences_say_what_differs(paths: dict[str, str]) -> None:
    cells = hr.open(paths["lung"]).cells("dense")
    state = cells.sentences(2, by=["stage"]).batches(2).state_dict()
    for says, options in {
        r"sentences: seed=0 \(now 7\)$": {"seed": 7},
        r"sentences: partial='drop' \(now 'repeat'\)": {"partial": "repeat"},
        r"sentences: controls=None \(now \{'where':": {"controls": {"where": "stage == 'mid'"}},
    }.items():
        with pytest.raises(hr.StateError, match=says):
            cells.sentences(2, by=["stage"], **options).batches(2).load_state_dict(state)
    cells.sentences(2, by=["stage"]).batches(2).load_state_dict(state)


def test_moments_say_the_way(paths: dict[str, str]) -> None:
    for form in ("csr", "dense"):
        cells = hr.open(paths["lung"]).cells(form)
        for samples in (cells, cells.sentences(2, by=["stage"])):
            with pytest.raises(hr.UnsupportedError, match=r"moments: .*made of batches of cells, as docs/cells\.md"):
                samples.moments("X")


def test_reports_name_what_they_are_of(paths: dict[str, str]) -> None:
    cells = hr.open(paths["lung"]).cells("dense")
    sets = cells.sentences(2, by=["stage"])
    assert repr(cells).startswith("<Cells: ") and repr(sets).startswith("<Sentences: ")
    rows = repr(cells.batches(4, shuffle=True).plan()).partition("choices")[2].splitlines()
    assert len(rows) == len(set(rows))


def test_groups_that_miss_their_share_are_told(tmp_path: Any) -> None:
    made = atlas(550, 4)
    made.obs["group"] = np.repeat([0, 1], [400, 150])
    cells = hr.open(write(made, tmp_path / "g.zarr")).cells()
    told = set()
    for seed in range(8):
        with pytest.warns(RuntimeWarning) if _far(cells, seed) else _quiet():
            told.add(len(cells.split(0.7, 0.3, by="group", seed=seed)[0]))
    assert told == {400, 150}


def _far(cells: Any, seed: int) -> bool:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return len(cells.split(0.7, 0.3, by="group", seed=seed)[0]) == 150


def _quiet() -> Any:
    import contextlib
    import warnings

    @contextlib.contextmanager
    def errors() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    return errors()


def test_names_that_sentences_have(tmp_path: Any) -> None:
    made = atlas(40, 6, seed=3)
    made.obs["cells"] = pd.Categorical(np.repeat(["a", "b"], 20))
    made.obs["drug"] = pd.Categorical(np.tile(["x", "y"], 20))
    path = write(made, tmp_path / "named.zarr")
    cells = hr.open(path).cells(obs=["cells", "drug"])
    with pytest.raises(hr.InvalidError, match="by='cells': a name that sentences have of their own"):
        cells.sentences(4, by="cells")
    with pytest.raises(hr.InvalidError, match="cells is a name that sentences have of their own"):
        cells.sentences(4, by="drug")


def test_what_pandas_gets_is_its_own(tmp_path: Any) -> None:
    made = atlas(40, 6, seed=3)
    made.obs["drug"] = pd.Categorical(np.tile(["x", "y"], 20))
    path = write(made, tmp_path / "own.zarr")
    cells = hr.open(path).cells(obs=["drug"])
    loader = cells.batches(8)
    taken = cells.obs["drug"].to_pandas()
    taken[0] = "y"
    assert cells.obs["drug"].to_pandas()[0] == "x" and next(iter(loader))["drug"].numpy()[0] == 0
