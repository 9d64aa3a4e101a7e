"""The demo's real cells on its page: where a batch of them lies, and how often each type comes."""

from __future__ import annotations

from html import escape

import numpy as np

from headrace._cli.cells_demo import PROGRAM, Told
from headrace._cli.pictures import Chart, label, svg
from headrace._format import count

WORDS = {"csr": "sparse rows", "padded": "random genes, as scGPT takes them", "ranked": "ranked genes, as Geneformer"}


def section(told: Told) -> str:
    words = (
        f"The package scanpy brings {count(told.total)} cells of human blood in an old HDF5 file. <code>headrace cells "
        "chunk</code> made Zarr of it in shards, from which these were streamed; every row of a shuffled epoch "
        f"{'is' if told.equal == told.total else '<b>is not</b>'} that of the file, to the bit. A linear model that is "
        f"fed each of the {len(told.types)} types as often names {told.right} of {told.held_out} held-out cells right."
    )
    pictures = f'<div class="strip two wide">{scatter(told)}{bars(told)}</div>'
    return (
        f"<section><h2>Real cells</h2><p>{words}</p><pre>{escape(PROGRAM)}</pre>{speeds(told)}"
        "<p>Left: each cell where the file's own picture (UMAP, which came in the batches) has it; ringed, the cells "
        f"of the first balanced batch. Right: how many cells of each type there are, and how many came.</p>{pictures}"
        "</section>"
    )


def speeds(told: Told) -> str:
    rows = "".join(
        f'<tr><td>{escape(WORDS[n])}</td><td>{escape(told.shapes[n])}</td><td class="n">{told.speeds[n]:,.0f}</td></tr>'
        for n in told.speeds
    )
    return f'<table><tr><th></th><th>a batch</th><th class="n">cells/s</th></tr>{rows}</table>'


def scatter(told: Told) -> str:
    low, high = told.at.min(0), told.at.max(0)
    rim = (high - low) * 0.05
    chart = Chart(560, 380, (low[0] - rim[0], high[0] + rim[0]), (low[1] - rim[1], high[1] + rim[1]))
    ringed = told.at[np.unique(told.batch)]
    chart.dots(ringed[:, 0], ringed[:, 1], 6, "ring")
    for code in range(len(told.types)):
        of = told.at[told.codes == code]
        chart.dots(of[:, 0], of[:, 1], 2.6, f"type{code}")
    says = f"{told.total} cells by UMAP, coloured by type; the {len(ringed)} of one batch lie all over it"
    return chart.draw("UMAP 1", "UMAP 2", [], [], says)


def bars(told: Told) -> str:
    """Two bars for each type: its share of the cells, and of what was drawn."""
    shares = np.bincount(told.codes, minlength=len(told.types)) / told.total
    drawn = told.drawn / told.drawn.sum()
    left, width, step = 210.0, 280.0, 36.0
    wide = width / max(shares.max(), drawn.max())
    body = [label(left, 12, "of the cells (grey), of the balanced batches (colour)", "start", "faint")]
    for i, name in enumerate(told.types):
        y = 24 + i * step
        body.append(label(left - 8, y + 16, name, "end"))
        for share, top, kind in ((shares[i], y, "bare"), (drawn[i], y + 13, f"type{i}")):
            body.append(f'<rect x="{left}" y="{top:g}" width="{share * wide:.1f}" height="10" class="{kind}"/>')
            body.append(label(left + share * wide + 6, top + 9, f"{share:.1%}", "start", "faint"))
    says = (
        f"Shares of {len(told.types)} cell types: {shares.min():.1%} to {shares.max():.1%} of the cells, "
        f"{drawn.min():.1%} to {drawn.max():.1%} of what was drawn"
    )
    return svg(560, 30 + len(told.types) * step, "".join(body), says)
