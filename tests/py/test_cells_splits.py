"""Splits of atlases that lie sorted: what each part has of the categories, in the report and in a warning."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from atlases import TYPES, atlas, pd, write


@pytest.fixture(scope="module")
def cells(tmp_path_factory: Any) -> hr.Samples:
    """400 cells in the order of their types; stages as they come."""
    made = atlas(400)
    made.obs["cell_type"] = pd.Categorical.from_codes(np.arange(400) // 100, TYPES)
    path = write(made, tmp_path_factory.mktemp("sorted") / "atlas.zarr")
    return hr.open(path).cells(obs=["cell_type", "stage", "n_genes"], row_chunk=10)


def test_a_cut_through_a_sorted_atlas_warns(cells: Any) -> None:
    says = (
        r"split: val has no sample of 3 of the 4 of cell_type \(B cell, T cell, NK\): the atlas lies sorted, .*"
        r"by=\"…\" keeps groups whole, blocks=500"
    )
    with pytest.warns(RuntimeWarning, match=says) as caught:
        parts = cells.split(train=0.8, val=0.2)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert [len(p) for p in parts] == [320, 80]
    with pytest.warns(RuntimeWarning, match=r"folds: fold 0 has no sample of 3 of the 4 of cell_type"):
        next(iter(cells.folds(4)))


def test_what_is_dealt_or_kept_whole_does_not_warn(cells: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells.split(0.8, 0.2, by="cell_type", seed=0)
        cells.split(0.8, 0.2, blocks=30, seed=0)
        cells.where("cell_type == 'NK'").split(0.8, 0.2)  # stages lie as they come
        list(cells.folds(3, by="stage"))


def test_few_cells_may_be_missing_by_chance(cells: Any) -> None:
    rare = cells.where("cell_type == 'B cell' and n_genes < 100 or cell_type == 'NK'")
    assert 2 < (rare.obs["cell_type"][rare.ids] == "B cell").sum() < 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rare.split(0.5, 0.5)


def test_the_report_counts_categories(cells: Any) -> None:
    with pytest.warns(RuntimeWarning):
        parts = cells.split(train=0.8, val=0.2)
    report = parts.report()
    assert report["categories"] == [
        {"name": "cell_type", "categories": 4, "parts": [4, 1]},
        {"name": "stage", "categories": 3, "parts": [3, 3]},
    ]
    assert str(report).splitlines()[-3:] == [
        "categories  in all  train  val",
        "cell_type   4       4      1",
        "stage       3       3      3",
    ]
    assert "cell_type" in report._repr_html_()
    assert hr.Splits([cells, cells.where("cell_type == 'NK'")]).report()["categories"][0]["parts"] == [4, 1]


def test_a_union_is_cut_through_its_data_sets(tmp_path: Path) -> None:
    paths = [write(atlas(100, seed=i), tmp_path / f"{i}.zarr") for i in range(2)]
    union = hr.cells({"lung": paths[0], "liver": paths[1]})
    with pytest.warns(RuntimeWarning, match=r"split: part 0 has no sample of 1 of the 2 of dataset \(liver\)"):
        parts = union.split(0.5, 0.5)
    assert parts.report()["categories"] == [{"name": "dataset", "categories": 2, "parts": [1, 1]}]


def test_other_samples_have_no_categories(tmp_path: Path) -> None:
    made = atlas(60)
    path = write(made, tmp_path / "a.zarr")
    one = hr.open(path).cells()
    assert one.split(0.5, 0.5).report()["categories"] == []
