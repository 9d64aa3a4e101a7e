"""What archives, samples and plans print as: text for terminals, HTML for notebooks."""

from __future__ import annotations

from html import escape
from math import prod
from typing import TYPE_CHECKING, Any

from headrace._atlas_line import atlas_line
from headrace._errors import ForkError
from headrace._format import count, duration, html, html_table, plural, shape, size, table

if TYPE_CHECKING:
    from headrace._loader import Loader

_MOST_NODES = 60
_CHUNKS_SHOWN = 2
_MOST_ATTRIBUTES = 12


# ---- archives ----------------------------------------------------------------------------------------------------


def _item_size(node: dict[str, Any]) -> float:
    """0: unknown, or not the same for all items."""
    items = prod(node["shape"] or ())
    return (node["bytes"] or 0) / items if items else 0


def _size(node: dict[str, Any]) -> str:
    known = node["bytes"] is not None and (_item_size(node) or not prod(node["shape"]))
    return size(node["bytes"]) if known else ""


def _chunks(node: dict[str, Any]) -> str:
    """ "3×4×5 (120 B)", "3×4×5 (120 B) in shards of 6×8×10"."""
    if not node["chunks"]:
        return ""
    words = ("≤ " if node["rectilinear"] else "") + "×".join(map(str, node["chunks"]))
    if _item_size(node):
        words += f" ({size(prod(node['chunks']) * _item_size(node))})"
    return words + (" in shards of " + "×".join(map(str, node["shards"])) if node["shards"] else "")


def _facts(node: dict[str, Any]) -> list[str]:
    """What is known of an array, in the order of columns; "" where nothing is."""
    known = [shape(node["dims"], node["shape"]) if node["shape"] is not None else "", node["dtype"] or ""]
    return known if node["error"] else [*known, _size(node), _chunks(node), node["codecs"] or ""]


def _tree(nodes: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any] | None]]:
    """(label, node) of every branch below the root, in order of path; None: a group without a document."""
    root: dict[str, Any] = {"node": None, "below": {}}
    for node in nodes:
        branch = root
        for name in node["path"].split("/") if node["path"] else ():
            branch = branch["below"].setdefault(name, {"node": None, "below": {}})
        branch["node"] = node
    found: list[tuple[str, dict[str, Any] | None]] = []
    if root["node"] and root["node"]["kind"] == "array":
        found.append((".", root["node"]))

    def climb(branch: dict[str, Any], lead: str) -> None:
        for i, (name, child) in enumerate(branch["below"].items(), 1):
            last, node = i == len(branch["below"]), child["node"]
            end = "" if node and node["kind"] == "array" else "/"
            found.append((lead + ("└─ " if last else "├─ ") + name + end, node))
            climb(child, lead + ("   " if last else "│  "))

    climb(root, "")
    return found


_WIDEST = 44  # of a column: one long name must not push everything off the screen
_SIZE = 3  # the column that is aligned to the right


def tree_lines(nodes: list[dict[str, Any]]) -> list[str]:
    """One line a node; the program's `headrace inspect` prints the same."""
    rows = []
    for label, node in _tree(nodes):
        facts = _facts(node) if node and node["kind"] == "array" else []
        rows.append(([label, *facts], node["error"] if node and node["kind"] == "array" else None))
    widths = [max((min(len(cells[c]), _WIDEST) for cells, _ in rows if c < len(cells)), default=0) for c in range(6)]
    lines = []
    for cells, error in rows:
        parts = [cell.rjust(w) if c == _SIZE else cell.ljust(w) for c, (cell, w) in enumerate(zip(cells, widths))]
        lines.append("  ".join([*parts, f"cannot be read: {error}"] if error else parts).rstrip())
    return lines


def _headline(info: dict[str, Any]) -> str:
    """ "zarr v3, consolidated, 6 arrays, 58.1 kB decoded"."""
    arrays = [n for n in info["nodes"] if n["kind"] == "array"]
    kind = info["format"] + (", consolidated" if info["consolidated"] else "")
    if not info["complete"] and not arrays:
        return f"{kind}, arrays unknown"
    known = "" if info["complete"] else " known"
    return f"{kind}, {plural(len(arrays), 'array')}{known}, {size(sum(n['bytes'] or 0 for n in arrays))} decoded"


_INCOMPLETE = (
    'The store cannot list and the metadata is not consolidated: arrays are read by name, as in archive["NAME"].'
)


def _unlike(info: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The nodes that are shown, and how many chunks of an SCDL, which look alike and may be a thousand, are not."""
    chunks = int((info.get("attributes") or {}).get("n_chunks", 0)) if info["format"] == "SCDL chunked" else 0
    if chunks <= _CHUNKS_SHOWN + 1:
        return info["nodes"], 0
    few = [n for n in info["nodes"] if not _is_later_chunk(n["path"])]
    return few, chunks - _CHUNKS_SHOWN


def _is_later_chunk(path: str) -> bool:
    number = path.partition("/")[0].removeprefix("chunk_")
    return number.isdecimal() and int(number) >= _CHUNKS_SHOWN


def archive_text(info: dict[str, Any]) -> str:
    nodes, alike = _unlike(info)
    lines = tree_lines(nodes) + ([f"… and {count(alike)} more chunks like these"] if alike else [])
    more = len(lines) - _MOST_NODES
    head = [f"<Archive {info['url']}: {_headline(info)}>", *filter(None, [atlas_line(info)])]
    lines = [*head, *lines[:_MOST_NODES]]
    if more > 0:
        lines.append(f"… and {more} more")
    return "\n".join(lines if info["complete"] else [*lines, _INCOMPLETE])


def array_text(node: dict[str, Any]) -> str:
    if node["error"]:
        return f"<Array {node['path'] or '/'}: cannot be read: {node['error']}>"
    extent, dtype, *facts = _facts(node)
    facts[1] = facts[1] and "chunks " + facts[1]
    return f"<Array {node['path'] or '/'}: {', '.join([f'{extent} {dtype}', *filter(None, facts)])}>"


def _attributes(attributes: dict[str, Any] | None) -> str:
    rows: list[tuple[str, ...]] = [(k, str(v)[:120]) for k, v in list((attributes or {}).items())[:_MOST_ATTRIBUTES]]
    return html_table(rows) if rows else ""


def archive_html(info: dict[str, Any]) -> str:
    parts = [f"<b>{escape(info['url'])}</b> <span class=d>{escape(_headline(info))}</span>"]
    if line := atlas_line(info):
        parts.append(f"<div>{escape(line)}</div>")
    nodes, alike = _unlike(info)
    for node in nodes[:_MOST_NODES]:
        indent = f"margin-left:{1.2 * node['path'].count('/')}em"
        name = escape(node["path"].rpartition("/")[2] or "/")
        if node["kind"] == "group":
            parts.append(f'<div style="{indent}"><b>{name}</b></div>')
            continue
        if node["error"]:
            parts.append(
                f'<div style="{indent}">{name} <span class=w>cannot be read: {escape(node["error"])}</span></div>'
            )
            continue
        facts = " <span class=d>·</span> ".join(escape(f) for f in _facts(node)[:4] if f)
        parts.append(
            f'<details style="{indent}"><summary><b>{name}</b> {facts}</summary>'
            f"<div class=d>{escape(node['codecs'] or '')}, {plural(node['n_chunks'], 'chunk')}, fill "
            f"{escape(str(node['fill_value']))}</div>{_grid(node)}{_attributes(node['attributes'])}</details>"
        )
    if len(nodes) > _MOST_NODES:
        parts.append(f"<div class=d>… and {len(nodes) - _MOST_NODES} more</div>")
    if alike:
        parts.append(f"<div class=d>… and {count(alike)} more chunks like these</div>")
    if not info["complete"]:
        parts.append(f"<div class=d>{escape(_INCOMPLETE)}</div>")
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


def _view_rows(info: dict[str, Any], notes: dict[str, str] | None = None) -> list[tuple[str, ...]]:
    """Views, then tables. `notes`: what is said of them instead of their arrays."""
    notes = notes or {}
    rows: list[tuple[str, ...]] = []
    for v in info["views"]:
        arrays = "of " + ", ".join(v["arrays"][:6]) + (", …" if len(v["arrays"]) > 6 else "")
        dtype = f"{v['form']} {v['dtype']}" if "form" in v else v["dtype"]
        about = "~" if v.get("form") == "csr" else ""
        note = notes.get(v["name"], arrays)
        rows.append((v["name"], shape(v["dims"], v["shape"]), dtype, about + size(v["bytes"]), note))
    for t in info.get("tables", ()):
        extents = [("cell", t.get("members", 1)), ("item", t["items"])]
        extents = [(name, n) for name, n in extents if n > 1]
        items = shape([name for name, _ in extents], [n for _, n in extents]) if extents else ""
        rows.append((t["name"], items, t["dtype"], "", notes.get(t["name"], "a table")))
    return rows


def _ids(info: dict[str, Any]) -> str:
    """ "59 along time, ids 1 … 59"; "54 along t × y × x"."""
    first, last = info["first_id"], info["last_id"]
    along = " × ".join(axis["name"] for axis in info["axes"])
    if len(info["axes"]) > 1 or info["axes"][0]["kind"] != "steps":
        return f"{count(info['count'])} along {along}"
    ids = "" if not info["count"] else f", id {first}" if first == last else f", ids {first} … {last}"
    return f"{count(info['count'])} along {along}{ids}"


def _axis_row(axis: dict[str, Any]) -> tuple[str, str]:
    """ "y", "6 patches of 32 every 16 (clip)"."""
    n = axis["chosen"]
    some = count(n) if n == axis["n"] else f"{count(n)} of {count(axis['n'])}"
    span = f", {axis['first']} … {axis['last']}" if 1 < n < axis["n"] else f", {axis['first']}" if n == 1 else ""
    if axis["kind"] == "patch":
        words = f"{some} patches of {count(axis['size'])}"
        words += f" every {count(axis['stride'])}" if axis["stride"] != axis["size"] else ""
        return axis["name"], words + span + (f" ({axis['edge']})" if axis["edge"] != "valid" else "")
    if axis["kind"] == "crop":
        parts = f", one in each of {some} parts" if axis["n"] > 1 else ""
        return axis["name"], f"crops of {count(axis['size'])} at {count(axis['places'])} places{parts}"
    return axis["name"], f"{some} draws" if axis["kind"] == "draws" else f"{some} positions{span}"


def _axis_lines(info: dict[str, Any]) -> list[str]:
    if len(info["axes"]) == 1 and info["axes"][0]["kind"] == "steps":
        return []
    return ["  " + line for line in table([_axis_row(a) for a in info["axes"]]).splitlines()]


def _view_lines(info: dict[str, Any], notes: dict[str, str] | None = None) -> list[str]:
    return ["  " + line.rstrip() for line in table(_view_rows(info, notes)).splitlines()]


def samples_text(info: dict[str, Any], notes: dict[str, str] | None = None, what: str = "Samples") -> str:
    return "\n".join([f"<{what}: {_ids(info)}>", *_axis_lines(info), *_view_lines(info, notes)])


def samples_html(info: dict[str, Any], notes: dict[str, str] | None = None) -> str:
    number, _, rest = _ids(info).partition(" ")
    head = f"<b>{number} samples</b> <span class=d>{escape(rest)}</span>"
    axes = html_table([_axis_row(a) for a in info["axes"]], ("axis", "")) if _axis_lines(info) else ""
    return html(head + axes + html_table(_view_rows(info, notes), ("view", "one sample", "type", "bytes", "arrays")))


# ---- loaders -----------------------------------------------------------------------------------------------------


def loader_text(loader: Loader, what: str = "Loader") -> str:
    """Where it stands; `what` names a loader whose batches come out as something else."""
    if not hasattr(loader, "samples"):  # several of them
        return f"<{what}: {loader!r}>"
    views = _view_lines(loader.samples.info)
    try:
        p, state = loader._numbers(), loader.state_dict()
    except ForkError:
        return "\n".join([f"<{what}: of the parent process>", *views])
    step = state["position"] * state["streams"] // state["global_batch"]
    closed = "closed, at " if loader.closed else ""
    where = f"{closed}epoch {state['epoch']}, step {count(step)} of {count(p['steps'])}"
    head = f"<{what}: {where}, {plural(p['rows'], 'row')} a batch{_shuffle_words(p)}>"
    return "\n".join([head, *views, *_store_lines(loader.stats()["store"])])


def _store_lines(store: dict[str, Any]) -> list[str]:
    """What the store has done, where it lies behind a network."""
    return [f"  store: {_store_words(store)}"] if "summary" in store else []


def _shuffle_words(p: dict[str, Any]) -> str:
    if p["shuffle"] == "none":
        return ", in archive order"
    return f", shuffled ({p['shuffle']}, seed {p['seed']})"


class Stats(dict):  # type: ignore[type-arg]
    """The numbers of `Loader.stats` (members: docs/reports.md); prints as a table."""

    def __repr__(self) -> str:
        return _two_columns(_stats_rows(self))

    def _repr_html_(self) -> str:
        return html(_html_rows(_stats_rows(self)))


def _stats_rows(s: dict[str, Any]) -> list[tuple[str, str]]:
    c, b, seconds = s["chunks"], s["bytes"], s["seconds"] or 0
    rows = [("batches", f"{count(s['batches'])}, {plural(s['rows'], 'sample')} in {duration(seconds)}")]
    if seconds:
        rate = f"{count(round(s['rows_per_second']))} samples/s, {size(s['bytes_per_second'])}/s decoded"
        rows.append(("throughput", rate))
    share = f", {100 * s['wait_seconds'] / seconds:.1f} % of the time" if seconds else ""
    rows.append(("waiting", f"{duration(s['wait_seconds'])} for batches{share}"))
    reads = f"{count(c['read'])} read, {count(c['reread'])} of them again; {count(c['missing'])} missing"
    for name in ("masked", "failed"):
        reads += f", {count(c[name])} {name}" if c[name] else ""
    rows.append(("chunks", reads))
    held = f"{count(c['held'])} held decoded, {count(c['kept_hits'])} uses of kept ones"
    rows.append(("", f"{count(c['pushed'])} copied at once, {held}"))
    rows.append(("bytes", f"{size(b['decoded'])} decoded from {size(b['read'])} stored"))
    work = f"{duration(s['read_seconds'])} reading, {duration(s['decode_seconds'])} decoding, all together"
    rows.append(("workers", work))
    rows.append(("memory", _memory_words(s["memory"])))
    rows.append(("store", _store_words(s["store"])))
    return rows + [("masked", name) for name in s["masked"]]


def _memory_words(m: dict[str, Any]) -> str:
    words = f"{size(m['peak'])} of the budget at most, {size(m['reserved'])} now"
    return words + (f"; {size(m['extra'])} beside it, in batches that are kept" if m["extra"] else "")


def _store_words(store: dict[str, Any]) -> str:
    if "summary" in store:  # of a network
        return str(store["summary"]) + (f"; {count(store['missing'])} missing" if store["missing"] else "")
    words = f"{plural(store['requests'], 'request')}, {size(store['bytes'])}; {count(store['missing'])} missing"
    return words + f", {count(store['failed'])} failed"


# ---- plans -------------------------------------------------------------------------------------------------------


class Plan(dict):  # type: ignore[type-arg]
    """The numbers of `Loader.plan` (members: docs/reports.md); prints as a table."""

    def __init__(self, numbers: dict[str, Any], samples: dict[str, Any]) -> None:
        super().__init__(numbers)
        self._samples = samples

    def __repr__(self) -> str:
        return plan_text(self, self._samples)

    def _repr_html_(self) -> str:
        return plan_html(self, self._samples)


_MODES = {
    "keep": "all chunks stay decoded over epochs",
    "push": "chunks go straight into open batches",
    "hold": "chunks are held decoded while they are needed",
}


def _order_words(p: dict[str, Any]) -> str:
    if p["shuffle"] == "none":
        return "as in the archive"
    if p["shuffle"] == "global":
        return f"an exact permutation, seed {p['seed']}"
    cells = plural(p["block"], "chunk cell")
    if p["blocks"] == 1:
        return f"spread, seed {p['seed']}: one block of {cells}"
    return f"spread, seed {p['seed']}: {count(p['open_blocks'])} of {count(p['blocks'])} blocks open, each of {cells}"


def _read_rows(p: dict[str, Any]) -> list[tuple[str, str]]:
    c = p["cost"]
    reads, different = round(c["chunk_reads"]), round(c["distinct_chunks"])
    again = "each once" if reads == different else f"{count(different)} different ones"
    words = f"{'' if c['exact'] else 'about '}{plural(reads, 'chunk')} an epoch, {size(c['read_bytes'])} decoded"
    rows = [("reads", f"{words}; {again}: amplification {c['amplification']:.3g}")]
    take = "the sample takes" if p["samples"] == 1 else "samples take"
    if c["useful_bytes"] > c["read_bytes"]:
        use = f"each decoded byte is used {c['useful_bytes'] / c['read_bytes']:.2f} times"
        rows.append(("", f"{take} {size(c['useful_bytes'])}: {use}"))
    else:
        share = 100 * c["useful_bytes"] / (c["read_bytes"] or 1)
        rows.append(("", f"{take} {size(c['useful_bytes'])}, {share:.3g} % of what is decoded"))
    first = plural(round(c["first_batch_chunks"]), "chunk")
    return [*rows, ("first batch", f"{first}, {size(c['first_batch_bytes'])} decoded")]


def _memory_rows(m: dict[str, Any]) -> list[tuple[str, str]]:
    most = m["comfortable"]
    enough = "with any chunks are read again" if most is None else f"from {size(most)} on each chunk is read once"
    parts = f"a batch {size(m['batch'])}, largest job {size(m['lane'])}, tables {size(m['tables'])}"
    opened = f"up to {plural(m['max_open'], 'batch', 'batches')} open"
    return [
        ("memory", f"budget {size(m['budget'])}; at least {size(m['minimum'])}, {enough}"),
        ("", f"{parts}; {opened}; {_MODES[m['mode']]}"),
    ]


def _weight_rows(p: dict[str, Any]) -> list[tuple[str, str]]:
    """What an epoch has, where samples come by weight."""
    if not p["weighted"]:
        return []
    often = p["epoch_rows"] / (p["samples"] or 1)
    return [("weights", f"{plural(p['epoch_rows'], 'row')} an epoch: a sample appears {often:.3g} times on average")]


def _plan_rows(p: dict[str, Any], samples: dict[str, Any] | None) -> list[tuple[str, str]]:
    """(label, sentence); the program's `headrace plan` says the same. Without samples: what the numbers alone say."""
    rows = [
        ("samples", _ids(samples) if samples else count(p["samples"])),
        *_weight_rows(p),
        ("steps", f"{count(p['steps'])} an epoch, of {plural(p['rows'], 'row')}; remainder {p['remainder']}"),
    ]
    for i, v in enumerate(samples["views"] if samples else ()):
        extent = ", ".join(map(str, [p["rows"], *v["shape"]]))
        form = f"{v['form']} " if v.get("form") not in (None, "dense") else ""
        rows.append(("" if i else "batch", f"{v['name']}  ({extent}) {form}{v['dtype']}"))
    rows.append(("order", _order_words(p)))
    if p["world"] > 1 or p["streams"] > 1:
        ranks = f"rank {p['rank']} of {p['world']}, {plural(p['streams'], 'stream')}"
        rows.append(("ranks", f"{ranks}, global batch {count(p['global_batch'])}"))
    rows += _read_rows(p) + _memory_rows(p["memory"])
    words = _mixing(p, p["quality"])
    label = "batches" if p["shuffle"] == "none" else "shuffle"
    return rows + [("" if i else label, sentence) for i, sentence in enumerate(words)]


def _mixing(p: dict[str, Any], q: dict[str, Any]) -> list[str]:
    """How well batches stand for the whole: by position, and by the columns that were looked at (the program: none)."""
    said = []
    if p["shuffle"] != "none" and q["variance"] is not None:
        variance = f"variance of batch means {q['variance']:.2g} × independent draws (below 1 is better)"
        one = q["distinct_blocks"] == 1
        said.append(f"{variance}, worst batch {q['worst']:.2g} σ")
        said.append(f"{q['distinct_blocks']:.3g} different {'block' if one else 'blocks'} in a batch")
    known = [f"{c['name']} {c['variance']:.2g}" for c in q.get("columns", ()) if c["variance"] is not None]
    if known:
        said.append(f"variance by column: {', '.join(known)}")
    for name in dict.fromkeys(b["column"] for b in q.get("shares", ())):
        bins = [b for b in q["shares"] if b["column"] == name]
        words = [f"{b['bin']} {100 * b['mean']:.3g} ± {100 * b['sd']:.2g} %" for b in bins[:8]]
        said.append(f"{name} in a batch: {', '.join(words)}{', …' if len(bins) > 8 else ''}")
    return said


def _two_columns(rows: list[tuple[str, str]]) -> str:
    """Labels and sentences, which are broken at spaces."""
    from textwrap import wrap

    lines = []
    for label, sentence in rows:
        for i, part in enumerate(wrap(sentence, 84, break_long_words=False, break_on_hyphens=False)):
            lines.append(f"{label if i == 0 else '':<12}{part}")
    return "\n".join(lines)


def _html_rows(rows: list[tuple[str, str]]) -> str:
    return f"<table>{''.join(f'<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>' for a, b in rows)}</table>"


_CHOICES = ("block", "spread", "memory", "at least", "reads", "")


def _choice_rows(p: dict[str, Any]) -> list[tuple[str, ...]]:
    """What other blocks and spreads would cost; `memory` is from where on nothing is read again."""
    rows: list[tuple[str, ...]] = [
        (
            count(c["block"]),
            count(c["spread"]),
            size(c["memory"]),
            size(c["minimum"]),
            f"{c['amplification']:.3g} ×",
            "now" if c["current"] else "",
        )
        for c in p["choices"]
    ]
    return list(dict.fromkeys(rows))  # rounded, some are one


def plan_text(p: dict[str, Any], samples: dict[str, Any]) -> str:
    notes = [("warning", w) for w in p["warnings"]] + [("advice", a) for a in p["advice"]]
    choices = table([_CHOICES, *_choice_rows(p)]).splitlines() if p["choices"] else []
    lines = [f"{'' if i else 'choices':<12}{line}" for i, line in enumerate(choices)]
    return "\n".join([_two_columns(_plan_rows(p, samples)), *lines, *([_two_columns(notes)] if notes else [])])


def plan_html(p: dict[str, Any], samples: dict[str, Any] | None = None) -> str:
    notes = "".join(f'<div class="w">{escape(w)}</div>' for w in p["warnings"])
    notes += "".join(f"<div>{escape(a)}</div>" for a in p["advice"])
    pictures = _memory_bar(p["memory"]) + (_variance_scale(p["quality"]["variance"]) if p["shuffle"] != "none" else "")
    choices = html_table(_choice_rows(p), _CHOICES) if p["choices"] else ""
    return html(f"{_html_rows(_plan_rows(p, samples))}{pictures}{choices}{notes}")


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
        return 12 + (width - 24) * (min(max(log10(v), -2.0), 2.0) + 2) / 4

    body = [f'<path d="M12 20H{width - 12:g}" stroke="currentColor" stroke-opacity=".35"/>']
    for v, words in ((0.01, "0.01"), (0.1, "0.1"), (1, "1"), (10, "10"), (100, "100")):
        body.append(f'<path d="M{at(v):.1f} 16v8" stroke="currentColor" stroke-opacity=".5"/>')
        body.append(
            f'<text x="{at(v):.1f}" y="38" text-anchor="middle" fill="currentColor" fill-opacity=".7">{words}</text>'
        )
    body.append(f'<text x="{at(1) + 8:.1f}" y="38" fill="currentColor" fill-opacity=".7">independent draws</text>')
    body.append(f'<circle cx="{at(variance):.1f}" cy="20" r="5" fill="currentColor"/>')
    body.append(f'<text x="{at(variance):.1f}" y="10" text-anchor="middle" fill="currentColor">{variance:.2g}</text>')
    return _svg(width, 42, "".join(body), f"variance of batch means: {variance:.2g} times that of independent draws")


def _svg(width: float, height: float, body: str, says: str) -> str:
    return (
        f'<svg width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" font-size="10" '
        f'style="max-width:100%" aria-label="{escape(says)}">{body}</svg><br>'
    )
