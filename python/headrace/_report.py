"""What archives, samples and plans print as: text for terminals, HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from headrace._format import count, html, html_table, shape, size, table

if TYPE_CHECKING:
    from headrace._loader import Loader

_MOST_NODES = 60
_MOST_ATTRIBUTES = 12


# ---- archives ----------------------------------------------------------------------------------------------------


def _facts(node: dict[str, Any]) -> tuple[str, ...]:
    chunks = "×".join(map(str, node["chunks"] or ())) or "–"
    if node.get("shards"):
        chunks += " in shards of " + "×".join(map(str, node["shards"]))
    return (
        node["dtype"] or "?",
        f"({shape(node['dims'], node['shape'] or ())})",
        f"chunks {chunks}",
        size(node["bytes"]),
    )


def _label(node: dict[str, Any]) -> str:
    path: str = node["path"]
    name = path.rpartition("/")[2] or "/"
    return "  " * path.count("/") + name + ("/" if node["kind"] == "group" and path else "")


def archive_text(info: dict[str, Any]) -> str:
    nodes = info["nodes"]
    arrays = [n for n in nodes if n["kind"] == "array"]
    total = sum(n["bytes"] or 0 for n in arrays)
    head = f"<Archive {info['url']}: {info['format']}, {count(len(arrays))} arrays, {size(total)} decoded>"
    rows: list[tuple[str, ...]] = []
    for node in [n for n in nodes if n["path"] or n["kind"] == "array"][:_MOST_NODES]:
        if node["kind"] == "group":
            rows.append((_label(node),))
        elif node["error"]:
            rows.append((_label(node), "unreadable: " + node["error"]))
        else:
            rows.append((_label(node), *_facts(node), node["codecs"] or ""))
    lines = [head]
    lines += ["  " + line for line in table(rows).splitlines()]
    if len(nodes) > _MOST_NODES:
        lines.append(f"  … and {len(nodes) - _MOST_NODES} more")
    return "\n".join(lines)


def array_text(node: dict[str, Any]) -> str:
    if node["error"]:
        return f"<Array {node['path'] or '/'}: unreadable: {node['error']}>"
    return f"<Array {node['path'] or '/'}: {', '.join(_facts(node))}, {node['codecs']}>"


def _attributes(attributes: dict[str, Any] | None) -> str:
    rows: list[tuple[str, ...]] = [(k, str(v)[:120]) for k, v in list((attributes or {}).items())[:_MOST_ATTRIBUTES]]
    return html_table(rows) if rows else ""


def archive_html(info: dict[str, Any]) -> str:
    arrays = [n for n in info["nodes"] if n["kind"] == "array"]
    total = sum(n["bytes"] or 0 for n in arrays)
    parts = [
        f"<b>{escape(info['url'])}</b> <span class=d>{escape(info['format'])}, {count(len(arrays))} arrays, "
        f"{size(total)} decoded</span>"
    ]
    for node in info["nodes"][:_MOST_NODES]:
        indent = f"margin-left:{1.2 * node['path'].count('/')}em"
        name = escape(node["path"].rpartition("/")[2] or "/")
        if node["kind"] == "group":
            parts.append(f'<div style="{indent}"><b>{name}</b></div>')
            continue
        if node["error"]:
            parts.append(f'<div style="{indent}">{name} <span class=w>unreadable: {escape(node["error"])}</span></div>')
            continue
        facts = " <span class=d>·</span> ".join(escape(f) for f in _facts(node))
        parts.append(
            f'<details style="{indent}"><summary><b>{name}</b> {facts}</summary>'
            f"<div class=d>{escape(node['codecs'] or '')}, {count(node['n_chunks'])} chunks, fill "
            f"{escape(str(node['fill_value']))}</div>{_grid(node)}{_attributes(node['attributes'])}</details>"
        )
    if len(info["nodes"]) > _MOST_NODES:
        parts.append(f"<div class=d>… and {len(info['nodes']) - _MOST_NODES} more</div>")
    return html("".join(parts))


def _grid(node: dict[str, Any], width: int = 220) -> str:
    """The chunk grid of the last two dimensions, as a small drawing."""
    lengths, chunks = node["shape"][-2:], node["chunks"][-2:]
    if len(lengths) < 2 or 0 in lengths:
        return ""
    scale = width / max(lengths)
    w, h = max(4.0, lengths[1] * scale), max(4.0, lengths[0] * scale)
    lines = []
    for axis, (length, chunk) in enumerate(zip(lengths, chunks)):
        cells = -(-length // chunk)
        for i in range(0, cells + 1, max(1, cells // 64)):
            at = min(i * chunk, length) * scale
            line = (0, at, w, at) if axis == 0 else (at, 0, at, h)
            lines.append('<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>'.format(*line))
    shards = ""
    if node.get("shards"):
        for axis, (length, shard) in enumerate(zip(lengths, node["shards"][-2:])):
            for i in range(-(-length // shard) + 1):
                at = min(i * shard, length) * scale
                line = (0, at, w, at) if axis == 0 else (at, 0, at, h)
                shards += '<path stroke-width="2" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>'.format(*line)
    return (
        f'<svg width="{w + 2:.0f}" height="{h + 2:.0f}" viewBox="-1 -1 {w + 2:.1f} {h + 2:.1f}" fill="none" '
        f'stroke="currentColor" stroke-opacity=".45" stroke-width=".6">{"".join(lines)}{shards}</svg>'
    )


# ---- samples -----------------------------------------------------------------------------------------------------


def _view_rows(info: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            v["name"],
            v["dtype"],
            f"({shape(v['dims'], v['shape'])})",
            size(v["bytes"]),
            "of " + ", ".join(v["arrays"][:6]),
        )
        for v in info["views"]
    ]


def samples_text(info: dict[str, Any]) -> str:
    ids = f", ids {info['first_id']} … {info['last_id']}" if info["count"] else ""
    head = f"<Samples: {count(info['count'])} along {info['along']}{ids}>"
    return "\n".join([head] + ["  " + line for line in table(_view_rows(info)).splitlines()])


def samples_html(info: dict[str, Any]) -> str:
    ids = f", ids {info['first_id']} … {info['last_id']}" if info["count"] else ""
    head = f"<b>{count(info['count'])} samples</b> along <b>{escape(info['along'])}</b><span class=d>{ids}</span>"
    return html(head + html_table(_view_rows(info), ("view", "type", "one sample", "bytes", "arrays")))


# ---- plans -------------------------------------------------------------------------------------------------------


class Plan(dict):  # type: ignore[type-arg]
    """The numbers of `Loader.plan` (members: docs/reports.md); prints as a table."""

    def __init__(self, text: str) -> None:
        import json

        super().__init__(json.loads(text))

    def __repr__(self) -> str:
        return plan_text(self)

    def _repr_html_(self) -> str:
        return plan_html(self)


def loader_text(loader: Loader) -> str:
    p = loader.plan()
    head = f"<Loader: {count(p['steps'])} steps of {count(p['rows'])} rows{_shuffle_words(p)}>"
    return f"{head}\n{samples_text(loader.samples.info)}"


def _shuffle_words(p: dict[str, Any]) -> str:
    if p["shuffle"] == "none":
        return ", in archive order"
    return f", shuffled ({p['shuffle']}, seed {p['seed']})"


_MODES = {
    "keep": "all chunks stay decoded over epochs",
    "push": "chunks go straight into open batches",
    "hold": "chunks are held decoded while they are needed",
}


def _plural(n: float, word: str) -> str:
    return f"{count(n)} {word}" if n == 1 else f"{count(n)} {word}s"


def _order_words(p: dict[str, Any]) -> str:
    if p["shuffle"] == "none":
        return "as in the archive"
    if p["shuffle"] == "global":
        return f"an exact permutation, seed {p['seed']}"
    cells = _plural(p["block"], "chunk cell")
    return f"spread, seed {p['seed']}: {count(p['open_blocks'])} of {count(p['blocks'])} blocks open, each of {cells}"


def _plan_rows(p: dict[str, Any]) -> list[tuple[str, str]]:
    """(label, sentence); the program's `headrace plan` says the same."""
    c, m, q = p["cost"], p["memory"], p["quality"]
    rows = [
        ("samples", count(p["samples"])),
        ("steps", f"{count(p['steps'])} of {_plural(p['rows'], 'row')} an epoch, remainder {p['remainder']}"),
        ("order", _order_words(p)),
    ]
    if p["world"] > 1 or p["streams"] > 1:
        ranks = f"rank {p['rank']} of {p['world']}, {_plural(p['streams'], 'stream')}"
        rows.append(("ranks", f"{ranks}, global batch {count(p['global_batch'])}"))
    about = "" if c["exact"] else "about "
    reads = f"{about}{count(round(c['chunk_reads']))} chunks an epoch, {size(c['read_bytes'])} decoded"
    rows.append(
        ("reads", f"{reads}; {count(c['distinct_chunks'])} different ones: amplification {c['amplification']:.3g}")
    )
    if c["useful_bytes"] > c["read_bytes"]:
        use = f"{size(c['useful_bytes'])}: each decoded byte is used {c['useful_bytes'] / c['read_bytes']:.2f} times"
    else:
        use = f"{size(c['useful_bytes'])}, {100 * c['useful_bytes'] / (c['read_bytes'] or 1):.0f} % of what is decoded"
    rows.append(("", f"samples take {use}"))
    first = _plural(round(c["first_batch_chunks"]), "chunk")
    rows.append(("first batch", f"{first}, {size(c['first_batch_bytes'])} decoded"))
    least, enough = size(m["minimum"]), size(m["comfortable"])
    rows.append(("memory", f"budget {size(m['budget'])}; at least {least}, from {enough} on each chunk is read once"))
    parts = f"a batch {size(m['batch'])}, largest job {size(m['lane'])}, tables {size(m['tables'])}"
    rows.append(
        ("", f"{parts}; up to {_plural(m['max_open'], 'batch').replace('batchs', 'batches')} open; {_MODES[m['mode']]}")
    )
    if p["shuffle"] != "none" and q["variance"] is not None:
        variance = f"variance of batch means {q['variance']:.2g} × independent draws (below 1 is better)"
        rows.append(("shuffle", f"{variance}, worst batch {q['worst']:.2g} σ"))
        rows.append(("", f"{q['distinct_blocks']:.3g} different blocks in a batch"))
    return rows


def plan_text(p: dict[str, Any]) -> str:
    from textwrap import wrap

    lines = []
    notes = [("warning", w) for w in p["warnings"]] + [("advice", a) for a in p["advice"]]
    for label, sentence in _plan_rows(p) + notes:
        for i, part in enumerate(wrap(sentence, 84)):
            lines.append(f"{label if i == 0 else '':<12}{part}")
    return "\n".join(lines)


def plan_html(p: dict[str, Any]) -> str:
    rows = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in _plan_rows(p))
    notes = "".join(f'<div class="w">{escape(w)}</div>' for w in p["warnings"])
    notes += "".join(f"<div>{escape(a)}</div>" for a in p["advice"])
    pictures = _memory_bar(p["memory"]) + (_variance_scale(p["quality"]["variance"]) if p["shuffle"] != "none" else "")
    return html(f"<table>{rows}</table>{pictures}{notes}")


def _memory_bar(m: dict[str, Any], width: float = 560.0) -> str:
    """What the budget is for, to scale, with the names below."""
    open_batches = m["max_open"] * m["batch"]
    parts = [("tables", m["tables"], 0.35), ("largest job", m["lane"], 0.8), ("open batches", open_batches, 0.55)]
    parts.append(("cache and reads", max(0, m["budget"] - sum(n for _, n, _ in parts)), 0.15))
    total = sum(n for _, n, _ in parts) or 1
    body, x, at = [], 0.0, 0.0
    for name, n, shade in parts:
        w, words = width * n / total, f"{name} {size(n)}"
        fill = f'fill="currentColor" fill-opacity="{shade}"'
        body.append(f'<rect x="{x:.1f}" y="0" width="{max(1.0, w - 1):.1f}" height="14" {fill}/>')
        body.append(f'<rect x="{at:.1f}" y="22" width="9" height="9" {fill}/>')
        body.append(f'<text x="{at + 13:.1f}" y="30" fill="currentColor" fill-opacity=".7">{escape(words)}</text>')
        x, at = x + w, at + 6.2 * len(words) + 24
    return _svg(width, 34, "".join(body), "memory budget: " + ", ".join(f"{name} {size(n)}" for name, n, _ in parts))


def _variance_scale(variance: float | None, width: float = 560.0) -> str:
    """Where the shuffle lies between 0.01 and 100 times independent draws."""
    if not variance:
        return ""
    from math import log10

    def at(v: float) -> float:
        return 10 + (width - 20) * (min(max(log10(v), -2.0), 2.0) + 2) / 4

    body = [f'<path d="M10 20H{width - 10:g}" stroke="currentColor" stroke-opacity=".35"/>']
    for v, words in ((0.01, ".01"), (0.1, "0.1"), (1, "1: independent draws"), (10, "10"), (100, "100")):
        body.append(f'<path d="M{at(v):.1f} 16v8" stroke="currentColor" stroke-opacity=".5"/>')
        body.append(
            f'<text x="{at(v):.1f}" y="38" text-anchor="middle" fill="currentColor" fill-opacity=".7">{words}</text>'
        )
    body.append(f'<circle cx="{at(variance):.1f}" cy="20" r="5" fill="currentColor"/>')
    body.append(f'<text x="{at(variance):.1f}" y="10" text-anchor="middle" fill="currentColor">{variance:.2g}</text>')
    return _svg(width, 42, "".join(body), f"variance of batch means: {variance:.2g} times that of independent draws")


def _svg(width: float, height: float, body: str, says: str) -> str:
    return (
        f'<svg width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" font-size="10" '
        f'style="max-width:100%" aria-label="{escape(says)}">{body}</svg><br>'
    )
