"""headrace plan."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from program import climate, good, run

import headrace as hr

ASKED = ["--along", "time", "--view", "x=t2m,u10;time=-2,0", "--view", "y=t2m;time=1"]


def test_the_table_says_what_python_says() -> None:
    words = ["--batch", 5, "--shuffle", "--seed", 7, "--memory", "1MB", "--spread", 4, "--block", 2]
    table = good("plan", climate(), *ASKED, *words)
    samples = hr.open(climate()).samples(
        along="time", x=hr.view("t2m", "u10", time=hr.steps(-2, 0), stack="channel"), y=hr.view("t2m", time=hr.steps(1))
    )
    plan = samples.batches(5, shuffle=True, seed=7, memory="1MB", spread=4, block=2).plan(columns=None)
    assert json.loads(good("plan", climate(), *ASKED, *words, "--json")) == plan
    for label in ("samples", "steps", "batch", "order", "reads", "first batch", "memory", "shuffle"):
        assert f"\n{label:<12}" in "\n" + table
    for fact in ("x  (5, 3, 2, 6, 8) float32", "y  (5, 6, 8) float32", "spread, seed 7", "budget 1.0 MB", "ids 2 … 58"):
        assert fact in table
    assert repr(plan) == table.rstrip("\n")
    assert max(map(len, table.splitlines())) <= 96


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--batch", 8], {"n": 8}),
        (["--batch", 8, "--shuffle=global"], {"n": 8, "shuffle": "global"}),
        (["--batch", 5, "--shuffle"], {"n": 5, "shuffle": True}),
        (["--batch", 1, "--isel", "time=5:6"], {"n": 1}),
        (
            ["--global-batch", 8, "--streams", 4, "--shuffle", "--block", 1],
            {"global_batch": 8, "streams": 4, "block": 1},
        ),
    ],
)
def test_the_words_are_those_of_python(words: list[object], options: dict[str, object]) -> None:
    samples = hr.open(climate()).samples(
        along="time", x=hr.view("t2m", "u10", time=hr.steps(-2, 0), stack="channel"), y=hr.view("t2m", time=hr.steps(1))
    )
    if "--isel" in words:
        samples = samples.isel(time=slice(5, 6))
    if "--shuffle" in words:
        options = {**options, "shuffle": True}
    assert good("plan", climate(), *ASKED, *words).rstrip("\n") == repr(samples.batches(**options).plan(columns=None))  # type: ignore[arg-type]


def test_several_axes_patches_and_crops() -> None:
    samples = hr.open(climate()).samples(
        along={"time": None, "lat": hr.patch(4, 3, edge="clip"), "lon": hr.crop(4)},
        x=hr.view("t2m", time=hr.steps(-4, 0, 2)),
    )
    words = ["--along", "time", "--along", "lat=patch:4/3:clip", "--along", "lon=crop:4", "--view", "x=t2m;time=-4,0,2"]
    said = good("plan", climate(), *words, "--batch", 4, "--shuffle", "--memory", "64MB")
    assert said == f"{samples.batches(4, shuffle=True, memory='64MB').plan(columns=None)}\n"
    kept = json.loads(good("plan", climate(), *words, "--batch", 4, "--isel", "lat=0:1", "--json"))
    assert kept["samples"] == len(samples.isel(lat=slice(0, 1)))


def test_one_of_each_is_said_as_one() -> None:
    words = ["--batch", 1, "--shuffle", "--isel", "time=5:6"]
    table = good("plan", climate(), "--along", "time", "--view", "x=t2m", *words)
    for part in ("1 along time, id 5\n", "1 an epoch, of 1 row;", "one block of 15 chunk cells", " 1 chunk an epoch",
                 "the sample takes", "first batch 1 chunk,", "up to 1 batch open"):  # fmt: skip
        assert part in table
    assert "warning" not in table


def test_advice_can_be_followed() -> None:
    """What is to be typed is accepted, and the advice is gone then."""
    words = ["--along", "time", "--view", "x=t2m;time=-1,0", "--batch", 4, "--shuffle", "--memory", "100kB"]
    small = run("plan", climate(), *words, "--json")
    assert small.returncode == 0 and "chunks are read more than once" in small.stderr
    advice = json.loads(small.stdout)["advice"]
    memory = next(a for a in advice if "memory=" in a).split('memory="')[1].split('"')[0]
    assert json.loads(good("plan", climate(), *words[:-1], memory, "--json"))["advice"] == []


def test_no_chunk_is_fetched(tmp_path: Path) -> None:
    """Planning works on an archive whose chunks cannot be read."""
    copy = tmp_path / "copy.zarr"
    os.system(f"cp -r {climate()} {copy}")
    for chunk in (copy / "t2m" / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"")
    good("plan", copy, *ASKED, "--batch", 4, "--shuffle")
    assert run("bench", copy, *ASKED, "--batch", 4).returncode == 1


def test_ranks_and_streams() -> None:
    table = good("plan", climate(), *ASKED, "--global-batch", 8, "--streams", 4, "--rank", 1, "--world", 2)
    assert "rank 1 of 2, 4 streams, global batch 8" in table


def test_order_of_the_archive_and_exact_permutation() -> None:
    assert "as in the archive" in good("plan", climate(), *ASKED, "--batch", 4)
    assert "an exact permutation, seed 0" in good("plan", climate(), *ASKED, "--batch", 4, "--shuffle=global")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "archive"),
        ([climate()], "--along"),
        ([climate(), "--along", "time"], "--view"),
        ([climate(), *ASKED], "--batch"),
        ([climate(), *ASKED, "--batch", 4, "--global-batch", 4], "--batch"),
        ([climate(), *ASKED, "--batch", 0], "--batch 0"),
        ([climate(), *ASKED, "--batch", "many"], "--batch many"),
        ([climate(), *ASKED, "--batch", 4, "--memory", "lots"], "--memory lots"),
        ([climate(), *ASKED, "--batch", 4, "--shuffle=well"], "spread, global"),
        ([climate(), *ASKED, "--batch", 4, "--remainder", "keep"], "drop, pad, short, wrap"),
        ([climate(), *ASKED, "--batch", 4, "--seed", "-1"], "--seed -1"),
        ([climate(), *ASKED, "--batch", 4, "--dtype", "f5"], "f5"),
        ([climate(), *ASKED, "--batch", 4, "--rank", 2, "--world", 2], "--rank 2"),
        ([climate(), *ASKED, "--batch", 4, "--epochs", 2], "--epochs"),
        ([climate(), *ASKED, "--batch", 4, "--unheard-of"], "--unheard-of"),
        ([climate(), climate(), *ASKED, "--batch", 4], "one archive"),
    ],
)
def test_wrong_usage_is_status_2(words: list[object], says: str) -> None:
    done = run("plan", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("headrace: plan: ") and says in done.stderr
    assert "headrace plan --help" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no-such.zarr", *ASKED, "--batch", 4], "no-such.zarr"),
        ([climate(), "--along", "tiem", "--view", "x=t2m", "--batch", 4], "tiem"),
        ([climate(), *ASKED, "--batch", 400, "--shuffle"], "400"),
        ([climate(), *ASKED, "--batch", 4, "--memory", "10kB"], "memory"),
        ([climate(), *ASKED, "--global-batch", 5, "--world", 2], "5"),
    ],
)
def test_failures_are_status_1_and_one_message(words: list[object], says: str) -> None:
    done = run("plan", *words)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("headrace: ") and says in done.stderr


def test_help_explains_the_views() -> None:
    text = good("plan", "--help")
    for word in ("--along", "--view", "lag:6h", "window:7", "level=500|850", "lat@=3:10", "dtype=f4", "stack=DIM"):
        assert word in text
    assert "--epochs" not in text and "--epochs" in good("bench", "--help")
    assert max(map(len, text.splitlines())) <= 110
