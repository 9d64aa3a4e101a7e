"""Columns of obs as conditions, groups, weights and strata; conditions as text against pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from atlases import TYPES, atlas, write
from headrace._expression import evaluate

MADE = atlas(300)
OBS = MADE.obs


@pytest.fixture(scope="module")
def samples(tmp_path_factory: Any) -> Any:
    return hr.open(write(MADE, tmp_path_factory.mktemp("where") / "a.zarr")).cells()


def plain(series: Any) -> Any:
    return series.fillna(False).astype(bool)


CONDITIONS = {
    "cell_type == 'B cell' and n_genes > 200": (OBS.cell_type == "B cell") & (OBS.n_genes > 200),
    "cell_type != 'NK' or not is_doublet": (OBS.cell_type != "NK") | ~OBS.is_doublet,
    "donor in ('donor 1', 'donor 3') and 100 <= n_genes < 500": OBS.donor.isin(["donor 1", "donor 3"])
    & (OBS.n_genes >= 100)
    & (OBS.n_genes < 500),
    "cell_type not in ['NK', 'B cell']": ~OBS.cell_type.isin(["NK", "B cell"]),
    "cell_type.isna() or score.isna()": OBS.cell_type.isna() | OBS.score.isna(),
    "cell_type.notna()": OBS.cell_type.notna(),
    "not (cell_type == 'NK')": ~(OBS.cell_type == "NK"),
    "stage > 'early'": OBS.stage > "early",
    "'mid' >= stage": OBS.stage <= "mid",
    "batch == 20": OBS.batch == 20,
    "batch in (0, 40)": OBS.batch.isin([0, 40]),
    "age > 100": plain(OBS.age > 100),
    "age != 50": ~plain(OBS.age == 50),
    "treated": plain(OBS.treated),
    "not treated": ~plain(OBS.treated),
    "treated == False": plain(OBS.treated == False),  # noqa: E712
    "200 < n_genes": OBS.n_genes > 200,
    "`pct counts` <= 0.5": OBS["pct counts"] <= 0.5,
    "score > -0.5 and share < .25": (OBS.score > -0.5) & (OBS.share < np.float32(0.25)),
    "_index == 'cell7'": OBS.index == "cell7",
    "_index >= 'cell4'": OBS.index >= "cell4",
    "n_genes > count": OBS.n_genes > OBS["count"].astype(int),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_say_what_pandas_says(samples: Any, condition: str) -> None:
    assert samples.where(condition).ids.tolist() == np.flatnonzero(np.asarray(CONDITIONS[condition])).tolist()


REFUSED = {
    "cell_typ == 'NK'": "no column 'cell_typ'; did you mean 'cell_type'",
    "cell_type == 'Bcell'": "no value 'Bcell'; did you mean 'B cell'.*it has 'B cell', 'T cell'",
    "cell_type in ('NK', 'x')": "no value 'x'",
    "batch == '20'": "no value '20'; it is the number 20",
    "cell_type > 'NK'": "categories without an order",
    "n_genes": "n_genes is no condition by itself",
    "n_genes > 'x'": "n_genes holds int64, not texts",
    "is_doublet == 'yes'": "not texts",
    "is_doublet == 3": "True or False, never 3",
    "n_genes > 200 & is_doublet": "write and, not &",
    "~is_doublet": "write not, not ~",
    "n_genes == None": r"name\.isna\(\)",
    "cell_type is 'NK'": r"write ==, or name\.isna\(\)",
    "1 < 2": "one side of a comparison is a column",
    "n_genes + 1 > 2": "the name of a column is expected|one side",
    "n_genes in 5": "a list is expected after in",
    "obs.n_genes > 5": "backticks",
    "__import__('os').system('x')": "of functions there are",
    "n_genes.sum() > 3": "one side|name of a column",
    "[x for x in n_genes]": "a condition is expected",
    "n_genes > (lambda: 1)": "a number.*is expected",
    "n_genes > 1j": "a number.*is expected",
    "cell_type == stage": "only numbers are compared",
    "(": "never closed.*comparisons joined by",
    "n_genes > ": "comparisons joined by",
    "`n_genes > 5": "backtick at 0 is not closed",
    "": "comparisons joined by",
    "\0": "null",
    "(" * 5000: "nested|parenthes",
    "not " * 5000 + "is_doublet": "nested|parse",
    "n_genes > " + "9" * 5000: "digits",
}


@pytest.mark.parametrize("condition", REFUSED, ids=lambda c: c[:30].replace("\0", "NUL"))
def test_other_conditions_are_refused(samples: Any, condition: str) -> None:
    with pytest.raises(hr.Error, match=REFUSED[condition]):
        samples.where(condition)


@given(text=st.text("nx_genes cell_type=<>!'\"`()[]{},.andornt not in 0123456789-+*&|~:\\#\n", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_condition_or_an_error(text: str) -> None:
    from headrace._frame import FrameColumn

    def find(name: str) -> FrameColumn:
        if name != "n_genes":
            raise hr.NotFoundError(name)
        return FrameColumn(name, numbers=np.arange(5))

    try:
        mask = evaluate(text, find)
    except hr.Error:
        return
    assert mask.dtype == bool and mask.shape == (5,)


def test_columns_are_names_wherever_coordinates_are(samples: Any) -> None:
    ids = samples.where(cell_type=["NK", "B cell"], n_genes=slice(200, None)).ids
    assert ids.tolist() == np.flatnonzero(OBS.cell_type.isin(["NK", "B cell"]) & (OBS.n_genes >= 200)).tolist()
    ids = samples.where(lambda c: (c["n_genes"] < 100) & (c["cell_type"] == "NK")).ids
    assert ids.tolist() == np.flatnonzero((OBS.cell_type == "NK") & (OBS.n_genes < 100)).tolist()
    assert samples.where(stage=slice("mid", None)).ids.tolist() == np.flatnonzero(OBS.stage >= "mid").tolist()
    assert samples.coords["donor"].tolist() == OBS.donor.tolist()
    with pytest.raises(hr.NotFoundError, match=r"no column 'celltype'; did you mean 'cell_type'"):
        samples.where(celltype="NK")


def test_groups_stay_whole(samples: Any) -> None:
    train, val = samples.split(0.7, 0.3, by="donor", seed=1)
    donors = [set(OBS.donor.iloc[part.ids]) for part in (train, val)]
    assert not donors[0] & donors[1]
    assert len(train) + len(val) == len(samples)
    for fit, val in samples.folds(3, by="cell_type"):
        assert not set(fit.obs["cell_type"].codes[fit.ids]) & set(val.obs["cell_type"].codes[val.ids])


def test_weights_and_strata_by_column(samples: Any) -> None:
    known = samples.where("cell_type.notna()")
    balanced = known.batches(20, shuffle=True, weights={"cell_type": "balanced"}, stratify="cell_type")
    seen = np.concatenate([samples.obs["cell_type"].codes[b.index.numpy()] for b in balanced])
    share = np.bincount(seen, minlength=len(TYPES)) / len(seen)
    assert abs(share - 0.25).max() < 0.08
    assert {b["bin"] for b in balanced.plan()["quality"]["shares"]} == set(TYPES)
    some = samples.batches(
        10, shuffle=True, weights={"cell_type": {"NK": 2, "T cell": 1, "B cell": 0, "mast cell": 0, None: 0}}
    )
    names = [name for b in some for name in b.obs("cell_type")]
    assert set(names) == {"NK", "T cell"}
    with pytest.raises(hr.NotFoundError, match=r"cell_type has no value 'NKT'.*did you mean 'NK'"):
        samples.batches(10, weights={"cell_type": {"NKT": 1}})
    with pytest.raises(hr.InvalidError, match=r"weights of .*'B cell'.* are missing"):
        samples.batches(10, weights={"cell_type": {"NK": 1}})


def test_conditions_as_text_on_any_samples(climate: str) -> None:
    days = hr.open(climate).samples(along="time", x="t2m")
    assert days.where("hour == 6 and `time.dayofyear` <= 4").ids.tolist() == [1, 5, 9, 13]
