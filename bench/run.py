#!/usr/bin/env python3
"""The comparison: Headrace, a bare C loop and other loaders, on the same archives in the same run.

Every round of a cell runs each program once, in a fresh process, page cache warm; a program is compared with the
floor of the same round, so that what else the machine does falls on both. Reported is the median of these paired
shares, and the smallest paired ratio of CPU seconds (noise only adds CPU). Absolute MB/s are the best round and mean
little. Before the first round each loader runs once with --check, which warms the page cache and compares every byte
of its epoch.

    bench/run.py [--quick] [--only CELL[,CELL]] [--rounds N] [--json FILE] [--list]

Writes bench/out/results.json and results.md. Exit status 1 if a bar is missed or could not be measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "wire"))
sys.path.insert(0, str(Path(__file__).parent))
from nginx import Nginx

import programs
from cells import ATLAS, SingleCells
from geometry import Boxes
from programs import DATA, LOADERS, OUT, Failed, Result
from report import Bar, Report, Row, Skipped, show, write
from stores import Stores

MIB = 1 << 20
LATER = "headrace, 2nd epoch"
LIBRARIES = [name for name in LOADERS if name != "headrace"]

# archive: smallest share of the floor, largest CPU over the floor's
THROUGHPUT: dict[str, tuple[float, float | None]] = {
    "zstd_c1": (0.95, 1.15), "zstd_c8": (0.91, 1.15), "zstd_c32": (0.88, 1.15), "sharded": (0.95, 1.15),
    "lz4_c1": (1.10, 1.0), "lz4_c8": (1.15, 1.0), "lz4_c32": (1.20, 1.0),
    "raw_c1": (0.92, None), "raw_c8": (0.92, None), "raw_c32": (0.92, None),
    "small_zstd": (0.90, 1.15), "small_lz4": (0.90, 1.0), "small_raw": (0.85, None),
}  # fmt: skip
HTTP = {"zstd_c1": 0.85, "zstd_c8": 0.85, "zstd_c32": 0.85}
BUDGETS = {
    "zstd_c1": (64, 256, 1024),
    "zstd_c8": (128, 512, 1024),
    "zstd_c32": (512, 1024),
    "lz4_c8": (128, 512),
}  # MiB

COLD = """
import sys, time
import headrace as hr
for batch in hr.open(sys.argv[1]).samples(along="time", x=hr.view("field")).batches(32, memory="512MiB"):
    print(time.monotonic(), flush=True)
    break
"""
IMPORT = "import time; t = time.perf_counter(); import headrace; print(time.perf_counter() - t)"
MANY = """
import sys, time
sys.path.insert(0, sys.argv[2])
from common import status_bytes
import headrace as hr
rss, start = status_bytes("VmRSS"), time.monotonic()
samples = hr.open(sys.argv[1]).samples(along="time", x=hr.view("field"))
for batch in samples.batches(32, shuffle=True, seed=0, memory="32MiB"):
    print(time.monotonic() - start, status_bytes("VmHWM") - rss)
    break
"""


class Bench:
    def __init__(self, rounds: int, peers: list[str], quick: bool) -> None:
        self.rounds, self.peers, self.quick = rounds, peers, quick
        self.report = Report()
        self.errors: dict[tuple[str, str], str] = {}  # (cell, program): what it said

    # ---- rounds ------------------------------------------------------------------------------------------------------

    def fail(self, cell: str, name: str, error: Failed) -> None:
        self.report.rows.append(Row(cell, name, note=str(error)[:160]))
        self.errors[cell, name] = str(error)[:160]

    def check(self, cell: str, names: Iterable[str], archive: str, url: str | None = None) -> list[str]:
        """The loaders of `names` that deliver this archive byte for byte; the others are reported."""
        good = []
        for name in names:
            if not programs.able(name, archive, http=url is not None):
                continue
            try:
                programs.loader(name, archive, "--check", url=url)
                good.append(name)
            except Failed as e:
                self.fail(cell, name, e)
        return good

    def interleave(self, cell: str, runs: dict[str, Callable[[], Result]], floor: str = "floor") -> None:
        """Every program once a round; the order turns round each time. One that fails drops out."""
        raw = self.report.rounds[cell] = {name: [] for name in runs}
        for turn in range(self.rounds):
            for name in list(raw)[:: -1 if turn % 2 else 1]:
                try:
                    raw[name].append(runs[name]())
                except Failed as e:
                    if name.startswith(floor):
                        raise
                    self.fail(cell, name, e)
                    del raw[name]

    def paired(self, cell: str, over: str, under: str, key: str = "wall") -> list[float]:
        raw = self.report.rounds[cell]
        return [a[key] / b[key] for a, b in zip(raw[over], raw[under])]

    def add_rows(self, cell: str) -> None:
        for name, results in self.report.rounds[cell].items():
            best = min(results, key=lambda r: r["wall"])
            first = min((r["first_batch"] for r in results if "first_batch" in r), default=None)
            row = Row(cell, name, mb_s=best["bytes"] / best["wall"] / 1e6, peak_mb=best["peak_rss"] / 1e6)
            row.first_ms = None if first is None else 1e3 * first
            row.share = median(self.paired(cell, "floor", name))
            row.cpu = min(self.paired(cell, name, "floor", "cpu"))
            self.report.rows.append(row)

    def bar(self, cell: str, what: str, limit: float, at_least: bool, measured: float | None, unit: str = "",
            note: str = "") -> None:  # fmt: skip
        self.report.bars.append(Bar(cell, what, limit, at_least, measured, unit, note))

    def skip(self, cell: str, what: str, reason: str) -> None:
        self.report.skipped.append(Skipped(cell, what, reason))

    # ---- cells -------------------------------------------------------------------------------------------------------

    def compare(self, cell: str, archive: str, floor: Mapping[str, Callable[[], Result]], url: str | None) -> bool:
        """Floors and loaders, interleaved, with a row each and the bars against the other loaders."""
        names = self.check(cell, ["headrace", *self.peers], archive, url)
        self.interleave(cell, {**floor, **{n: partial(programs.loader, n, archive, url=url) for n in names}})
        self.add_rows(cell)
        ran = self.report.rounds[cell]
        for peer in self.peers:
            if peer in ran and "headrace" in ran:
                self.bar(cell, f"speed over {peer}", 1.0, True, median(self.paired(cell, peer, "headrace")), "×")
        return "headrace" in ran

    def throughput(self, archive: str) -> None:
        cell, (share, cpu) = archive, THROUGHPUT[archive]
        bare = {"floor": partial(programs.floor, archive)}
        if not archive.startswith("small"):  # those fit the budget: a later epoch reads nothing
            bare[LATER] = partial(programs.loader, "headrace", archive, "--later")
        ran = self.compare(cell, archive, bare, None)
        note = self.errors.get((cell, "headrace"), "")
        measured = median(self.paired(cell, "floor", "headrace")) if ran else None
        self.bar(cell, "share of the floor", share, True, measured, note=note)
        if cpu:
            measured = min(self.paired(cell, "headrace", "floor", "cpu")) if ran else None
            self.bar(cell, "CPU over the floor", cpu, False, measured, "×", note)

    def http(self, archive: str) -> None:
        """Two floors: one core left to the network, and all cores decoding, which the kernel then balances better."""
        cell = f"http_{archive}"
        cores = len(os.sched_getaffinity(0))
        with Nginx(DATA, OUT / "nginx") as server:
            url = server.url
            floors = {
                "floor": partial(programs.http_floor, archive, url),
                "floor, all cores decode": partial(programs.http_floor, archive, url, "--decoders", cores),
            }
            ran = self.compare(cell, archive, floors, url)
        note = self.errors.get((cell, "headrace"), "")
        for name, what in zip(floors, ("share of bare GETs", "share of bare GETs, all cores decode")):
            share = median(self.paired(cell, name, "headrace")) if ran else None
            self.bar(cell, what, HTTP[archive], True, share, note=note)

    def cold(self) -> None:
        """From nothing to the first batch of an archive in order, against an interpreter that does nothing."""
        above: list[float] = []
        imports: list[float] = []
        note = ""
        try:
            for _ in range(5 if self.quick else 21):
                nothing, _words = programs.python_seconds("pass")
                start = time.monotonic()
                _seconds, words = programs.python_seconds(COLD, DATA / "zstd_c1.zarr")
                above.append(1e3 * (float(words[0]) - start - nothing))
                imports.append(1e3 * float(programs.python_seconds(IMPORT)[1][0]))
        except Failed as e:
            note = str(e)[:160]
        self.report.rounds["cold"] = {"above_ms": above, "import_ms": imports}
        self.bar("cold", "first batch in order, c1, above python -c pass", 20, False,
                 median(above) if above else None, "ms", note)  # fmt: skip
        self.bar("cold", "import headrace", 4, False, median(imports) if imports else None, "ms", note)
        for peer in self.peers:
            if programs.able(peer, "zstd_c1"):
                r = [programs.loader(peer, "zstd_c1", "--first") for _ in range(2 if self.quick else 5)]
                best = min(1e3 * (x["first_at"] - x["spawned"]) for x in r)
                self.report.rows.append(Row("cold", peer, first_ms=best, note="process to its first shuffled batch"))

    def first(self, archive: str) -> None:
        """A shuffled epoch's first batch from opening on, against the bare decoding of the chunks it needs."""
        cell = f"first_{archive}"
        ratios: list[float] = []
        note = ""
        per_chunk = int(archive.rsplit("_c", 1)[1])
        chunks = OUT / f"{cell}.chunks"
        try:
            for _ in range(3 if self.quick else 9):
                r = programs.loader("headrace", archive, "--first")
                needed = sorted({i // per_chunk for i in r["index"]})
                chunks.write_text("\n".join(map(str, needed)))
                ratios.append(r["first_batch"] / programs.floor(archive, "--list", chunks)["wall"])
                note = f"{len(needed)} chunks, {1e3 * r['first_batch']:.0f} ms"
        except Failed as e:
            note = str(e)[:160]
        self.report.rounds[cell] = {"ratio": ratios}
        self.bar(cell, "shuffled first batch over decoding its blocks", 1.3, False,
                 median(ratios) if ratios else None, "×", note)  # fmt: skip

    def rss(self) -> None:
        for archive, budgets in BUDGETS.items():
            for budget in budgets:
                self.rss_within(archive, budget)

    def rss_within(self, archive: str, budget: int) -> None:
        above, note = None, ""
        try:
            r = programs.loader("headrace", archive, "--memory", f"{budget}MiB")
            above = (r["peak_rss"] - r["rss_import"]) / MIB - budget
            note = f"peak {r['peak_rss'] / MIB:.0f} MiB, {r['rss_import'] / MIB:.0f} after import"
        except Failed as e:
            note = str(e)[:160]
        self.bar("rss", f"{archive}, {budget} MiB: peak above import + budget", 64, False, above, "MiB", note)

    def many(self) -> None:
        seconds = megabytes = None
        note = ""
        try:
            results = [programs.python_seconds(MANY, DATA / "many.zarr", programs.HERE / "peers")[1] for _ in range(3)]
            seconds = median(float(words[0]) for words in results)
            megabytes = median(float(words[1]) for words in results) / 1e6
        except Failed as e:
            note = str(e)[:160]
        self.bar("many", "2,000,000 chunks: open to first shuffled batch", 1.0, False, seconds, "s", note)
        self.bar("many", "2,000,000 chunks: memory above import", 64, False, megabytes, "MB", note)


def cells(bench: Bench, atlas: Path) -> dict[str, tuple[list[str], Callable[[], None]]]:
    """{cell: (archives it needs, what runs it)}"""
    out: dict[str, tuple[list[str], Callable[[], None]]] = {}
    for a in THROUGHPUT:
        out[a] = ([a], partial(bench.throughput, a))
    for a in HTTP:
        out[f"http_{a}"] = ([a], partial(bench.http, a))
    out["cold"] = (["zstd_c1"], bench.cold)
    for a in ("zstd_c1", "zstd_c8", "zstd_c32"):
        out[f"first_{a}"] = ([a], partial(bench.first, a))
    out["rss"] = (list(BUDGETS), bench.rss)
    out["many"] = (["many"], bench.many)
    return out | boxes(bench).cells() | Stores(bench).cells() | SingleCells(bench, atlas).cells()


def boxes(bench: Bench) -> Boxes:
    return Boxes(bench, programs.DATA / "boxes", programs.BUILD / "bench" / "floor")


QUICK = [
    "zstd_c1", "zstd_c8", "lz4_c8", "raw_c8", "small_lz4", "http_zstd_c8", "cold", "first_zstd_c8", "rss", "many",
    "net_64k", "net_1m", "wan_64k", "wan_first", "bridge_64k", "signing",
]  # fmt: skip


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="some cells, two rounds, two other loaders")
    p.add_argument(
        "--only", metavar="CELL[,CELL]", help="a name, its beginning followed by *, 'boxes', 'stores' or 'cells'"
    )
    p.add_argument("--rounds", type=int)
    p.add_argument("--peers", help=f"of {','.join(LIBRARIES)}; 'none'")
    p.add_argument("--atlas", type=Path, default=ATLAS, metavar="DIR", help="of single cells; made there if it is not")
    p.add_argument("--json", type=Path, default=OUT / "results.json")
    p.add_argument("--list", action="store_true", help="name the cells")
    a = p.parse_args()
    peers = a.peers.split(",") if a.peers else ["mini", "tensorstore"] if a.quick else LIBRARIES
    if unknown := set(peers) - set(LIBRARIES) - {"none"}:
        p.error(f"no loader {', '.join(sorted(unknown))}; there are {' '.join(LIBRARIES)}")
    bench = Bench(a.rounds or (2 if a.quick else 5), [n for n in peers if n != "none"], a.quick)
    table = cells(bench, a.atlas)
    if a.list:
        print(*table, sep="\n")
        return 0
    chosen = list(QUICK if a.quick else table)
    if a.only:
        groups = {"stores": list(Stores(bench).cells()), "boxes": list(boxes(bench).cells()), "cells": ["cells_*"]}
        wanted = [w for word in a.only.split(",") for w in groups.get(word, [word])]
        chosen = [c for c in table if any(c == w or (w.endswith("*") and c.startswith(w[:-1])) for w in wanted)]
        if not chosen:
            p.error(f"no cell {a.only}; there are {' '.join(table)}")
    programs.prepare(sorted({archive for c in chosen for archive in table[c][0]}))
    for number, cell in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {cell}", flush=True)
        table[cell][1]()
    show(bench.report)
    write(bench.report, " ".join(["bench/run.py", *sys.argv[1:]]), a.json, OUT / "results.md")
    print(f"written: {a.json}, {OUT / 'results.md'}")
    return 0 if bench.report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
