"""Random atlases and how they are read, and what every batch of them has to be, by numpy alone. For test_cells_worlds.py.

An atlas is written as arrays, not by anndata, which writes neither all types of numbers nor arrays that are cut differently,
and leaves out no chunks."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import headrace as hr

VALUES = ("f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f4", ">i8", ">u2")
IDS = ("i4", "i8", "u4", "u8", "u2", "i2", ">i4", ">u8")
OFFSETS = ("i4", "i8", "u4", "u8", ">i8", ">u4")
TEXTS = ("B cell", "T cell", "é ü", "", "日本", "a'b", 'a"b', "None", "nan", " B cell", "x" * 300)


@dataclass
class Part:
    """One data set: rows of columns and values, as stored, and its genes."""

    rows: list[tuple[np.ndarray, np.ndarray]]
    genes: list[str]
    obs: dict[str, Any]
    dtype: str
    path: Path = field(default_factory=Path)


def lengths(r: random.Random, n: int, m: int) -> list[int]:
    kind = r.choice(("even", "even", "gaps", "giant", "empty", "ends", "one"))
    most = min(m, 14)
    if kind == "empty":
        return [0] * n
    out = [r.randint(0, most) for _ in range(n)]
    if kind == "gaps":
        out = [k if r.random() < 0.3 else 0 for k in out]
    if kind == "giant":
        out = [k % 2 for k in out]
        out[r.randrange(n)] = m
    if kind == "ends":
        out = [0 if i < n // 3 or i >= n - n // 4 else k for i, k in enumerate(out)]
    if kind == "one":
        out = [0] * n
        out[r.choice((0, n - 1, r.randrange(n)))] = 1
    return out


def values(g: Any, n: int, dtype: str) -> Any:
    t = np.dtype(dtype)
    if t.kind == "b":
        return g.random(n) < 0.8
    out = g.integers(1, 60, n).astype(t)
    if t.kind == "f":
        out = (out / 4).astype(t)
        out[g.random(n) < 0.05] = 0  # stored zeros
    return out


def part(r: random.Random, n: int, genes: list[str], dtype: str, tidy: bool) -> Part:
    g = np.random.default_rng(r.randrange(1 << 30))
    rows = []
    for k in lengths(r, n, len(genes)):
        columns = g.permutation(len(genes))[:k]
        if tidy or r.random() < 0.7:
            columns = np.sort(columns)
        elif k > 1 and r.random() < 0.3:
            columns[-1] = columns[0]  # stored twice
        rows.append((columns.astype("i8"), values(g, k, dtype)))
    return Part(rows, genes, frame(r, n), dtype)


def frame(r: random.Random, n: int) -> dict[str, Any]:
    """Columns, as lists of Python values, None where missing."""

    def some(of: Any, missing: float) -> list[Any]:
        return [None if r.random() < missing else r.choice(of) for _ in range(n)]

    return {
        "kind": ("category", some(TEXTS, 0.1)), "text": ("text", some(TEXTS, 0)), "age": ("nullable", some(range(-3, 90), 0.2)),
        "flag": ("nullable", some((True, False), 0.2)), "sure": ("plain", some((True, False), 0)),
        "count": ("plain", some((0, 1, -5, 1 << 40, 255), 0)), "score": ("float", some((0.5, -1.25, 3e10, 0.1), 0.2)),
        "note": ("nullable text", some(TEXTS, 0.3)),
    }  # fmt: skip


# ---- writing ---------------------------------------------------------------------------------------------------------


def codec(r: random.Random, version: int) -> Any:
    import numcodecs
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    if version == 2:
        return r.choice((None, None, numcodecs.Zstd(1), numcodecs.GZip(1), numcodecs.Blosc("lz4")))
    return r.choice((None, None, ZstdCodec(level=1), GzipCodec(level=1), BloscCodec(cname="lz4")))


def put(r: random.Random, root: Any, name: str, x: Any, chunk: int = 0) -> None:
    version = root.metadata.zarr_format
    n = max(len(x), 1)
    chunk = chunk or r.choice((1, 2, 3, 7, 50, n, n + 5))
    if n > 60 * chunk:
        chunk = n // 40
    options: dict[str, Any] = {"compressors": codec(r, version)}
    if version == 3 and r.random() < 0.3:
        options["shards"] = (chunk * r.choice((1, 2, 5)),)
    if x.dtype.kind not in "OU":
        options["config"] = {"write_empty_chunks": r.random() < 0.5}  # left out: chunks of the fill value
        a = root.create_array(
            name, shape=x.shape, chunks=(chunk,), dtype=x.dtype, fill_value=x.dtype.type(0), **options
        )
    else:
        a = root.create_array(name, shape=x.shape, chunks=(max(n, 1),), dtype=str)
    if len(x):
        a[...] = x


def kind_of(group: Any, kind: str, version: str = "0.1.0", **more: Any) -> None:
    group.attrs.update({"encoding-type": kind, "encoding-version": version, **more})


def write_column(r: random.Random, root: Any, name: str, kind: str, given: list[Any]) -> None:
    missing = np.array([v is None for v in given])
    if kind == "category":
        known = r.sample(TEXTS, len(TEXTS))
        group = root.require_group(name)
        kind_of(group, "categorical", "0.2.0", ordered=False)
        put(r, group, "codes", np.array([-1 if v is None else known.index(v) for v in given], "i1"))
        put(r, group, "categories", np.array(known, object))
    elif kind.startswith("nullable"):
        group = root.require_group(name)
        text = kind.endswith("text")
        kind_of(group, "nullable-string-array" if text else "nullable-integer")
        first: Any = "" if text else False if name == "flag" else 0
        filled = [first if v is None else v for v in given]
        put(r, group, "values", np.array(filled, object if text else type(first)))
        put(r, group, "mask", missing)
    elif kind == "text":
        put(r, root, name, np.array(given, object))
    else:
        put(r, root, name, np.array([np.nan if v is None else v for v in given]))


def write(r: random.Random, p: Part, path: Path) -> None:
    version = r.choice((2, 3))
    root = zarr.open_group(path, mode="w", zarr_format=version)  # type: ignore[arg-type]
    kind_of(root, "anndata")
    n, m = len(p.rows), len(p.genes)
    x = root.create_group("X")
    kind_of(x, "csr_matrix", shape=[n, m])
    ends = np.concatenate([[0], np.cumsum([len(c) for c, _ in p.rows])])
    ids = np.concatenate([c for c, _ in p.rows])
    put(r, x, "data", np.concatenate([v for _, v in p.rows]).astype(p.dtype))
    put(r, x, "indices", ids.astype(r.choice(IDS)))
    put(r, x, "indptr", ends.astype(r.choice(OFFSETS)))
    for name, index, columns in (("obs", [f"c{i}" for i in range(n)], p.obs), ("var", p.genes, {})):
        group = root.create_group(name)
        kind_of(group, "dataframe", "0.2.0", _index="_index", **{"column-order": list(columns)})
        put(r, group, "_index", np.array(index, object))
        for column, (kind, given) in columns.items():
            write_column(r, group, column, kind, given)
    p.path = path


# ---- what a cell is --------------------------------------------------------------------------------------------------


def canonical(p: Part, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns rise, and what is stored twice is one value, added up as it is stored."""
    columns, stored = p.rows[i][0], p.rows[i][1].astype(np.dtype(p.dtype).newbyteorder("="))
    if len(set(columns.tolist())) == len(columns):
        order = np.argsort(columns, kind="stable")
        return columns[order], stored[order]
    out: dict[int, Any] = {}
    for c, v in zip(columns.tolist(), stored):
        out[c] = (out[c] | v if stored.dtype.kind == "b" else np.add(out[c], v)) if c in out else v
    keys = sorted(out)
    return np.array(keys, "i8"), np.array([out[k] for k in keys], stored.dtype)


@dataclass
class Recipe:
    """How cells are read."""

    genes: list[str]
    normalize: float | None
    over: str
    log1p: bool
    factors: dict[str, float] | None
    tokens: dict[str, int] | None


def cell(p: Part, i: int, how: Recipe) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Output columns, values as stored and as computed (float64), of the genes that are left."""
    columns, stored = canonical(p, i)
    number = {g: k for k, g in enumerate(how.genes)}
    to = np.array([number.get(p.genes[c], -1) for c in columns], "i8")
    wide = stored.astype("f8")
    total = p.rows[i][1].astype("f8").sum()
    keep = to >= 0
    for table in (how.factors, how.tokens):
        if table is not None:
            keep &= np.array([p.genes[c] in table for c in columns], bool)
    to, stored, wide = to[keep], stored[keep], wide[keep]
    if how.over == "genes":
        total = wide.sum()
    if how.normalize is not None and total:
        wide = wide * (how.normalize / total)
    if how.log1p:
        wide = np.log1p(wide)
    if how.factors is not None:
        wide = wide / np.array([np.float32(how.factors[how.genes[c]]) for c in to], "f8")
    order = np.argsort(to, kind="stable")
    return to[order], stored[order], wide[order]


def binned(x: np.ndarray, bins: int) -> np.ndarray:
    """scGPT's, of the non-zeros."""
    x = x.astype("f4")
    some = x[x != 0]
    if not len(some):
        return np.zeros(len(x))
    edges = np.quantile(some, np.linspace(0, 1, bins - 1))
    return np.where(x == 0, 0, np.digitize(x, edges))


def opened(parts: list[Part], **options: Any) -> Any:
    if len(parts) == 1:
        options.pop("join", None)
        return hr.open(str(parts[0].path)).cells(**options)
    return hr.cells([str(p.path) for p in parts], **options)
