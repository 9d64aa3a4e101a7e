"""``headrace cells bench``: how fast cells come from an atlas, and from others of the same cells."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headrace._cli.arguments import options_json, parser, positive, there, to_bytes
from headrace._format import duration, size

ABOUT = """Times shuffled batches of cells from SRC, and beside it from what --against names: the URL or path of the
same cells elsewhere; "chunked", a copy in chunks made for this (removed afterwards); "served", SRC behind a web server
on this machine. Each runs in a process of its own, from a cold start: the clock runs from before the archive is opened,
and files are dropped from the page cache first (--warm: they are not)."""
FORMS = ("csr", "dense", "padded", "ranked")
FIGURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "samples_per_second": ("samples/s", lambda v: f"{v:,.0f}"),
    "steady_samples_per_second": ("after the first", lambda v: f"{v:,.0f}"),
    "tensor_bytes_per_second": ("into tensors", lambda v: f"{size(v)}/s"),
    "stored_bytes_per_second": ("fetched", lambda v: f"{size(v)}/s"),
    "open_seconds": ("open", duration),
    "first_batch_seconds": ("first batch", duration),
    "stall_share": ("stalled", lambda v: f"{v:.0%}"),
    "fetched_bytes": ("bytes", size),
    "chunks_again": ("read again", lambda v: f"{v:,}"),
    "peak_memory": ("memory", size),
}


def _arguments(words: list[str]) -> argparse.Namespace:
    p = parser("cells bench", ABOUT)
    p.add_argument("src", metavar="SRC", help="SCDL or AnnData-Zarr: a path or URL")
    p.add_argument("--against", metavar="WHAT,…", action="append", default=[], help="chunked, served, or a path or URL")
    p.add_argument("--form", choices=FORMS, default="csr",
                   help="what a batch has (%(default)s); padded: 1,200 random genes, ranked: 2,048 tokens")  # fmt: skip
    p.add_argument("--layer", metavar="NAME", help="another matrix than X: a layer, or raw")
    p.add_argument("--batch", type=positive, default=64, metavar="N", help="cells of a batch (%(default)s)")
    p.add_argument(
        "--seconds", type=float, default=20, metavar="S", help="so long, and at most a batch more (%(default)s)"
    )
    p.add_argument("--epochs", type=positive, metavar="N", help="at most so many")
    p.add_argument("--memory", type=to_bytes, metavar="SIZE", help="the loader's budget")
    p.add_argument("--warm", action="store_true", help="files may be in the page cache")
    p.add_argument("--options", metavar="JSON", type=options_json, help="storage options of URLs")
    p.add_argument("--csv", type=Path, metavar="FILE", help="figures, a line for each")
    p.add_argument("--json", type=Path, metavar="FILE", help="all that was measured")
    p.add_argument("--picture", type=Path, metavar="FILE", help="a picture: .svg, or .png with matplotlib")
    return p.parse_args(words)


def bench(words: list[str]) -> int:
    o = _arguments(words)
    _check_picture(o.picture)
    console, error = Console(highlight=False), Console(stderr=True, highlight=False)
    runs: list[dict[str, Any]] = []
    failed = False
    with ExitStack() as stack:
        for label, url in _places(o, stack):
            try:
                with error.status(f"{label} …"):
                    runs.append({"label": label, **_measure(url, o)})
            except ValueError as e:  # the others are measured all the same
                error.print(
                    f"headrace: {url if label == 'source' else label}: {str(e).removeprefix(f'{url}: ')}",
                    markup=False,
                    soft_wrap=True,
                )
                failed = True
    if runs:
        console.print(_table(runs))
        _write(o, runs)
    return 1 if failed else 0


def _check_picture(picture: Path | None) -> None:
    if picture is None or picture.suffix == ".svg":
        return
    if picture.suffix != ".png":
        raise ValueError(f"--picture {picture}: pictures are .svg or .png")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ValueError(f"--picture {picture}: PNG needs matplotlib: pip install matplotlib; SVG needs nothing")


def _places(o: argparse.Namespace, stack: ExitStack) -> list[tuple[str, str]]:
    words = [w for group in o.against for w in group.split(",") if w]
    found = [("source", there(o.src))]
    for word in words:
        if word == "chunked":
            found.append((word, _chunked(o.src, o.options, stack)))
        elif word == "served":
            found.append((word, _served(o.src, stack)))
        else:
            found.append((word, word))
    return found


def _chunked(src: str, options: Any, stack: ExitStack) -> str:
    from headrace._cli.cells_chunk import arguments, convert

    folder = Path(src).absolute().parent if "://" not in src else Path.cwd()
    place = stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=folder))
    words = [src, f"{place}/chunked", "--format", "anndata", "--no-verify"]
    convert(arguments([*words, "--options", json.dumps(options)] if options else words))
    return f"{place}/chunked"


def _served(src: str, stack: ExitStack) -> str:
    from headrace._cli.serve import Server

    path = Path(src).absolute()
    if not path.is_dir():
        raise ValueError(f"--against served: {src} is no directory that could be served")
    server = stack.enter_context(Server(path.parent))
    return f"{server.url}/{path.name}"


def _measure(url: str, o: argparse.Namespace) -> dict[str, Any]:
    asked = {n: getattr(o, n) for n in ("form", "layer", "batch", "seconds", "epochs", "memory")}
    asked |= {"url": url, "options": o.options if "://" in url else None, "cold": not o.warm}
    command = [sys.executable, "-m", "headrace._cli.cells_measure", json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ValueError(said[-1] if said else f"{url}: the run ended with status {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _table(runs: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for run in runs:
        table.add_column(run["label"], justify="right", overflow="fold")
    for key, (title, shown) in FIGURES.items():
        table.add_row(title, *(shown(run[key]) for run in runs))
    return table


def _write(o: argparse.Namespace, runs: list[dict[str, Any]]) -> None:
    if o.csv:
        keys = [k for k in runs[0] if k != "series"]
        with o.csv.open("w", newline="") as file:
            out = csv.DictWriter(file, keys, extrasaction="ignore")
            out.writeheader()
            out.writerows(runs)
    if o.json:
        o.json.write_text(
            json.dumps({"batch": o.batch, "form": o.form, "cold": not o.warm, "runs": runs}, indent=1) + "\n"
        )
    if o.picture:
        from headrace._cli.cells_picture import draw

        draw(o.picture, runs)
