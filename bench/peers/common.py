"""The command line, clocks and checks that all loaders in this folder (and mini.py) share.

A loader is a function `batches(archive, batch, threads, seed)` that yields one shuffled epoch of numpy arrays of
shape (rows, ...). A batch may be overwritten once the next is asked for. The clock runs from before the archive is
opened to the last batch; importing is outside it, since a process pays that once.

Prints one line of JSON: wall, cpu (s, of the process), samples, bytes, first_batch (s after the start), first_at (the
same moment on CLOCK_MONOTONIC, for the time since the process began), rss_import and peak_rss (bytes), and with
--first the sample ids of that batch (index) from a loader that tells them.
"""

import argparse
import json
import os
import pathlib
import resource
import time


def status_bytes(field):
    """VmRSS or VmHWM of this process (ru_maxrss would inherit the parent's peak through exec)."""
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def cores():
    return len(os.sched_getaffinity(0))


def field_metadata(archive):
    """zarr.json of the field, as a dict."""
    if archive.startswith("http"):
        import urllib.request

        return json.load(urllib.request.urlopen(f"{archive}/field/zarr.json"))
    return json.loads(pathlib.Path(archive, "field", "zarr.json").read_text())


class Layout:
    """What a block shuffle needs to know: rows, rows a chunk (of a shard: its inner chunks) and runs of chunks.

    A run is the neighbouring chunks that decode to 1 MiB, rounded up to a power of two, the same unit of locality for
    every loader; a window is 16 runs drawn from all over the archive, or as many as hold four batches. Its rows go
    out in random order.
    """

    def __init__(self, archive, batch, runs=16):
        meta = field_metadata(archive)
        self.rows, self.grid = meta["shape"][0], tuple(meta["shape"][1:])
        chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
        for codec in meta["codecs"]:
            if codec["name"] == "sharding_indexed":
                chunk = codec["configuration"]["chunk_shape"]
        self.per_chunk = chunk[0]
        row_bytes = 4 * self.grid[0] * self.grid[1]
        self.per_run = self.per_chunk
        while self.per_run * row_bytes < 1 << 20:
            self.per_run *= 2
        self.runs_at_once = max(runs, -(-4 * batch // self.per_run))

    def windows(self, rng):
        """Lists of (start, stop) runs, random over the archive."""
        starts = rng.permutation(range(0, self.rows, self.per_run))
        for i in range(0, len(starts), self.runs_at_once):
            yield [(s, min(s + self.per_run, self.rows)) for s in starts[i : i + self.runs_at_once].tolist()]


def double_buffered(layout, batch, seed, fill, in_order=False):
    """Yield an epoch's batches from two recycled window buffers: one is handed out while the other is filled.

    fill(out, runs, order) starts filling `out` and returns futures. With in_order it puts row order[i] of the window
    (its runs one after another) at out[i] and batches are plain slices; otherwise it puts the runs one after another
    and the rows of a batch are gathered here, into one of two recycled batches.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    buffers = [np.empty((layout.runs_at_once * layout.per_run, *layout.grid), "f4") for _ in range(2)]
    rows = [np.empty((batch, *layout.grid), "f4") for _ in range(2)]

    def begin(runs, turn):
        n = sum(stop - start for start, stop in runs)
        order = rng.permutation(n)
        return buffers[turn % 2][:n], order, fill(buffers[turn % 2][:n], runs, order)

    ahead, given = None, 0
    for turn, runs in enumerate([*layout.windows(rng), None]):
        now, ahead = ahead, runs and begin(runs, turn)
        if not now:
            continue
        window, order, futures = now
        for f in futures:
            f.result()
        for i in range(0, len(window), batch):
            if in_order:
                yield window[i : i + batch]
            else:
                given += 1
                out = rows[given % 2][: len(order[i : i + batch])]
                yield np.take(window, order[i : i + batch], axis=0, out=out, mode="clip")


def check_epoch(archive, seen):
    """Every row once, every byte as written."""
    import numpy as np

    name = archive.rstrip("/").rsplit("/", 1)[1].removesuffix(".zarr")
    sums = np.load(pathlib.Path(__file__).parent.parent / "data" / f"{name}.sums.npy")
    ids = np.concatenate([i for i, _ in seen])
    if not np.array_equal(np.sort(ids), np.arange(len(sums))):
        raise SystemExit(
            f"{archive}: the epoch is not every row once ({len(ids)} rows, {len(np.unique(ids))} different)"
        )
    if not np.array_equal(np.concatenate([s for _, s in seen]), sums[ids]):
        raise SystemExit(f"{archive}: rows differ from what was written")


def digest(x):
    """(ids, checksums) of a batch's rows."""
    rows = x.reshape(len(x), -1)
    return rows[:, 0].astype("i8"), rows.view("u4").sum(axis=1, dtype="u8")


def arguments(doc):
    p = argparse.ArgumentParser(description=doc)
    p.add_argument("--archive", required=True, help="path or http URL of a NAME.zarr that make_archives.py wrote")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--threads", type=int, default=cores())
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--first", action="store_true", help="stop after the first batch")
    p.add_argument("--check", action="store_true", help="compare every row with its checksum (spoils the times)")
    return p


def measure(a, batches, rows=lambda b: b, array=lambda b: b, index=None):
    """Run through `batches` (a generator that has not started), print the line of JSON and leave the process.

    rows(b) has .shape and .nbytes, array(b) is a numpy array of the batch; index(b) the sample ids, if the loader has
    them.
    """
    rss_import, seen = status_bytes("VmRSS"), []
    samples = nbytes = 0
    first_at = first = None
    wall, cpu = time.monotonic(), cpu_seconds()
    for b in batches:
        if first_at is None:
            first_at, first = time.monotonic(), a.first and b
        samples += rows(b).shape[0]
        nbytes += rows(b).nbytes
        if a.check:
            seen.append(digest(array(b)))
        if a.first:
            break
    end, cpu = time.monotonic(), cpu_seconds() - cpu
    out = {
        "wall": end - wall,
        "cpu": cpu,
        "samples": samples,
        "bytes": nbytes,
        "first_batch": first_at - wall,
        "first_at": first_at,
        "rss_import": rss_import,
        "peak_rss": status_bytes("VmHWM"),
    }
    if a.check and not a.first:
        check_epoch(a.archive, seen)
    if a.first and index:
        out["index"] = index(first).tolist()
    print(json.dumps(out), flush=True)
    os._exit(0)  # some peers' pools take seconds to wind down; that is not what is measured


def main(batches, doc):
    a = arguments(doc).parse_args()
    measure(a, batches(a.archive, a.batch, a.threads, a.seed))
