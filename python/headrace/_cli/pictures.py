"""Pictures for pages: fields as PNG files, written with zlib alone, and small charts as SVG.

Charts take their colours from the page's style sheet, so that they follow its light and dark schemes. Every picture
carries a sentence that says what it shows.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from html import escape
from typing import Any

import numpy as np

# Colours at equal steps; between them, straight lines in sRGB. Both are even in lightness along their course.
WARM = ("#10103c", "#2a3d8f", "#3f7fb8", "#86bfd0", "#dfe9dc", "#f3cf8b", "#e78b4f", "#c2413b", "#6d1031")
SIGNED = ("#123a5c", "#3178a8", "#8fc0d8", "#e6eeee", "#f4f2ec", "#f3e3d3", "#e0a878", "#b5602f", "#5f2b10")


def _anchors(colours: tuple[str, ...]) -> Any:
    return np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours], "f4")


def paint(field: Any, low: float, high: float, colours: tuple[str, ...] = WARM) -> Any:
    """A field of shape (y, x) as RGB, uint8 of shape (y, x, 3). NaN is grey."""
    table = _anchors(colours)
    at = np.clip((np.asarray(field, "f4") - low) / max(high - low, 1e-30), 0, 1) * (len(table) - 1)
    known = np.isfinite(at)
    at = np.where(known, at, 0)
    i = np.minimum(at.astype(int), len(table) - 2)
    rgb = table[i] + (at - i)[..., None] * (table[i + 1] - table[i])
    rgb[~known] = 128
    return (rgb + 0.5).astype("u1")


def png(rgb: Any) -> bytes:
    """An RGB image of shape (y, x, 3), uint8, as a PNG file (ISO/IEC 15948: one IDAT, rows filtered by difference)."""
    height, width, _ = rgb.shape
    rows = np.zeros((height, width * 3 + 1), "u1")
    rows[:, 0] = 1  # filter type 1: each byte minus the one a pixel to the left
    rows[:, 1:4] = rgb[:, 0]
    rows[:, 4:] = (rgb[:, 1:].astype("i2") - rgb[:, :-1]).reshape(height, -1).astype("u1")

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows, 9)) + part(b"IEND", b"")


def image(rgb: Any, says: str, caption: str = "") -> str:
    """An HTML figure with the image inside it."""
    data = b64encode(png(rgb)).decode()
    text = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><img alt="{escape(says)}" src="data:image/png;base64,{data}">{text}</figure>'


def svg(width: float, height: float, body: str, says: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(says)}">'
        f"<title>{escape(says)}</title>{body}</svg>"
    )


def label(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


class Chart:
    """Axes with room for labels, and what is drawn between them."""

    LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 14.0, 34.0

    def __init__(self, width: float, height: float, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.width, self.height = width, height
        self.x, self.y = x, y
        self.body: list[str] = []

    def at(self, x: Any, y: Any) -> tuple[Any, Any]:
        w, h = self.width - self.LEFT - self.RIGHT, self.height - self.TOP - self.BOTTOM
        return (
            self.LEFT + (np.asarray(x, float) - self.x[0]) / (self.x[1] - self.x[0]) * w,
            self.TOP + h - (np.asarray(y, float) - self.y[0]) / (self.y[1] - self.y[0]) * h,
        )

    def dots(self, x: Any, y: Any, radius: float, kind: str) -> None:
        """One path for all: segments of no length with round ends."""
        px, py = self.at(x, y)
        path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(px, py))
        self.body.append(
            f'<path d="{path}" class="{kind}" fill="none" stroke-linecap="round" stroke-width="{2 * radius}"/>'
        )

    def line(self, x: Any, y: Any, kind: str) -> None:
        px, py = self.at(x, y)
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(px, py))
        self.body.append(f'<path d="M{path}" class="{kind}" fill="none" stroke-width="1.5" stroke-linejoin="round"/>')

    def band(self, low: float, high: float, kind: str) -> None:
        (x0, x1), (y0, y1) = self.at(self.x, (high, low))
        self.body.append(
            f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" class="{kind}"/>'
        )

    def note(self, x: float, y: float, words: str, anchor: str = "start", kind: str = "faint") -> None:
        px, py = self.at(x, y)
        self.body.append(label(float(px), float(py), words, anchor, kind))

    def draw(self, x_title: str, y_title: str, x_ticks: Any, y_ticks: Any, says: str) -> str:
        (left, right), (bottom, top) = self.at(self.x, self.y)
        parts = [f'<path d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}" class="axis" fill="none"/>']
        for value, words in y_ticks:
            y = float(self.at(0, value)[1])
            parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" class="grid" fill="none"/>')
            parts.append(label(left - 6, y + 3.5, words, "end", "faint"))
        for value, words in x_ticks:
            x = float(self.at(value, 0)[0])
            parts.append(label(x, bottom + 14, words, "middle", "faint"))
        parts.append(label((left + right) / 2, self.height - 4, x_title, "middle", "faint"))
        parts.append(label(left + 4, top - 4, y_title, "start", "faint"))
        return svg(self.width, self.height, "".join(parts + self.body), says)


def ticks(high: float, unit: float = 1.0, n: int = 4) -> list[tuple[float, str]]:
    """About n round values from 0 to `high`, with their words (in `unit`)."""
    step = 10.0 ** np.floor(np.log10(max(high / unit, 1e-9) / n))
    step *= next((m for m in (1, 2, 5, 10) if high / unit / (step * m) <= n), 10)
    return [(i * step * unit, f"{i * step:,.10g}") for i in range(int(high / unit / step + 1e-9) + 1)]
