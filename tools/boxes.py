#!/usr/bin/env python3
"""Draws docs/samples.svg: what samples can be, as boxes on grids of chunks.

tools/boxes.py
"""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "samples.svg"
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#667080}.b{font-weight:600;fill:#1d2530}"
    ".g{stroke:#98a2ae;stroke-width:1;fill:none}.r{fill:#98a2ae;fill-opacity:.22}"
    ".x{fill:#1b6ca8;fill-opacity:.28;stroke:#1b6ca8;stroke-width:2}"
    ".y{fill:#c4611a;fill-opacity:.28;stroke:#c4611a;stroke-width:2}"
    ".o{fill:none;stroke:#1b6ca8;stroke-width:1.5;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){text{fill:#98a2ae}.b{fill:#e4e7ea}}"
)
W, H, GAP = 236, 172, 22  # of a panel
TOP = 42  # for its two lines of text


def rect(x: float, y: float, w: float, h: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" class="{kind}"/>'


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{words}</text>'


class Panel:
    """A grid of chunks, boxes on it, and the chunks that the boxes touch shaded."""

    def __init__(self, number: int, title: str, words: str, grid: tuple[int, int], size: tuple[float, float]) -> None:
        self.x = 8 + number % 3 * (W + GAP)
        self.y = 8 + number // 3 * (H + GAP + 10)
        self.grid, self.size = grid, size
        self.head = [text(self.x, self.y + 12, title, "b"), text(self.x, self.y + 29, words)]
        self.touched: set[tuple[int, int]] = set()
        self.boxes: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, kind: str = "x", reads: bool = True) -> None:
        """In units of chunks."""
        cw, ch = self.size
        self.boxes.append(rect(self.x + x * cw, self.y + TOP + y * ch, w * cw, h * ch, kind))
        for i in range(self.grid[0] if reads else 0):
            for j in range(self.grid[1]):
                if x < i + 1 and x + w > i and y < j + 1 and y + h > j:
                    self.touched.add((i, j))

    def draw(self) -> str:
        (columns, rows), (cw, ch) = self.grid, self.size
        cells = [(i, j) for i in range(columns) for j in range(rows)]
        shade = [rect(self.x + i * cw, self.y + TOP + j * ch, cw, ch, "r") for i, j in cells if (i, j) in self.touched]
        lines = [rect(self.x + i * cw, self.y + TOP + j * ch, cw, ch, "g") for i, j in cells]
        return "".join([*self.head, *shade, *lines, *self.boxes])


def steps() -> Panel:
    p = Panel(0, "steps", "time=hr.steps(-6, 0) and hr.steps(6)", (6, 1), (39, 60))
    p.box(1.25, 0.1, 1.75, 0.8)
    p.box(4.25, 0.1, 0.25, 0.8, "y")
    return p


def product() -> Panel:
    p = Panel(1, "a product of axes", 'along=["time", "member"]', (6, 4), (39, 30))
    p.box(2.25, 1.15, 0.25, 0.7)
    p.box(4.5, 2.15, 0.25, 0.7)
    return p


def patches() -> Panel:
    p = Panel(2, "patches", 'hr.patch(256, overlap=32, edge="clip")', (3, 2), (72, 58))
    for i in range(4):
        for j in range(3):
            p.box(
                min(i * 0.75, 2.15), min(j * 0.75, 1.15), 0.85, 0.85, "x" if (i, j) == (1, 1) else "o", (i, j) == (1, 1)
            )
    return p


def crops() -> Panel:
    p = Panel(3, "random crops", "hr.crop(256): elsewhere in each epoch", (3, 2), (72, 58))
    for x, y, kind in ((0.6, 0.1, "x"), (1.9, 0.9, "o"), (0.15, 1.1, "o")):
        p.box(x, y, 0.8, 0.8, kind, kind == "x")
    return p


def image() -> Panel:
    p = Panel(4, "image and label", "the label at half the resolution: scale=2", (2, 2), (58, 58))
    p.box(0.55, 0.45, 0.9, 0.9)
    return p


def label() -> Panel:
    p = Panel(4, "", "", (1, 1), (58, 58))
    p.x += 142
    p.y += 29
    p.head = []
    p.box(0.275, 0.225, 0.45, 0.45, "y")
    return p


def joined() -> Panel:
    p = Panel(5, "two archives, joined by time", 'hr.view("sst/sst", join="left")', (6, 1), (39, 42))
    p.box(3.25, 0.1, 0.25, 0.8)
    return p


def daily() -> Panel:
    p = Panel(5, "", "", (3, 1), (78, 42))
    p.y += 58
    p.head = []
    p.box(1.5, 0.1, 0.25, 0.8, "y")
    return p


def main() -> None:
    panels = [steps(), product(), patches(), crops(), image(), label(), joined(), daily()]
    width, height = 16 + 3 * W + 2 * GAP, 16 + 2 * H + GAP
    title = "<title>Samples as boxes on grids of chunks; shaded: the chunks that are read</title>"
    body = "".join(p.draw() for p in panels)
    TARGET.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">{title}'
        f"<style>{STYLE}</style>{body}</svg>\n"
    )


if __name__ == "__main__":
    main()
