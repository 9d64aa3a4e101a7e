"""Sample axes that are not evenly spaced: lags by value, and steps that run over no gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headrace as hr


def write(path: Path, times: Any, name: str = "time", chunk: int = 7, **encoding: Any) -> hr.Archive:
    """x[i] = i, y[i] = 1000 + i."""
    values = np.arange(len(times), dtype="f4")
    data = xr.Dataset({"x": ((name,), values), "y": ((name, "z"), np.stack([values, 1000 + values], 1))})
    data = data.assign_coords({name: times})
    chunks: dict[str, Any] = {"x": {"chunks": (chunk,)}, "y": {"chunks": (chunk, 2)}}
    data.to_zarr(path, encoding=chunks | ({name: encoding} if encoding else {}), zarr_format=2)
    return hr.open(str(path))


def stations(seed: int, n: int = 400, freq: str = "6h") -> pd.DatetimeIndex:
    """Observations every six hours of which some, and some whole stretches, are missing."""
    rng = np.random.default_rng(seed)
    keep = rng.random(n) > 0.1
    for at in rng.integers(0, n, 4):
        keep[at : at + int(rng.integers(1, 20))] = False
    return pd.date_range("2001-02-20", periods=n, freq=freq)[keep]


def rows(samples: hr.Samples, view: str) -> dict[int, Any]:
    out = {}
    for batch in samples.batches(16, shuffle=True, seed=1, remainder="short"):
        out |= dict(zip(batch.index.numpy().tolist(), batch[view].numpy().copy()))
    return out


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lag", ["6h", "-1D", "18h", "0h"])
def test_lags_are_those_of_pandas(tmp_path: Path, seed: int, lag: str) -> None:
    times = stations(seed)
    archive = write(tmp_path / "a.zarr", times)
    samples = archive.samples(along="time", now="x", then=hr.view("y", time=hr.lag(lag)))
    wanted = pd.Series(range(len(times)), times).reindex(times - pd.Timedelta(lag))
    there = np.flatnonzero(wanted.notna())
    assert samples.ids.tolist() == there.tolist()
    got = rows(samples, "then")
    assert sorted(got) == there.tolist()
    for i, y in got.items():
        assert y.tolist() == [wanted.iloc[i], 1000 + wanted.iloc[i]]
    assert rows(samples, "now") == {i: i for i in there.tolist()}


@pytest.mark.parametrize("tolerance", ["30min", "3h", "2D"])
@pytest.mark.parametrize("falling", [False, True])
def test_lags_within_a_tolerance(tmp_path: Path, tolerance: str, falling: bool) -> None:
    rng = np.random.default_rng(7)
    times = stations(3) + pd.to_timedelta(rng.integers(-3000, 3000, len(stations(3))), unit="s")
    times = times[::-1] if falling else times
    archive = write(tmp_path / "a.zarr", times, units="seconds since 2001-01-01", dtype="int64")
    lag = hr.lag("1D", tolerance=tolerance)
    assert repr(lag) == f"lag('1D', tolerance='{tolerance}')"
    samples = archive.samples(along="time", then=hr.view("x", time=lag), now="x")
    order = times[::-1] if falling else times
    at = order.get_indexer(times - pd.Timedelta("1D"), method="nearest", tolerance=pd.Timedelta(tolerance))
    at = np.where(at >= 0, len(times) - 1 - at if falling else at, -1)
    got = rows(samples, "then")
    assert samples.ids.tolist() == np.flatnonzero(at >= 0).tolist() == sorted(got)
    assert all(then == at[i] for i, then in got.items())


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "standard", "julian"])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_calendars(tmp_path: Path, calendar: str, dtype: str) -> None:
    days = np.random.default_rng(5).permutation(np.arange(0, 900))[:600]
    hours = np.sort(days * 24 + 7)
    times = cftime.num2date(hours, "hours since 1999-12-27", calendar, only_use_cftime_datetimes=True)
    archive = write(tmp_path / "a.zarr", times, units="days since 1850-01-01", calendar=calendar, dtype=dtype) \
        if dtype == "float64" else write(tmp_path / "a.zarr", times)  # fmt: skip
    samples = archive.samples(along="time", then=hr.view("x", time=hr.lag("3D")), now="x")
    index = xr.CFTimeIndex(times)
    wanted = index.get_indexer(index - pd.Timedelta("3D"))
    got = rows(samples, "then")
    assert sorted(got) == samples.ids.tolist() == np.flatnonzero(wanted >= 0).tolist()
    assert all(then == wanted[i] for i, then in got.items())


def test_numbers(tmp_path: Path) -> None:
    depth = np.array([0, 0.1, 0.3, 0.4, 0.6, 1.1, 1.2, 1.5], "f4")
    archive = write(tmp_path / "a.zarr", depth, "depth")
    got = rows(archive.samples(along="depth", x=hr.view("x", depth=hr.lag(0.3)), now="x"), "x")
    assert got == {2: 0, 3: 1, 4: 2, 7: 6}
    got = rows(archive.samples(along="depth", x=hr.view("x", depth=hr.lag(0.5, 0.15)), now="x"), "x")
    assert got == {3: 0, 4: 1, 5: 4, 6: 4, 7: 5}
    whole = write(tmp_path / "b.zarr", np.array([1, 2, 4, 7, 8]), "depth")
    assert rows(whole.samples(along="depth", x=hr.view("x", depth=hr.lag(-3))), "x") == {0: 2, 2: 3}
    assert rows(whole.samples(along="depth", x=hr.view("x", depth=hr.lag(0.5, 0.5))), "x") == {
        0: 0, 1: 1, 2: 2, 3: 3, 4: 4}  # fmt: skip


def test_positions_without_a_value(tmp_path: Path) -> None:
    """NaT and NaN are nobody's counterpart, wherever they stand; what is infinite has none either."""
    hours = np.array([0, 6, -1, 12, 24, 30, -1, 36])
    times = pd.Series(pd.Timestamp("2001-01-01") + pd.to_timedelta(hours, unit="h")).where(hours >= 0)
    back = {1: 0, 3: 1, 5: 4, 7: 5}
    for falling in (False, True):
        order = slice(None, None, -1 if falling else 1)
        wanted = {7 - i: 7 - j for i, j in back.items()} if falling else back
        archive = write(tmp_path / f"a{falling}.zarr", times[order].to_numpy())
        view = hr.view("x", time=hr.lag("6h"))
        assert rows(archive.samples(along="time", now="x", x=view), "x") == wanted
        near = hr.view("x", time=hr.lag("6h", "2h"))
        assert rows(archive.samples(along="time", now="x", x=near), "x") == wanted
        both = hr.combine({"a": archive, "b": archive})
        joined = both.samples(along="time", now="a/x", x=hr.view("b/x", join="inner"))
        assert joined.ids.tolist() == [i for i in range(8) if hours[order][i] >= 0]
    depth = write(tmp_path / "b.zarr", np.array([0.5, 1, np.nan, 2, 4, np.inf]), "depth")
    assert rows(depth.samples(along="depth", x=hr.view("x", depth=hr.lag(1))), "x") == {3: 1}
    assert rows(depth.samples(along="depth", x=hr.view("x", depth=hr.lag(1, 0.5))), "x") == {1: 0, 3: 1}
    mixed = write(tmp_path / "c.zarr", pd.DatetimeIndex(["2001-01-02", pd.NaT, "2001-01-01", "2001-01-05"]))
    with pytest.raises(hr.InvalidError, match=r"time is not sorted \(at index 3, 2001-01-05"):
        mixed.samples(along="time", x=hr.view("x", time=hr.lag("1D")))


@pytest.mark.parametrize("far", ["5h", "6h", "13h"])
def test_tolerances_reach_over_the_ends_of_even_axes(tmp_path: Path, far: str) -> None:
    """The same as on an axis of which one more position is missing."""
    times = pd.date_range("2001-01-01", periods=20, freq="6h")
    for at in (times, times[::-1], times.delete(11)):
        rising = at.sort_values()
        near = rising.get_indexer(at - pd.Timedelta("12h"), method="nearest", tolerance=pd.Timedelta(far))
        wanted = {i: at.get_loc(rising[j]) for i, j in enumerate(near) if j >= 0}
        archive = write(tmp_path / f"{len(at)}{at[0].day}.zarr", at)
        got = rows(archive.samples(along="time", now="x", x=hr.view("x", time=hr.lag("12h", far))), "x")
        assert got == wanted


def over(times: Any, low: int, high: int, most: Any = None) -> list[int]:
    """Positions whose steps stay inside and run over no gap, from the definition."""
    apart = np.diff(np.asarray(times).astype("M8[s]").astype("i8")).astype("f8")
    usual = np.sort(apart)[len(apart) // 2]
    gap = apart > most if most else np.abs(apart - usual) > np.abs(usual) / 2
    fine = []
    for i in range(len(times)):
        first, last = i + min(low, 0), i + max(high, 0)
        if i + low >= 0 and i + high < len(times) and not gap[max(first, 0) : min(last, len(times) - 1)].any():
            fine.append(i)
    return fine


@pytest.mark.parametrize("seed", range(12))
def test_steps_over_no_gap(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    times = stations(seed)
    archive = write(tmp_path / "a.zarr", times, chunk=int(rng.integers(1, 30)))
    low = int(rng.integers(-3, 3))
    step = int(rng.integers(1, 3))
    high = low + step * int(rng.integers(0, 3))
    most = [None, "12h", "2D"][int(rng.integers(3))]
    steps = hr.steps(low, high, step, gaps=most or "drop")
    samples = archive.samples(along="time", x=hr.view("x", time=steps))
    wanted = over(times, low, high, most and pd.Timedelta(most).total_seconds())
    assert samples.ids.tolist() == wanted
    got = rows(samples, "x")
    assert sorted(got) == wanted
    for i, x in got.items():
        assert np.atleast_1d(x).tolist() == list(range(i + low, i + high + 1, step))
    both = archive.samples(along="time", x=hr.view("x", time=steps), y=hr.view("x", time=hr.lag("1D")))
    lagged = archive.samples(along="time", y=hr.view("x", time=hr.lag("1D")))
    assert both.ids.tolist() == sorted(set(wanted) & set(lagged.ids.tolist()))


def test_several_axes_and_months(tmp_path: Path) -> None:
    times = stations(1, 60)
    archive = write(tmp_path / "a.zarr", times)
    samples = archive.samples(along=["time", "z"], y=hr.view("y", time=hr.window(3, gaps="drop")))
    assert repr(hr.window(3, gaps="drop")) == "window(3, gaps='drop')"
    wanted = over(times, -2, 0)
    assert samples.ids.tolist() == [2 * i + k for i in wanted for k in (0, 1)]
    months = write(tmp_path / "m.zarr", pd.date_range("2000-01-01", periods=40, freq="MS"))
    assert len(months.samples(along="time", x=hr.view("x", time=hr.window(12, gaps="drop")))) == 29
    runs = np.concatenate([np.arange(0, 10), np.arange(3, 13)])  # two runs behind one another
    twice = write(tmp_path / "r.zarr", runs, "step")
    assert twice.samples(along="step", x=hr.view("x", step=hr.window(4, gaps="drop"))).ids.tolist() == [
        *range(3, 10), *range(13, 20)]  # fmt: skip


def test_no_leakage(tmp_path: Path) -> None:
    times = stations(9)
    archive = write(tmp_path / "a.zarr", times)
    for x in (hr.lag("2D"), hr.steps(-5, 0, gaps="drop")):
        samples = archive.samples(along="time", x=hr.view("x", time=x), y="x")
        train, test = samples.split(0.6, 0.4, gap="auto")
        seen: list[set[float]] = []
        for part in (train, test):
            seen.append({float(v) for row in rows(part, "x").values() for v in np.atleast_1d(row)})
            seen[-1] |= {float(v) for v in rows(part, "y").values()}
        assert not seen[0] & seen[1]
        assert len(train) + len(test) > 0.8 * len(samples)


def test_states_tell_them_apart(tmp_path: Path) -> None:
    archive = write(tmp_path / "a.zarr", stations(2))
    views = [hr.lag("6h"), hr.lag("12h"), hr.lag("6h", "6h"), hr.steps(-1), hr.steps(-1, gaps="drop")]
    views.append(hr.steps(-1, gaps="2D"))

    def loader(steps: Any) -> hr.Loader:
        return archive.samples(along="time", x=hr.view("x", time=steps)).batches(8, shuffle=True, seed=3)

    for steps in views:
        first = loader(steps)
        it = iter(first)
        for _ in range(3):
            next(it)
        state = first.state_dict()
        rest = [batch.index.numpy().tolist() for batch in it]
        again = loader(steps)
        again.load_state_dict(state)
        assert [batch.index.numpy().tolist() for batch in again] == rest
        for other in views:
            if other is not steps:
                with pytest.raises(hr.StateError, match=r"views|split"):
                    loader(other).load_state_dict(state)


def test_joined(tmp_path: Path) -> None:
    """Lags and gaps are those of the archive that is joined; a left join keeps what has none."""
    times = stations(4)
    write(tmp_path / "a.zarr", pd.date_range(times[0], times[-1], freq="6h"))
    write(tmp_path / "b.zarr", times)
    both = hr.combine({"a": tmp_path / "a.zarr", "b": tmp_path / "b.zarr"})
    even = pd.date_range(times[0], times[-1], freq="6h")
    at = times.get_indexer(even)
    back = np.where(at >= 0, times.get_indexer(times - pd.Timedelta("1D"))[at], -1)
    inner = both.samples(along="time", a="a/x", b=hr.view("b/x", join="inner", time=hr.lag("1D")))
    got = rows(inner, "b")
    assert sorted(got) == np.flatnonzero(back >= 0).tolist()
    assert all(v == back[i] for i, v in got.items())
    left = both.samples(along="time", a="a/x", b=hr.view("b/x", join="left", time=hr.lag("1D")))
    got = rows(left, "b")
    assert len(got) == len(even)
    assert all(v == back[i] if back[i] >= 0 else np.isnan(v) for i, v in got.items())
    some = both.samples(along="time", a="a/x", b=hr.view("b/x", join="inner", time=hr.window(3, gaps="drop")))
    fine = set(over(times, -2, 0))
    assert some.ids.tolist() == [i for i, j in enumerate(at) if int(j) in fine]


def test_plans_tell_of_gaps(tmp_path: Path) -> None:
    times = pd.DatetimeIndex([*pd.date_range("2001-01-01", periods=20), *pd.date_range("2001-02-01", periods=20)])
    archive = write(tmp_path / "a.zarr", times)
    samples = archive.samples(along="time", x=hr.view("x", time=hr.steps(-3, 0)))
    told = " ".join(str(samples.batches(4).plan()).split())
    assert "the steps of 3 samples run over 1 gap of time (the first before 2001-02-01" in told
    assert 'gaps="drop"' in told
    assert "gap" not in str(samples.isel(time=slice(0, 20)).batches(4).plan())
    dropped = archive.samples(along="time", x=hr.view("x", time=hr.steps(-3, 0, gaps="drop")))
    assert "gap" not in str(dropped.batches(4).plan())
    assert len(samples) - len(dropped) == 3


def test_what_cannot_be(tmp_path: Path) -> None:
    archive = write(tmp_path / "a.zarr", stations(0))
    twice = write(tmp_path / "b.zarr", np.array([1, 2, 2, 5]), "depth")
    texts = write(tmp_path / "c.zarr", np.array(["a", "b", "d"]), "name")
    even = write(tmp_path / "d.zarr", np.arange(8), "depth")
    same = write(tmp_path / "e.zarr", np.ones(4), "depth")

    def open_(archive: hr.Archive, along: str = "time", **steps: Any) -> None:
        archive.samples(along=along, x=hr.view("x", **steps))

    with pytest.raises(hr.InvalidError, match=r'no value that lies "5min" before another: give a tolerance='):
        open_(archive, time=hr.lag("5min"))
    with pytest.raises(hr.InvalidError, match=r'tolerance 6 has no unit.*write "6h" for hours'):
        open_(archive, time=hr.lag("1D", 6))
    with pytest.raises(hr.InvalidError, match='"soon" is no duration'):
        open_(archive, time=hr.lag("soon"))
    with pytest.raises(hr.InvalidError, match="has a value twice"):
        open_(twice, "depth", depth=hr.lag(1))
    with pytest.raises(hr.InvalidError, match="has the same value everywhere"):
        open_(same, "depth", depth=hr.lag(1))
    with pytest.raises(hr.InvalidError, match="lie inside for ids 9 … 16, all others for 0 … 7"):
        even.samples(along="depth", now="x", x=hr.view("x", depth=hr.lag(9)))
    with pytest.raises(hr.InvalidError, match="holds texts"):
        open_(texts, "name", name=hr.lag(1))
    with pytest.raises(hr.InvalidError, match="holds texts: it has no gaps"):
        open_(texts, "name", name=hr.window(2, gaps="drop"))
    with pytest.raises(hr.InvalidError, match="whole number"):
        open_(even, "depth", depth=hr.lag(1.5))
    with pytest.raises(hr.InvalidError, match="no sample is left"):
        open_(even, "depth", depth=hr.window(3, gaps=0.5))
    with pytest.raises(hr.InvalidError, match='"few" is no number'):
        open_(even, "depth", depth=hr.window(3, gaps="few"))
    with pytest.raises(hr.InvalidError, match=r"samples\s+along depth are boxes"):
        even.samples(along={"depth": hr.patch(4)}, x=hr.view("x", depth=hr.steps(0, 2, gaps="drop")))
    with pytest.raises(hr.InvalidError, match="gaps"):
        hr.steps(1, gaps=["drop"])  # type: ignore[arg-type]
    with pytest.raises(hr.InvalidError, match="give a number of positions"):
        archive.samples(along="time", x="x").split(0.5, 0.5, gap="1D")
