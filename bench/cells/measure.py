"""The command line, clock and checks that all loaders of single cells share.

A loader is a function that yields one shuffled epoch of batches; `cells(batch)` says how many cells one has and
`rows(batch)` gives (values, offsets, ids) of it, ids None where the loader has its own list. The clock runs from before
the atlas is opened to the last batch; importing is outside it, since a process pays that once.

Prints one line of JSON: wall and cpu in seconds, cells, first_batch (seconds after the start), rss_import and
peak_rss in
bytes, and whatever the loader adds. With --check every cell has to come once, with its number of genes and its sum of
counts, and how well the epoch was shuffled is added: `entropy`, of the labels of a batch in bits (mean of the batches),
beside `entropy_ideal`, of batches drawn at random; `variance`, of the batches' mean count, over what it would be if
batches were drawn at random (1).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

BATCH = 64


def status_bytes(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(field + ":"))


def cpu_seconds():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def arguments(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--atlas", required=True, help="path or http URL of a layout that make.py wrote")
    p.add_argument("--batch", type=int, default=BATCH)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--first", action="store_true", help="stop after the first batch")
    p.add_argument("--cells", type=int, default=0, help="stop after so many cells")
    p.add_argument("--check", metavar="OBS", help="compare cells with obs.npz (spoils the times)")
    return p


def batch_entropy(labels, n_labels):
    """Bits; labels is (batches, cells)."""
    import numpy as np

    at = np.arange(len(labels))[:, None] * n_labels + labels
    share = np.bincount(at.ravel(), minlength=len(labels) * n_labels).reshape(len(labels), -1) / labels.shape[1]
    return float(-(share * np.log2(np.where(share > 0, share, 1))).sum(1).mean())


def quality(ids, batch, obs):
    """ids: cells in the order they came."""
    import numpy as np

    whole = len(ids) // batch * batch
    taken = ids[:whole].reshape(-1, batch)
    label = obs["donor"].astype("i8") * (int(obs["cell_type"].max()) + 1) + obs["cell_type"]
    value = np.log1p(obs["n_counts"].astype("f8")) + obs["cell_type"] / 8.0
    ideal = np.random.default_rng(0).permutation(len(label))[:whole].reshape(-1, batch)
    n = int(label.max()) + 1
    return {
        "entropy": batch_entropy(label[taken], n),
        "entropy_ideal": batch_entropy(label[ideal], n),
        "variance": float(value[taken].mean(1).var() / (value.var() / batch)),
    }


def check(seen, a):
    import numpy as np

    obs = np.load(a.check)
    ids, n, sums = (np.concatenate(x) for x in zip(*seen))
    if not a.cells and not np.array_equal(np.sort(ids), np.arange(len(obs["n_genes"]))):
        raise SystemExit(f"not every cell once: {len(ids)} cells, {len(np.unique(ids))} different")
    wrong = np.flatnonzero((obs["n_genes"][ids] != n) | (obs["n_counts"][ids] != sums))
    if len(wrong):
        raise SystemExit(f"{len(wrong)} cells are not what was written, the first is cell {ids[wrong[0]]}")
    return quality(ids, a.batch, obs)


def row_facts(values, offsets, ids):
    import numpy as np

    values, offsets = np.asarray(values), np.asarray(offsets).astype("i8")
    n = np.diff(offsets)
    sums = np.add.reduceat(np.append(values, 0).astype("f8"), offsets[:-1]) * (n > 0)
    return np.asarray(ids).copy(), n, sums


def measure(a, batches, cells, rows=None, more=None):
    """Run through `batches` (not started yet), print the line of JSON and leave the process."""
    rss_import, seen = status_bytes("VmRSS"), []
    n, first = 0, None
    wall, cpu = time.monotonic(), cpu_seconds()
    for b in batches:
        if first is None:
            first = time.monotonic() - wall
        n += cells(b)
        if a.check:
            seen.append(row_facts(*rows(b)))
        if a.first or (a.cells and n >= a.cells):
            break
    out = {"wall": time.monotonic() - wall, "cells": n, "first_batch": first, "rss_import": rss_import}
    close = getattr(batches, "close", None)
    if close and not a.first:
        close()  # workers that are processes count when they have ended
    out |= {"cpu": cpu_seconds() - cpu, "peak_rss": status_bytes("VmHWM")}
    out |= check(seen, a) if a.check and not a.first else {}
    out |= more() if more else {}
    print(json.dumps(out), flush=True)
    os._exit(0)


def atlas_path(a):
    return Path(a.atlas)
