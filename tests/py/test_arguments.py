"""Arguments that make no sense: always an `hr.Error`, which names the argument and the value and says what is accepted."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import headrace as hr

HUGE, NAN, INF = 10**30, float("nan"), float("inf")
LONG = 10**5000  # more digits than Python prints


class Odd:
    """No number, no text, and no repr either."""

    def __index__(self) -> int:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


NO_COUNT = (
    0,
    -1,
    HUGE,
    -HUGE,
    LONG,
    1.5,
    8.0,
    NAN,
    INF,
    True,
    "8",
    b"8",
    [8],
    np.array([8]),
    np.True_,
    Odd(),
    object(),
)
NO_INTEGER = (HUGE, -HUGE, LONG, 1.5, NAN, INF, True, "8", b"8", ["8"], Odd())
NO_DTYPE = ("f5", "", "floot32", "string", "S3", "<U4", "f4\0", "\ud800", 32, Odd(), list, np.dtype("S3"), object())
NO_NAME = (3, None, b"t2m", ["t2m"], "t2m\0", "\ud800", Odd())
NO_DICT = (3, "time", ["time"], {3: 4}, {"a\0": 4}, Odd())


def cases() -> dict[str, tuple[Any, tuple[Any, ...], str]]:
    """call(samples, value), values, the argument as messages name it"""
    t2m: Any = hr.view("t2m")
    at = lambda s, **k: s.archive.samples(along="time", x=hr.view("t2m", **k))
    a: dict[str, tuple[Any, tuple[Any, ...], str]] = {
        "open url": (lambda s, v: hr.open(v), (3, None, b"x", ["x"], "x\0y", "\ud800", Odd()), "url="),
        "open options": (lambda s, v: hr.open(s.archive.url, v), NO_DICT, "storage_options="),
        "option value": (lambda s, v: hr.open(s.archive.url, {"a": v}), (NAN, object(), HUGE), "storage_options="),
        "archive": (lambda s, v: s.archive[v], NO_NAME, "archive[…]="),
        "along": (lambda s, v: s.archive.samples(along=v, x="t2m"), (3, None, b"time", "t\0", "\ud800"), "along="),
        "views": (lambda s, v: s.archive.samples(v, along="time"), (*NO_DICT, {}), "views="),
        "view of samples": (lambda s, v: s.archive.samples(along="time", x=v), (3, None, b"t2m", ["t2m"], Odd()), "x="),
        "array": (lambda s, v: hr.view("t2m", v, stack="c"), NO_NAME, "view: array="),
        "stack": (lambda s, v: hr.view("t2m", stack=v), (3, b"c", True, "c\0"), "view: stack="),
        "sel of view": (lambda s, v: hr.view("t2m", sel=v), NO_DICT, "view: sel="),
        "isel of view": (lambda s, v: hr.view("t2m", isel=v), NO_DICT, "view: isel="),
        "dtype of view": (lambda s, v: hr.view("t2m", dtype=v), NO_DTYPE, "view: dtype="),
        "decode of view": (lambda s, v: hr.view("t2m", decode=v), ("no", 1, None, 0.0, Odd()), "view: decode="),
        "steps first": (lambda s, v: hr.steps(v), (*NO_INTEGER, None), "steps: first="),
        "steps last": (lambda s, v: hr.steps(0, v), (*NO_INTEGER, -1), "steps: last="),
        "window": (lambda s, v: hr.window(v), (*NO_COUNT, None), "window: n="),
        "lag": (
            lambda s, v: hr.lag(v),
            (NAN, INF, HUGE, True, None, [6], "6h\0", datetime.timedelta(hours=6)),
            "lag: d",
        ),
        "label": (
            lambda s, v: at(s, lat=v),
            (NAN, INF, HUGE, -HUGE, LONG, object(), Odd(), [NAN], "\ud800"),
            "x: lat=",
        ),
        "index": (lambda s, v: at(s, isel={"lat": v}), (*NO_INTEGER, None, [1.5], [True]), "isel['lat']="),
        "ends": (lambda s, v: at(s, isel={"lat": slice(v, 3)}), (1.5, NAN, "1", True, Odd()), "isel['lat']="),
        "by": (lambda s, v: at(s, isel={"lat": slice(0, 3, v)}), (0, -1, HUGE, 1.5, True, "1"), "isel['lat']: step="),
        "isel": (lambda s, v: s.isel(time=v), (60, None, [60], [1.5], "3", Odd()), "isel: time="),
        "isel by position": (lambda s, v: s.isel(v), NO_DICT, "isel: indexers="),
        "isel ends": (lambda s, v: s.isel(time=slice(v, None)), (1.5, NAN, "1", True, Odd()), "isel: time="),
        "isel step": (lambda s, v: s.isel(time=slice(0, 3, v)), (0, -1, HUGE, 1.5, True, "1"), "isel: time: step="),
        "sel": (lambda s, v: s.sel(time=v), (object(), NAN, Odd(), LONG), "sel: time="),
        "sel by position": (lambda s, v: s.sel(v), NO_DICT, "sel: indexers="),
        "fraction": (
            lambda s, v: s.split(v),
            (0, -0.1, 1.1, NAN, INF, HUGE, LONG, True, "1", None, [0.5, 0.5]),
            "split: f",
        ),
        "gap": (lambda s, v: s.split(0.5, 0.5, gap=v), (-1, HUGE, 1.5, NAN, True, "none", None), "split: gap="),
        "memory": (
            lambda s, v: s.batches(4, memory=v),
            (0, -1, NAN, INF, HUGE, LONG, "lots", "nanGiB", True, [1]),
            "memory=",
        ),
        "seed": (lambda s, v: s.batches(4, seed=v), (-1, 2**64, LONG, 1.5, NAN, True, "0"), "seed="),
        "replicas": (lambda s, v: s.batches(4, rank=0, world=4, replicas=v), (*NO_COUNT, 3), "replicas="),
        "rank": (lambda s, v: s.batches(4, rank=v, world=2), (-1, 2, HUGE, 0.0, True, "0"), "rank="),
        "world": (lambda s, v: s.batches(4, rank=0, world=v), NO_COUNT, "world="),
        "rank alone": (lambda s, v: s.batches(4, rank=v), (0,), "world="),
        "shuffle": (lambda s, v: s.batches(4, shuffle=v), ("globl", None, 2, [True], NAN), "shuffle="),
        "remainder": (lambda s, v: s.batches(4, remainder=v), ("dorp", 1, [1], True), "remainder="),
        "missing": (lambda s, v: s.batches(4, missing=v), ("nana", None, 1, {}), "missing="),
        "on_error": (lambda s, v: s.batches(4, on_error=v), ("rise", None, 1, {}), "on_error="),
        "dtype": (lambda s, v: s.batches(4, dtype=v), NO_DTYPE, "dtype="),
        "order": (lambda s, v: s.batches(4, order=v), NO_COUNT, "order="),
        "timeout": (
            lambda s, v: s.batches(4).next(timeout=v),
            (-1, NAN, -INF, -HUGE, "1", True, [1], Odd()),
            "timeout=",
        ),
        "epoch": (lambda s, v: s.batches(4).set_epoch(v), (-1, *NO_INTEGER, None), "epoch="),
        "state": (
            lambda s, v: s.batches(4).load_state_dict(v),
            (None, 3, "{}", [], {"a": object()}, {"a": LONG}),
            "state=",
        ),
        "allow": (lambda s, v: s.batches(4).load_state_dict({}, allow=v), ("bach", True, 1, [1]), "allow="),
        "read index": (
            lambda s, v: s.archive["t2m"][v],
            (1.5, NAN, "1", True, None, [1], np.array([1]), Odd()),
            "index=",
        ),
        "read slice": (lambda s, v: s.archive["t2m"][v:5], (1.5, "1", True, Odd()), "index="),
        "read dtype": (lambda s, v: s.archive["t2m"].read(dtype=v), NO_DTYPE, "dtype="),
        "read decode": (lambda s, v: s.archive["t2m"].read(decode=v), ("no", 1, None, Odd()), "decode="),
        "workers": (lambda s, v: hr.configure(workers=v), (-1, 2000, *NO_INTEGER), "workers="),
        "net_threads": (lambda s, v: hr.configure(net_threads=v), (-1, 5, *NO_INTEGER), "net_threads="),
        "io_threads": (lambda s, v: hr.configure(io_threads=v), (-1, 2000, *NO_INTEGER), "io_threads="),
    }
    for name in ("spread", "block", "streams"):
        a[name] = (lambda s, v, name=name: s.batches(4, **{name: v}), NO_COUNT, f"{name}=")
    for name in ("n", "global_batch"):
        a[name] = (lambda s, v, name=name: s.batches(**{name: v}), NO_COUNT, f"{name}=")
    assert repr(t2m) == "view('t2m')"
    return a


CASES = cases()


@pytest.mark.parametrize("case", CASES)
def test_an_argument_that_makes_no_sense_is_named(climate: str, case: str) -> None:
    call, values, name = CASES[case]
    samples = hr.open(climate).samples(along="time", x="t2m")
    for value in values:
        with pytest.raises(hr.Error) as caught:
            call(samples, value)
        message = str(caught.value)
        assert isinstance(caught.value, ValueError), (message, caught.value)
        assert name in message and len(message) < 400, message
        assert "\n" not in message and len(message.split(": ", 1)) == 2, message


def test_wrong_types_are_type_errors_and_wrong_indices_index_errors(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    with pytest.raises(TypeError, match=r"n='8': an integer from 1 to 2\*\*63 - 1 is expected, not str"):
        samples.batches("8")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout='soon'"):
        samples.batches(4).next(timeout="soon")  # type: ignore[arg-type]
    array = samples.archive["t2m"]
    for key in (60, -61, HUGE, (0, 6), (0, 0, 0, 0), (..., ...)):
        with pytest.raises(IndexError) as caught:
            array[key]
        assert isinstance(caught.value, hr.Error)
    assert isinstance(caught.value, hr.OutOfRangeError)


def test_near_names_are_suggested(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    for call, hint in [
        (lambda: samples.batches(4, remainder="wrop"), "did you mean 'wrap'"),
        (lambda: samples.batches(4, dtype="flaot32"), "did you mean 'float32'"),
        (lambda: samples.archive["t2n"], 'did you mean "t2m"'),
        (lambda: samples.archive["humidity"], 'there are "lat", "level", "t2m"'),
        (lambda: samples.archive.samples(along="tiem", x="t2m"), "did you mean time?"),
        (lambda: samples.archive.samples(along="time", x=hr.view("t2m", lta=3)), "did you mean lat?"),
    ]:
        with pytest.raises(hr.Error) as caught:
            call()
        assert hint in str(caught.value)


def test_batches_name_what_they_lack(climate: str) -> None:
    batch = next(iter(hr.open(climate).samples(along="time", x="t2m").batches(4)))
    with pytest.raises(hr.NotFoundError, match=r"no view 'y' in this batch; it has \['x'\]"):
        batch["y"]
    with pytest.raises(hr.InvalidTypeError, match="by the name of a view, not 3"):
        batch[3]


def test_numbers_of_numpy_and_names_of_types_are_taken(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.steps(np.int64(-1), np.int32(0))))
    loader = samples.batches(np.int64(4), seed=np.uint64(2**64 - 1), memory=np.float64(1e6), shuffle=np.True_)
    assert loader.next(timeout=np.float32(30)).step == 0
    assert loader.next(timeout=INF).step == 1
    for given, name in [(float, "float64"), (np.float16, "float16"), ("<f4", "float32"), (np.dtype(">i2"), "int16")]:
        assert repr(hr.view("t2m", dtype=given)) == f"view('t2m', dtype={name!r})"
    t2m = samples.archive["t2m"]
    np.testing.assert_array_equal(t2m[-HUGE:HUGE, np.int64(3)], t2m[:, 3])
    assert len(samples.isel(time=slice(-HUGE, HUGE))) == len(samples)
