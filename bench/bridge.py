#!/usr/bin/env python3
"""An archive through `hr.open(store)`, beside what that store delivers to a bare asyncio gather of the same keys.

    bench/bridge.py --store NAME --archive object_64k [--url URL] [--rounds N] [--check]

Chunks are stored raw, so that an epoch is reads and copies alone: from the store's buffer to the engine's, and on into
the batch. Two baselines, since they differ: `gather` lets go of what it was given unseen, and a store in memory hands
out its own bytes for that; `landed` copies each result once into memory that is used again and again, as whoever wants
the bytes has to. A round runs all three one after another, in turning order. Prints a line of JSON: the wall and CPU
seconds of each round. Stores of a network read from --url, the rest from bench/data.

Needs numpy, zarr, fsspec and obstore.
"""

import argparse
import asyncio
import json
import pathlib
import time

import fsspec
import numpy as np
import obstore.store
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore

import headrace as hr

DATA = pathlib.Path(__file__).parent / "data"
BATCH, BUDGET, AT_ONCE = 16, "96MiB", 64
PROTOTYPE = default_buffer_prototype()


def objects(path):
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def obstore_memory(path):
    memory = obstore.store.MemoryStore()
    for key, data in objects(path).items():
        memory.put(key, data)
    return ObjectStore(memory, read_only=True)


def fsspec_memory(path):
    fs = fsspec.filesystem("memory")
    for key, data in objects(path).items():
        fs.pipe(f"/bridge/{key}", data)
    return FsspecStore.from_url("memory:///bridge", read_only=True)


def obstore_http(url):
    return ObjectStore(obstore.store.HTTPStore.from_url(url, client_options={"allow_http": True}), read_only=True)


STORES = {
    "zarr LocalStore": lambda path, url: LocalStore(path),
    "zarr MemoryStore": lambda path, url: MemoryStore(
        {k: PROTOTYPE.buffer.from_bytes(v) for k, v in objects(path).items()}
    ),
    "obstore LocalStore": lambda path, url: ObjectStore(obstore.store.LocalStore(path), read_only=True),
    "obstore MemoryStore": lambda path, url: obstore_memory(path),
    "obstore HTTPStore": lambda path, url: obstore_http(url),
    "fsspec file": lambda path, url: FsspecStore.from_url(f"file://{path}", read_only=True),
    "fsspec memory": lambda path, url: fsspec_memory(path),
}


def timed(work):
    cpu, start = time.process_time(), time.perf_counter()
    work()
    return {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}


def gather(store, keys, size, landed):
    place = np.zeros((AT_ONCE, size), "u1")

    async def one(i, key):
        data = await store.get(key, PROTOTYPE)
        place[i % AT_ONCE] = data.as_numpy_array()

    async def main():
        reads = (one(i, k) for i, k in enumerate(keys)) if landed else (store.get(k, PROTOTYPE) for k in keys)
        await asyncio.gather(*reads)

    return timed(lambda: asyncio.run(main()))


def loader(where):
    return hr.open(where).samples(along="time", x=hr.view("field")).batches(BATCH, shuffle=True, memory=BUDGET)


def epoch(store):
    with loader(store) as batches:

        def run():
            for _ in batches:
                pass

        return timed(run)


def check(path, store):
    """Every byte of an epoch, against the archive opened by its path."""
    with loader(store) as a, loader(str(path)) as b:
        for x, y in zip(a, b, strict=True):
            assert x.filled == 0
            np.testing.assert_array_equal(x["x"].numpy(), y["x"].numpy())


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--store", choices=STORES, required=True)
    p.add_argument("--archive", required=True)
    p.add_argument("--url")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--check", action="store_true", help="compare every byte instead of measuring")
    a = p.parse_args()
    path = DATA / f"{a.archive}.zarr"
    keys = [q.relative_to(path).as_posix() for q in sorted((path / "field" / "c").rglob("0")) if q.is_file()]
    size = (path / keys[0]).stat().st_size
    store = STORES[a.store](path, a.url and f"{a.url}/{a.archive}.zarr")
    if a.check:
        check(path, store)
        print(json.dumps({"same": True}))
        return
    ways = {
        "gather": lambda: gather(store, keys, size, False),
        "landed": lambda: gather(store, keys, size, True),
        "bridge": lambda: epoch(store),
    }
    rounds = {name: [] for name in ways}
    for turn in range(a.rounds):
        for name in list(ways)[:: -1 if turn % 2 else 1]:
            rounds[name].append({**ways[name](), "bytes": size * len(keys), "gets": len(keys)})
    print(json.dumps(rounds))


if __name__ == "__main__":
    main()
