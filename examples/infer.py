"""Predicts for every sample of an archive, in archive order, and writes the predictions to Zarr.

    python examples/infer.py [ARCHIVE]

Without an archive it makes one of 400 time steps. The model is a moving average: the point is that every sample is read
once, that predictions land where they belong, and that xarray opens the result with its coordinates.
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np
import xarray as xr
import zarr

import headrace as hr

HISTORY, AHEAD = 4, 2  # steps in, steps ahead


def make(path: str, steps: int = 400) -> str:
    day = np.arange(steps).reshape(-1, 1, 1) * 6 / 24
    lat, lon = np.linspace(60, 30, 24), np.arange(48) * 1.5
    t2m = 285 + 10 * np.cos(2 * np.pi * day / 60) + lat.reshape(1, -1, 1) / 10 + 0 * lon
    t2m += np.random.default_rng(0).normal(size=t2m.shape)
    axes = {"time": ("time", day.ravel() * 24, {"units": "hours since 2001-01-01"}), "lat": lat, "lon": lon}
    dataset = xr.Dataset({"t2m": (("time", "lat", "lon"), t2m.astype("f4"), {"units": "K"})}, axes)
    dataset.to_zarr(path, encoding={"t2m": {"chunks": (10, 24, 48)}}, zarr_format=3, consolidated=False)
    return path


def model(x: np.ndarray) -> np.ndarray:
    return x.mean(axis=1, dtype="f4")


def main(url: str, target: str) -> None:
    archive = hr.open(url)
    samples = archive.samples(
        along="time", x=hr.view("t2m", time=hr.window(HISTORY)), y=hr.view("t2m", time=hr.steps(AHEAD))
    )
    loader = samples.batches(32)  # no shuffle: archive order, every sample once, the last batch is a short one
    print(loader.plan())
    begun, rows, squares = time.perf_counter(), 0, []
    for batch in loader:
        forecast = model(batch["x"].numpy())
        hr.write_predictions(target, batch, {"t2m": forecast}, step=AHEAD)  # at the time that it is a forecast of
        squares.append(np.square(forecast - batch["y"].numpy()).mean(axis=(1, 2)))
        rows += len(batch)
    print(
        f"{rows} forecasts in {time.perf_counter() - begun:.1f} s; RMSE {np.sqrt(np.concatenate(squares).mean()):.2f} K"
    )
    print(xr.open_zarr(target, consolidated=False)["t2m"])
    written = zarr.open_group(target, mode="r")["t2m"][:]
    empty = np.isnan(written).all(axis=(1, 2))
    print(f"rows that nothing predicts, and that stay NaN: {np.flatnonzero(empty).tolist()}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else make(f"{folder}/archive.zarr"), f"{folder}/forecast.zarr")
