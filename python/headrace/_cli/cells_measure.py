"""One run of `headrace cells bench`, in a process of its own: what it says is of this run alone.

``python -m headrace._cli.cells_measure JSON`` prints what was measured, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import headrace as hr


def forget(path: Path) -> None:
    """The page cache of the files of an archive, as far as the system lets go of it."""
    for folder, _, names in os.walk(path):
        for name in names:
            file = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def resident(which: str) -> int:
    """Bytes: VmRSS now, VmHWM at most since the process began."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(which))


def measure(o: dict[str, Any]) -> dict[str, Any]:
    """`o`: url, options, form, layer, batch, seconds, epochs, memory, cold."""
    path = Path(o["url"].removeprefix("file://"))
    if o["cold"] and path.is_dir():
        forget(path)
    for module in ("numpy", "pyarrow.parquet"):  # every program has loaded them before
        with suppress(ImportError):
            import_module(module)
    idle = resident("VmRSS")
    start = time.perf_counter()
    forms: dict[str, Any] = {"padded": hr.padded(1200), "ranked": hr.ranked(2048)}
    form = forms.get(o["form"], o["form"])
    samples = hr.open(o["url"], o["options"]).cells(X=form, layer=o["layer"])
    keywords = {"memory": o["memory"]} if o["memory"] else {}
    series: list[list[float]] = []  # seconds and samples since the start, a few a second
    rows = tensors = epochs = 0
    opened = first = shown = 0.0
    with samples.batches(o["batch"], shuffle=True, seed=1, **keywords) as loader:
        opened = time.perf_counter() - start
        while not epochs or (time.perf_counter() - start < o["seconds"] and epochs != o["epochs"]):
            if not len(loader):
                raise ValueError(f"{o['url']}: fewer cells than a batch of {o['batch']}")
            for batch in loader:
                now = time.perf_counter() - start
                rows += len(batch)
                tensors += sum(tensor.nbytes for _, tensor in batch.items())
                first = first or now
                if now - shown > 0.1:
                    shown = now
                    series.append([round(now, 3), rows])
                if now > o["seconds"]:
                    break
            epochs += 1
        seconds = time.perf_counter() - start
        stats, cost = loader.stats(), loader.plan()["cost"]
    series.append([round(seconds, 3), rows])
    return {
        "url": o["url"],
        "samples": rows,
        "seconds": seconds,
        "epochs": epochs,
        "whole_epochs": rows / max(1, len(samples)),
        "samples_per_second": rows / seconds,
        "steady_samples_per_second": (rows - o["batch"]) / max(1e-9, seconds - first),
        "tensor_bytes_per_second": tensors / seconds,
        "stored_bytes_per_second": stats["store"]["bytes"] / seconds,
        "open_seconds": opened,
        "first_batch_seconds": first,
        "wait_seconds": stats["wait_seconds"],
        "stall_share": stats["wait_seconds"] / seconds,
        "fetched_bytes": stats["store"]["bytes"],
        "requests": stats["store"]["requests"],
        "chunks": stats["chunks"]["read"],
        "chunks_again": stats["chunks"]["reread"],
        "planned_amplification": cost["amplification"],
        "peak_memory": max(0, resident("VmHWM") - idle),
        "series": series,
    }


if __name__ == "__main__":
    try:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    except (hr.Error, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
