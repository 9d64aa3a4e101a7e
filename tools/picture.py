#!/usr/bin/env python3
"""Draws docs/order.svg, the picture of the README, from the orders themselves.

Three ways through the same small archive with the same memory: archive order, a shuffle buffer of sixteen chunks as
most loaders have it, and the spread order, streamed by the installed package. One column is a batch, one cell a row of
it, its colour the row's position in the archive.

    .venv/bin/python tools/picture.py        (after make install)
"""

from __future__ import annotations

import logging
import random
import tempfile
from pathlib import Path

import numpy as np
import zarr

import headrace as hr

TARGET = Path(__file__).resolve().parent.parent / "docs" / "order.svg"
SAMPLES, PER_CHUNK, BATCH, OPEN = 1536, 12, 16, 16
COLOURS = ("#123a5c", "#2f78a8", "#6fb3c4", "#b9d7b4", "#f1d98a", "#e59a52", "#c4533a", "#7a1d33")
CELL, GAP, LEFT, WIDTH = 8, 46, 8, 8 * 96 + 16


def spread() -> list[int]:
    logging.getLogger("headrace").setLevel(logging.ERROR)  # that no chunk was ever written is meant
    with tempfile.TemporaryDirectory() as folder:
        root = zarr.create_group(folder, zarr_format=3)
        shape, chunks = (SAMPLES, 128, 176), (PER_CHUNK, 128, 176)  # a MiB a chunk: one chunk is one block
        root.create_array("x", shape=shape, chunks=chunks, dtype="f4", fill_value=0, dimension_names=("t", "y", "x"))
        loader = hr.open(folder).samples(along="t", v="x").batches(BATCH, shuffle=True, seed=3, spread=OPEN)
        return [i for batch in loader for i in batch.index.numpy().tolist()]


def buffered() -> list[int]:
    """Chunks in random order; sixteen at a time are shuffled among themselves."""
    rng = random.Random(3)
    chunks = list(range(SAMPLES // PER_CHUNK))
    rng.shuffle(chunks)
    out = []
    for start in range(0, len(chunks), OPEN):
        rows = [c * PER_CHUNK + i for c in chunks[start : start + OPEN] for i in range(PER_CHUNK)]
        rng.shuffle(rows)
        out += rows
    return out


def colour(position: float) -> str:
    table = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in COLOURS], float)
    at = position * (len(table) - 1)
    i = min(int(at), len(table) - 2)
    return "#" + "".join(f"{round(v):02x}" for v in table[i] + (at - i) * (table[i + 1] - table[i]))


def variance(order: list[int]) -> float:
    """Of the batch means of the position, over that of independent draws."""
    means = np.array(order).reshape(-1, BATCH).mean(1) / SAMPLES
    return float(((means - 0.5) ** 2).mean() * 12 * BATCH)


def panel(order: list[int], top: float) -> str:
    """Rows of a batch sorted by position, so that columns can be compared. One path per colour step keeps it small."""
    paths: dict[str, list[str]] = {}
    for step in range(SAMPLES // BATCH):
        for row, i in enumerate(sorted(order[step * BATCH : (step + 1) * BATCH])):
            shade = colour(int(i / SAMPLES * 48) / 47)
            paths.setdefault(shade, []).append(f"M{LEFT + step * CELL} {top + row * CELL / 2:g}h{CELL - 1}")
    return "".join(f'<path d="{"".join(p)}" stroke="{c}" stroke-width="{CELL / 2}"/>' for c, p in sorted(paths.items()))


def main() -> None:
    panels = (
        ("archive order", list(range(SAMPLES))),
        (f"a shuffle buffer of {OPEN} chunks", buffered()),
        (f"spread order, {OPEN} blocks open", spread()),
    )
    height = len(panels) * (BATCH * CELL // 2 + GAP) + 26
    parts = []
    for n, (words, order) in enumerate(panels):
        top = n * (BATCH * CELL / 2 + GAP) + 24
        ratio = variance(order)
        parts.append(f'<text x="{LEFT}" y="{top - 9:g}" class="b">{words}</text>')
        note = f"variance of batch means: {ratio:.2f} × independent draws"
        parts.append(f'<text x="{WIDTH - 8}" y="{top - 9:g}" text-anchor="end">{note}</text>')
        parts.append(panel(order, top + CELL / 4))
    foot = height - 30
    stops = "".join(f'<stop offset="{k / 7:.3f}" stop-color="{c}"/>' for k, c in enumerate(COLOURS))
    parts.append(f'<defs><linearGradient id="g">{stops}</linearGradient></defs>')
    parts.append(f'<rect x="{LEFT + 150}" y="{foot + 6}" width="180" height="8" fill="url(#g)"/>')
    parts.append(f'<text x="{LEFT + 142}" y="{foot + 14}" text-anchor="end">start of the archive</text>')
    parts.append(f'<text x="{LEFT + 338}" y="{foot + 14}">its end</text>')
    parts.append(
        f'<text x="{WIDTH - 8}" y="{foot + 14}" text-anchor="end">one column = one batch of {BATCH} rows →</text>'
    )
    title = "Which parts of the archive each batch holds, in three orders"
    style = (
        "text{font:12px system-ui,sans-serif;fill:#667080}.b{font-weight:600;fill:#1d2530}"
        "@media(prefers-color-scheme:dark){text{fill:#98a2ae}.b{fill:#e4e7ea}}"
    )
    TARGET.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"><title>{title}</title>'
        f"<style>{style}</style>{''.join(parts)}</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
