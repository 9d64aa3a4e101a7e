"""The two archives of the demo, written with zarr-python.

*Climate*: air temperature over North America, yearly, 1860 to 2099, from two runs of a climate model (scenarios A1B and
E1). The NetCDF files come with the package iris-sample-data.

*Earth*: large enough to need streaming. Two variables on a 1° grid, six-hourly, in the layout of an ERA5 copy. The mean
is the real annual mean temperature of a climate run; the weather on it is made: travelling waves whose amplitudes
wander, and a season. Values are rounded to 1/64, with noise below that, so that they compress as measured fields do.

Archives are kept between runs; a file beside each says that it is complete and from what it was made.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

VERSION = 4  # of what is written here: another one is written anew
GRID = (181, 360)
STEPS, QUICK_STEPS = 2048, 512
CHUNK, SHARD = 1, 64  # time steps
VARIABLES = ("t2m", "u10")

Report = Callable[[int], None]


def _is_complete(path: Path, made_from: dict[str, Any]) -> bool:
    try:
        return bool(json.loads((path.with_suffix(".json")).read_text()) == made_from)
    except (OSError, ValueError):
        return False


def _start(path: Path, made_from: dict[str, Any]) -> Any:
    import zarr

    if _is_complete(path, made_from):
        return None
    path.with_suffix(".json").unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    return zarr.create_group(path, zarr_format=3)


def _finish(path: Path, made_from: dict[str, Any]) -> None:
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated v3 metadata is not yet in the specification
        zarr.consolidate_metadata(path, zarr_format=3)
    path.with_suffix(".json").write_text(json.dumps(made_from))


def _coordinate(root: Any, name: str, values: Any, attributes: dict[str, Any]) -> None:
    array = root.create_array(
        name,
        shape=values.shape,
        chunks=values.shape,
        dtype=values.dtype,
        dimension_names=(name,),
        attributes=attributes,
    )
    array[...] = values


# ---- climate -----------------------------------------------------------------------------------------------------


def climate(folder: Path) -> Path:
    """The real one. Arrays a1b and e1 (time 240, latitude 37, longitude 49), twelve years a chunk."""
    import h5py
    import iris_sample_data

    path = folder / "climate.zarr"
    made_from = {"version": VERSION, "package": iris_sample_data.__version__}
    root = _start(path, made_from)
    if root is None:
        return path
    source = Path(iris_sample_data.path)
    for name, scenario in (("a1b", "A1B"), ("e1", "E1")):
        with h5py.File(source / f"{scenario}_north_america.nc") as file:
            values = file["air_temperature"][...]
            attributes = {"standard_name": "air_temperature", "units": "K", "scenario": scenario}
            array = root.create_array(
                name, shape=values.shape, chunks=(12, *values.shape[1:]), dtype="f4", attributes=attributes,
                dimension_names=("time", "latitude", "longitude"), compressors=_zstd(),
            )  # fmt: skip
            array[...] = values
            if name == "a1b":
                _coordinate(root, "latitude", file["latitude"][...], {"units": "degrees_north"})
                _coordinate(root, "longitude", file["longitude"][...], {"units": "degrees_east"})
                since = {"units": "hours since 1970-01-01", "calendar": "360_day"}
                _coordinate(root, "time", file["time"][...], since)
    _finish(path, made_from)
    return path


def _zstd() -> Any:
    from zarr.codecs import ZstdCodec

    return ZstdCodec(level=1)


# ---- earth -------------------------------------------------------------------------------------------------------


def annual_mean() -> Any:
    """Annual mean temperature of a pre-industrial climate run on the demo's grid, north first, from 0° east, in K.

    The file is a Met Office PP file of one unpacked field: a record of 45 integers and 19 floats, then the values, each
    record between its length in bytes, big-endian (Unified Model documentation paper F03).
    """
    import iris_sample_data

    raw = Path(iris_sample_data.path, "pre-industrial.pp").read_bytes()
    header = np.frombuffer(raw, ">i4", 45, 4)
    rows, columns = int(header[17]), int(header[18])
    coarse = np.frombuffer(raw, ">f4", rows * columns, 4 + 256 + 8).reshape(rows, columns).astype("f4")
    if np.frombuffer(raw, ">f4", 19, 4 + 180)[14] > 0:  # the step between rows: south first
        coarse = coarse[::-1]
    at_lat = np.linspace(0, rows - 1, GRID[0])
    at_lon = np.linspace(0, columns, GRID[1], endpoint=False)
    wrapped = np.concatenate([coarse, coarse[:, :1]], 1)
    lines = np.stack([np.interp(at_lat, np.arange(rows), c) for c in wrapped.T], 1)
    return np.stack([np.interp(at_lon, np.arange(columns + 1), r) for r in lines]).astype("f4")


class Weather:
    """Steps of the made fields: a step's coefficients times patterns, plus what does not move."""

    WAVES, SHAPES = 16, 5  # zonal wave numbers, meridional shapes

    def __init__(self, steps: int) -> None:
        random = np.random.default_rng(1)
        lat = np.linspace(np.pi / 2, -np.pi / 2, GRID[0])[:, None]
        lon = np.linspace(0, 2 * np.pi, GRID[1], endpoint=False)[None, :]
        temperature, wind, turns, sizes = [], [], [], []
        for m in range(1, self.WAVES + 1):
            for n in range(self.SHAPES):
                storms = 0.2 + np.sin(2 * lat) ** 2  # the middle latitudes
                envelope = storms * np.cos(lat) ** min(m, 3) * np.cos((2 * n + 1) * lat + random.uniform(0, np.pi))
                slope = np.gradient(envelope[:, 0], lat[:, 0])[:, None]
                tilt = random.uniform(-1.2, 1.2) * lat
                for phase in (0.0, np.pi / 2):
                    wave = np.cos(m * lon + tilt + phase)
                    temperature.append(envelope * wave)
                    wind.append(slope * np.cos(m * lon + tilt + phase + np.pi / 3) / 3)
                size = 11.0 * (m * m + 4 * n * n + 4) ** -0.5
                sizes.append(size)
                turns.append(np.exp(2j * np.pi * (m - 4) / 160) * 0.97)  # short waves go east, long ones west
        self.patterns = {"t2m": self._matrix(temperature), "u10": self._matrix(wind)}
        self.coefficients = self._wander(steps, np.array(turns), np.array(sizes), random)
        self.mean = {"t2m": annual_mean(), "u10": (7 * np.sin(3 * np.abs(lat)) * np.cos(lat) + 0 * lon).astype("f4")}
        self.season = (11 * np.sin(lat) + 0 * lon).astype("f4")
        self.lon = lon

    @staticmethod
    def _matrix(patterns: list[Any]) -> Any:
        return np.stack(patterns).astype("f4").reshape(len(patterns), -1)

    @staticmethod
    def _wander(steps: int, turns: Any, sizes: Any, random: Any) -> Any:
        """Complex numbers that turn and wander: (steps, 2 × waves), real and imaginary parts side by side."""
        kicks = random.normal(size=(steps, len(turns), 2)) @ np.array([1, 1j]) * sizes * 0.24
        state: Any = kicks[0] * 4
        out: Any = np.empty((steps, 2 * len(turns)), "f4")
        for t in range(steps):
            state = state * turns + kicks[t]
            out[t, 0::2], out[t, 1::2] = state.real, state.imag
        return out

    def steps(self, name: str, start: int, stop: int) -> Any:
        """float32 of shape (stop - start, 181, 360)."""
        out = (self.coefficients[start:stop] @ self.patterns[name]).reshape(-1, *GRID) + self.mean[name]
        random = np.random.default_rng([start, VARIABLES.index(name)])
        for i, t in enumerate(range(start, stop)):
            if name == "t2m":
                out[i] -= np.float32(np.cos(2 * np.pi * t / 1461)) * self.season
                out[i] += 2.5 * np.cos(2 * np.pi * (t % 4) / 4 + self.lon - np.pi).astype("f4")
            out[i] += np.float32(0.05) * random.standard_normal(GRID, dtype="f4")
        np.round(out * 64, out=out)
        out /= 64
        return out


def earth_size(steps: int) -> int:
    """Decoded bytes."""
    return steps * GRID[0] * GRID[1] * 4 * len(VARIABLES)


def earth(folder: Path, steps: int, report: Report) -> Path:
    """The made one: t2m and u10 (time, latitude 181, longitude 360), a step a chunk, 64 a shard, zstd.

    `report` is called with the number of decoded bytes written so far.
    """
    path = folder / f"earth-{steps}.zarr"
    made_from = {"version": VERSION, "steps": steps}
    root = _start(path, made_from)
    if root is None:
        return path
    hours = {"units": "hours since 2015-01-01", "calendar": "proleptic_gregorian"}
    _coordinate(root, "time", np.arange(steps, dtype="i8") * 6, hours)
    _coordinate(root, "latitude", np.linspace(90, -90, GRID[0]).astype("f4"), {"units": "degrees_north"})
    _coordinate(root, "longitude", np.arange(GRID[1], dtype="f4"), {"units": "degrees_east"})
    weather, written = Weather(steps), 0
    units = {
        "t2m": {"units": "K", "long_name": "2 metre temperature"},
        "u10": {"units": "m s-1", "long_name": "10 metre u wind"},
    }
    arrays = {
        name: root.create_array(
            name, shape=(steps, *GRID), chunks=(CHUNK, *GRID), shards=(SHARD, *GRID), dtype="f4", compressors=_zstd(),
            dimension_names=("time", "latitude", "longitude"), attributes=units[name],
        )
        for name in VARIABLES
    }  # fmt: skip
    for start in range(0, steps, SHARD):
        for name, array in arrays.items():
            values = weather.steps(name, start, min(start + SHARD, steps))
            array[start : start + len(values)] = values
            written += values.nbytes
            report(written)
    _finish(path, made_from)
    return path
