"""Epochs of a loader under a progress bar, measured as they go."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from headrace._format import size

if TYPE_CHECKING:
    from rich.console import Console

    import headrace as hr


FIRST_ROWS = 4  # few, because this copy counts as memory of the run


@dataclass
class Run:
    """What streaming came to. Series have one entry per step."""

    title: str
    where: str
    epochs: int = 0
    samples: int = 0
    tensor_bytes: int = 0
    seconds: float = 0.0
    first_batch: float = 0.0
    times: list[float] = field(default_factory=list)  # seconds since the start
    memory: list[int] = field(default_factory=list)  # resident bytes above those before the loader was opened
    rows: list[int] = field(default_factory=list)
    ids: list[list[int]] = field(default_factory=list)  # of the first epoch
    first: dict[str, Any] = field(default_factory=dict)  # the first rows of the first batch, as numpy
    plan: dict[str, Any] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def samples_per_second(self) -> float:
        return self.samples / max(self.seconds, 1e-9)

    @property
    def bytes_per_second(self) -> float:
        return self.tensor_bytes / max(self.seconds, 1e-9)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class _Figures(ProgressColumn):
    """Samples and bytes a second, memory, epoch."""

    def render(self, task: Task) -> Text:
        f = task.fields
        if not f.get("rate"):
            return Text("")
        rate = f"{f['rate']:>6,.0f} samples/s {size(f['bytes']):>7}/s"
        return Text(f"{rate} {size(f['memory']):>7}  epoch {f['epoch']}", style="cyan", no_wrap=True)


def progress_bar(console: Console) -> Progress:
    bar = BarColumn(bar_width=max(6, min(32, console.width - 78)))
    return Progress(TextColumn("  {task.description:<22}"), bar, _Figures(), console=console)


def stream(loader: hr.Loader, run: Run, epochs: int, idle: int, console: Console) -> Run:
    """`epochs` epochs; `idle` is what was resident before the loader was opened."""
    steps, run.plan = len(loader), dict(loader.plan())
    with progress_bar(console) as progress:
        task = progress.add_task(run.title, total=steps * epochs, rate=0.0, bytes=0.0, memory=0, epoch="")
        start = shown = time.perf_counter()
        for epoch in range(epochs):
            for batch in loader:
                now = time.perf_counter()
                if not run.times:
                    run.first_batch = now - start
                    run.first = {name: array[:FIRST_ROWS].copy() for name, array in batch.numpy().items()}
                run.times.append(now - start)
                run.memory.append(max(0, resident() - idle))
                run.rows.append(len(batch))
                run.samples += len(batch)
                run.tensor_bytes += sum(tensor.nbytes for _, tensor in batch.items())
                run.seconds = now - start
                if epoch == 0:
                    run.ids.append(batch.index.numpy().tolist())
                if now - shown > 0.1:
                    shown = now
                    progress.update(
                        task, completed=len(run.times), rate=run.samples_per_second, bytes=run.bytes_per_second,
                        memory=run.memory[-1], epoch=f"{epoch + 1}/{epochs}",
                    )  # fmt: skip
        progress.update(
            task, completed=steps * epochs, rate=run.samples_per_second, bytes=run.bytes_per_second,
            memory=max(run.memory, default=0), epoch=f"{epochs}/{epochs}",
        )  # fmt: skip
    run.epochs = epochs
    run.stats = loader.stats()
    return run
