"""--weights, --stratify, --concat, --combine and joined views: the same plans as in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from program import good, run

import headrace as hr

N = 240


def write(root: Any, name: str, values: np.ndarray, dims: tuple[str, ...], **attributes: str) -> None:
    chunks = (8, *values.shape[1:]) if values.ndim > 1 else values.shape
    array = root.create_array(
        name, shape=values.shape, chunks=chunks, dtype=values.dtype, dimension_names=dims, attributes=attributes
    )
    array[...] = values


def make(path: Path, first: int, step: int, n: int, calendar: str = "standard") -> str:
    root = zarr.open_group(path, mode="w", zarr_format=3)
    at = np.arange(n)
    write(root, "x", np.random.default_rng(first).normal(size=(n, 40)).astype("f4"), ("time", "k"))
    write(root, "time", first + at * step, ("time",), units="hours since 1999-12-20", calendar=calendar)
    write(root, "weight", (at % 5).astype("f4") / 2, ("time",))
    write(root, "label", (at // 7 % 3 * 10).astype("i2"), ("time",))
    words = np.array(["wet", "dry", "schön"])[at % 3]
    write(root, "word", words, ("time",))
    write(root, "text", words.astype(np.dtypes.StringDType()), ("time",))
    return str(path)


@pytest.fixture(scope="module", params=["standard", "noleap", "360_day"])
def archive(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    return make(tmp_path_factory.mktemp("sampling") / "a.zarr", 0, 37, N, request.param)


def plan_of(*words: object) -> Any:
    return json.loads(good("plan", *words, "--batch", 8, "--shuffle", "--json"))


def agree(plan: Any, loader: hr.Loader) -> None:
    same: Any = loader.plan()
    for key in ("samples", "epoch_rows", "weighted", "stratified", "blocks", "cost", "choices"):
        assert plan[key] == same[key], key


HOW = {
    "weight": {"weights": "weight"},
    "label=balanced": {"weights": {"label": "balanced"}},
    "label=0:1,10:2.5,20:0": {"weights": {"label": {0: 1, 10: 2.5, 20: 0}}},
    "word=wet:1,dry:0.25,schön:4": {"weights": {"word": {"wet": 1, "dry": 0.25, "schön": 4}}},
    "text=wet:0,dry:0.25,schön:4": {"weights": {"text": {"wet": 0, "dry": 0.25, "schön": 4}}},
    "month=balanced": {"weights": {"month": "balanced"}},
}


@pytest.mark.parametrize("text", HOW)
def test_weights_are_those_of_python(archive: str, text: str) -> None:
    words = (archive, "--along", "time", "--view", "x=x", "--weights", text)
    samples = hr.open(archive).samples(along="time", x="x")
    agree(plan_of(*words), samples.batches(8, shuffle=True, **HOW[text]))
    some = samples.isel(time=slice(20, 200))
    agree(plan_of(*words, "--isel", "time=20:200"), some.batches(8, shuffle=True, **HOW[text]))


@pytest.mark.parametrize(
    "names",
    [
        "label",
        "word",
        "text",
        "month",
        "season",
        "time.hour",
        "dayofweek",
        "quarter",
        "year,season",
        "label,word,month",
        "day",
    ],
)
def test_strata_are_those_of_python(archive: str, names: str) -> None:
    samples = hr.open(archive).samples(along="time", x="x")
    given = names.split(",")
    loader = samples.batches(8, shuffle=True, block=1, stratify=given[0] if len(given) == 1 else given)
    agree(plan_of(archive, "--along", "time", "--view", "x=x", "--block", 1, "--stratify", names), loader)


def test_columns_lie_along_any_axis(archive: str) -> None:
    words = (archive, "--along", "time,k", "--view", "x=x", "--weights", "weight", "--stratify", "label")
    samples = hr.open(archive).samples(along=["time", "k"], x="x")
    agree(plan_of(*words), samples.batches(8, shuffle=True, weights="weight", stratify="label"))


def test_several_archives_are_one(tmp_path: Path) -> None:
    parts = [make(tmp_path / f"{i}.zarr", i * 400, 4, 100) for i in range(3)]
    samples = hr.concat(parts, along="time").samples(along="time", x="x")
    agree(plan_of(*parts, "--concat", "time", "--along", "time", "--view", "x=x"), samples.batches(8, shuffle=True))
    assert "300" in good("bench", *parts, "--concat", "time", "--along", "time", "--view", "x=x", "--batch", 10)


@pytest.mark.parametrize(
    ("part", "view"),
    [
        ("join=inner", {"join": "inner"}),
        ("join=left;dtype=f8", {"join": "left", "dtype": "f8"}),
        ("tolerance=3h;join=inner;time=-1,0", {"join": "inner", "tolerance": "3h", "time": hr.steps(-1, 0)}),
        ("join=left;on=time;tolerance=1D", {"join": "left", "on": "time", "tolerance": "1D"}),
    ],
)
def test_joined_views_are_those_of_python(tmp_path: Path, part: str, view: dict[str, Any]) -> None:
    a, b = make(tmp_path / "a.zarr", 0, 6, 200), make(tmp_path / "b.zarr", 36, 9, 100)
    both = hr.combine({"a": a, "b": b})
    samples = both.samples(along="time", x="a/x", y=hr.view("b/x", **view))
    words = ("--combine", f"a={a}", "--combine", f"b={b}", "--along", "time", "--view", "x=a/x")
    agree(plan_of(*words, "--view", f"y=b/x;{part}"), samples.batches(8, shuffle=True))


WRONG = [
    (["--weights", "wieght"], 1, "weight"),
    (["--weights", "word"], 2, "holds texts; word=balanced"),
    (["--weights", "x"], 2, "does not lie along a sample axis"),
    (["--weights", "label=0:1"], 2, "the weight of label 10 is missing"),
    (["--weights", "label=0:1,10:-2"], 2, "numbers from 0 on"),
    (["--weights", "label=7:1"], 2, "label has no value 7"),
    (["--stratify", "label.month"], 2, "the first sample axis, time.month"),
    (["--stratify", "fortnight"], 1, "fortnight"),
    (["--stratify", "month,,label"], 2, "--stratify: a name is empty"),
    (["--weights", "=balanced"], 2, "--weights: a name is empty"),
    (["--view", "y=x;join=left;on=:"], 2, "on is DIM, or DIM:AXIS"),
    (["--view", "y=x;join=left;on=time:"], 2, "on is DIM, or DIM:AXIS"),
    (["--view", "y=x;tolerance=3h"], 2, "belong to join"),
    (["--view", "y=x;join=outer"], 2, "inner or left"),
    (["--concat", "time"], 2, "several archives"),
    (["--combine", "b"], 2, "NAME=ARCHIVE"),
    (["--combine", "b=c.zarr"], 2, "each archive has its name"),
]


@pytest.mark.parametrize(("words", "status", "text"), WRONG)
def test_complaints_say_what_is_expected(archive: str, words: list[str], status: int, text: str) -> None:
    done = run("plan", archive, "--along", "time", "--view", "x=x", "--batch", 8, "--shuffle", *words)
    assert (done.returncode, text in done.stderr) == (status, True), done.stderr
