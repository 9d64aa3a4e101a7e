"""Runs the installed `headrace` program (or the one HEADRACE_PROGRAM names), on a small archive made once."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import zarr

PROGRAM = (
    os.environ.get("HEADRACE_PROGRAM")
    or shutil.which("headrace", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    or "headrace"
)


def run(*words: object, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, *map(str, words)]
    env = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=env)


def good(*words: object, **environment: str) -> str:
    """Standard output of a run that succeeds and complains about nothing."""
    done = run(*words, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@functools.cache
def climate() -> str:
    """t2m, u10 (time 60, lat 6, lon 8), z (time 60, level 3, lat 6, lon 8), named (time 60, site 3); coordinates."""
    folder = tempfile.mkdtemp(prefix="headrace-cli-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/climate.zarr"
    root = zarr.create_group(path, zarr_format=3)
    random = np.random.default_rng(0)
    shapes = {"t2m": ("time", "lat", "lon"), "u10": ("time", "lat", "lon"), "z": ("time", "level", "lat", "lon")}
    sizes = {"time": 60, "level": 3, "lat": 6, "lon": 8, "site": 3}
    shapes["rain"] = ("time", "site")
    for name, dims in shapes.items():
        shape = tuple(sizes[d] for d in dims)
        chunks = (4, *shape[1:])
        array = root.create_array(name, shape=shape, chunks=chunks, dtype="f4", dimension_names=dims)
        array[...] = random.normal(size=shape).astype("f4")
    coordinates = {
        "time": np.arange(60, dtype="i8") * 6,
        "level": np.array([500, 850, 1000], "i4"),
        "lat": np.linspace(90, -90, 6).astype("f4"),
        "lon": np.arange(8, dtype="f4") * 45,
        "site": np.array(["1", "2", "x:y"], "U3"),
    }
    for name, values in coordinates.items():
        attributes = {"units": "hours since 1990-01-01"} if name == "time" else {}
        array = root.create_array(
            name,
            shape=values.shape,
            chunks=values.shape,
            dtype=values.dtype,
            dimension_names=(name,),
            attributes=attributes,
        )
        array[...] = values
    return path
