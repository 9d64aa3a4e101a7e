"""``headrace verify``: every chunk of an archive is read once, and matrices of cells are held against themselves."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

import headrace as hr
from headrace._cli.arguments import guarded, memory, options_json, parser, there
from headrace._cli.verify_arrays import Findings, Reader, rules
from headrace._format import count, duration, plural, size

ABOUT = """Reads every chunk of an archive once, with all checksums and decoders, and says what is broken, by name.

Of atlases of single cells (AnnData-Zarr, collections, SCDL, h5ad), in addition: offsets of rows ascend from 0 to the
number of values, values and columns are as many, columns are genes, columns of obs are as long as there are cells, and
codes are categories. Chunks that are not stored read as the fill value: they are counted, and broken only in matrices
of cells. Exit status: 0 all is well, 1 something is broken, 2 wrong usage."""


def verify(words: list[str]) -> int:
    p = parser("verify", ABOUT)
    p.add_argument("archive", metavar="ARCHIVE", help="a path or URL; h5ad: a path")
    p.add_argument("--json", action="store_true", help="what was found, as JSON")
    p.add_argument("--complete", action="store_true", help="chunks that are not stored are broken, too")
    p.add_argument("--memory", type=memory, metavar="SIZE", default=128 << 20,
                   help="about so much is held (128MiB; at least 64kB)")  # fmt: skip
    p.add_argument("--options", metavar="JSON", type=options_json, help="storage options of a URL")
    o = p.parse_args(words)
    return guarded(lambda: _verify(o))


def _verify(o: argparse.Namespace) -> int:
    start = time.perf_counter()
    found = Findings()
    there(o.archive)
    path = Path(o.archive.removeprefix("file://"))
    reader: Any
    if path.is_file():
        from headrace._cli.verify_h5ad import H5adReader

        reader = H5adReader(path, found, o.memory)
    else:
        archive = hr.open(o.archive, o.options)
        reader = Reader(archive, path if path.is_dir() else None, found, o.memory, o.complete)
    with _bar() as progress:
        task = progress.add_task("reading", total=reader.total)

        def report(n: int) -> None:
            progress.advance(task, n)

        for array in reader.arrays():
            progress.update(task, description=array[-28:])
            reader.read(array, rules(reader, array), report)
    facts = {
        "archive": o.archive,
        "arrays": reader.read_arrays,
        "bytes": reader.read_bytes,
        "matrices": reader.described(),
        "absent_chunks": found.absent,
        "broken": found.broken,
        "seconds": round(time.perf_counter() - start, 3),
    }
    if o.json:
        print(json.dumps(facts))
    else:
        _print(facts)
    return 1 if found.broken else 0


def _bar() -> Progress:
    console = Console(stderr=True)
    return Progress(TextColumn("  {task.description:<28}"), BarColumn(bar_width=max(6, min(32, console.width - 80))),
                    DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(), console=console,
                    disable=not console.is_terminal)  # fmt: skip


def _print(f: dict[str, Any]) -> None:
    for one in f["broken"]:
        print(f"{one['place']}: {one['what']}")
    for line in f["matrices"]:
        print(line)
    absent = sum(n["chunks"] for n in f["absent_chunks"])
    if absent:
        print(f"{plural(absent, 'chunk')} of {plural(len(f['absent_chunks']), 'array')} not stored: the fill value")
    read = f"{plural(f['arrays'], 'array')}, {size(f['bytes'])} read in {duration(f['seconds'])}"
    print(f"{f['archive']}: {read}; {'BROKEN: ' + count(len(f['broken'])) if f['broken'] else 'all is well'}")
    sys.stdout.flush()
