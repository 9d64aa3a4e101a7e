"""The page the demo leaves behind: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace._cli import archives, cells_page
from headrace._cli.cells_demo import Told
from headrace._cli.pictures import SIGNED, WARM, Chart, image, label, paint, svg, ticks
from headrace._cli.resume import is_exact
from headrace._cli.stream import FIRST_ROWS, Run
from headrace._format import count, size
from headrace._report import plan_html


def _scale(low: float, high: float, unit: str, colours: tuple[str, ...]) -> str:
    return (
        f'<div class="scale">{low:g} {unit}<div class="bar" '
        f'style="background:linear-gradient(90deg,{",".join(colours)})"></div>{high:g} {unit}</div>'
    )


# ---- batches -----------------------------------------------------------------------------------------------------

AHEAD = 20  # years


def climate_batch(path: Path) -> str:
    """Rows of one shuffled batch of the real archive: both scenarios, and what they become."""
    pair = ("a1b", "e1")
    x = hr.view(*pair, stack="scenario")
    y = hr.view(*pair, stack="scenario", time=hr.steps(AHEAD))
    samples = hr.open(path).samples(along="time", x=x, y=y)
    with samples.batches(6, shuffle=True, seed=5, memory="64MiB") as loader:
        batch = next(iter(loader))
        now, then = batch["x"].numpy().copy(), batch["y"].numpy().copy()
        years = [1860 + i for i in batch.index.numpy().tolist()]
    pictures = []
    for place, scenario in enumerate(("A1B", "E1")):
        for row in np.argsort(years):
            field, year = now[row, place], years[row]
            change = float((then[row, place] - field).mean())
            says = f"Air temperature of North America, {year}, {scenario}: {field.min():.0f} to {field.max():.0f} K"
            caption = f"{scenario} {year}, then {change:+.1f} K".replace("-", "−")
            pictures.append(image(paint(field[::-1], 257, 306), says, caption))
    return f'<div class="strip six pixels">{"".join(pictures)}</div>' + _scale(257, 306, "K", WARM)


def earth_batch(run: Run) -> str:
    """The first rows of the first batch that was streamed."""
    pictures = []
    for place, (name, low, high, colours) in enumerate((("t2m", 225, 312, WARM), ("u10", -24, 24, SIGNED))):
        for row, i in enumerate(run.ids[0][:FIRST_ROWS]):
            says = f"{name} of the whole Earth at time step {i}"
            field = run.first["x"][row, -1, place]
            pictures.append(image(paint(field, low, high, colours), says, f"{name}, sample {i}"))
    scales = _scale(225, 312, "K", WARM) + _scale(-24, 24, "m/s", SIGNED)
    return f'<div class="strip four">{"".join(pictures)}</div><div class="strip two">{scales}</div>'


# ---- drawings ----------------------------------------------------------------------------------------------------


def chunk_grid(steps: int, ids: list[int]) -> str:
    """The chunks along time, in their shards, and which of them a batch takes with its windows."""
    cells, per_shard, shards_a_row = -(-steps // archives.CHUNK), archives.SHARD // archives.CHUNK, 4
    hit = sorted({c // archives.CHUNK for i in ids for c in (i - 1, i, i + 1)})
    side, height, gap = 3.4, 9.0, 8.0
    width = per_shard * side

    def corner(shard: int) -> tuple[float, float]:
        return (shard % shards_a_row) * (width + gap) + 1, (shard // shards_a_row) * (height + gap) + 1

    body = []
    for shard in range(-(-cells // per_shard)):
        x, y = corner(shard)
        w = side * min(per_shard, cells - shard * per_shard)
        body.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{height:g}" class="cell"/>')
    for c in hit:
        x, y = corner(c // per_shard)
        x += c % per_shard * side
        body.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:g}" height="{height:g}" class="hit"/>')
    rows = -(-cells // (per_shard * shards_a_row))
    says = (
        f"{cells} chunks, {per_shard} a shard; the first batch of {len(ids)} samples touches {len(hit)} all over them"
    )
    return svg(shards_a_row * (width + gap) - gap + 2, rows * (height + gap) - gap + 2, "".join(body), says)


def order_scatter(ids: list[list[int]], samples: int) -> str:
    flat = [i for step in ids for i in step]
    chart = Chart(560, 300, (0, len(ids)), (0, samples))
    steps = [s for s, step in enumerate(ids) for _ in step]
    chart.dots(steps, flat, 1.1, "accent")
    says = f"Each of {len(flat)} samples as a dot, step against position in the archive: every step reaches all over it"
    return chart.draw("step of the epoch", "position on the time axis", ticks(len(ids)), ticks(samples), says)


def batch_means(ids: list[list[int]], samples: int) -> str:
    """Mean position of each batch against what independent draws would scatter."""
    rows = len(ids[0])
    means = np.array([np.mean(step) / samples for step in ids if len(step) == rows])
    sigma = (1 / 12 / rows) ** 0.5
    chart = Chart(560, 300, (0, len(means)), (0.5 - 4.2 * sigma, 0.5 + 4.2 * sigma))
    chart.band(0.5 - sigma, 0.5 + sigma, "band")
    chart.line(np.arange(len(means)) + 0.5, means, "accent")
    chart.note(len(means) * 0.99, 0.5 + 2.15 * sigma, "band: ±1σ of independent draws", "end")
    ratio = float(np.mean((means - 0.5) ** 2) / sigma**2)
    y_ticks = [(0.5 + k * sigma, f"{k:+d}σ" if k else "middle") for k in (-4, -2, 0, 2, 4)]
    says = f"Mean position of each batch: its variance is {ratio:.2f} times that of independent draws"
    title = f"mean position of a batch: variance {ratio:.2f} × independent draws"
    return chart.draw("step of the epoch", title, ticks(len(means)), y_ticks, says)


def _smooth(run: Run, window: float) -> tuple[Any, Any]:
    """Samples a second over the last `window` seconds, at evenly spaced times."""
    times, total = np.array(run.times), np.cumsum(run.rows)
    at = np.linspace(min(window, times[-1] / 2), times[-1], 160)
    return at, (np.interp(at, times, total) - np.interp(at - window, times, total)) / window


def _name_curves(chart: Chart, ends: list[tuple[float, float, str]], top: float) -> None:
    """Names at the ends of curves (x, y, name), over all of them: the lowest below its curve, the others above."""
    lowest = min(y for _, y, _ in ends)
    for x, y, name in ends:
        chart.note(x, y - 0.07 * top if y == lowest else y + 0.04 * top, name, "end", "")


def throughput(runs: list[Run]) -> str:
    longest = max(run.seconds for run in runs)
    curves = [_smooth(run, longest / 12) for run in runs]
    top = max(float(rate.max()) for _, rate in curves) * 1.12
    chart = Chart(560, 260, (0, longest), (0, top))
    for (at, rate), kind in zip(curves, ("accent", "second")):
        chart.line(at, rate, kind)
    ends = [(float(at[-1]), float(rate[-1]), run.where) for run, (at, rate) in zip(runs, curves)]
    _name_curves(chart, ends, top)
    says = "; ".join(f"{run.where}: {run.samples_per_second:,.0f} samples a second" for run in runs)
    return chart.draw("seconds", "samples a second", ticks(longest), ticks(top), says)


def _binary(budget: int) -> str:
    """A budget as it was asked for, and in the unit of the figures beside it."""
    return f"{budget / 2**20:g} MiB = {size(budget)}".replace(" M", "\N{NO-BREAK SPACE}M")


def memory(runs: list[Run], budget: int) -> str:
    longest, top = max(run.seconds for run in runs), max(budget, *(max(run.memory) for run in runs)) * 1.15
    chart = Chart(560, 260, (0, longest), (0, top))
    for run, kind in zip(runs, ("accent", "second")):
        chart.line(run.times, run.memory, kind)
    _name_curves(chart, [(run.times[-1], run.memory[-1], run.where) for run in runs], top)
    chart.line((0, longest), (budget, budget), "limit")
    chart.note(0.02 * longest, budget + top * 0.03, f"budget {_binary(budget)}")
    says = (
        f"Resident memory above the idle process stays below the budget of {size(budget)}"
        if all(max(run.memory) <= budget for run in runs)
        else f"Resident memory above the idle process, against the budget of {size(budget)}"
    )
    return chart.draw("seconds", "resident memory above idle, MB", ticks(longest), ticks(top, 1e6), says)


def kill_timeline(facts: dict[str, Any]) -> str:
    width, height, steps = 900.0, 58.0, facts["steps"]
    cut = width * facts["before"] / steps
    half = 11.0
    body = (
        f'<rect x="0" y="16" width="{cut - 2:.1f}" height="{2 * half + 2:.0f}" class="first"/>'
        f'<rect x="{cut + 2:.1f}" y="16" width="{width - cut - 2:.1f}" height="{half:.0f}" class="after"/>'
        f'<rect x="{cut + 2:.1f}" y="{18 + half:.0f}" width="{width - cut - 2:.1f}" height="{half:.0f}" class="after"/>'
        f'<path d="M{cut:.1f} 4V{height - 14}" class="second" stroke-width="2"/>'
        + label(cut, height - 2, f"SIGKILL after step {facts['before']}", "middle", "")
        + label(0, 11, "1 process", "start", "faint")
        + label(width, 11, f"{facts['ranks_after']} processes", "end", "faint")
    )
    says = f"{facts['before']} steps in one process, a kill, {facts['after']} steps in {facts['ranks_after']} processes"
    return svg(width, height, body, says)


# ---- the page ----------------------------------------------------------------------------------------------------


def _card(value: str, words: str, kind: str = "") -> str:
    return f'<div class="card {kind}"><b>{escape(value)}</b><span>{escape(words)}</span></div>'


def _cards(runs: list[Run], facts: dict[str, Any], budget: int) -> str:
    cards = [
        _card(f"{run.samples_per_second:,.0f} samples/s", f"{size(run.bytes_per_second)}/s of tensors, {run.where}")
        for run in runs
    ]
    peak = max(max(run.memory) for run in runs)
    kind = "good" if peak <= budget else "bad"
    cards.append(_card(size(peak), f"peak memory, budget {_binary(budget)}", kind))
    exact = is_exact(facts)
    words = f"{facts['distinct']:,} of {facts['samples']:,} samples across a kill, each once"
    cards.append(_card("exact" if exact else "NOT exact", words, "good" if exact else "bad"))
    return f'<div class="cards">{"".join(cards)}</div>'


def _runs_table(runs: list[Run]) -> str:
    head = ("", "epochs", "samples/s", "into tensors", "first batch", "peak memory above idle")
    rows = [
        (
            run.where, count(run.epochs), count(round(run.samples_per_second)), f"{size(run.bytes_per_second)}/s",
            f"{run.first_batch * 1e3:.0f} ms", size(max(run.memory)),
        )
        for run in runs
    ]  # fmt: skip

    def line(cells: tuple[str, ...], tag: str) -> str:
        kinds = ["", *['class="n"'] * (len(cells) - 1)]
        return "<tr>" + "".join(f"<{tag} {k}>{escape(c)}</{tag}>" for k, c in zip(kinds, cells)) + "</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(r, 'td') for r in rows)}</table>"


def _section(title: str, words: str, *rest: str) -> str:
    return f"<section><h2>{escape(title)}</h2><p>{words}</p>{''.join(rest)}</section>"


def _resume_words(facts: dict[str, Any]) -> str:
    same = "the same as" if facts["same_batches"] else "<b>not the same as</b>"
    return (
        "A run over single steps of t2m, which has no windows and pads its last batch, so that every sample counts. "
        f"One process streamed the archive and was killed without warning. {facts['ranks_after']} processes went on "
        f"from its last state, {facts['state_bytes']} bytes. Together they delivered {count(facts['delivered'])} "
        f"samples, {count(facts['distinct'])} different ones, of an epoch of {count(facts['samples'])}; every "
        f"global batch is {same} in a run that was never killed."
    )


def _sections(paths: dict[str, Path], runs: list[Run], facts: dict[str, Any], budget: int, program: str) -> list[str]:
    local, steps = runs[0], archive_steps(paths["earth"])
    return [
        _section(
            "A batch of real climate",
            "Air temperature over North America, from two runs of a climate model, the same one up to 1999 and two "
            f"scenarios after that. A sample is a year in both; its target, the same {AHEAD} years later: below each, "
            "how much warmer that is. One shuffled batch of six, sorted by year here.",
            climate_batch(paths["climate"]),
        ),
        _section(
            "A batch of the whole Earth",
            "The layout of an ERA5 copy on a 1° grid: a real annual mean with made-up weather on it. "
            f"{steps:,} time steps, {size(archives.earth_size(steps))} decoded. Four rows of the first batch.",
            earth_batch(local),
        ),
        _section("What was asked for", "", f"<pre>{escape(program)}</pre>"),
        _section(
            "The plan, before a chunk was fetched",
            "",
            plan_html(local.plan),
            "<p>The archive along time, a bar for each shard. In colour: the chunks that the first batch takes.</p>",
            chunk_grid(steps, local.ids[0]),
        ),
        _section(
            "The order",
            "Left: every sample of the first epoch. Right: how far the mean position of each batch strays from the "
            "middle; within the band is closer than independent draws.",
            f'<div class="strip two wide">{order_scatter(local.ids, steps)}{batch_means(local.ids, steps)}</div>',
        ),
        _section(
            "Throughput and memory",
            "The consumer does nothing with the batches but let go of them. The first run, of local files, also "
            "waits for memory that this process has not touched before.",
            _runs_table(runs),
            f'<div class="strip two wide">{throughput(runs)}{memory(runs, budget)}</div>',
        ),
        _section(
            "Killed and resumed",
            _resume_words(facts),
            kill_timeline(facts),
            f"<pre>{escape(json.dumps(facts['state']))}</pre>",
        ),
    ]


def write(
    target: Path, paths: dict[str, Path], runs: list[Run], facts: dict[str, Any], budget: int, program: str,
    cells: Told | None = None,
) -> None:  # fmt: skip
    head = (
        f"<h1>Headrace {escape(hr.__version__)}</h1>"
        '<p class="lead">Ready-to-train batches, streamed from scientific archives where they lie. Everything on this '
        "page was measured by <code>headrace demo</code> on this machine.</p>"
    )
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    sections = _sections(paths, runs, facts, budget, program) + ([cells_page.section(cells)] if cells else [])
    body = head + _cards(runs, facts, budget) + "".join(sections)
    data = "Climate data: iris-sample-data, under the UK's Open Government Licence."
    if cells:
        data += " Cells: 10x Genomics' PBMC 68k, as scanpy brings them (BSD 3-Clause)."
    target.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Headrace demo</title><style>{style}</style></head><body>{body}"
        f"<footer>{escape(data)}</footer></body></html>\n",
        encoding="utf-8",
    )


def archive_steps(path: Path) -> int:
    """Length of the time axis."""
    return int(hr.open(path)["t2m"].shape[0])
