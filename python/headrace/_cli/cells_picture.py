"""The picture of `headrace cells bench`: samples over time, the cold start with it, and samples a second."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

COLORS = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#b45309", "#475569")
WIDE, HIGH, LEFT, TOP = 720, 300, 80, 40


def draw(path: Path, runs: list[dict[str, Any]]) -> None:
    if path.suffix == ".png":
        _png(path, runs)
    else:
        path.write_text(svg(runs))


def _curve(run: dict[str, Any]) -> list[tuple[float, float]]:
    return [(0.0, 0.0), (run["first_batch_seconds"], 0.0), *((t, n) for t, n in run["series"])]


def _png(path: Path, runs: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (over_time, rate) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for run, color in zip(runs, COLORS * len(runs)):
        over_time.plot(*zip(*_curve(run)), color=color, label=run["label"])
        rate.barh(run["label"], run["samples_per_second"], color=color)
    over_time.set(xlabel="seconds since the start", ylabel="samples", title="from a cold start")
    over_time.legend(frameon=False)
    rate.invert_yaxis()
    rate.set(title="samples/s")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def svg(runs: list[dict[str, Any]]) -> str:
    """Without a library: lines over time, and a bar for each run below."""
    last = max((t for run in runs for t, _ in _curve(run)), default=1) or 1
    most = max((n for run in runs for _, n in _curve(run)), default=1) or 1
    fastest = max((run["samples_per_second"] for run in runs), default=1) or 1
    wide, high = WIDE - LEFT - 20, HIGH - TOP - 40
    parts = [_words(LEFT, 24, "samples, from a cold start", "font-weight='600'")]
    for i in range(5):
        y = TOP + high - high * i / 4
        parts.append(f"<line x1='{LEFT}' x2='{LEFT + wide}' y1='{y:.1f}' y2='{y:.1f}' stroke='#8884'/>")
        parts.append(_words(LEFT - 8, y + 4, f"{most * i / 4:,.0f}", "text-anchor='end'"))
        parts.append(_words(LEFT + wide * i / 4, TOP + high + 18, f"{last * i / 4:.3g} s", "text-anchor='middle'"))
    for i, (run, color) in enumerate(zip(runs, COLORS * len(runs))):
        points = " ".join(f"{LEFT + wide * t / last:.1f},{TOP + high - high * n / most:.1f}" for t, n in _curve(run))
        parts.append(f"<polyline points='{points}' fill='none' stroke='{color}' stroke-width='2'/>")
        y, bar = HIGH + 34 * i + 24, (wide - 120) * run["samples_per_second"] / fastest
        parts.append(_words(LEFT, y - 4, str(run["label"])[-80:]))
        parts.append(f"<rect x='{LEFT}' y='{y}' width='{bar:.1f}' height='12' fill='{color}'/>")
        parts.append(_words(LEFT + bar + 6, y + 10, f"{run['samples_per_second']:,.0f} samples/s"))
    tall = HIGH + 34 * len(runs) + 24
    label = escape("; ".join(f"{r['label']}: {r['samples_per_second']:,.0f} samples/s" for r in runs), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" width="{WIDE}" height="{tall}" '
        f'role="img" aria-label="{label}" font-family="system-ui,sans-serif" font-size="12" fill="#667">'
        f"{''.join(parts)}</svg>\n"
    )


def _words(x: float, y: float, words: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {more}>{escape(words)}</text>"
