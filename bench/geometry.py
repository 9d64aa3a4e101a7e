#!/usr/bin/env python3
"""What boxes of archives cost: patches, crops, windows of history, one level out of many, very many samples.

    bench/geometry.py [--rounds N] [--floor PROGRAM] [--only patches,crops,…]

patches   256² side by side out of 1024² chunks (uint16, lz4), shuffled, beside the bare loop that reads and decodes
          each chunk once: ≥ 0.90 of it
crops     256² at random places of 4096² images in such chunks: chunks decoded over those that an epoch touches: ≤ 1.15
history   12 steps from chunks of 8: chunks decoded over those there are, ≤ 1.15 and as plan() says; bytes delivered a
          second over memcpy's by as many threads, in a later epoch, ≥ 0.50
level     one of 37 levels in chunks of (1, 37, 721, 1440), blosc lz4, beside taking all levels: ≥ 8 × faster
many      10⁸ samples, all and half of them by a mask: ≤ 1 s and ≤ 100 MB to open

Archives are written into a temporary folder (2 GB). Every measurement is a process of its own; medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

import headrace as hr

IMAGES, SIDE, TILE, PATCH = 512, 1024, 1024, 256
STEPS, GRID, CHUNK, WINDOW = 1536, (181, 360), 8, 12
LEVELS = (4, 37, 721, 1440)
LZ4 = BloscCodec(cname="lz4", shuffle="shuffle", clevel=5)
Result = dict[str, float]


# ---- archives --------------------------------------------------------------------------------------------------------


def texture(rng: Any, shape: tuple[int, ...], kind: str) -> Any:
    """Smooth, with some noise: what compresses about as well as images and fields do."""
    waves = np.add.outer(np.sin(np.linspace(0, 9, shape[0])), np.cos(np.linspace(0, 7, shape[1]))) * 2000 + 5000
    noise = rng.integers(0, 200, shape)
    return (waves + noise).astype(kind)


def create(root: Any, name: str, shape: Any, chunks: Any, dtype: str, dims: tuple[str, ...]) -> Any:
    return root.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, dimension_names=dims, compressors=[LZ4], fill_value=0
    )


def make(folder: Path, cells: list[str]) -> None:
    rng = np.random.default_rng(0)
    root = zarr.open_group(folder / "boxes.zarr", mode="w", zarr_format=3)
    if "patches" in cells:
        array = create(root, "images", (IMAGES, SIDE, SIDE), (1, TILE, TILE), "u2", ("image", "y", "x"))
        for i in range(IMAGES):
            array[i] = texture(rng, (SIDE, SIDE), "u2")
        (folder / "images.plan").write_text(
            f"version 2\narchive boxes.zarr\ncodec lz4\nsamples {IMAGES}\nper_chunk 1\nsample_bytes {2 * SIDE * SIDE}\n"
            "per_shard 0\nkey_before images/c/\nkey_after /0/0\n"
        )
    if "crops" in cells:
        array = create(root, "large", (8, 4096, 4096), (1, TILE, TILE), "u2", ("image", "y", "x"))
        for i in range(8):
            array[i] = texture(rng, (4096, 4096), "u2")
    if "history" in cells:
        array = create(root, "field", (STEPS, *GRID), (CHUNK, *GRID), "f4", ("time", "lat", "lon"))
        for i in range(0, STEPS, CHUNK):
            array[i : i + CHUNK] = np.stack([texture(rng, GRID, "f4") for _ in range(CHUNK)])
    if "level" in cells:
        array = create(root, "levels", LEVELS, (1, *LEVELS[1:]), "f4", ("time", "level", "lat", "lon"))
        for i in range(LEVELS[0]):
            array[i] = np.stack([texture(rng, LEVELS[2:], "f4") for _ in range(LEVELS[1])])
    if "many" in cells:
        root.create_array("many", shape=(10**8, 1), chunks=(1000, 1), dtype="u1", dimension_names=("time", "x"))


# ---- one run each, in a process of its own ---------------------------------------------------------------------------


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak() -> int:
    """Bytes, since `forget_peak`."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def current() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def epoch(loader: Any) -> Result:
    begin, used = time.perf_counter(), cpu()
    taken = 0
    for batch in loader:
        taken += sum(t.nbytes for t in batch.values()) if hasattr(batch, "values") else 0
    return {"seconds": time.perf_counter() - begin, "cpu": cpu() - used, "bytes": taken}


def boxes(path: str) -> Any:
    return hr.open(f"{path}/boxes.zarr")


def run_patches(path: str) -> Result:
    along = {"image": None, "y": hr.patch(PATCH), "x": hr.patch(PATCH)}
    begin, used = time.perf_counter(), cpu()
    with boxes(path).samples(along=along, x="images").batches(64, shuffle=True, seed=0, memory="512MiB") as loader:
        epoch(loader)
        return {"seconds": time.perf_counter() - begin, "cpu": cpu() - used}


def run_crops(path: str) -> Result:
    along = {"image": None, "crop": hr.draws(64), "y": hr.crop(PATCH), "x": hr.crop(PATCH)}
    samples = boxes(path).samples(along=along, x="large")
    touched = set()
    with samples.batches(32, shuffle=True, seed=0, memory="128MiB") as loader:
        begin = time.perf_counter()
        for batch in loader:
            at = batch.starts
            for i, y, x in zip(at["image"], at["y"], at["x"]):
                rows, columns = {y // TILE, (y + PATCH - 1) // TILE}, {x // TILE, (x + PATCH - 1) // TILE}
                touched |= {(i, a, b) for a in rows for b in columns}
        seconds, decoded = time.perf_counter() - begin, loader.stats()["chunks"]["read"]
    return {"seconds": seconds, "decoded": decoded, "touched": len(touched), "ratio": decoded / len(touched)}


def run_history(path: str) -> Result:
    samples = boxes(path).samples(along="time", x=hr.view("field", time=hr.steps(1 - WINDOW, 0)))
    with samples.batches(32, shuffle=True, seed=0, memory="1GiB") as loader:
        plan = loader.plan()
        for _ in loader:  # the first epoch gets its memory from the system
            pass
        read = loader.stats()["chunks"]["read"]
        begin = time.perf_counter()
        rows = sum(len(batch) for batch in loader)
        seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "rate": rows * WINDOW * 4 * GRID[0] * GRID[1] / seconds,
        "decoded": read / (STEPS / CHUNK),
        "planned": plan["cost"]["amplification"],
        "block": plan["block"],
        "peak": peak(),
    }


def run_memcpy(path: str) -> Result:
    """Two threads that copy memory larger than any cache."""
    from concurrent.futures import ThreadPoolExecutor

    n, turns = 256 << 20, 4
    pairs = [(np.ones(n, "u1"), np.ones(n, "u1")) for _ in range(2)]

    def copy(pair: Any) -> None:
        for _ in range(turns):
            np.copyto(pair[1], pair[0])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(copy, pairs))
        begin = time.perf_counter()
        list(pool.map(copy, pairs))
    return {"rate": 2 * turns * n / (time.perf_counter() - begin)}


def run_level(path: str, level: int | None = 17) -> Result:
    view = hr.view("levels") if level is None else hr.view("levels", isel={"level": level})
    with boxes(path).samples(along="time", x=view).batches(1, memory="2GiB") as loader:
        return epoch(loader)


def run_many(path: str, masked: bool = False) -> Result:
    samples = boxes(path).samples(along="time", x="many")
    mask = np.tile(np.random.default_rng(0).integers(0, 2, 10**5, dtype=np.uint8).astype(bool), 1000)
    forget_peak()
    before, begin = current(), time.perf_counter()
    samples = samples.where(mask) if masked else samples
    loader = samples.batches(4096, shuffle=True, seed=0, memory="256MiB")
    return {"seconds": time.perf_counter() - begin, "bytes": peak() - before, "steps": len(loader)}


RUNS: dict[str, Callable[[str], Result]] = {
    "patches": run_patches,
    "crops": run_crops,
    "history": run_history,
    "memcpy": run_memcpy,
    "level": run_level,
    "all levels": lambda path: run_level(path, None),
    "many": run_many,
    "many by mask": lambda path: run_many(path, True),
}


def alone(name: str, folder: Path) -> Result:
    command = [sys.executable, __file__, "--run", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def bare(program: str, folder: Path) -> Result:
    done = subprocess.run([program, str(folder / "images.plan")], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# ---- bars ------------------------------------------------------------------------------------------------------------

Bar = tuple[str, float, float | None, bool]  # what, measured, its limit or None, whether that is the least


def bars_patches(rounds: int, folder: Path, program: str) -> list[Bar]:
    floors, ours = [], []
    for i in range(rounds):
        for take in (floors, ours)[:: -1 if i % 2 else 1]:
            take.append(bare(program, folder) if take is floors else alone("patches", folder))
    share = median(a["wall"] / b["seconds"] for a, b in zip(floors, ours))
    used = min(b["cpu"] for b in ours) / min(a["cpu"] for a in floors)
    return [("256² patches, share of the bare loop", share, 0.9, True), ("… CPU over it", used, None, False)]


def bars_crops(rounds: int, folder: Path, program: str) -> list[Bar]:
    return [("256² crops, chunks decoded over touched", alone("crops", folder)["ratio"], 1.15, False)]


def bars_history(rounds: int, folder: Path, program: str) -> list[Bar]:
    runs = [(alone("history", folder), alone("memcpy", folder)) for _ in range(rounds)]
    first = runs[0][0]
    return [
        ("12 steps, decodes of each chunk", first["decoded"], 1.15, False),
        ("… as plan() promised, at most", first["planned"], 1.15, False),
        ("… delivered bytes over memcpy's", median(h["rate"] / m["rate"] for h, m in runs), 0.5, True),
        ("… peak memory over the budget", max(h["peak"] for h, _ in runs) / 2**30, 1.1, False),
    ]


def bars_level(rounds: int, folder: Path, program: str) -> list[Bar]:
    pairs = [(alone("all levels", folder), alone("level", folder)) for _ in range(rounds)]
    faster = median(a["seconds"] / b["seconds"] for a, b in pairs)
    used = min(a["cpu"] for a, _ in pairs) / min(b["cpu"] for _, b in pairs)
    return [("one level of 37, faster than all", faster, 8, True), ("… less CPU than all", used, None, True)]


def bars_many(rounds: int, folder: Path, program: str) -> list[Bar]:
    out: list[Bar] = []
    for name in ("many", "many by mask"):
        r = alone(name, folder)
        out.append((f"10⁸ samples{name[4:]}, seconds to open", r["seconds"], 1, False))
        out.append(("… MB", r["bytes"] / 1e6, 100, False))
    return out


BARS = {
    "patches": bars_patches,
    "crops": bars_crops,
    "history": bars_history,
    "level": bars_level,
    "many": bars_many,
}


class Boxes:
    """The cells of `bench/run.py`: `box_patches` and so on."""

    def __init__(self, bench: Any, folder: Path, program: Path) -> None:
        self.bench, self.folder, self.program = bench, folder, program

    def cells(self) -> dict[str, tuple[list[str], Callable[[], None]]]:
        return {f"box_{name}": ([], partial(self.run, name)) for name in BARS}

    def run(self, name: str) -> None:
        if not (self.folder / "boxes.zarr").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            make(self.folder, list(BARS))
        for what, value, limit, at_least in BARS[name](self.bench.rounds, self.folder, str(self.program)):
            if limit is not None:
                self.bench.bar(f"box_{name}", what, limit, at_least, value)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--floor", default=str(Path(__file__).resolve().parent.parent / "build/bench/bench/floor"))
    p.add_argument("--only", default=",".join(BARS))
    p.add_argument("--folder", help="keep the archives here")
    p.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.run:
        print(json.dumps(RUNS[a.run[0]](a.run[1])))
        return 0
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(a.folder or scratch)
        if not (folder / "boxes.zarr").exists():
            folder.mkdir(exist_ok=True)
            make(folder, a.only.split(","))
        for cell in a.only.split(","):
            for what, value, limit, at_least in BARS[cell](a.rounds, folder, a.floor):
                met = limit is None or (value >= limit if at_least else value <= limit)
                sign = "" if limit is None else f"{'≥' if at_least else '≤'} {limit:g}"
                print(f"{what:44} {value:8.2f}  {sign:7} {'' if met else 'MISSED'}", flush=True)
                good &= met
    return not good


if __name__ == "__main__":
    sys.exit(main())
