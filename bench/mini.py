"""The 40-line loader: what numpy and numcodecs do without any framework, and the local competitor to beat.

A window is some runs of chunks from all over the archive, its rows in random order. Threads read chunk files, decode
them (numcodecs lets go of the GIL) and put each row where its batch wants it, so that batches are plain slices; a
chunk of one row decodes in place. While one window is handed out the next is filled: two buffers, recycled for ever.
No shards, no retries, no memory bound, no resume."""

import concurrent.futures
import pathlib
import sys
import threading

import numcodecs
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
import common

numcodecs.blosc.use_threads = False


def batches(archive, batch, threads, seed):
    lay, rng, local = common.Layout(archive, batch), np.random.default_rng(seed), threading.local()
    codecs = [c["name"] for c in common.field_metadata(archive)["codecs"][1:]]
    decode = {"zstd": numcodecs.Zstd().decode, "blosc": numcodecs.Blosc().decode}[codecs[0]] if codecs else None
    fetch = http_get(archive, local) if archive.startswith("http") else None
    n = lay.per_chunk

    def fill(out, starts, places):
        if not hasattr(local, "raw"):
            local.raw, local.rows = bytearray(out[:n].nbytes * 9 // 8 + 4096), np.empty_like(out[:n])
        for start, place in zip(starts, places):
            to = out[place[0] : place[0] + 1] if n == 1 else local.rows
            key = f"field/c/{start // n}/0/0"
            if fetch:
                raw = fetch(key)
            else:
                with open(f"{archive}/{key}", "rb", buffering=0) as f:
                    raw = memoryview(local.raw)[: f.readinto(local.raw if decode else to)]
            if decode:
                decode(raw, out=to)
            elif fetch:
                to.view("u1").reshape(-1)[:] = np.frombuffer(raw, "u1")
            for row, p in zip(to, place) if n > 1 else ():
                out[p] = row

    def begin(out, window):
        starts = np.concatenate([np.arange(a, b, n) for a, b in window])
        places = rng.permutation(len(starts) * n).reshape(-1, n)
        jobs = min(len(starts), max(4 * threads, len(starts) // 16))
        parts = zip(np.array_split(starts, jobs), np.array_split(places, jobs))
        return out[: places.size], [pool.submit(fill, out, s.tolist(), p.tolist()) for s, p in parts]

    with concurrent.futures.ThreadPoolExecutor(8 * threads if fetch else threads) as pool:
        buffers = [np.empty((lay.runs_at_once * lay.per_run, *lay.grid), "f4") for _ in range(2)]
        ahead, turn = None, 0
        for window in [*lay.windows(rng), None]:
            now, ahead = ahead, window and begin(buffers[(turn := turn + 1) % 2], window)
            if now:
                concurrent.futures.wait(now[1])
                for job in now[1]:
                    job.result()
                yield from (now[0][i : i + batch] for i in range(0, len(now[0]), batch))


def http_get(archive, local):
    import http.client
    import urllib.parse

    url = urllib.parse.urlsplit(archive)

    def fetch(key):
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection(url.hostname, url.port)
        local.connection.request("GET", f"{url.path}/{key}")
        return local.connection.getresponse().read()

    return fetch


if __name__ == "__main__":
    common.main(batches, __doc__)
