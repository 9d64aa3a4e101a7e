#!/usr/bin/env python3
"""Stores of others through `hr.open(store)`, beside what they deliver to a bare asyncio gather of the same keys.

    bench/bridge.py [--rounds N] [--only TEXT] [--size 64K|1M] [--check]

Chunks are stored raw, so that an epoch is reads and copies alone: from the store's buffer to the engine's, and on into
the batch. Two baselines, since they differ: `gather` lets go of what it was given unseen, and a store in memory hands
out its own bytes for that; `landed` copies each result once into memory that is used again and again, as whoever wants
the bytes has to. A round runs all three one after another; shown is the median over the rounds of paired ratios, for
time and for CPU seconds. The bar: 0.85 of `gather` where the store itself copies, else of `landed`. Exit status 1 if
one is missed.

Needs numpy, zarr, fsspec and obstore.
"""

import argparse
import asyncio
import pathlib
import statistics
import sys
import time

import fsspec
import numpy as np
import obstore.store
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore

import headrace as hr

DATA = pathlib.Path(__file__).parent / "data"
SIZES = {"64K": (1 << 16, 4096), "1M": (1 << 20, 384)}
BAR = 0.85
BATCH, BUDGET, AT_ONCE = 16, "96MiB", 64
PROTOTYPE = default_buffer_prototype()


def archive(label):
    size, n = SIZES[label]
    path = DATA / f"bridge_{label}.zarr"
    if not (path / "written").exists():
        root = zarr.open_group(path, mode="w", zarr_format=3)
        x = root.create_array(
            "x", shape=(n, size // 4), chunks=(1, size // 4), dtype="f4", compressors=None, dimension_names=("t", "c")
        )
        rng = np.random.default_rng(0)
        for i in range(0, n, AT_ONCE):
            x[i : i + AT_ONCE] = rng.random(x[i : i + AT_ONCE].shape, dtype="f4")
        (path / "written").touch()
    return path


def stores(path):
    """{name: (store, does it hand out its own bytes)}"""
    objects = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    memory, fs = obstore.store.MemoryStore(), fsspec.filesystem("memory")
    for key, data in objects.items():
        memory.put(key, data)
        fs.pipe(f"/bridge/{key}", data)
    own = MemoryStore({k: PROTOTYPE.buffer.from_bytes(v) for k, v in objects.items()})
    return {
        "zarr LocalStore": (LocalStore(path), False),
        "zarr MemoryStore": (own, True),
        "obstore LocalStore": (ObjectStore(obstore.store.LocalStore(path), read_only=True), False),
        "obstore MemoryStore": (ObjectStore(memory, read_only=True), True),
        "fsspec file": (FsspecStore.from_url(f"file://{path}", read_only=True), False),
        "fsspec memory": (FsspecStore.from_url("memory:///bridge", read_only=True), False),
    }


def timed(work):
    cpu, start = time.process_time(), time.perf_counter()
    n = work()
    return n / (time.perf_counter() - start), n / (time.process_time() - cpu)


def gather(store, keys, size, landed):
    place = np.zeros((AT_ONCE, size), "u1")

    async def one(i, key):
        data = await store.get(key, PROTOTYPE)
        place[i % AT_ONCE] = data.as_numpy_array()

    async def main():
        reads = (one(i, k) for i, k in enumerate(keys)) if landed else (store.get(k, PROTOTYPE) for k in keys)
        await asyncio.gather(*reads)
        return len(keys)

    return timed(lambda: asyncio.run(main()))


def epoch(store):
    with hr.open(store).samples(along="t", x="x").batches(BATCH, shuffle=True, memory=BUDGET) as loader:
        before = loader.stats()["store"]["requests"]

        def run():
            for _ in loader:
                pass
            return loader.stats()["store"]["requests"] - before

        return timed(run)


def check(path, store):
    """Every byte of an epoch, against the archive opened by its path."""

    def loader(where):
        return hr.open(where).samples(along="t", x="x").batches(BATCH, shuffle=True, memory=BUDGET)

    with loader(store) as a, loader(str(path)) as b:
        for x, y in zip(a, b, strict=True):
            assert x.filled == 0
            np.testing.assert_array_equal(x["x"].numpy(), y["x"].numpy())


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="")
    p.add_argument("--size", choices=SIZES)
    p.add_argument("--check", action="store_true", help="compare every byte instead of measuring")
    a = p.parse_args()
    print(f"{'':26}{'gather/s':>10}{'bridge/s':>10}{'gather':>9}{'landed':>9}{'cpu':>7}{'cpu landed':>12}")
    missed = 0
    for label in [a.size] if a.size else SIZES:
        size, n = SIZES[label]
        path = archive(label)
        keys = [f"x/c/{i}/0" for i in range(n)]
        for name, (store, own_bytes) in stores(path).items():
            if a.only not in name:
                continue
            if a.check:
                check(path, store)
                print(f"{label:4} {name:20} every byte as by path")
                continue
            rounds = [
                (gather(store, keys, size, False), gather(store, keys, size, True), epoch(store))
                for _ in range(a.rounds)
            ]
            bare, landed = ([statistics.median(e[u] / r[i][u] for *r, e in rounds) for u in (0, 1)] for i in (0, 1))
            good = (landed if own_bytes else bare)[0] >= BAR
            missed += not good
            best = [max(r[i][0] for r in rounds) for i in (0, 2)]
            print(
                f"{label:4} {name:20} {best[0]:10.0f}{best[1]:10.0f}{bare[0]:9.2f}{landed[0]:9.2f}{1 / bare[1]:7.2f}"
                f"{1 / landed[1]:12.2f}{'' if good else f'   below {BAR}'}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
