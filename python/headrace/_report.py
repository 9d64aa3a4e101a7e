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
    return (node["dtype"] or "?", f"({shape(node['dims'], node['shape'] or ())})", f"chunks {chunks}", size(node["bytes"]))


def _label(node: dict[str, Any]) -> str:
    name = node["path"].rpartition("/")[2] or "/"
    return "  " * node["path"].count("/") + name + ("/" if node["kind"] == "group" and node["path"] else "")


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
    rows = [(k, str(v)[:120]) for k, v in list((attributes or {}).items())[:_MOST_ATTRIBUTES]]
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
    if len(lengths) < 2 or 0 in lengths:  # noqa: PLR2004
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
        (v["name"], v["dtype"], f"({shape(v['dims'], v['shape'])})", size(v["bytes"]), "of " + ", ".join(v["arrays"][:6]))
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
    return f"<Loader: {count(p['steps'])} steps of {count(p['rows'])} rows{_shuffle_words(p)}>\n{samples_text(loader.samples.info)}"


def _shuffle_words(p: dict[str, Any]) -> str:
    if p["shuffle"] == "none":
        return ", in archive order"
    return f", shuffled ({p['shuffle']}, seed {p['seed']})"
