"""The language of --view, --sel and --isel: the same samples as in Python; complaints point at the part meant."""

from __future__ import annotations

import json

import pytest
from program import climate, good, run

import headrace as hr

# view on the command line: the same in Python
VIEWS = {
    "x=t2m": hr.view("t2m"),
    "x=t2m,u10;time=-2,0": hr.view("t2m", "u10", time=hr.steps(-2, 0), stack="channel"),
    "x=t2m,u10;stack=variable": hr.view("t2m", "u10", stack="variable"),
    "x=t2m;time=3": hr.view("t2m", time=hr.steps(3)),
    "x=t2m;time=window:4": hr.view("t2m", time=hr.window(4)),
    "x=t2m;time=lag:12h": hr.view("t2m", time=hr.lag("12h")),
    "x=t2m;time=lag:-1D": hr.view("t2m", time=hr.lag("-1D")),
    "x=t2m;time=lag:13h,1h": hr.view("t2m", time=hr.lag("13h", tolerance="1h")),
    "x=t2m;time=-2,0:gaps=drop": hr.view("t2m", time=hr.steps(-2, 0, gaps="drop")),
    "x=t2m;time=window:3:gaps=12h": hr.view("t2m", time=hr.window(3, gaps="12h")),
    "x=z;level=850": hr.view("z", level=850),
    "x=z;level=500:850": hr.view("z", level=slice(500, 850)),
    "x=z;level=1000|500": hr.view("z", level=[1000, 500]),
    "x=z;level=500|": None,
    "x=z;lat=60:-60:2": hr.view("z", lat=slice(60, -60, 2)),
    "x=z;lat=:0": hr.view("z", lat=slice(None, 0)),
    "x=z;lat=0:": hr.view("z", lat=slice(0, None)),
    "x=z;lat@=-1": hr.view("z", isel={"lat": -1}),
    "x=z;lat@=1:5": hr.view("z", isel={"lat": slice(1, 5)}),
    "x=z;lat@=::2": hr.view("z", isel={"lat": slice(None, None, 2)}),
    "x=z;lat@=0|4|5": hr.view("z", isel={"lat": [0, 4, 5]}),
    "x=rain;site=2": hr.view("rain", site="2"),
    "x=rain;site=1|2": hr.view("rain", site=["1", "2"]),
    'x=rain;site="x:y"': hr.view("rain", site="x:y"),
    "x=t2m;dtype=float16": hr.view("t2m", dtype="float16"),
    "x=t2m;decode=no": hr.view("t2m", decode=False),
    "x=t2m;": hr.view("t2m"),
}


@pytest.mark.parametrize("text", [t for t, v in VIEWS.items() if v is not None])
def test_a_view_means_the_same_as_in_python(text: str) -> None:
    plan = json.loads(good("plan", climate(), "--along", "time", "--view", text, "--batch", 4, "--json"))
    same = hr.open(climate()).samples(along="time", x=VIEWS[text])
    assert plan["samples"] == len(same)
    loader = same.batches(4)
    assert plan["batch_bytes"] == loader.plan()["batch_bytes"]
    assert plan["cost"] == loader.plan()["cost"]


@pytest.mark.parametrize("text", [t for t, v in VIEWS.items() if v is not None])
def test_a_view_fills_tensors_as_in_python(text: str) -> None:
    shown = good("plan", climate(), "--along", "time", "--view", text, "--batch", 4)
    batch = next(iter(hr.open(climate()).samples(along="time", x=VIEWS[text]).batches(4)))
    assert f"x  {batch['x'].shape} {batch['x'].dtype}".replace(",)", ")") in shown


@pytest.mark.parametrize(
    ("option", "text", "python"),
    [
        ("--isel", "time=10:30", lambda s: s.isel(time=slice(10, 30))),
        ("--isel", "time=::3", lambda s: s.isel(time=slice(None, None, 3))),
        ("--sel", "time=1990-01-02:1990-01-05", lambda s: s.sel(time=slice("1990-01-02", "1990-01-05"))),
        ("--sel", 'time="1990-01-02T06:00":', lambda s: s.sel(time=slice("1990-01-02T06:00", None))),
        ("--sel", "time=1990", lambda s: s.sel(time="1990")),
    ],
)
def test_samples_are_chosen_as_in_python(option: str, text: str, python: object) -> None:
    words = ["plan", climate(), "--along", "time", "--view", "x=t2m", "--batch", 4, "--json", option, text]
    assert json.loads(good(*words))["samples"] == len(python(hr.open(climate()).samples(along="time", x="t2m")))  # type: ignore[operator]


# view: (exit status, words of the message, what the carets are below)
COMPLAINTS = {
    "x": (2, "NAME=ARRAY", "x"),
    "=t2m": (2, "NAME=ARRAY", "=t2m"),
    "x=t2m,,u10": (2, "name of an array", ","),
    "x=t2n": (1, "t2m", "x=t2n"),
    "x=t2m;lat": (2, "DIM=", "lat"),
    "x=t2m;=5": (2, "dimension is missing", "=5"),
    "x=t2m;time=yesterday": (2, "time=FIRST,LAST", "time=yesterday"),
    "x=t2m;time=3,1": (2, "before the first", "time=3,1"),
    "x=t2m;time=window:0": (1, "", "time=window:0"),
    "x=t2m;time=lag:5h": (1, "5h", "time=lag:5h"),
    "x=z;levle=500": (1, "levle", "levle=500"),
    "x=z;level=501": (1, "501", "level=501"),
    "x=z;level=5oo": (1, "5oo", "level=5oo"),
    "x=z;level=": (2, "label", ""),
    "x=z;level=500||850": (2, "empty label", "500||850"),
    "x=z;level=1:2:3:4": (2, "A:B:STEP", "1:2:3:4"),
    "x=z;lat@=north": (2, "integer", "north"),
    "x=z;lat@=6": (1, "6", "lat@=6"),
    "x=z;lat@=1:5:0": (2, "step", "0"),
    "x=t2m;dtype=f5": (2, "f5", "f5"),
    "x=t2m;decode=perhaps": (2, "yes or no", "perhaps"),
    "x=t2m,z;lat@=0": (1, "", "x=t2m,z"),
}


@pytest.mark.parametrize("text", COMPLAINTS)
def test_complaints_point_at_the_part_that_is_wrong(text: str) -> None:
    status, words, meant = COMPLAINTS[text]
    done = run("plan", climate(), "--along", "time", "--view", text, "--batch", 4)
    assert done.returncode == status and done.stdout == ""
    message, shown, carets = done.stderr.splitlines()[:3]
    assert message.startswith("headrace: ") and words in message
    assert shown == f"  --view {text}"
    first, last = carets.index("^"), carets.rindex("^")
    assert shown[first : last + 1].rstrip() == meant
    assert carets.strip("^ ") == ""


def test_carets_stand_below_text_of_many_bytes() -> None:
    done = run("plan", climate(), "--along", "time", "--view", "wörter=t2m;größe=1", "--batch", 4)
    _, shown, carets = done.stderr.splitlines()[:3]
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "größe=1"


@pytest.mark.parametrize(
    ("option", "text"), [("--sel", "lat=3"), ("--isel", "lat=3:4"), ("--isel", "time=3"), ("--sel", "time")]
)
def test_choices_of_samples_are_checked(option: str, text: str) -> None:
    done = run("plan", climate(), "--along", "time", "--view", "x=t2m", "--batch", 4, option, text)
    assert done.returncode == 2 and option in done.stderr and "^" in done.stderr


ONE_VIEW = ["--along", "time", "--view", "x=t2m", "--batch", 4]


@pytest.mark.parametrize(
    "words",
    [
        ["plan", *ONE_VIEW, "--batch", 8],
        ["plan", *ONE_VIEW, "--seed=1", "--seed", 1],
        ["plan", *ONE_VIEW, "--shuffle", "--shuffle=global"],
        ["bench", *ONE_VIEW, "--epochs", 1, "--ep", 2],
        ["plan", *ONE_VIEW, "--sel", "time=1990", "--sel", "time=1991"],
        ["cat", "t2m", "--options", "{}", "--options", "{}"],
        ["cat", "t2m", "--dtype", "f4", "--dtype", "f8"],
        ["verify", "--memory", "1GiB", "--memory", "2GiB"],
    ],
)
def test_values_are_given_once(words: list[object]) -> None:
    done = run(words[0], climate(), *words[1:])
    option = str(words[-2] if str(words[-2]).startswith("--") else words[-1]).partition("=")[0]
    option = {"--ep": "--epochs"}.get(option, option)
    assert done.returncode == 2 and f"{option} is given twice: one value is expected" in done.stderr
    assert done.stdout == ""


def test_what_is_set_or_a_list_may_be_repeated() -> None:
    good("plan", climate(), *ONE_VIEW, "--json", "--json", "--view", "y=u10", "--along", "member=draws:2")
