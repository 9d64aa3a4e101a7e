#!/usr/bin/env python3
"""What decoding and normalising in the scatter pass cost: beside the plain cast of the same numbers, and beside xarray
and numpy doing the same.

    bench/transforms.py [--rounds N] [--samples N]

Packed int16 (scale_factor, add_offset, _FillValue; lz4 with shuffle), eight samples of 181 × 360 a chunk, to float32 in
shuffled batches of 32. Every round runs each way once, in turning order, in a process of its own whose second epoch
counts; reported is the median of the paired ratios of seconds, and the ratio of the smallest CPU seconds.

Bars: decode + normalise at most 1.10 × the plain cast; xarray + numpy, batches of as many shuffled samples, at least
5 × decode + normalise; its best case, whole chunks in archive order, is shown too. Run alone, in an environment with
xarray. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

import headrace as hr

BATCH, CHUNK, GRID = 32, 8, (181, 360)
MEAN, STD = 278.0, 21.0


def make(path: str, samples: int) -> None:
    rng = np.random.default_rng(0)
    wave = np.add.outer(np.sin(np.linspace(0, 3, GRID[0])), np.cos(np.linspace(0, 9, GRID[1]))) * 5000
    root = zarr.open_group(path, mode="w", zarr_format=3)
    array = root.create_array(
        "t2m", shape=(samples, *GRID), chunks=(CHUNK, *GRID), dtype="i2", dimension_names=("time", "y", "x"),
        compressors=[BloscCodec(cname="lz4", shuffle="shuffle", clevel=5)], fill_value=0,
        attributes={"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768},
    )  # fmt: skip
    for at in range(0, samples, CHUNK):
        noise = rng.integers(-200, 200, (CHUNK, *GRID))
        array[at : at + CHUNK] = (wave + noise).astype("i2")


def headrace(path: str, **options: Any) -> Callable[[], None]:
    samples = hr.open(path).samples(along="time", x=hr.view("t2m", dtype="float32", **options))

    def epoch() -> None:
        with samples.batches(BATCH, shuffle=True, seed=0, memory="512MiB") as loader:
            for _ in loader:
                pass

    return epoch


def with_xarray(path: str, shuffle: bool) -> Callable[[], None]:
    import xarray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        field = xarray.open_zarr(path, consolidated=False, chunks=None)["t2m"]

    ids = np.arange(field.shape[0])
    if shuffle:
        np.random.default_rng(0).shuffle(ids)

    def epoch() -> None:
        for at in range(0, len(ids), BATCH):
            rows = field.isel(time=ids[at : at + BATCH]) if shuffle else field[at : at + BATCH]
            ((rows.values - MEAN) / STD).astype("float32")

    return epoch


def grids() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {"mean": rng.normal(278, 5, GRID), "std": rng.uniform(10, 20, GRID)}


WAYS: dict[str, Callable[[str], Callable[[], None]]] = {
    "plain cast": lambda path: headrace(path, decode=False),
    "decode": headrace,
    "decode + normalise": lambda path: headrace(path, mean=MEAN, std=STD),
    "… + clip, NaN → 0": lambda path: headrace(path, mean=MEAN, std=STD, clip=(200, 330), nan=0.0),
    "… per grid cell": lambda path: headrace(path, **grids()),
    "xarray + numpy": lambda path: with_xarray(path, True),
    "… in archive order": lambda path: with_xarray(path, False),
}


def timed(way: str, path: str) -> None:
    """In a process of its own: the second epoch, in seconds and CPU seconds."""
    run = WAYS[way](path)
    run()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    run()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    print(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measured(way: str, path: str) -> tuple[float, float]:
    done = subprocess.run([sys.executable, __file__, "--way", way, path], capture_output=True, text=True, check=True)
    seconds, cpu = map(float, done.stdout.split())
    return seconds, cpu


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--samples", type=int, default=2048)
    p.add_argument("--way", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.way:
        timed(*a.way)
        return 0
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "packed.zarr")
        make(path, a.samples)
        for number in range(a.rounds):
            order = list(WAYS)
            for name in order[number % len(order) :] + order[: number % len(order)]:
                times[name].append(measured(name, path))
    base = times["plain cast"]
    print(f"{'':22} {'seconds':>8} {'× plain cast':>13} {'CPU ×':>7}")
    ratios = {}
    for name, runs in times.items():
        ratios[name] = median(r[0] / b[0] for r, b in zip(runs, base))
        cpu = min(r[1] for r in runs) / min(b[1] for b in base)
        print(f"{name:22} {min(r[0] for r in runs):8.3f} {ratios[name]:13.2f} {cpu:7.2f}")
    fused = times["decode + normalise"]
    faster = median(x[0] / f[0] for x, f in zip(times["xarray + numpy"], fused))
    good = ratios["decode + normalise"] <= 1.10 and faster >= 5
    print(f"xarray + numpy takes {faster:.1f} × decode + normalise; {'good' if good else 'A BAR IS MISSED'}")
    return not good


if __name__ == "__main__":
    sys.exit(main())
