"""Numbers and tables as people read them, without a dependency."""

from __future__ import annotations

from html import escape
from typing import Any


def size(n: float | None) -> str:
    """Bytes: "24 B", "260.6 kB", "8.3 MB", as the library's messages and the program have them."""
    if n is None:
        return "?"
    if n < 999.95:
        return f"{n:.0f} B"
    for unit in ("kB", "MB", "GB", "TB", "PB", "EB"):
        n /= 1000
        if n < 999.95 or unit == "EB":
            break
    return f"{n:.1f} {unit}"


def duration(seconds: float | None) -> str:
    """ "413 µs", "1.36 ms", "41.4 s": three digits."""
    if seconds is None:
        return "?"
    value, unit = seconds, "s"
    for smaller in ("ms", "µs"):
        if value < 0.9995 and value:
            value, unit = value * 1000, smaller
    return f"{value:.{2 if 0 < value < 9.995 else 1 if 0 < value < 99.95 else 0}f} {unit}"


def count(n: float | None) -> str:
    """12,345; fractions with three digits."""
    if n is None:
        return "?"
    return f"{n:,.0f}" if float(n).is_integer() or abs(n) >= 1000 else f"{n:.3g}"


def plural(n: float, word: str, words: str = "") -> str:
    """ "1 row", "8 rows"."""
    return f"{count(n)} {word if n == 1 else words or word + 's'}"


def shape(dims: Any, lengths: Any) -> str:
    """ "(time: 4096, lat: 181, lon: 360)"."""
    names = dims or [None] * len(lengths)
    return f"({', '.join(f'{d}: {n}' if d else str(n) for d, n in zip(names, lengths))})"


def table(rows: list[tuple[str, ...]], gap: str = "  ") -> str:
    """Left-aligned columns."""
    if not rows:
        return ""
    widths = [max(len(r[i]) if i < len(r) else 0 for r in rows) for i in range(max(map(len, rows)))]
    return "\n".join(gap.join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in rows)


STYLE = (
    "<style>.headrace{font:13px/1.5 system-ui,sans-serif;max-width:60em}.headrace table{border-collapse:collapse;"
    "margin:.3em 0}.headrace td,.headrace th{text-align:left;padding:.15em .9em .15em 0;border:0;vertical-align:top;"
    "font-variant-numeric:tabular-nums}.headrace th{font-weight:600;opacity:.65;white-space:nowrap}"
    ".headrace .d{opacity:.6}.headrace .w{color:#b45309}.headrace code{font-size:12px}.headrace summary{cursor:pointer}"
    ".headrace svg{margin:.3em 0}</style>"
)


def html_table(rows: list[tuple[str, ...]], head: tuple[str, ...] | None = None) -> str:
    """Cells are escaped."""
    parts = ["<table>"]
    if head:
        parts.append("<tr>" + "".join(f"<th>{escape(c)}</th>" for c in head) + "</tr>")
    parts += ["<tr>" + "".join(f"<td>{escape(c)}</td>" for c in r) + "</tr>" for r in rows]
    return "".join(parts) + "</table>"


def html(body: str) -> str:
    return f'{STYLE}<div class="headrace">{body}</div>'
