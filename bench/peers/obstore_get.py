"""obstore fetching a list of keys: the competitor of a store alone, without arrays or batches.

    obstore_get.py --base URL [--options JSON] [--in-flight N] [--way async|threads] [--rounds R] FILE

FILE has a key a line. `async`: N coroutines, each of which awaits get_async and its bytes_async and takes the next key;
the same as a gather, but with a bound, without which thousands of connections are opened at once. `threads`: N threads
that call get and bytes, which leave the GIL. Prints wall, cpu, bytes and gets as a line of JSON.
"""

import argparse
import asyncio
import json
import pathlib
import time
from concurrent.futures import ThreadPoolExecutor

import obstore
from common import cpu_seconds, status_bytes
from obstore.store import HTTPStore, S3Store


def open_store(base, options):
    if base.startswith("s3://"):
        return S3Store.from_url(base, config=options, client_options={"allow_http": True})
    return HTTPStore.from_url(base, client_options={"allow_http": True, **options})


def read_async(store, keys, n):
    left = iter(keys)

    async def reader():
        total = 0
        for key in left:
            total += len(await (await obstore.get_async(store, key)).bytes_async())
        return total

    async def main():
        return sum(await asyncio.gather(*(reader() for _ in range(n))))

    return asyncio.run(main())


def read_threads(store, keys, n):
    left = iter(keys)  # next() is atomic under the GIL

    def reader(_):
        return sum(len(obstore.get(store, key).bytes()) for key in left)

    with ThreadPoolExecutor(n) as pool:
        return sum(pool.map(reader, range(n)))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--base", required=True)
    p.add_argument("--options", type=json.loads, default={})
    p.add_argument("--in-flight", type=int, default=32)
    p.add_argument("--way", choices=("async", "threads"), default="async")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("list", type=pathlib.Path)
    a = p.parse_args()
    keys = a.list.read_text().split()
    store = open_store(a.base, a.options)
    read = read_async if a.way == "async" else read_threads
    wall, cpu = time.monotonic(), cpu_seconds()
    total = sum(read(store, keys, a.in_flight) for _ in range(a.rounds))
    wall, cpu = time.monotonic() - wall, cpu_seconds() - cpu
    out = {"wall": wall, "cpu": cpu, "bytes": total, "gets": len(keys) * a.rounds}
    print(json.dumps({**out, "peak_rss": status_bytes("VmHWM")}))


if __name__ == "__main__":
    main()
