"""What a bench run found: bars with their verdicts and one row a program, as a table, as Markdown and as JSON."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Bar:
    """One promise. `measured` is None when it could not be measured; `note` then says why."""

    cell: str
    what: str
    limit: float
    at_least: bool  # else at most
    measured: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        return "pass" if (self.measured >= self.limit) == self.at_least or self.measured == self.limit else "FAIL"


@dataclass
class Skipped:
    """A promise that cannot be measured on this machine, which is not its fault."""

    cell: str
    what: str
    reason: str


@dataclass
class Row:
    """One program in one cell."""

    cell: str
    program: str
    mb_s: float | None = None  # decoded, best round
    share: float | None = None  # of the floor, paired median
    cpu: float | None = None  # over the floor's, smallest paired ratio
    first_ms: float | None = None
    peak_mb: float | None = None
    gets_s: float | None = None  # objects a second, best round
    cpu_gb: float | None = None  # CPU seconds a GB, least
    note: str = ""


@dataclass
class Report:
    bars: list[Bar] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    rounds: dict[str, Any] = field(default_factory=dict)  # cell: {program: [raw results]}

    @property
    def passed(self) -> bool:
        return all(b.verdict == "pass" for b in self.bars)


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def bar_cells(b: Bar) -> list[str]:
    digits = 2 if b.limit < 10 else 1
    return [
        b.cell, b.what, number(b.measured, digits) + (f" {b.unit}" if b.unit and b.measured is not None else ""),
        f"{'≥' if b.at_least else '≤'} {number(b.limit, digits)}", b.verdict, b.note,
    ]  # fmt: skip


def row_cells(r: Row) -> list[str]:
    return [r.cell, r.program, number(r.mb_s, 0), number(r.share), number(r.cpu), number(r.first_ms, 0),
            number(r.peak_mb, 0), number(r.gets_s, 0), number(r.cpu_gb), r.note]  # fmt: skip


BAR_HEADS = ["cell", "bar", "measured", "limit", "verdict", "note"]
ROW_HEADS = ["cell", "program", "MB/s", "share of floor", "CPU / floor", "first batch ms", "peak RSS MB", "GET/s",
             "CPU s/GB", "note"]  # fmt: skip
NUMERIC = {"measured", "limit", *ROW_HEADS[2:9]}


def markdown_table(heads: list[str], lines: list[list[str]]) -> str:
    rule = ["---:" if h in NUMERIC else "---" for h in heads]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *lines])


def plain_table(heads: list[str], lines: list[list[str]]) -> str:
    width = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    return "\n".join(
        "  ".join(c.rjust(w) if h in NUMERIC else c.ljust(w) for c, w, h in zip(line, width, heads)).rstrip()
        for line in [heads, *lines]
    )


def print_table(title: str, heads: list[str], lines: list[list[str]]) -> None:
    if not lines:
        return
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(f"\n{title}\n{plain_table(heads, lines)}")
        return
    table = Table(title=title, title_justify="left")
    for h in heads:
        table.add_column(h, justify="right" if h in NUMERIC else "left", no_wrap=h != "note")
    for line in lines:
        style = "red" if "FAIL" in line else "dim" if "not measured" in line else None
        table.add_row(*line, style=style)
    console = Console()
    Console(width=None if console.is_terminal else 160).print(table)


def machine() -> dict[str, Any]:
    model = ""
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "")
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "python": platform.python_version(), "load": os.getloadavg()[0]}  # fmt: skip


def show(report: Report) -> None:
    print_table("Programs", ROW_HEADS, [row_cells(r) for r in report.rows])
    print_table("Bars", BAR_HEADS, [bar_cells(b) for b in report.bars])
    counts = {v: sum(b.verdict == v for b in report.bars) for v in ("pass", "FAIL", "not measured")}
    for s in report.skipped:
        print(f"skipped: {s.cell}, {s.what}: {s.reason}")
    print(", ".join(f"{n} {v}" for v, n in counts.items()) + f", {len(report.skipped)} skipped")


def write(report: Report, command: str, json_path: Path, markdown_path: Path) -> None:
    m = machine()
    bars = [{**asdict(b), "verdict": b.verdict} for b in report.bars]
    rows = [asdict(r) for r in report.rows]
    text = json.dumps({"command": command, "machine": m, "bars": bars, "rows": rows,
                       "skipped": [asdict(s) for s in report.skipped], "rounds": report.rounds}, indent=1)  # fmt: skip
    json_path.write_text(text + "\n")
    about = (
        f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, Python {m['python']}; `{command}`; load {m['load']:.1f}"
    )
    markdown_path.write_text(
        f"{about}\n\n{markdown_table(BAR_HEADS, [bar_cells(b) for b in report.bars])}\n\n"
        f"{markdown_table(ROW_HEADS, [row_cells(r) for r in report.rows])}\n"
    )
