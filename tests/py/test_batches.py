"""Batches against zarr-python: every view is what numpy slicing of the whole array gives."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, ids_of, write


def whole(path: str, name: str) -> np.ndarray:
    return zarr.open_group(path, mode="r")[name][...]


def test_sequential_batches_are_the_archive_in_order(climate: str) -> None:
    t2m = whole(climate, "t2m")
    at = 0
    for batch in hr.open(climate).samples(along="time", x="t2m").batches(7):
        x = batch["x"].numpy()
        assert x.dtype == np.float32 and x.flags.c_contiguous and x.ctypes.data % 256 == 0
        np.testing.assert_array_equal(x, t2m[at : at + len(batch)])
        np.testing.assert_array_equal(batch.index.numpy(), np.arange(at, at + len(batch)))
        at += len(batch)
    assert at == 60


def test_shuffled_epoch_delivers_every_sample_once_and_right(climate: str) -> None:
    t2m, u10 = whole(climate, "t2m"), whole(climate, "u10")
    samples = hr.open(climate).samples(
        along="time", x=hr.view("t2m", "u10", time=hr.steps(-2, 0), stack="channel"), y=hr.view("u10", time=hr.steps(3))
    )
    seen = []
    for batch in samples.batches(5, shuffle=True, seed=1):
        ids = batch.index.numpy()
        seen += ids.tolist()
        x, y = batch["x"].numpy(), batch["y"].numpy()
        assert x.shape == (5, 3, 2, 6, 8) and y.shape == (5, 6, 8)
        for row, i in enumerate(ids):
            np.testing.assert_array_equal(x[row], np.stack([t2m[i - 2 : i + 1], u10[i - 2 : i + 1]], 1))
            np.testing.assert_array_equal(y[row], u10[i + 3])
    assert len(set(seen)) == len(seen) == 55 and set(seen) <= set(range(2, 57))
    assert seen != sorted(seen)


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_the_order_is_the_same_at_any_budget(climate: str, shuffle: Any) -> None:
    samples = hr.open(climate).samples(along="time", x="z")
    orders = [ids_of(samples.batches(4, shuffle=shuffle, seed=5, memory=m)) for m in ("200kB", "1MB", "64MB")]
    assert orders[0] == orders[1] == orders[2]


def test_epochs_differ_and_repeat_by_seed(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    loader = samples.batches(6, shuffle=True, seed=8)
    first, second = ids_of(loader), ids_of(loader)
    assert first != second and sorted(first) == sorted(second)
    again = samples.batches(6, shuffle=True, seed=8)
    again.set_epoch(1)
    assert ids_of(again) == second


def test_labels_select_like_xarray(climate: str) -> None:
    import xarray as xr

    ds = xr.open_zarr(climate, consolidated=False)
    samples = hr.open(climate).samples(
        along="time",
        a=hr.view("z", level=850, lat=slice(60, -60)),
        b=hr.view("z", level=[1000, 500], isel={"lon": slice(1, 7, 2)}),
    )
    part = samples.sel(time=slice("1990-01-03", "1990-01-05"))
    assert len(part) == ds.sel(time=slice("1990-01-03", "1990-01-05")).sizes["time"] == 12
    batch = next(iter(part.batches(12)))
    want = ds.z.sel(time=slice("1990-01-03", "1990-01-05"))
    np.testing.assert_array_equal(batch["a"].numpy(), want.sel(level=850, lat=slice(60, -60)).values)
    np.testing.assert_array_equal(batch["b"].numpy(), want.sel(level=[1000, 500]).isel(lon=slice(1, 7, 2)).values)


def test_lag_finds_steps_by_coordinate(climate: str) -> None:
    t2m = whole(climate, "t2m")
    samples = hr.open(climate).samples(
        along="time", x=hr.view("t2m", time=hr.lag("12h")), y=hr.view("t2m", time=hr.lag("-1D"))
    )
    batch = next(iter(samples.batches(4)))
    np.testing.assert_array_equal(batch.index.numpy(), [2, 3, 4, 5])
    np.testing.assert_array_equal(batch["x"].numpy(), t2m[0:4])
    np.testing.assert_array_equal(batch["y"].numpy(), t2m[6:10])


def test_window_keeps_its_dimension(climate: str) -> None:
    batch = next(iter(hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.window(1))).batches(3)))
    assert batch["x"].shape == (3, 1, 6, 8)


def test_dtype_is_converted_in_the_scatter(climate: str) -> None:
    t2m = whole(climate, "t2m")
    samples = hr.open(climate).samples(
        along="time", h=hr.view("t2m", dtype="float16"), d=hr.view("t2m", dtype="f8"), x="t2m"
    )
    batch = next(iter(samples.batches(8, dtype="float64")))
    np.testing.assert_array_equal(batch["h"].numpy(), t2m[:8].astype("f2"))
    np.testing.assert_array_equal(batch["d"].numpy(), t2m[:8].astype("f8"))
    assert batch["x"].dtype == "float64"


def test_packed_arrays_are_decoded_as_xarray_does(tmp_path: Any) -> None:
    import xarray as xr

    root = zarr.open_group(tmp_path / "p.zarr", mode="w", zarr_format=3)
    packed = field((20, 5), "i2")
    packed[3, 2] = -999
    attributes = {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -999}
    write(root, "t", packed, (3, 5), ("time", "x"), attributes=attributes)
    want = xr.open_zarr(tmp_path / "p.zarr", consolidated=False).t.values
    archive = hr.open(tmp_path / "p.zarr")
    batch = next(iter(archive.samples(along="time", x="t", raw=hr.view("t", decode=False)).batches(20)))
    np.testing.assert_array_equal(batch["x"].numpy(), want.astype(batch["x"].dtype))
    np.testing.assert_array_equal(batch["raw"].numpy(), packed)
    single = next(iter(archive.samples(along="time", x=hr.view("t", dtype="f4")).batches(20)))
    np.testing.assert_array_equal(single["x"].numpy(), want.astype("f8").astype("f4"))


@pytest.mark.parametrize("missing, value", [("fill", 7.0), ("nan", np.nan)])
def test_missing_chunks_are_filled_and_counted(tmp_path: Any, missing: str, value: float) -> None:
    root = zarr.open_group(tmp_path / "m.zarr", mode="w", zarr_format=3)
    array = root.create_array(
        "t", shape=(12, 4), chunks=(3, 4), dtype="f4", fill_value=7.0, dimension_names=("time", "x")
    )
    array[:3] = 1
    array[6:] = 2
    batch = next(iter(hr.open(tmp_path / "m.zarr").samples(along="time", x="t").batches(12, missing=missing)))
    x = batch["x"].numpy()
    np.testing.assert_array_equal(x[3:6], np.full((3, 4), value, "f4"))
    assert batch.filled == 1 and batch.valid.numpy().all()
    with pytest.raises(hr.DataError, match="missing"):
        next(iter(hr.open(tmp_path / "m.zarr").samples(along="time", x="t").batches(12, missing="error")))


def test_a_bad_chunk_raises_or_is_masked(climate: str) -> None:
    import pathlib

    chunk = pathlib.Path(climate) / "t2m" / "c" / "2" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-5])
    samples = hr.open(climate).samples(along="time", x="t2m")
    with pytest.raises(hr.DataError, match="t2m/c/2/0/0"):
        for _ in samples.batches(4):
            pass
    valid = [batch.valid.numpy() for batch in samples.batches(4, on_error="mask")]
    assert [v.all() for v in valid] == [True, True, False] + [True] * 12
    assert not valid[2].any()


def test_split_leaves_no_shared_rows(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.steps(-3, 2)))
    parts = samples.split(0.5, 0.3, 0.2)
    rows = [set(np.add.outer(p.ids, np.arange(-3, 3)).ravel().tolist()) for p in parts]
    assert not (rows[0] & rows[1] or rows[1] & rows[2] or rows[0] & rows[2])
    assert all(len(p) for p in parts)


def test_arrays_read_like_numpy(climate: str) -> None:
    z = whole(climate, "z")
    array = hr.open(climate)["z"]
    for key in (..., 3, (slice(2, 50, 7), 1), (-1, slice(None), slice(None, None, -1), slice(1, 5)), (slice(0, 0),)):
        np.testing.assert_array_equal(array[key], z[key])


def test_remainders(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m").isel(time=slice(0, 10))
    sizes = {
        r: [(len(b), int(b.valid.numpy().sum())) for b in samples.batches(4, remainder=r)]
        for r in ("drop", "pad", "short", "wrap")
    }
    assert sizes["drop"] == [(4, 4), (4, 4)]
    assert sizes["pad"] == [(4, 4), (4, 4), (4, 2)]
    assert sizes["short"] == [(4, 4), (4, 4), (2, 2)]
    assert sizes["wrap"] == [(4, 4), (4, 4), (4, 4)]


def test_a_window_longer_than_the_axis_is_refused_at_once(climate: str) -> None:
    with pytest.raises(hr.InvalidError, match="view x takes 201 steps, but time is only 60 long"):
        hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.steps(-200, 0)))


@pytest.mark.parametrize("remote", [False, True], ids=["directory", "http"])
def test_an_absurdly_large_chunk_is_masked_like_any_damaged_one(climate: str, served: str, remote: bool) -> None:
    chunk = pathlib.Path(climate) / "t2m" / "c" / "1" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes() + bytes(2_000_000))
    samples = hr.open(served if remote else climate).samples(along="time", x="t2m")
    with pytest.raises(hr.DataError, match="t2m/c/1/0/0"):
        for _ in samples.batches(4, memory="1MiB"):
            pass
    masked = samples.batches(4, on_error="mask", memory="1MiB")
    assert [b.valid.numpy().all() for b in masked][:3] == [True, False, True]


def test_what_fits_is_fetched_once_over_a_network_and_twice_from_a_directory(climate: str, served: str) -> None:
    for url, reads in ((served, [15, 15, 15]), (climate, [15, 30, 30])):
        loader = hr.open(url).samples(along="time", x="t2m").batches(4, shuffle=True)
        seen = [(sum(1 for _ in loader), loader.stats()["chunks"]["read"]) for _ in range(3)]
        assert seen == [(15, n) for n in reads]


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.batches(4, seed=-1),
        lambda s: s.batches(4, seed=2**64),
        lambda s: s.batches(4, seed=1.5),
        lambda s: s.archive.samples(along="time", x=hr.view("t2m", "u10", stack="lat")),
        lambda s: s.archive.samples(along="time", x=hr.view("t2m", time=hr.window(2**50))),
    ],
)
def test_arguments_that_make_no_sense_are_value_errors(climate: str, make: Any) -> None:
    with pytest.raises(ValueError, match=r"seed=|already|no axis is that long"):
        make(hr.open(climate).samples(along="time", x="t2m"))
