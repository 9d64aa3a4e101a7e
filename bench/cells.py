#!/usr/bin/env python3
"""What single cells cost: Headrace, bare C loops and other loaders on one atlas (cells/make.py says what it is).

    bench/cells.py [--folder DIR] [--rounds N] [--only scdl,zarr,tokens,http,wan,quality] [--json FILE]

scdl     plain SCDL to CSR, local: a bare gather, 40 lines of numpy, bionemo-scdl's DataLoader
zarr     AnnData on Zarr to CSR, local: a bare loop that decodes and lays out rows, annbatch
tokens   ranked tokens (2,048), the 1,024 largest and 1,024 random genes of each cell
http     the same from nginx on loopback, on the same cores; annbatch over obstore; the proposal for remote SCDL
wan      20 ms away, 10 Gbit/s: the epoch beside bare GETs of the same objects; the first batch in round trips
quality  every cell once, as written; entropy of labels in a batch, variance of batch means

Every measurement is a process of its own, page cache warm; the programs of a section take turns, `--rounds` times.
Shown is
the best round and the least CPU time; a bar compares best with best.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tests" / "wire"))
sys.path.insert(0, str(HERE))

import wan as networks  # noqa: E402
from nginx import Nginx  # noqa: E402
from wan import Near, Wan  # noqa: E402

from report import Bar, bar_cells, plain_table  # noqa: E402

CELLS = 200_000
FLOOR = ROOT / "build" / "bench" / "bench" / "cells_floor"
GET = FLOOR.with_name("get")
Result = dict[str, Any]
Run = Callable[[], Result]


class Failed(Exception):
    pass


def run(*command: object, within: Sequence[str] = ()) -> Result:
    """The last JSON line of a program."""
    done = subprocess.run(
        [*within, *(str(c) for c in command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise Failed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return dict(json.loads(lines[-1]))


class Programs:
    """How each loader is started."""

    def __init__(self, folder: Path, a: argparse.Namespace) -> None:
        self.folder, self.a = folder, a

    def where(self, layout: str, url: str | None) -> str:
        return f"{url}/{layout}" if url else str(self.folder / layout)

    def gather(self) -> Result:
        return run(self.a.floor, "gather", self.folder / "scdl")

    def decode(self, layout: str) -> Result:
        return run(self.a.floor, "decode", self.folder / f"{layout}.chunks", self.folder / "scdl" / "row_ptr.npy")

    def script(
        self, python: Path, name: str, layout: str, url: str | None, within: Sequence[str], *more: object
    ) -> Result:
        return run(
            python, "-W", "ignore", HERE / "cells" / name, "--atlas", self.where(layout, url), *more, within=within
        )

    def memmap(self, *more: object) -> Result:
        return self.script(self.a.python312, "memmap.py", "scdl", None, (), *more)

    def bionemo(self, *more: object) -> Result:
        return self.script(self.a.python_scdl, "bionemo_loader.py", "scdl", None, (), *more)

    def annbatch(self, layout: str, *more: object, url: str | None = None, within: Sequence[str] = ()) -> Result:
        return self.script(self.a.python312, "annbatch_loader.py", layout, url, within, *more)

    def proposal(self, layout: str, url: str, *more: object, within: Sequence[str] = ()) -> Result:
        rows = int(layout[5:-1]) * 1000
        return self.script(self.a.python_scdl, "scdl_remote.py", layout, url, within, "--chunk-rows", rows, *more)

    def headrace(self, layout: str, *more: object, url: str | None = None, within: Sequence[str] = ()) -> Result:
        return self.script(Path(sys.executable), "headrace_cells.py", layout, url, within, *more)


def rate(r: Result) -> float:
    return float(r["cells"] / r["wall"])


class Table:
    """What was measured, and what was promised."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.raw: dict[str, list[Result]] = {}
        self.bars: list[Bar] = []

    def take_turns(self, runs: dict[str, Run]) -> None:
        failed = set()
        for turn in range(self.rounds):
            for name in list(runs)[:: -1 if turn % 2 else 1]:
                if name in failed:
                    continue
                try:
                    self.raw.setdefault(name, []).append(runs[name]())
                except Failed as e:
                    failed.add(name)
                    print(f"{name}: {e}", file=sys.stderr, flush=True)
        for name in runs:
            self.show(name)

    def show(self, name: str) -> None:
        if not (of := self.raw.get(name)):
            return
        best = max(of, key=rate)
        cpu = min(r["cpu"] / r["cells"] for r in of) * 1e6
        first = min((r["first_batch"] for r in of if r.get("first_batch")), default=None)
        peak = best["peak_rss"] / 1e6
        shown = "" if first is None else f"first {1e3 * first:6.0f} ms"
        print(f"{name:38} {rate(best):9,.0f} cells/s {cpu:6.2f} CPU µs/cell {peak:6.0f} MB  {shown}", flush=True)

    def best(self, name: str) -> float | None:
        return max((rate(r) for r in self.raw.get(name, [])), default=None)

    def first(self, name: str) -> float | None:
        return min((r["first_batch"] for r in self.raw.get(name, [])), default=None)

    def bar(self, what: str, limit: float, over: str, under: str | None = None, note: str = "") -> None:
        """Speed of `over`, or how many times that of `under`."""
        a, b = self.best(over), self.best(under) if under else 1.0
        measured = a / b if a is not None and b is not None else None
        self.bars.append(Bar("cells", what, limit, True, measured, "×" if under else "cells/s", note))

    def first_bar(self, what: str, limit: float, over: str, under: str) -> None:
        a, b = self.first(over), self.first(under)
        self.bars.append(Bar("cells", what, limit, False, a / b if a and b else None, "×"))

    def limit(self, what: str, limit: float, at_least: bool, measured: float | None, unit: str = "") -> None:
        self.bars.append(Bar("cells", what, limit, at_least, measured, unit))


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
    if reason := networks.missing():
        print(f"skipped: wan: {reason}")
        return
    with (
        tempfile.TemporaryDirectory() as state,
        Wan() as way,
        Nginx(p.folder, Path(state), within=way.server) as server,
    ):
        urls = objects(p, server.url, "lz4_i4", Path(state) / "urls")
        size = sum(f.stat().st_size for f in (p.folder / "lz4_i4" / "X").rglob("*") if f.is_file())

        def bare(n: int) -> Result:
            r = run(
                p.a.get,
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
        try:
            r = got[name] = one()
        except Failed as e:
            print(f"{name}: {e}", file=sys.stderr)
            continue
        print(
            f"{name:38} entropy {r['entropy']:.2f} of {r['entropy_ideal']:.2f} bits, variance {r['variance']:.2f}",
            flush=True,
        )
    for ours, theirs in (("headrace lz4_u2", "annbatch"), ("headrace scdl", "memmap")):
        if ours in got and theirs in got:
            t.limit(
                f"entropy of {ours[9:]}, over {theirs}'s", 1, True, got[ours]["entropy"] / got[theirs]["entropy"], "×"
            )
            t.limit(
                f"variance of {ours[9:]}, over {theirs}'s",
                1,
                False,
                got[ours]["variance"] / got[theirs]["variance"],
                "×",
            )


SECTIONS: dict[str, Callable[[Programs, Table], None]] = {
    "scdl": scdl, "zarr": zarr, "tokens": tokens, "http": http, "wan": wan, "quality": quality,
}  # fmt: skip
BUDGET = 512 << 20


def main() -> int:
    q = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    q.add_argument("--folder", type=Path, default=HERE / "data" / "cells", help="where the atlas is, or is made")
    q.add_argument("--rounds", type=int, default=5)
    q.add_argument("--only", default=",".join(SECTIONS))
    q.add_argument("--floor", type=Path, default=FLOOR)
    q.add_argument("--get", type=Path, default=GET)
    q.add_argument("--python312", type=Path, default=ROOT / ".venv-bench312" / "bin" / "python")
    q.add_argument("--python-scdl", type=Path, default=ROOT / ".venv-bench-scdl" / "bin" / "python")
    q.add_argument("--json", type=Path)
    a = q.parse_args()
    subprocess.run([a.python312, "-W", "ignore", HERE / "cells" / "make.py", a.folder], check=True)
    p, t = Programs(a.folder.resolve(), a), Table(a.rounds)
    for name in a.only.split(","):
        SECTIONS[name](p, t)
    ours = [r for name, of in t.raw.items() if "headrace" in name for r in of]
    if ours:
        over = max(r["peak_rss"] - r["rss_import"] - BUDGET for r in ours) / 2**20
        t.limit("peak memory over the budget", 64, False, max(over, 0.0), "MiB")
    heads = ["cell", "bar", "measured", "limit", "verdict", "note"]
    print(plain_table(heads, [bar_cells(b) for b in t.bars]))
    if a.json:
        a.json.write_text(
            json.dumps({"rounds": t.raw, "bars": [vars(b) | {"verdict": b.verdict} for b in t.bars]}, indent=1)
        )
    return any(b.verdict == "FAIL" for b in t.bars)


if __name__ == "__main__":
    sys.exit(main())
