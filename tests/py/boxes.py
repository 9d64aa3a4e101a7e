"""Random boxes: archives, sample axes and views as a test draws them, and what numpy makes of each sample."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

import headrace as hr

EDGES = ("valid", "pad", "reflect", "clip")
FILL = 11  # of every array: what a missing chunk is


@dataclass
class Axis:
    """A sample axis: what the archive calls it and where its boxes begin."""

    name: str
    kind: str
    length: int = 0
    size: int = 0
    stride: int = 1
    edge: str = "valid"
    value: float | None = None
    parts: int = 1
    align: int = 1

    @property
    def places(self) -> int:
        return (self.length - self.size) // self.align + 1

    @property
    def n(self) -> int:
        if self.kind == "steps":
            return self.length
        if self.kind != "patch":
            return self.parts
        over = max(self.length - self.size, 0)
        n = over // self.stride + 1
        return n + (self.edge != "valid" and over % self.stride != 0 and n * self.stride < self.length)

    def start(self, position: int) -> int:
        """Of a patch or a step; of a crop it is drawn."""
        at = position * (self.stride if self.kind == "patch" else 1)
        return min(at, self.length - self.size) if self.edge == "clip" and self.kind == "patch" else at

    def span(self, position: int) -> tuple[int, int]:
        """The first start and one past the last that a position may have."""
        if self.kind != "crop":
            return self.start(position), self.start(position) + 1
        low, high = position * self.places // self.n, (position + 1) * self.places // self.n
        return low * self.align, (max(high, low + 1) - 1) * self.align + 1

    def along(self) -> Any:
        if self.kind == "patch":
            return hr.patch(self.size, self.stride, edge=self.edge, value=self.value)
        if self.kind == "crop":
            return hr.crop(self.size, self.parts)
        return hr.draws(self.parts) if self.kind == "draws" else None


@dataclass
class Part:
    """One dimension of a view: on an axis (scale, first, count, step) or inside (index)."""

    name: str
    length: int
    axis: Axis | None = None
    scale: Fraction = Fraction(1)
    first: int = 0
    count: int = 1
    step: int = 1
    keep: bool = True
    given: Any = None  # what the view says of it, or None
    index: Any = None

    def exists(self, position: int) -> bool:
        assert self.axis is not None
        if self.axis.edge not in ("valid", "reflect") or self.axis.kind == "crop":
            return True
        far = self.length - 1 if self.axis.edge == "reflect" else 0
        low = self.begin(self.axis.start(position))
        return low >= -far and low + self.reach <= self.length + far

    @property
    def reach(self) -> int:
        return (self.count - 1) * self.step + 1

    def begin(self, start: int) -> int:
        return int(start / self.scale // 1) + self.first

    def indices(self, start: int) -> np.ndarray:
        """-1: outside."""
        if self.axis is None:
            return np.atleast_1d(np.arange(self.length)[self.index])
        x = self.begin(start) + np.arange(self.count) * self.step
        if self.axis.edge == "reflect":
            x = np.where(x < 0, -x, x)
            x = np.where(x >= self.length, 2 * (self.length - 1) - x, x)
        return np.where((x < 0) | (x >= self.length), -1, x)


@dataclass
class Shown:
    """A view and its arrays."""

    name: str
    parts: list[Part]
    arrays: dict[str, np.ndarray]
    stack: str | None = None
    dtype: str | None = None
    constant: bool = False
    order: list[int] | None = None
    known: dict[str, Any] = field(default_factory=dict)

    def view(self) -> Any:
        given = {p.name: p.given for p in self.parts if p.given is not None}
        steps = {k: v for k, v in given.items() if isinstance(v, (hr.steps, hr.window))}
        inner = {k: v for k, v in given.items() if k not in steps}
        scale = {
            p.name: float(p.scale) if p.scale.denominator in (1, 2) else p.scale for p in self.parts if p.scale != 1
        }
        dims = self.dims()
        return hr.view(
            *self.arrays,
            stack=self.stack,
            isel=inner or None,
            scale=scale or None,
            dtype=self.dtype,
            constant=self.constant,
            decode=False,
            order=tuple(dims[d] for d in self.order) if self.order else None,
            **steps,
        )

    def dims(self) -> list[str]:
        stepped = [p for p in self.parts if p.axis is not None and p.axis.kind == "steps" and p.keep]
        names = ["step"] if len(stepped) == 1 else [p.name for p in stepped]
        names += [self.stack] if self.stack else []
        return names + [p.name for p in self.parts if p.keep and p not in stepped]

    def expected(self, starts: dict[str, int]) -> np.ndarray:
        where = [p.indices(starts[p.axis.name] if p.axis else 0) for p in self.parts]
        value = next((p.axis.value for p in self.parts if p.axis and p.axis.value is not None), FILL)
        outside = np.zeros([len(w) for w in where], bool)
        for d, w in enumerate(where):
            outside |= (w < 0).reshape([-1 if k == d else 1 for k in range(len(where))])
        rows = [np.where(outside, np.asarray(value, a.dtype), a[np.ix_(*where)]) for a in self.arrays.values()]
        stepped = [d for d, p in enumerate(self.parts) if p.axis is not None and p.axis.kind == "steps"]
        moved = stepped + [d for d in range(len(self.parts)) if d not in stepped]
        drop = tuple(k for k, d in enumerate(moved) if not self.parts[d].keep)
        rows = [np.squeeze(r.transpose(moved), axis=drop) for r in rows]
        lead = sum(self.parts[d].keep for d in stepped)
        row = np.stack(rows, lead) if self.stack else rows[0]
        row = row.transpose(self.order) if self.order else row
        return row.astype(self.dtype) if self.dtype else row


@dataclass
class Case:
    axes: list[Axis]
    views: list[Shown]

    def samples(self, path: Any) -> Any:
        return hr.open(path).samples(
            along={a.name: a.along() for a in self.axes}, **{v.name: v.view() for v in self.views}
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(a.n for a in self.axes)

    def ids(self) -> np.ndarray:
        """That exist."""
        keep = np.ones(self.shape, bool)
        for v in self.views:
            for p in v.parts:
                for d, a in enumerate(self.axes):
                    if p.axis is a:
                        there = np.array([p.exists(j) for j in range(a.n)])
                        keep &= there.reshape([-1 if k == d else 1 for k in range(len(self.axes))])
        return np.flatnonzero(keep)

    def positions(self, sample: int) -> tuple[int, ...]:
        return tuple(int(j) for j in np.unravel_index(sample, self.shape))

    def elements(self, sample: int) -> dict[str, set[tuple[int, ...]]]:
        """Of each array that follows an axis, what the boxes of a sample can show."""
        out: dict[str, set[tuple[int, ...]]] = {}
        at = dict(zip((a.name for a in self.axes), self.positions(sample)))
        for v in self.views:
            if v.constant:
                continue
            sets = []
            for p in v.parts:
                starts = range(*p.axis.span(at[p.axis.name]), p.axis.align) if p.axis else [0]
                sets.append({int(i) for s in starts for i in p.indices(s)} - {-1})
            for name in v.arrays:
                out.setdefault(name, set()).update(itertools.product(*sets))
        return out


# ---- drawing them ----------------------------------------------------------------------------------------------------


def draw_axis(rng: random.Random, name: str, kind: str) -> Axis:
    if kind == "steps":
        return Axis(name, kind, rng.randint(1, 9))
    if kind == "draws":
        return Axis(name, kind, parts=rng.randint(1, 3))
    unit = rng.choice((1, 1, 2))  # of coarser views
    if kind == "crop":
        size = unit * rng.randint(1, 3)
        axis = Axis(name, kind, size + unit * rng.randint(0, 8) + rng.randrange(unit), size, align=unit)
        axis.parts = rng.randint(1, min(4, axis.places))
        return axis
    edge = rng.choice(EDGES)
    axis = Axis(name, kind, 0, unit * rng.randint(1, 4), unit * rng.randint(1, 5), edge, align=unit)
    low = axis.size if edge in ("valid", "clip") else axis.size // 2 + 1
    axis.length = -(-max(low, rng.randint(2, 14)) // unit) * unit
    return axis


def draw_part(rng: random.Random, axis: Axis) -> Part:
    p = Part(axis.name, axis.length, axis, keep=axis.kind != "steps")
    if axis.kind == "steps":
        if rng.random() < 0.2:
            p.scale = Fraction(rng.choice((2, 3)))
        first = rng.randint(-2, 1)
        step, more = rng.choice((1, 1, 2)), rng.randint(0, 2)
        how = rng.random()
        if axis.length > 5 and how < 0.4:
            p.first, p.count, p.step, p.keep = first, more + 1, step, more > 0
            p.given = hr.steps(first, first + more * step, step)
        elif axis.length > 5 and how < 0.6:
            p.first, p.count, p.given, p.keep = -more, more + 1, hr.window(more + 1), True
    else:
        p.scale = Fraction(rng.choice((1, axis.align, Fraction(1, 2))))
        p.count = int(axis.size / p.scale)
        if axis.kind == "patch" and rng.random() < 0.25:  # a margin, or a part of the box
            p.first, step = rng.randint(-1, 1), rng.choice((1, 2))
            more = rng.randint(1, p.count)
            if axis.edge == "clip":  # a part of it: what is moved inside has no margin
                most = min(p.count, axis.size) - 1
                p.first, step = rng.randint(0, most), 1
                more = rng.randint(0, most - p.first)
            p.count, p.step, p.given = more + 1, step, hr.steps(p.first, p.first + more * step, step)
            p.keep = more > 0
    p.length = int(-(-axis.length // p.scale)) if rng.random() < 0.5 else int(axis.length // p.scale)
    p.length = max(p.length, 1)
    return p


def draw_inner(rng: random.Random, name: str) -> Part:
    p = Part(name, rng.randint(1, 6), index=slice(None))
    how = rng.random()
    if how < 0.2:
        p.given = p.index = rng.randrange(-p.length, p.length)
        p.keep = False
    elif how < 0.4:
        first = rng.randrange(p.length)
        p.given = p.index = slice(first, rng.randint(first + 1, p.length), rng.randint(1, 3))
    elif how < 0.6:
        p.given = p.index = [rng.randrange(-p.length, p.length) for _ in range(rng.randint(1, 4))]
    return p


def draw_view(rng: random.Random, number: int, axes: list[Axis]) -> Shown:
    constant = number > 0 and rng.random() < 0.2
    followed = [a for a in axes if a.kind != "draws"]
    if number and not constant:
        followed = rng.sample(followed, rng.randint(1, len(followed)))
    parts = [] if constant else [draw_part(rng, a) for a in followed]
    parts += [draw_inner(rng, name) for name in "ck"[: rng.randint(0 if parts else 1, 2)]]
    if number == 0:  # says how long the axes are
        for p in parts:
            if p.axis is not None:
                p.scale, p.length = Fraction(1), p.axis.length
                p.count = p.axis.size if p.axis.size and p.given is None else p.count
    rng.shuffle(parts)
    dtype = rng.choice(("f4", "f8", "i2", "u1", ">i4"))
    shape = tuple(p.length for p in parts)
    names = [f"a{number}{k}" for k in range(rng.choice((1, 1, 2)))]
    arrays = {}
    for k, name in enumerate(names):
        arrays[name] = (np.arange(np.prod(shape)).reshape(shape) * (k + 1) + 100 * number).astype(dtype)
    v = Shown(f"v{number}", parts, arrays, "s" if len(names) > 1 or rng.random() < 0.2 else None, constant=constant)
    v.dtype = rng.choice((None, None, "f8"))
    if rng.random() < 0.3 and len(v.dims()) > 1:
        v.order = list(range(len(v.dims())))
        rng.shuffle(v.order)
    return v


def draw_case(rng: random.Random, kinds: tuple[str, ...] = ("steps", "patch", "patch", "crop", "draws")) -> Case:
    while True:
        axes = [draw_axis(rng, name, rng.choice(kinds)) for name in "tmyx"[: rng.randint(1, 4)]]
        if all(a.kind == "draws" for a in axes) or np.prod([a.n for a in axes]) > 400:
            continue
        value = rng.choice((None, 3, 100))
        for a in axes:
            a.value = value if a.kind == "patch" and a.edge == "pad" else None
        case = Case(axes, [draw_view(rng, i, axes) for i in range(rng.randint(1, 3))])
        for a in axes:  # crops begin where every view has a position
            scales = [p.scale for v in case.views for p in v.parts if p.axis is a]
            a.align = int(np.lcm.reduce([s.numerator for s in scales])) if a.kind == "crop" else 1
            a.parts = min(a.parts, a.places) if a.kind == "crop" else a.parts
        fits = all(
            p.reach <= p.length or p.axis is None or p.axis.edge in ("pad", "reflect")
            for v in case.views
            for p in v.parts
        )
        if fits and len(case.ids()):
            return case


def write_case(rng: random.Random, case: Case, path: Path) -> Path:
    version = rng.choice((2, 3))
    root = zarr.open_group(path, mode="w", zarr_format=version)
    for v in case.views:
        for name, data in v.arrays.items():
            options: dict[str, Any] = {"compressors": rng.choice((None, "auto"))}
            chunks = tuple(rng.randint(1, n + 1) for n in data.shape)
            if version == 3:
                options["compressors"] = rng.choice((None, ZstdCodec(level=1), BloscCodec(cname="lz4")))
                options["dimension_names"] = [p.name for p in v.parts]
                if rng.random() < 0.3:
                    options["shards"] = tuple(c * rng.randint(1, 3) for c in chunks)
            else:
                options["attributes"] = {"_ARRAY_DIMENSIONS": [p.name for p in v.parts]}
            array = root.create_array(
                name, shape=data.shape, dtype=data.dtype, chunks=chunks, fill_value=FILL, **options
            )
            array[...] = data
    return path
