"""Coordinates of batches, batches as datasets, datasets as archives, and predictions written back."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import headrace as hr
from conftest import field, write


@pytest.fixture
def packed(tmp_path: Path) -> str:
    """What xarray writes: packed values, times, labels, a variable in a group's place."""
    rng = np.random.default_rng(0)
    ds = xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), rng.normal(280, 10, (40, 4, 6)).astype("f4"), {"units": "K", "long_name": "temperature"}),
            "land": (("time", "lat"), rng.integers(0, 2, (40, 4)).astype("i1")),
        },
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(40) * np.timedelta64(6, "h"), "lat": np.linspace(60, 30, 4), "lon": np.arange(6.0)},
    )  # fmt: skip
    encoding = {
        "t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768, "chunks": (5, 4, 6)}
    }
    ds.to_zarr(tmp_path / "a.zarr", encoding=encoding, zarr_format=2, consolidated=True)
    return str(tmp_path / "a.zarr")


# ---- coordinates ---------------------------------------------------------------------------------------------------


def test_coordinates_of_a_batch(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    for batch in samples.batches(8, shuffle=True, remainder="pad"):
        when = np.datetime64("1990-01-01") + batch.index.numpy() * np.timedelta64(6, "h")
        np.testing.assert_array_equal(batch.coords["time"], when)
        assert batch.samples is samples
    assert samples.coords["time.hour"].tolist() == [0, 6, 12, 18] * 15
    with pytest.raises(hr.NotFoundError, match="lat"):
        samples.coords["lat"]


def test_without_a_coordinate_there_are_ids(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    write(root, "x", field((20, 3)), (4, 3), ("row", "v"))
    batch = next(iter(hr.open(str(tmp_path / "a.zarr")).samples(along="row", x="x").batches(4)))
    assert batch.coords["row"].tolist() == [0, 1, 2, 3]
    assert batch.xarray().x.dims == ("row", "v")


def test_coordinates_do_not_keep_samples_alive(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    assert len(samples.coords["time"]) == 60
    alive = weakref.ref(samples.archive)
    gc.disable()
    try:
        del samples
        assert alive() is None
    finally:
        gc.enable()


# ---- a batch as a dataset ------------------------------------------------------------------------------------------


def test_a_batch_as_a_dataset(packed: str) -> None:
    samples = hr.open(packed).samples(
        along="time",
        x=hr.view("t2m", time=hr.steps(-2, 0), lat=slice(60, 40), isel={"lon": [5, 1]}),
        y=hr.view("t2m", "t2m", stack="channel", time=hr.steps(1)),
        land="land",
    )
    with xr.open_zarr(packed) as want:
        for batch in samples.batches(5, shuffle=True, seed=1):
            ds = batch.xarray()
            assert ds.x.dims == ("time", "step", "lat", "lon") and ds.land.dims == ("time", "lat_land")
            assert ds.x.attrs == {"units": "K", "long_name": "temperature"}
            assert ds.step.values.tolist() == [-2, -1, 0] and ds.channel.values.tolist() == ["t2m", "t2m"]
            assert ds.lat.values.tolist() == [60, 50, 40] and ds.lon.values.tolist() == [5, 1]
            assert ds.lat_y.values.tolist() == [60, 50, 40, 30] and ds.lon_y.values.tolist() == list(range(6))
            assert ds.valid.values.all() and ds["sample"].values.tolist() == batch.index.numpy().tolist()
            np.testing.assert_array_equal(ds.time.values, want.time.values[batch.index.numpy()])
            for when in ds.time.values:
                for step in (-2, -1, 0):
                    place = when + step * np.timedelta64(6, "h")
                    box = want.t2m.sel(time=place, lat=[60, 50, 40], lon=[5, 1])
                    np.testing.assert_allclose(ds.x.sel(time=when, step=step), box, rtol=1e-6)
            assert np.shares_memory(ds.x.values, batch["x"].numpy()), "no copy"


def test_a_batch_of_no_loader_of_the_package(climate: str) -> None:
    handle = hr.open(climate).samples(along="time", x="t2m").batches(4)._handle
    batch = handle.next(-1)
    assert batch.samples is None and batch.source is None
    with pytest.raises(hr.StateError, match="does not know its samples"):
        batch.xarray()


# ---- a dataset as an archive ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, {}])
def test_an_archive_from_an_opened_dataset(packed: str, chunks: Any) -> None:
    if chunks is not None:
        pytest.importorskip("dask.array")
    with xr.open_dataset(packed, engine="zarr", chunks=chunks) as ds:
        archive = hr.from_xarray(ds)
        assert set(archive.arrays) >= {"t2m", "land", "time"}
        batch = next(iter(archive.samples(along="time", x="t2m").batches(40)))
        np.testing.assert_allclose(batch["x"].numpy(), ds.t2m.values, rtol=1e-6)
        np.testing.assert_array_equal(batch.coords["time"], ds.time.values)


def test_an_archive_from_stores_and_groups(tmp_path: Path) -> None:
    store = zarr.storage.MemoryStore()
    ds = xr.Dataset({"x": (("time", "v"), field((12, 3)))})
    ds.to_zarr(store, group="run/one", zarr_format=3, consolidated=False)
    ds.to_zarr(tmp_path / "b.zarr", group="two", zarr_format=3, consolidated=False)
    for where, group in [(store, "run/one"), (tmp_path / "b.zarr", "two")]:
        with xr.open_zarr(where, group=group, consolidated=False, chunks=None) as opened:
            archive = hr.from_xarray(opened)
            np.testing.assert_array_equal(archive[f"{group}/x"][:], ds.x.values)


def test_what_is_not_lazily_opened_is_refused(packed: str) -> None:
    with xr.open_zarr(packed, chunks=None) as ds:
        for other, words in [
            (ds.load().copy(), "loaded, computed"),
            (xr.open_zarr(packed, chunks=None).isel(time=slice(0, 9)), "select with samples.sel"),
            (xr.open_zarr(packed, chunks=None) * 2, "computed"),
            (xr.open_zarr(packed, chunks=None).assign(extra=("time", np.zeros(40))), "extra"),
            (xr.Dataset({"x": ("a", [1])}), "computed"),
            (xr.Dataset(), "no data variables"),
            ({"x": 1}, "xarray.Dataset"),
            (ds.t2m, "xarray.Dataset"),
        ]:
            with pytest.raises(hr.InvalidError, match=words):
                hr.from_xarray(other)


# ---- predictions ---------------------------------------------------------------------------------------------------


def test_predictions_are_written_at_their_places(packed: str, tmp_path: Path) -> None:
    samples = hr.open(packed).samples(along="time", x="t2m", y=hr.view("t2m", time=hr.steps(6)))
    target = tmp_path / "forecast.zarr"
    for batch in samples.batches(8, remainder="pad"):
        hr.write_predictions(
            target, batch, {"t2m": batch["x"].numpy() + 1, "mean": batch["x"].numpy().mean(axis=(1, 2))}, step=6
        )
    with xr.open_zarr(target, consolidated=False) as ds, xr.open_zarr(packed) as want:
        assert ds.t2m.dims == ("time", "lat", "lon") and ds.t2m.shape == want.t2m.shape
        np.testing.assert_array_equal(ds.time, want.time)
        np.testing.assert_array_equal(ds.lat, want.lat)
        assert np.isnan(ds.t2m[:6]).all()
        np.testing.assert_allclose(ds.t2m[6:], want.t2m[:-6] + 1, rtol=1e-6)
        np.testing.assert_allclose(ds["mean"][6:], want.t2m[:-6].mean(("lat", "lon")), rtol=1e-5)


def test_batches_write_into_arrays_in_any_order(climate: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    samples = hr.open(climate).samples(along="time", x="t2m").where(hour=[0, 6, 12])
    root = zarr.open_group(tmp_path / "p.zarr", mode="w")
    first = root.create_array("first", shape=(60, 6, 8), chunks=(8, 6, 8), dtype="f4", fill_value=-1)
    last = root.create_array(
        "last", shape=(2, 60), chunks=(2, 7), dtype="f8", dimension_names=["k", "time"], fill_value=-1
    )
    for batch in samples.batches(7, shuffle=True, remainder="pad"):
        batch.write(first, batch["x"].torch() * 1)
        values = torch.stack([batch.index.torch(), -batch.index.torch()], 1).double().requires_grad_()
        hr.write_predictions(last, batch, values)
    there = np.isin(np.arange(60) % 4, [0, 1, 2])
    np.testing.assert_array_equal(first[:][there], samples.archive["t2m"][:][there])
    assert (first[:][~there] == -1).all() and (last[:][:, ~there] == -1).all()
    np.testing.assert_array_equal(last[:][:, there], np.stack([np.arange(60), -np.arange(60)])[:, there])


def test_predictions_that_do_not_fit_are_refused(climate: str, tmp_path: Path) -> None:
    batch = next(iter(hr.open(climate).samples(along="time", x="t2m").batches(4)))
    array = zarr.open_group(tmp_path / "p.zarr", mode="w").create_array(
        "a", shape=(60, 6, 8), chunks=(8, 6, 8), dtype="f4"
    )
    x = batch["x"].numpy()
    for call, words in [
        (lambda: batch.write(array, x[:3]), r"\(4, 6, 8\) is expected"),
        (lambda: batch.write(array, x[:, 0]), r"\(4, 6, 8\) is expected"),
        (lambda: batch.write(array, x, step=-2), "rows -2"),
        (lambda: batch.write(array, x, 58), "of an array with 60 along time"),
        (lambda: batch.write("a.zarr", x), "zarr-python"),
        (lambda: hr.write_predictions(tmp_path / "p.zarr", batch, x), "by name"),
        (lambda: hr.write_predictions(3, batch, {"a": x}), "a path, a zarr group"),
        (lambda: hr.write_predictions(tmp_path / "q.zarr", batch, {"b": x}, like="y"), "like"),
    ]:
        with pytest.raises(hr.InvalidError, match=words):
            call()


def test_nothing_is_made_before_all_is_checked(climate: str, tmp_path: Path) -> None:
    batch = next(iter(hr.open(climate).samples(along="time", x="t2m").batches(4)))
    x, target = batch["x"].numpy(), tmp_path / "p.zarr"
    tiles = hr.open(climate).samples(along={"time": None, "lat": hr.patch(3), "lon": hr.patch(4)}, x="t2m")
    boxes = next(iter(tiles.batches(4)))
    b = boxes["x"].numpy()
    for one, values, step, words in [
        (batch, {"a": x, "b": x[:3]}, 0, "b.*one row for each of 4 samples"),
        (batch, {"a": x}, 57, "of an array with 60 along time"),
        (batch, {"a": x}, "1", "step"),
        (batch, {"a": x, "b": np.float32(1)}, 0, "one row"),
        (batch, {"a": x, 3: x}, 0, "values"),
        (batch, {"a": x, "b": np.array([object()] * 4)}, 0, "numbers"),
        (boxes, {"a": b, "b": b[:3]}, 0, "one row"),
        (boxes, {"a": b, "b": b[:, :2]}, 0, "no boxes of any view"),
        (boxes, {"a": b}, 60, "of 60 along time"),
    ]:
        with pytest.raises(hr.InvalidError, match=words):
            hr.write_predictions(target, one, values, step=step)  # type: ignore[arg-type]
        assert not target.exists()
    hr.write_predictions(target, batch, {"a": x})
    with pytest.raises(hr.InvalidError, match=r"\(4, 6, 8\) is expected"):
        hr.write_predictions(target, batch, {"new": x, "a": x[:, :2]})
    group = zarr.open_group(target, mode="a")
    group.create_group("below")
    with pytest.raises(hr.InvalidError, match="a group of that name"):
        hr.write_predictions(target, batch, {"new": x, "below": x})
    assert "new" not in group and sorted(name for name, _ in group.arrays()) == ["a", "lat", "time"]
