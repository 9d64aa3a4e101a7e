"""``headrace demo``: streams two archives and real cells, is killed and resumes, and leaves a page with pictures."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace._cli import archives, cells_demo, page
from headrace._cli.resume import Proof, is_exact
from headrace._cli.serve import Server
from headrace._cli.stream import Run, progress_bar, resident, stream
from headrace._format import size

if TYPE_CHECKING:
    from typing import Any

BUDGET = "400MiB"
BUDGET_BYTES = 400 * 2**20
PROGRAM = f"""import headrace as hr

earth = hr.open("earth.zarr")          # or "http://127.0.0.1:…/earth.zarr"
samples = earth.samples(
    along="time",
    x=hr.view("t2m", "u10", time=hr.steps(-1, 0), stack="variable"),
    y=hr.view("t2m", time=hr.steps(1)),
)
for batch in samples.batches(16, shuffle=True, seed=1, memory="{BUDGET}"):
    x = batch["x"].torch()             # (16, 2, 2, 181, 360) float32, no copy
    y = batch["y"].torch()             # (16, 181, 360)"""


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="headrace demo",
        description="Streams a real and a large archive, locally and over HTTP, is killed and resumes, streams real "
        "cells, and writes a page about it. Takes one to two minutes and at most 1 GB of disk; archives are kept for "
        "the next run.",
    )
    parser.add_argument("--dir", type=Path, default=Path("demo-out"), help="where archives and page go (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a quarter of the data and fewer epochs")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    return parser.parse_args(words)


def demo(words: list[str]) -> int:
    options = _arguments(words)
    console = Console(highlight=False)
    try:
        return _run(options, console)
    except KeyboardInterrupt:
        console.print("\ninterrupted", style="yellow")
        return 1
    except (OSError, RuntimeError, hr.Error) as error:
        Console(stderr=True, highlight=False).print(f"headrace: {error}", markup=False)
        return 1


def _head(console: Console, number: int, words: str) -> None:
    console.print(f"\n[bold]{number}  {words}[/bold]")


def _run(options: argparse.Namespace, console: Console) -> int:
    start = time.perf_counter()
    folder: Path = options.dir
    folder.mkdir(parents=True, exist_ok=True)
    console.print(f"[bold]Headrace {hr.__version__}[/bold]  everything stays in {folder}/")
    _head(console, 1, "Two archives")
    paths = _archives(folder, archives.QUICK_STEPS if options.quick else archives.STEPS, console)
    _head(console, 2, f"Shuffled batches within {BUDGET}")
    runs = _stream(paths["earth"], 1 if options.quick else 2, console)
    _head(console, 3, "Another run, killed in mid-epoch, resumed on two processes")
    facts = _prove(folder, paths["earth"], options.quick, console)
    _head(console, 4, "Real cells, as models take them")
    told = _cells(folder, console)
    _head(console, 5, "What came of it")
    target = folder / "index.html"
    page.write(target, paths, runs, facts, BUDGET_BYTES, PROGRAM, told)
    _summary(runs, facts, console)
    console.print(f"\n  page  [bold]{target}[/bold]   ({time.perf_counter() - start:.0f} s in all)")
    if not options.no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        import webbrowser

        webbrowser.open(target.resolve().as_uri())
    return 0 if is_exact(facts) and (told is None or told.equal == told.total) else 1


def _archives(folder: Path, steps: int, console: Console) -> dict[str, Path]:
    climate = archives.climate(folder)
    total = archives.earth_size(steps)
    with progress_bar(console) as progress:
        task = progress.add_task("writing the large one", total=total)
        earth = archives.earth(folder, steps, lambda done: progress.update(task, completed=done))
        progress.update(task, completed=total)
    lines = (
        (climate, "real: two climate runs, North America 1860 to 2099"),
        (earth, f"as ERA5 lies: real mean, made weather, 2 × {steps}×181×360"),
    )
    for path, words in lines:
        console.print(f"  {path.name:<16} {words:<50} {_disk(path):>7}", soft_wrap=True)
    return {"climate": climate, "earth": earth}


def _disk(path: Path) -> str:
    return size(sum(f.stat().st_size for f in path.rglob("*") if f.is_file()))


def _loader(url: str) -> hr.Loader:
    samples = hr.open(url).samples(
        along="time",
        x=hr.view("t2m", "u10", time=hr.steps(-1, 0), stack="variable"),
        y=hr.view("t2m", time=hr.steps(1)),
    )
    return samples.batches(16, shuffle=True, seed=1, memory=BUDGET)


def _stream(earth: Path, epochs: int, console: Console) -> list[Run]:
    runs = []
    idle = resident()
    with _loader(str(earth)) as loader:
        console.print("  " + repr(loader.plan()).replace("\n", "\n  "), markup=False, soft_wrap=True)
        runs.append(stream(loader, Run("from the directory", "local files"), epochs, idle, console))
    with Server(earth.parent) as server, _loader(f"{server.url}/{earth.name}") as loader:
        run = Run(f"over HTTP from {server.kind}", f"loopback HTTP, {server.kind}")
        runs.append(stream(loader, run, epochs, idle, console))
    return runs


def _prove(folder: Path, earth: Path, quick: bool, console: Console) -> dict[str, Any]:
    proof = Proof(folder, earth, quick)
    console.print(
        f"  single steps of t2m, remainder pad: {proof.samples:,} samples in {proof.steps} steps, none left out"
    )
    with progress_bar(console) as progress:
        task = progress.add_task("in one process", total=proof.steps)
        proof.kill(lambda done: progress.update(task, completed=done))
        progress.update(task, description="killed; now in two")
        proof.resume(lambda done: progress.update(task, completed=done))
    return proof.check()


def _cells(folder: Path, console: Console) -> cells_demo.Told | None:
    """None where the packages that bring them are not installed."""
    missing = cells_demo.missing()
    if missing:
        console.print(f"  left out: {missing} brings them", markup=False, soft_wrap=True)
        return None
    told = cells_demo.stream(cells_demo.atlas(folder))
    for line in cells_demo.lines(told, _disk):
        console.print(f"  {line}", soft_wrap=True)
    return told


def _summary(runs: list[Run], facts: dict[str, Any], console: Console) -> None:
    table = Table(box=None, padding=(0, 1, 0, 2))
    table.add_column("", no_wrap=True)
    for title in ("samples/s", "into tensors", "first batch", "peak memory"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in runs:
        figures = (
            f"{run.samples_per_second:,.0f}",
            f"{size(run.bytes_per_second)}/s",
            f"{run.first_batch * 1e3:.0f} ms",
        )
        table.add_row(run.where, *figures, size(max(run.memory)))
    console.print(table)
    if is_exact(facts):
        console.print(
            f"  [green]✔[/green] killed after step {facts['before']} of {facts['steps']}, resumed on "
            f"{facts['ranks_after']} processes from {facts['state_bytes']} bytes: {facts['delivered']:,} samples, each "
            "exactly once, in the same batches as without the kill",
            soft_wrap=True,
        )
    else:
        console.print(
            f"  [red]✘[/red] after the kill {facts['distinct']:,} different samples of {facts['samples']:,} in "
            f"{facts['delivered']:,} deliveries; same batches: {facts['same_batches']}"
        )
