"""``headrace cells chunk``: an atlas in the layout that training reads best."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from headrace._cli.arguments import Refused, memory, options_json, parser, positive, to_bytes
from headrace._cli.cells_header import NUMBERS
from headrace._cli.cells_scdl import Report, ScdlWriter
from headrace._cli.cells_source import Cells, identity, open_cells
from headrace._cli.cells_work import Work
from headrace._format import count, duration, size

ABOUT = """Makes chunked SCDL, or AnnData-Zarr in shards, of plain or chunked SCDL, h5ad or AnnData-Zarr.

SRC is a path, or the URL of an AnnData-Zarr or SCDL; it is only read. DST appears when all of it has been written, read
back and compared. Until then the work is in DST.part: run the same command again, and it goes on from there."""


class Writer(Protocol):
    """Makes a target of a source."""

    @property
    def total(self) -> int: ...
    def write(self, report: Report) -> None: ...
    def compare(self, report: Report) -> int: ...


def arguments(words: list[str]) -> argparse.Namespace:
    p = parser("cells chunk", ABOUT)
    p.add_argument("src", metavar="SRC", help="a path; or the URL of an SCDL or AnnData-Zarr")
    p.add_argument("dst", metavar="DST", type=Path, help="a path that is not there yet")
    p.add_argument("--format", choices=("scdl", "anndata"),
                   help="what DST becomes (anndata where its name ends in .zarr, else scdl)")  # fmt: skip
    p.add_argument("--chunk-size", type=positive, metavar="ROWS", default=100_000,
                   help="rows of a chunk of SCDL (%(default)s)")  # fmt: skip
    p.add_argument("--shard-bytes", type=to_bytes, metavar="SIZE", default=10**9,
                   help="AnnData-Zarr: numbers of a shard, before compression (1GB)")  # fmt: skip
    p.add_argument("--chunk-rows", type=positive, metavar="ROWS", default=64,
                   help="AnnData-Zarr: a chunk holds the non-zeros of so many cells (%(default)s)")  # fmt: skip
    p.add_argument("--layer", metavar="NAME", help="SCDL: this matrix instead of X: a layer, or raw")
    p.add_argument("--dtype", choices=tuple(NUMBERS), help="SCDL: type of the values (float32, or the source's SCDL)")
    p.add_argument("--memory", type=memory, metavar="SIZE", default=256 << 20,
                   help="about so much is held (256MiB; at least 64kB)")  # fmt: skip
    p.add_argument("--verify", action=argparse.BooleanOptionalAction, default=True,
                   help="read DST back and compare every row with SRC, read again (on)")  # fmt: skip
    p.add_argument("--options", metavar="JSON", type=options_json, help="storage options of a URL")
    p.add_argument("--json", action="store_true", help="what was done, as JSON")
    o = p.parse_args(words)
    if o.format is None:
        o.format = "anndata" if o.dst.suffix == ".zarr" else "scdl"
    return o


def chunk(words: list[str]) -> int:
    o = arguments(words)
    facts = convert(o)
    print(json.dumps(facts) if o.json else _sentence(facts))
    return 0


def convert(o: argparse.Namespace) -> dict[str, Any]:
    """What was done."""
    start = time.perf_counter()
    source = open_cells(o.src, o.layer if o.format == "scdl" else None, o.options, o.memory)
    if "://" not in o.src and o.dst.resolve().is_relative_to(Path(o.src).resolve()):
        raise Refused(f"{o.dst} is within {o.src}, which is only read: another place is needed")
    work = Work(o.dst, {**identity(source), **_choices(o)})
    try:
        writer = _begun(o, source, work)
        rows = _run(writer, work, o.verify)
        work.finish()
    finally:
        work.close()
    seconds = time.perf_counter() - start
    return {"target": str(o.dst), "format": o.format, "cells": source.rows, "genes": source.columns, "nnz": source.nnz,
             "bytes": sum(f.stat().st_size for f in o.dst.rglob("*") if f.is_file()), "compared_rows": rows,
            "went_on": work.goes_on, "seconds": round(seconds, 3)}  # fmt: skip


def _choices(o: argparse.Namespace) -> dict[str, Any]:
    """What decides the bytes that are written."""
    own = {"chunk_size": o.chunk_size, "dtype": o.dtype}
    zarr = {"shard_bytes": o.shard_bytes, "chunk_rows": o.chunk_rows}
    return {"format": o.format, **(own if o.format == "scdl" else zarr)}


def _begun(o: argparse.Namespace, source: Cells, work: Work) -> Writer:
    """Where it is refused, nothing is left behind."""
    try:
        return _writer(o, source, work)
    except ValueError:
        work.discard()
        raise


def _writer(o: argparse.Namespace, source: Cells, work: Work) -> Writer:
    if o.format == "scdl":
        if not source.rows:
            raise ValueError(f"{o.src}: no cells, of which no chunk can be made")
        return ScdlWriter(source, work, o.chunk_size, o.dtype, o.memory)
    if o.layer or o.dtype:
        raise ValueError("--layer and --dtype are for --format scdl: AnnData-Zarr gets all matrices, as they are")
    from headrace._cli.cells_zarr import ZarrWriter

    return ZarrWriter(source, work, o.shard_bytes, o.chunk_rows, o.memory)


def _run(writer: Writer, work: Work, verify: bool) -> int:
    with bar() as progress:
        total = writer.total
        for words, step in (("writing", writer.write), ("comparing", writer.compare)):
            if words == "comparing" and not verify:
                return 0
            task = progress.add_task("going on" if words == "writing" and work.goes_on else words, total=total)

            def report(n: int, task: Any = task) -> None:
                progress.advance(task, n)

            result = step(report)
            progress.update(task, completed=total)
    return int(result or 0)


def bar() -> Progress:
    """On standard error, and only where someone looks."""
    console = Console(stderr=True)
    return Progress(TextColumn("  {task.description:<10}"), BarColumn(bar_width=max(6, min(32, console.width - 60))),
                    DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(), console=console,
                    disable=not console.is_terminal)  # fmt: skip


def _sentence(f: dict[str, Any]) -> str:
    compared = f"all {count(f['compared_rows'])} rows compared" if f["compared_rows"] else "not compared (--no-verify)"
    genes = f" × {count(f['genes'])} genes" if f["genes"] is not None else ""
    made = "chunked SCDL" if f["format"] == "scdl" else "AnnData-Zarr in shards"
    return (f"{f['target']}: {made}, {count(f['cells'])} cells{genes}, {count(f['nnz'])} non-zeros, "
            f"{size(f['bytes'])}; {compared}; {duration(f['seconds'])}")  # fmt: skip
