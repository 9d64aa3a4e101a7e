#!/usr/bin/env python3
"""What single cells cost: Headrace, bare C loops and other loaders on one atlas (cells/make.py says what it is).

    bench/cells.py [--folder DIR] [--rounds N] [--only scdl,zarr,tokens,http,wan,quality] [--json FILE]
    bench/run.py --only cells            # the same as cells of the comparison, `cells_scdl` and so on

scdl     plain SCDL to CSR, local: a bare gather, 40 lines of numpy, bionemo-scdl's DataLoader
zarr     AnnData on Zarr to CSR, local: a bare loop that decodes and lays out rows, annbatch
tokens   ranked tokens (2,048), the 1,024 largest and 1,024 random genes of each cell
http     the same from nginx on loopback, on the same cores; annbatch over obstore; the proposal for remote SCDL
wan      20 ms away, 10 Gbit/s: the epoch beside bare GETs of the same objects; the first batch in round trips
quality  every cell once, as written; entropy of labels in a batch, variance of batch means

Every measurement is a process of its own, page cache warm; the programs of a section take turns, `--rounds` times.
Shown is the best round and the least CPU time; a bar compares best with best. A loader whose environment is not there
(`venvs.sh cells` makes them) is left out, and its bars are named as skipped. The atlas is made where it is not there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tests" / "wire"))
sys.path.insert(0, str(HERE))

import nginx  # noqa: E402
import wan as networks  # noqa: E402
from nginx import Nginx  # noqa: E402
from wan import Near, Wan  # noqa: E402

from cells_programs import ATLAS, FLOOR, GET, Absent, Programs, Pythons, atlas, has, run  # noqa: E402
from programs import PYTHON_312, PYTHON_SCDL, Failed, Result, build  # noqa: E402
from report import Bar, Row, Skipped, bar_cells, plain_table  # noqa: E402

CELLS = 200_000
Run = Callable[[], Result]


def rate(r: Result) -> float:
    return float(r["cells"] / r["wall"])


class Table:
    """What was measured in a section, and what was promised."""

    def __init__(self, cell: str, rounds: int) -> None:
        self.cell, self.rounds = cell, rounds
        self.raw: dict[str, list[Result]] = {}
        self.failed: dict[str, Failed] = {}
        self.bars: list[Bar] = []
        self.skipped: list[Skipped] = []

    def take_turns(self, runs: dict[str, Run]) -> None:
        for turn in range(self.rounds):
            for name in list(runs)[:: -1 if turn % 2 else 1]:
                if name not in self.failed and (r := self.one(name, runs[name])):
                    self.raw.setdefault(name, []).append(r)
        for name in runs:
            self.show(name)

    def one(self, name: str, run: Run) -> Result | None:
        try:
            return run()
        except Failed as e:
            self.failed[name] = e
            print(f"{name}: {'left out: ' if isinstance(e, Absent) else ''}{e}", file=sys.stderr, flush=True)
            return None

    def show(self, name: str) -> None:
        if not (of := self.raw.get(name)):
            return
        best = max(of, key=rate)
        cpu = min(r["cpu"] / r["cells"] for r in of) * 1e6
        first = self.first(name)
        peak = best["peak_rss"] / 1e6
        shown = "" if first is None else f"first {1e3 * first:6.0f} ms"
        print(f"{name:38} {rate(best):9,.0f} cells/s {cpu:6.2f} CPU µs/cell {peak:6.0f} MB  {shown}", flush=True)

    def best(self, name: str) -> float | None:
        return max((rate(r) for r in self.raw.get(name, [])), default=None)

    def first(self, name: str) -> float | None:
        return min((r["first_batch"] for r in self.raw.get(name, []) if r.get("first_batch")), default=None)

    def bar(self, what: str, limit: float, over: str, under: str | None = None) -> None:
        """Speed of `over`, or how many times that of `under`."""
        a, b = self.best(over), self.best(under) if under else 1.0
        measured = a / b if a is not None and b is not None else None
        self.limit(what, limit, True, measured, "×" if under else "cells/s", [over, under or over])

    def first_bar(self, what: str, limit: float, over: str, under: str) -> None:
        a, b = self.first(over), self.first(under)
        self.limit(what, limit, False, a / b if a and b else None, "×", [over, under])

    def limit(
        self, what: str, limit: float, at_least: bool, measured: float | None, unit: str = "", of: Sequence[str] = ()
    ) -> None:
        """`of`: whose figures it is made of."""
        reasons = [self.failed[name] for name in of if name in self.failed]
        absent = next((e for e in reasons if isinstance(e, Absent)), None)
        if absent:
            self.skipped.append(Skipped(self.cell, what, str(absent)))
        else:
            note = str(reasons[0])[:160] if reasons else ""
            self.bars.append(Bar(self.cell, what, limit, at_least, measured, unit, note))

    def rows(self) -> list[Row]:
        out = [Row(self.cell, name, note=str(e)[:160]) for name, e in self.failed.items()]
        for name, of in self.raw.items():
            best, first = max(of, key=rate), self.first(name)
            cpu = min(r["cpu"] / r["cells"] for r in of) * 1e6
            row = Row(
                self.cell,
                name,
                peak_mb=best["peak_rss"] / 1e6,
                note=f"{rate(best):,.0f} cells/s, {cpu:.1f} CPU µs a cell",
            )
            row.first_ms = 1e3 * first if first else None
            out.append(row)
        return out


# ---- sections --------------------------------------------------------------------------------------------------------


def scdl(p: Programs, t: Table) -> None:
    t.take_turns(
        {
            "gather": p.gather,
            "memmap": p.memmap,
            "bionemo": lambda: p.bionemo("--cells", 50_000),
            "headrace scdl": lambda: p.headrace("scdl"),
        }
    )
    t.bar("SCDL to CSR, over 40 lines of numpy", 2, "headrace scdl", "memmap")
    t.bar("SCDL to CSR, over bionemo-scdl's DataLoader", 6, "headrace scdl", "bionemo")
    t.first_bar("first batch, over bionemo-scdl's", 0.3, "headrace scdl", "bionemo")


def zarr(p: Programs, t: Table) -> None:
    runs: dict[str, Run] = {}
    for layout in ("lz4_u2", "lz4_i4", "zstd"):
        runs[f"decode {layout}"] = lambda layout=layout: p.decode(layout)
        runs[f"headrace {layout}"] = lambda layout=layout: p.headrace(layout)
    runs["annbatch lz4_u2"] = lambda: p.annbatch("lz4_u2")
    t.take_turns(runs)
    t.bar("AnnData lz4 to CSR, over annbatch", 1.8, "headrace lz4_u2", "annbatch lz4_u2")
    for layout in ("lz4_u2", "lz4_i4", "zstd"):
        t.bar(f"{layout} to CSR, share of the bare loop", 0.85, f"headrace {layout}", f"decode {layout}")
    t.first_bar("first batch, over annbatch's", 0.3, "headrace lz4_u2", "annbatch lz4_u2")


def tokens(p: Programs, t: Table) -> None:
    runs: dict[str, Run] = {}
    for layout in ("scdl", "lz4_u2"):
        for form in ("ranked", "top", "random"):
            runs[f"{form} {layout}"] = lambda layout=layout, form=form: p.headrace(layout, "--form", form)
    t.take_turns(runs)
    t.bar("ranked tokens from SCDL", 100_000, "ranked scdl")
    t.bar("ranked tokens from AnnData lz4", 100_000, "ranked lz4_u2")


def http(p: Programs, t: Table) -> None:
    if reason := nginx.missing():
        raise Absent(reason)
    with tempfile.TemporaryDirectory() as state, Near() as near:
        within = near.within
        with Nginx(p.folder, Path(state), within=within) as server:
            ours = {"http lz4_u2": ("lz4_u2", "csr"), "http lz4_i4": ("lz4_i4", "csr"), "http scdl": ("scdl", "csr"),
                    "http ranked": ("lz4_u2", "ranked"), "http top": ("lz4_u2", "top")}  # fmt: skip
            runs: dict[str, Run] = {
                name: lambda of=of: p.headrace(of[0], "--form", of[1], url=server.url, within=within)
                for name, of in ours.items()
            }
            runs["http annbatch"] = lambda: p.annbatch(
                "lz4_u2", "--pipeline", "zarr", "--cells", 60_000, url=server.url, within=within
            )
            runs["http proposal"] = lambda: p.proposal("scdl_10k", server.url, "--cells", 60_000, within=within)
            t.take_turns(runs)
    best = max(("http lz4_u2", "http lz4_i4", "http scdl"), key=lambda n: t.best(n) or 0)
    t.bar("loopback HTTP to CSR", 100_000, best)
    t.bar("loopback HTTP to ranked tokens", 40_000, "http ranked")
    t.bar("loopback HTTP to padded", 40_000, "http top")
    t.bar("loopback HTTP, over annbatch", 2.5, "http lz4_u2", "http annbatch")
    t.bar("loopback HTTP, over the proposal for SCDL", 20, "http scdl", "http proposal")
    t.first_bar("HTTP first batch, over annbatch's", 0.3, "http lz4_u2", "http annbatch")


def objects(p: Programs, url: str, layout: str, to: Path) -> Path:
    paths = [f for name in ("data", "indices") for f in sorted((p.folder / layout / "X" / name / "c").iterdir())]
    to.write_text("".join(f"{url}/{f.relative_to(p.folder)}\n" for f in paths))
    return to


def wan(p: Programs, t: Table) -> None:
    if reason := nginx.missing() or networks.missing():
        raise Absent(reason)
    with (
        tempfile.TemporaryDirectory() as state,
        Wan() as way,
        Nginx(p.folder, Path(state), within=way.server) as server,
    ):
        urls = objects(p, server.url, "lz4_i4", Path(state) / "urls")
        size = sum(f.stat().st_size for f in (p.folder / "lz4_i4" / "X").rglob("*") if f.is_file())

        def bare(n: int) -> Result:
            r = run(
                p.get,
                "--largest",
                1 << 20,
                "--base",
                f"{server.url}/lz4_i4",
                "--in-flight",
                n,
                urls,
                within=way.client,
            )
            return {"wall": r["seconds"], "cpu": r["cpu"], "cells": CELLS, "peak_rss": 0, "bytes": r["bytes"]}

        n = min((32, 64, 128, 256), key=lambda n: bare(n)["wall"])
        runs: dict[str, Run] = {f"wan bare GETs ({n})": lambda: bare(n)}
        for name, memory in (("wan lz4_i4", "512MiB"), ("wan lz4_i4, 1 GiB", "1GiB")):
            runs[name] = lambda memory=memory: p.headrace(
                "lz4_i4", "--memory", memory, "--stats", url=server.url, within=way.client
            )
        runs["wan first"] = lambda: p.headrace("lz4_i4", "--first", url=server.url, within=way.client)
        t.take_turns(runs)
        got = max(t.raw["wan lz4_i4"], key=rate)
        fetched = got["stats"]["bytes"]["read"]
        ours = fetched / got["wall"]
        t.limit(
            "20 ms away, share of bare GETs in bytes",
            0.85,
            True,
            ours / (size / min(r["wall"] for r in t.raw[f"wan bare GETs ({n})"])),
        )
        t.limit("20 ms away, first batch in round trips", 4, False, (t.first("wan first") or 0) / 0.02)
        t.limit("bytes fetched over stored", 1.1, False, fetched / size)
        t.limit("bytes fetched over plan()'s", 1.02, False, fetched / got["plan"]["cost"]["read_bytes"])


def quality(p: Programs, t: Table) -> None:
    told = ("--check", p.folder / "obs.npz")
    runs: dict[str, Run] = {
        "headrace scdl": lambda: p.headrace("scdl", *told),
        "headrace lz4_u2": lambda: p.headrace("lz4_u2", *told),
        "headrace lz4_i4": lambda: p.headrace("lz4_i4", *told),
        "headrace zstd": lambda: p.headrace("zstd", *told),
        "memmap": lambda: p.memmap(*told),
        "bionemo": lambda: p.bionemo(*told),
        "annbatch": lambda: p.annbatch("lz4_u2", *told),
    }
    got: dict[str, Result] = {}
    for name, one in runs.items():
        if not (r := t.one(name, one)):
            continue
        got[name] = r
        print(
            f"{name:38} entropy {r['entropy']:.2f} of {r['entropy_ideal']:.2f} bits, variance {r['variance']:.2f}",
            flush=True,
        )
    for ours, theirs in (("headrace lz4_u2", "annbatch"), ("headrace scdl", "memmap")):
        for what, at_least in (("entropy", True), ("variance", False)):
            both = ours in got and theirs in got
            measured = got[ours][what] / got[theirs][what] if both else None
            t.limit(f"{what} of {ours[9:]}, over {theirs}'s", 1, at_least, measured, "×", [ours, theirs])


SECTIONS: dict[str, Callable[[Programs, Table], None]] = {
    "scdl": scdl, "zarr": zarr, "tokens": tokens, "http": http, "wan": wan, "quality": quality,
}  # fmt: skip
BUDGET = 512 << 20


def section(name: str, p: Programs, rounds: int) -> Table:
    """Measured, with a bar for its memory; a section that this machine cannot run is one thing that is skipped."""
    t = Table(f"cells_{name}", rounds)
    try:
        SECTIONS[name](p, t)
    except Absent as e:
        t.skipped.append(Skipped(t.cell, "all of it", str(e)))
    ours = [r for run, of in t.raw.items() if "headrace" in run for r in of]
    if ours:
        over = max(r["peak_rss"] - r["rss_import"] - BUDGET for r in ours) / 2**20
        t.limit("peak memory over the budget", 64, False, max(over, 0.0), "MiB")
    return t


class SingleCells:
    """The cells of `bench/run.py`: `cells_scdl` and so on."""

    def __init__(self, bench: Any, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.prepared = False

    def cells(self) -> dict[str, tuple[list[str], Callable[[], None]]]:
        return {f"cells_{name}": ([], partial(self.run, name)) for name in SECTIONS}

    def run(self, name: str) -> None:
        pythons, report = Pythons(), self.bench.report
        if not self.prepared and not (has(PYTHON_312, "annbatch") and has(PYTHON_SCDL, "bionemo")):
            subprocess.run([HERE / "venvs.sh", "cells"], check=False)  # it says what it could not make
        self.prepared = True
        try:
            atlas(self.folder, pythons)
        except Absent as e:
            self.bench.skip(f"cells_{name}", "all of it", str(e))
            return
        t = section(name, Programs(self.folder.resolve(), FLOOR, GET, pythons), self.bench.rounds)
        report.bars += t.bars
        report.skipped += t.skipped
        report.rows += t.rows()
        report.rounds[t.cell] = t.raw


def main() -> int:
    q = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    q.add_argument("--folder", type=Path, default=ATLAS, help="where the atlas is, or is made")
    q.add_argument("--rounds", type=int, default=5)
    q.add_argument("--only", default=",".join(SECTIONS))
    q.add_argument("--floor", type=Path, default=FLOOR)
    q.add_argument("--get", type=Path, default=GET)
    q.add_argument("--python312", type=Path, default=PYTHON_312)
    q.add_argument("--python-scdl", type=Path, default=PYTHON_SCDL)
    q.add_argument("--json", type=Path)
    a = q.parse_args()
    if unknown := set(a.only.split(",")) - set(SECTIONS):
        q.error(f"no section {', '.join(sorted(unknown))}; there are {' '.join(SECTIONS)}")
    if not (a.floor.exists() and a.get.exists()):
        build()
    pythons = Pythons(a.python312, a.python_scdl)
    try:
        atlas(a.folder, pythons)
    except Absent as e:
        sys.exit(f"bench/cells.py: {e}")
    p = Programs(a.folder.resolve(), a.floor, a.get, pythons)
    tables = [section(name, p, a.rounds) for name in a.only.split(",")]
    bars = [b for t in tables for b in t.bars]
    print(plain_table(["cell", "bar", "measured", "limit", "verdict", "note"], [bar_cells(b) for b in bars]))
    for s in (s for t in tables for s in t.skipped):
        print(f"skipped: {s.cell}, {s.what}: {s.reason}")
    if a.json:
        rounds = {t.cell: t.raw for t in tables}
        a.json.write_text(
            json.dumps({"rounds": rounds, "bars": [vars(b) | {"verdict": b.verdict} for b in bars]}, indent=1)
        )
    return any(b.verdict == "FAIL" for b in bars)


if __name__ == "__main__":
    sys.exit(main())
