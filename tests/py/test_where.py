"""Which samples: lists, steps, masks, ids, conditions on coordinates."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import ids_of, write
from headrace import _dates

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")


@pytest.fixture
def stations(tmp_path: Path) -> hr.Samples:
    """400 steps of 6 hours with a station's name, a quality and a valid time for each."""
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    write(root, "x", np.arange(800, dtype="f4").reshape(400, 2), (16, 2), ("time", "v"))
    units = {"units": "hours since 2000-02-20", "calendar": "standard"}
    write(root, "time", np.arange(400, dtype="i8") * 6, (400,), ("time",), attributes=units)
    write(root, "valid_time", np.arange(400, dtype="i8") * 6 + 24, (400,), ("time",), attributes=units)
    write(root, "station", np.array(["Uccle", "De Bilt", "Bergen"])[np.arange(400) % 3], (400,), ("time",))
    write(root, "quality", (np.arange(400) % 10 / 10).astype("f4"), (400,), ("time",))
    return hr.open(str(tmp_path / "a.zarr")).samples(along="time", x="x")


def dates(samples: hr.Samples) -> Any:
    return np.datetime64("2000-02-20") + samples.ids * np.timedelta64(6, "h")


def test_lists_and_steps_of_indices(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.steps(-2, 0)))
    assert samples.isel(time=slice(0, 20, 5)).ids.tolist() == [5, 10, 15]
    assert samples.isel(time=[30, 7, 7, -1, 0]).ids.tolist() == [7, 30, 59], "a set, in archive order; 0 does not exist"
    assert samples.isel(time=np.array([4, -2])).ids.tolist() == [4, 58]
    assert samples.isel(time=12).ids.tolist() == [12]
    assert samples.isel(time=slice(10, 50)).isel(time=slice(0, 60, 7)).ids.tolist() == [14, 21, 28, 35, 42, 49]
    for wrong in ([60], np.array([3, -61]), [1.5], ["3"]):
        with pytest.raises(hr.InvalidError, match="isel: time"):
            samples.isel(time=wrong)


def test_lists_and_steps_of_labels(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    assert samples.sel(time=["1990-01-02T06", "1990-01-01T00:00"]).ids.tolist() == [0, 5]
    assert samples.sel(time=slice("1990-01-02", "1990-01-03", 3)).ids.tolist() == [4, 7, 10]
    with pytest.raises(hr.NotFoundError, match="1995"):
        samples.sel(time=["1995-01-01T00"])


def test_a_mask_keeps_what_is_true(stations: hr.Samples) -> None:
    mask = np.zeros(400, bool)
    mask[[0, 63, 64, 399]] = True
    for given_ in (mask, mask.tolist(), xr.DataArray(mask, dims="time"), np.repeat(mask, 2)[::2]):
        assert stations.where(given_).ids.tolist() == [0, 63, 64, 399]
    kept = stations.isel(time=slice(60, 100)).where(mask)
    assert kept.ids.tolist() == [63, 64] and len(kept) == 2
    loader = stations.where(mask).batches(2)
    assert ids_of(loader) == [0, 63, 64, 399]
    assert stations.where(~mask).where(mask).ids.tolist() == []


def test_a_mask_of_another_length_or_type_is_refused(stations: hr.Samples) -> None:
    with pytest.raises(hr.InvalidError, match=r"one boolean for each of the 400 positions of time"):
        stations.where(np.ones(399, bool))
    with pytest.raises(hr.InvalidError, match="as many as samples are left"):
        stations.isel(time=slice(0, 10)).where(np.ones(10, bool))
    with pytest.raises(hr.InvalidError, match="astype"):
        stations.where(np.ones(400, int))
    with pytest.raises(hr.InvalidTypeError, match="booleans"):
        stations.where(lambda c: c["quality"])
    for wrong in (
        "month = 6",
        3.5,
        np.ones((20, 20), bool),
        [[1, 2], [3]],
        np.array(["a"]),
        None,
        np.ones((2, 2), int),
    ):
        with pytest.raises(hr.InvalidError, match="where"):
            stations.where(wrong)
    with pytest.raises(ZeroDivisionError):
        stations.where(lambda c: 1 / 0)


def test_ids_in_any_order(stations: hr.Samples) -> None:
    assert stations.where([399, 3, 5, 3]).ids.tolist() == [3, 5, 399]
    assert stations.where(np.array([7], "u2")).ids.tolist() == [7]
    assert stations.isel(time=slice(5, None)).where([3, 5]).ids.tolist() == [5]
    assert len(stations.where([])) == 0
    for wrong in ([400], [-1]):
        with pytest.raises(hr.InvalidError, match="ids count from 0 to 399"):
            stations.where(wrong)


def test_conditions_by_name(stations: hr.Samples) -> None:
    month = dates(stations).astype("datetime64[M]").astype(int) % 12 + 1
    np.testing.assert_array_equal(stations.where(month=[3, 5]).ids, np.flatnonzero(np.isin(month, [3, 5])))
    np.testing.assert_array_equal(stations.where(month=slice(3, 4)).ids, np.flatnonzero((month >= 3) & (month <= 4)))
    assert set(stations.where(station="Uccle").ids % 3) == {0}
    assert set(stations.where(station=["Uccle", "Bergen"]).ids % 3) == {0, 2}
    assert set(stations.where(quality=slice(0.8, None)).ids % 10) == {8, 9}
    assert set(stations.where(quality=0.3).ids % 10) == {3}, "in the array's own precision"
    both = stations.where(station="Uccle", hour=0)
    assert set(both.ids % 12) == {0}
    assert stations.where(time=slice("2000-02-28", "2000-02-29")).ids.tolist() == list(range(32, 40))
    assert stations.where(valid_time=slice("2000-02-28", "2000-02-29")).ids.tolist() == list(range(28, 36))
    assert stations.where({"valid_time.day": 29, "valid_time.month": 2}).ids.tolist() == [32, 33, 34, 35]
    np.testing.assert_array_equal(stations.where(season="DJF").ids, np.flatnonzero(np.isin(month, [12, 1, 2])))


def test_a_condition_as_a_function_of_the_coordinates(stations: hr.Samples) -> None:
    kept = stations.where(lambda c: (c["time.month"] == 3) & (c["quality"] > 0.5) & (c["station"] != "Uccle"))
    when = dates(stations)
    want = (when >= np.datetime64("2000-03")) & (when < np.datetime64("2000-04"))
    want &= (np.arange(400) % 10 > 5) & (np.arange(400) % 3 != 0)
    np.testing.assert_array_equal(kept.ids, np.flatnonzero(want))
    assert stations.where(lambda c: c["time"] >= np.datetime64("2000-05-29")).ids.tolist() == list(range(396, 400))
    with pytest.raises(hr.NotFoundError, match=r"'station'"):
        stations.where(lambda c: c["statoin"] == "Uccle")


def test_what_is_not_there_is_named(stations: hr.Samples) -> None:
    for conditions, words in [
        ({"station": "Ucle"}, "did you mean 'Uccle'"),
        ({"station": ["Uccle", "Oslo"]}, "Oslo"),
        ({"statoin": "Uccle"}, "station"),
        ({"month": 13}, "from 1 to 12"),
        ({"month": "June"}, "integer"),
        ({"season": "summer"}, "JJA"),
        ({"quality.month": 3}, "no times"),
        ({"quality": "high"}, "quality"),
        ({"station": slice(3, 5)}, "compared"),
        ({"valid_time": "soon"}, "datetime64"),
    ]:
        with pytest.raises(hr.Error, match=words):
            stations.where(conditions)


@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"])
def test_parts_of_dates_in_every_calendar_are_those_of_cftime(calendar: str) -> None:
    rng = np.random.default_rng(1)
    hours = np.unique(np.concatenate([rng.integers(-4_500_000, 1_500_000, 500), np.arange(0, 24 * 365 * 5, 24 * 3)]))
    want = cftime.num2date(hours, f"hours since {'1969-12-19' if calendar == 'julian' else '1970-01-01'}", calendar)
    for part in ("year", "month", "day", "hour", "dayofyear"):
        got = _dates.part(hours * 3_600_000_000, calendar, part)
        name = {"dayofyear": "dayofyr"}.get(part, part)
        np.testing.assert_array_equal(got, [getattr(d, name) for d in want], err_msg=part)


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_conditions_on_model_calendars(tmp_path: Path, calendar: str) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    write(root, "x", np.zeros((800, 2), "f4"), (50, 2), ("time", "v"))
    attributes = {"units": "days since 1850-01-01", "calendar": calendar}
    write(root, "time", np.arange(800) + 0.5, (800,), ("time",), attributes=attributes)
    samples = hr.open(str(tmp_path / "a.zarr")).samples(along="time", x="x")
    with xr.open_zarr(
        tmp_path / "a.zarr", consolidated=False, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)
    ) as data:
        np.testing.assert_array_equal(samples.where(month=2).ids, np.flatnonzero(data.time.dt.month == 2))
    day = samples.where(lambda c: c["time"] < cftime.datetime(1850, 2, 1, calendar=calendar))
    assert len(day) == (31 if calendar == "noleap" else 30)


def test_sets_of_samples(stations: hr.Samples) -> None:
    a, b = stations.isel(time=slice(0, 100)), stations.isel(time=slice(0, 400, 3))
    assert (a & b).ids.tolist() == list(range(0, 100, 3))
    assert (a | b).ids.tolist() == sorted({*range(100), *range(0, 400, 3)})
    assert (a - b).ids.tolist() == [i for i in range(100) if i % 3]
    assert (stations - stations.where(hour=0) | stations.where(hour=0)).ids.tolist() == list(range(400))
    with pytest.raises(hr.InvalidTypeError):
        a & [1, 2]
    other = stations.archive.samples(along="time", x="x")
    with pytest.raises(hr.InvalidError, match="one description"):
        a | other


def test_samples_far_enough_from_others(stations: hr.Samples) -> None:
    some = stations.where([100, 200])
    assert sorted({*range(400)} - {*stations.apart(some, 2).ids.tolist()}) == [
        98,
        99,
        100,
        101,
        102,
        198,
        199,
        200,
        201,
        202,
    ]
    assert sorted({*range(400)} - {*stations.apart(some, "6h").ids.tolist()}) == [99, 100, 101, 199, 200, 201]
    assert sorted({*range(400)} - {*stations.apart(some).ids.tolist()}) == [100, 200]
    with pytest.raises(hr.InvalidError, match="gap"):
        stations.apart(some, "soon")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_chains_of_choices_are_numpys(stations: hr.Samples, data: st.DataObject) -> None:
    kept, want = stations, np.ones(400, bool)
    for _ in range(data.draw(st.integers(1, 4))):
        start, stop = sorted(data.draw(st.tuples(st.integers(0, 400), st.integers(0, 400))))
        step = data.draw(st.integers(1, 90))
        how = data.draw(st.sampled_from(["slice", "mask", "ids", "month"]))
        chosen = np.zeros(400, bool)
        chosen[start:stop:step] = True
        if how == "slice":
            kept = kept.isel(time=slice(start, stop, step))
        elif how == "mask":
            kept = kept.where(chosen)
        elif how == "ids":
            kept = kept.where(np.flatnonzero(chosen)[::-1])
        else:
            month = data.draw(st.integers(2, 5))
            chosen = dates(stations).astype("datetime64[M]").astype(int) % 12 + 1 == month
            kept = kept.where(month=month)
        want &= chosen
    np.testing.assert_array_equal(kept.ids, np.flatnonzero(want))
    assert len(kept) == want.sum()
    if want.any():
        assert ids_of(kept.batches(7)) == np.flatnonzero(want).tolist()
        assert sorted(ids_of(kept.batches(3, shuffle=True, remainder="pad"))) == np.flatnonzero(want).tolist()


@pytest.mark.alone
def test_a_hundred_million_samples_by_a_mask(tmp_path: Path) -> None:
    n = 100_000_000
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("x", shape=(n,), chunks=(1_000_000,), dtype="f4", dimension_names=["i"], fill_value=2.0)
    mask = np.zeros(n, bool)
    mask[::3] = True
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    cpu = time.process_time()
    samples = hr.open(str(tmp_path / "a.zarr")).samples(along="i", x="x").where(mask)
    loader = samples.batches(1024, shuffle=True)
    cpu, elapsed = time.process_time() - cpu, time.perf_counter() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(samples) == (n + 2) // 3
    assert loader.next().index.numpy().max() < n
    loader.close()
    assert cpu < 1.0, f"{cpu:.2f} s of CPU, {elapsed:.2f} s in all"
    assert grown * 1024 < 100e6, f"{grown / 1e3:.0f} MB"
