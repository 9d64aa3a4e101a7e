"""Numbers and tables as people read them, without a dependency."""

from __future__ import annotations

from html import escape
from typing import Any


def size(n: float | None) -> str:
    """Bytes: "260.6 kB", "8.34 MB"."""
    if n is None:
        return "?"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(n) < 1000 or unit == "PB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.3g} {unit}" if n >= 9.995 else f"{n:.2f} {unit}"
        n /= 1000
    return ""


def count(n: float | None) -> str:
    """12,345; fractions with three digits."""
    if n is None:
        return "?"
    return f"{n:,.0f}" if float(n).is_integer() or abs(n) >= 1000 else f"{n:.3g}"


def shape(dims: Any, lengths: Any) -> str:
    """ "time 4096, lat 181, lon 360"."""
    names = dims or [None] * len(lengths)
    return ", ".join(f"{d} {n}" if d else str(n) for d, n in zip(names, lengths))


def table(rows: list[tuple[str, ...]], gap: str = "  ") -> str:
    """Left-aligned columns."""
    if not rows:
        return ""
    widths = [max(len(r[i]) if i < len(r) else 0 for r in rows) for i in range(max(map(len, rows)))]
    return "\n".join(gap.join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in rows)


STYLE = (
    "<style>.headrace{font:13px/1.5 system-ui,sans-serif;max-width:60em}.headrace table{border-collapse:collapse;"
    "margin:.3em 0}.headrace td,.headrace th{text-align:left;padding:.15em .9em .15em 0;border:0;vertical-align:top;"
    "font-variant-numeric:tabular-nums}.headrace th{font-weight:600;opacity:.65}.headrace .d{opacity:.6}"
    ".headrace .w{color:#b45309}.headrace code{font-size:12px}.headrace summary{cursor:pointer}"
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
