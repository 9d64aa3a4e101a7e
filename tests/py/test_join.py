"""Views of another archive, laid on the sample axis by the values of its coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import headrace as hr

FINE = np.arange("2000-01-01", "2000-03-01T00:00:01", 6 * 3600, dtype="datetime64[s]")
COARSE = np.delete(np.arange("2000-01-10T12", "2000-02-20T12:00:01", 86400, dtype="datetime64[s]"), [3, 4, 11])
SST = np.random.default_rng(0).normal(size=(len(COARSE), 8)).astype("f4")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> hr.Archive:
    folder = tmp_path_factory.mktemp("join")
    t2m = np.arange(len(FINE) * 6, dtype="f4").reshape(-1, 2, 3)
    fine = xr.Dataset({"t2m": (("time", "lat", "lon"), t2m)}, coords={"time": FINE.astype("M8[ns]")})
    coarse = xr.Dataset({"sst": (("time", "y"), SST)}, coords={"time": COARSE.astype("M8[ns]")})
    fine.to_zarr(folder / "era5.zarr", encoding={"t2m": {"chunks": (7, 2, 3)}}, zarr_format=2)
    units = {"units": "days since 1970-01-01 12:00"}
    coarse.to_zarr(folder / "sst.zarr", encoding={"sst": {"chunks": (5, 8)}, "time": units}, zarr_format=2)
    coarse.rename(time="valid_time").to_zarr(folder / "valid.zarr", zarr_format=2)
    return hr.combine({name: folder / f"{name}.zarr" for name in ("era5", "sst", "valid")})


def nearest(i: int, tolerance: np.timedelta64) -> int | None:
    """The index in the coarse archive; of two as near, the later."""
    far = np.abs(COARSE - FINE[i])
    at = int(np.flatnonzero(far == far.min())[-1])
    return at if far.min() <= tolerance else None


def row(at: int | None, step: int = 0) -> Any:
    there = at is not None and 0 <= at + step < len(SST)
    return SST[at + step] if there and at is not None else np.full(8, np.nan, "f4")


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("tolerance", [None, "6h", "1D"])
def test_rows_are_those_of_the_value(both: hr.Archive, how: str, tolerance: str | None) -> None:
    far = np.timedelta64(0, "s") if tolerance is None else np.timedelta64(int(tolerance[:-1]), tolerance[-1])
    samples = both.samples(along="time", x="era5/t2m", y=hr.view("sst/sst", join=how, tolerance=tolerance))
    found = [nearest(i, far) for i in range(len(FINE))]
    wanted = [i for i, at in enumerate(found) if how == "left" or at is not None]
    assert samples.ids.tolist() == wanted
    seen = []
    for batch in samples.batches(8, shuffle=True, seed=0, remainder="short"):
        for i, x, y in zip(batch.index.numpy(), batch["x"].numpy(), batch["y"].numpy()):
            assert x[0, 0] == 6 * i and np.array_equal(y, row(found[i]), equal_nan=True)
            seen.append(int(i))
    assert sorted(seen) == wanted


def test_steps_count_in_the_joined_archive(both: hr.Archive) -> None:
    view = hr.view("sst/sst", join="left", tolerance="6h", time=hr.steps(-1, 0))
    for batch in both.samples(along="time", x="era5/t2m", y=view).batches(16, remainder="short"):
        for i, y in zip(batch.index.numpy(), batch["y"].numpy()):
            at = nearest(int(i), np.timedelta64(6, "h"))
            assert np.array_equal(y, np.stack([row(at, -1), row(at)]), equal_nan=True)


def test_names_may_differ_and_gaps_are_masked(both: hr.Archive) -> None:
    view = hr.view("valid/sst", join="left", tolerance="6h", on={"valid_time": "time"}, nan=0.0, mask=True)
    samples = both.samples(along="time", x="era5/t2m", y=view)
    batch = next(iter(samples.batches(len(FINE))))
    there = [nearest(i, np.timedelta64(6, "h")) is not None for i in range(len(FINE))]
    assert batch["y_mask"].numpy()[:, 0].tolist() == there
    assert not batch["y"].numpy()[np.logical_not(there)].any()
    part = samples.where(month=1)
    assert part.ids.tolist() == list(range(124))


@pytest.mark.parametrize("mask", [False, True])
def test_more_steps_than_the_joined_archive_has(both: hr.Archive, mask: bool) -> None:
    """A left join keeps every sample: what the other archive lacks of the steps is NaN."""
    n, nan = len(SST), {"nan": 0.0, "mask": True} if mask else {}
    view = hr.view("sst/sst", join="left", tolerance="6h", time=hr.steps(-n - 3, 2), **nan)
    samples = both.samples(along="time", x="era5/t2m", y=view)
    assert len(samples) == len(FINE)
    for batch in samples.batches(16, shuffle=True, seed=3, remainder="short"):
        for r, (i, y) in enumerate(zip(batch.index.numpy(), batch["y"].numpy())):
            at = nearest(int(i), np.timedelta64(6, "h"))
            want = np.stack([row(at, step) for step in range(-n - 3, 3)])
            if mask:
                assert np.array_equal(batch["y_mask"].numpy()[r], ~np.isnan(want))
                want = np.nan_to_num(want)
            assert np.array_equal(y, want, equal_nan=True)
    with pytest.raises(hr.InvalidError, match=r"takes \d+ steps, but time is only \d+ long"):
        both.samples(along="time", x="era5/t2m", y=hr.view("sst/sst", join="inner", time=hr.window(n + 1)))


def test_an_inner_join_has_its_fingerprint(both: hr.Archive) -> None:
    exact = both.samples(along="time", y=hr.view("sst/sst", join="left"), x="era5/t2m").batches(4, shuffle=True, seed=1)
    near = both.samples(along="time", y=hr.view("sst/sst", join="left", tolerance="6h"), x="era5/t2m")
    with pytest.raises(hr.StateError, match="views"):
        near.batches(4, shuffle=True, seed=1).load_state_dict(exact.state_dict())


def test_what_does_not_join_is_said(both: hr.Archive) -> None:
    def open_(view: hr.View) -> None:
        both.samples(along="time", x="era5/t2m", y=view)

    with pytest.raises(hr.InvalidError, match=r"241 long in era5/t2m but 39 in sst/sst.*join="):
        open_(hr.view("sst/sst"))
    with pytest.raises(hr.InvalidError, match="has none of the sample axes"):
        open_(hr.view("valid/sst", join="left"))
    with pytest.raises(hr.NotFoundError, match="y is no sample axis"):
        open_(hr.view("sst/sst", join="left", on="y"))
    with pytest.raises(hr.InvalidError, match="inner"):
        hr.view("sst/sst", join="outer")
    with pytest.raises(hr.InvalidError, match='it belongs to join="inner"'):
        hr.view("sst/sst", tolerance="3h")
    whole = both.samples(along="time", x="era5/t2m", y=hr.view("sst/sst", join="left", dtype="int32"))
    with pytest.raises(hr.InvalidError):
        whole.batches(2)
