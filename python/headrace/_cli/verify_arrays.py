"""Arrays of an archive, read whole in bounded memory, and what has to be true of those that make up an atlas."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace._format import count

Rule = Callable[[Any, int], None]  # a part of an array and the number of its first row; says what is wrong itself
_MOST_NAMED = 8
PARTS = ("indptr", "indices", "data")


class Findings:
    def __init__(self) -> None:
        self.broken: list[dict[str, str]] = []
        self.absent: list[dict[str, Any]] = []
        self._of: dict[tuple[str, str], int] = {}

    def add(self, place: str, what: str, kind: str = "") -> None:
        """Of each kind a few are named at each place."""
        n = self._of[place, kind] = self._of.get((place, kind), 0) + 1
        if not kind or n <= _MOST_NAMED:
            self.broken.append({"place": place, "what": what})


class Reader:
    def __init__(self, archive: Any, folder: Path | None, found: Findings, memory: int, complete: bool) -> None:
        self.archive, self.folder, self.found, self.memory, self.complete = archive, folder, found, memory, complete
        self.nodes = {n["path"]: n for n in archive.info["nodes"]}
        self.read_arrays, self.read_bytes = 0, 0
        self.last: dict[str, int] = {}  # what an indptr ended with, by its path
        self.columns = _scdl_columns(archive, folder)
        for path, node in self.nodes.items():
            if node.get("error"):
                found.add(path or "/", str(node["error"]))
        if not archive.info["complete"]:
            raise ValueError(f"{archive.url}: the store cannot list, its metadata is not consolidated: what there is "
                             "to verify is not known")  # fmt: skip
        self._matrices = [p for p in self.nodes if all(f"{p}/{n}".lstrip("/") in self.nodes for n in PARTS)]
        for path in self._matrices:
            self._check_matrix(path)
        for path in [p for p in self.nodes if self._kind(p) == "dataframe"]:
            self._check_frame(path)

    def arrays(self) -> list[str]:
        """indptr before what it speaks of."""
        known = [p for p, n in self.nodes.items() if n["kind"] == "array" and not n.get("error")]
        return sorted(known, key=lambda p: (p.rpartition("/")[0], not p.endswith("indptr"), p))

    @property
    def total(self) -> int:
        return sum(int(self.nodes[p].get("bytes") or 0) for p in self.arrays())

    def matrices(self) -> list[str]:
        """Sparse ones."""
        return self._matrices

    def _kind(self, path: str) -> str:
        return str((self.nodes[path].get("attributes") or {}).get("encoding-type", ""))

    def _by_genes(self, matrix: str) -> bool:
        attributes = self.nodes[matrix].get("attributes") or {}
        kind = attributes.get("encoding-type") or attributes.get("h5sparse_format")
        return str(kind).startswith("csc")

    def shape(self, matrix: str) -> tuple[int, int | None]:
        """Rows, and columns where they are known; of one by genes, too: along its offsets, and the other."""
        attributes = self.nodes[matrix].get("attributes") or {}
        rows = int(self.nodes[f"{matrix}/indptr"]["shape"][0]) - 1
        shape = attributes.get("shape") or attributes.get("h5sparse_shape") or [rows, None]
        major, minor = (shape[1], shape[0]) if self._by_genes(matrix) else (shape[0], shape[1])
        return (rows if major is None else int(major)), (self.columns if minor is None else int(minor))

    def _check_matrix(self, matrix: str) -> None:
        nodes = [self.nodes[f"{matrix}/{n}"] for n in PARTS]
        if any(n.get("error") for n in nodes):
            return
        rows, _ = self.shape(matrix)
        n = [int(node["shape"][0]) for node in nodes]
        if n[0] != rows + 1:
            self.found.add(f"{matrix}/indptr", f"{count(n[0])} items, where {count(rows)} rows take {count(rows + 1)}")
        if n[1] != n[2]:
            self.found.add(matrix, f"{count(n[1])} columns in indices, and {count(n[2])} values in data")

    def _check_frame(self, path: str) -> None:
        """All columns of a data frame are as long as the matrix beside it, or as the first of them."""
        lead, _, name = path.rpartition("/")
        lengths: dict[str, int] = {}
        for p, node in self.nodes.items():
            below = p.removeprefix(f"{path}/")
            part = below.partition("/")[2]
            if p != below and node["kind"] == "array" and part in ("", "codes", "values", "mask") and node.get("shape"):
                lengths[p] = int(node["shape"][0])
        beside = f"{lead}/X".lstrip("/")
        wanted = None
        if beside in self._matrices and self._kind(beside) != "csc_matrix" and name in ("obs", "var"):
            wanted = self.shape(beside)[0 if name == "obs" else 1]
        wanted = next(iter(lengths.values()), 0) if wanted is None else wanted
        for p, n in lengths.items():
            if n != wanted:
                self.found.add(p, f"{count(n)} rows, where {count(wanted)} are expected")

    def described(self) -> list[str]:
        lines = []
        for m in self.matrices():
            rows, columns = self.shape(m)
            if columns is not None and self._by_genes(m):
                rows, columns = columns, rows
            nnz = self.nodes[f"{m}/data"]["shape"]
            genes = f" × {count(columns)}" if columns is not None else ""
            lines.append(f"{m}: {count(rows)}{genes}, {count(nnz[0] if nnz else 0)} non-zeros")
        return lines if len(lines) <= _MOST_NAMED else [*lines[:_MOST_NAMED], f"… {count(len(lines))} matrices"]

    # ---- reading ----

    def read(self, path: str, rule: Rule | None, report: Callable[[int], None]) -> None:
        node = self.nodes[path]
        array = self.archive[path]
        self.read_arrays += 1
        for block in self._blocks(node):
            self._read_block(array, path, block, rule, report)
        if self.folder is not None:
            self._count_absent(path, node)

    def _blocks(self, node: dict[str, Any]) -> Iterator[tuple[slice, ...]]:
        """Whole chunks, as many at once as memory allows; along the first axis first."""
        shape, chunks = node["shape"], node["chunks"]
        item = max(1, (node["bytes"] or 0) // max(1, prod(shape)))
        steps = [max(1, c) for c in chunks]
        for axis in reversed(range(len(shape))):
            room = self.memory // 3 // max(1, prod(steps) * item)  # decoded, and what is read ahead of it
            steps[axis] *= max(1, min(room, -(-shape[axis] // steps[axis])))
        runs = [[slice(a, min(a + s, n)) for a in range(0, n, s)] for n, s in zip(shape, steps)]
        yield from itertools.product(*runs)

    def _read_block(self, array: Any, path: str, block: tuple[slice, ...], rule: Rule | None,
                    report: Callable[[int], None]) -> None:  # fmt: skip
        try:
            values = array[block]
        except hr.Error as error:
            parts = list(self._chunks_of(self.nodes[path], block))
            if len(parts) > 1:  # each alone, to name those that are broken
                for part in parts:
                    self._read_block(array, path, part, rule, report)
            else:
                where = ", ".join(f"{s.start}:{s.stop}" for s in block)
                self.found.add(path, f"[{where}] cannot be read: {error}", "read")
            return
        n = int(getattr(values, "nbytes", 0))
        self.read_bytes += n
        report(n)
        if rule is not None:
            rule(values, block[0].start if block else 0)

    def _chunks_of(self, node: dict[str, Any], block: tuple[slice, ...]) -> Iterator[tuple[slice, ...]]:
        runs = [
            [slice(a, min(a + c, s.stop)) for a in range(s.start, s.stop, max(1, c))]
            for s, c in zip(block, node["chunks"])
        ]
        yield from itertools.product(*runs)

    # ---- what is not stored ----

    def _count_absent(self, path: str, node: dict[str, Any]) -> None:
        """Objects of chunks (or shards) that are not there, in a directory."""
        keys = _keys(self.folder, path, node) if self.folder else None
        absent = [k for k in keys or () if not os.path.exists(k)]
        if not absent:
            return
        names = [os.path.relpath(k, self.folder) for k in absent[:3]]
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        part = path.rpartition("/")[2] in PARTS and path.rpartition("/")[0] in self.matrices()
        if self.complete or part:
            self.found.add(path, f"chunks are missing: {', '.join(names)}{more}")
        self.found.absent.append({"array": path, "chunks": len(absent), "names": names})


def _keys(folder: Path, path: str, node: dict[str, Any]) -> Iterator[str] | None:
    """Where the chunks of an array lie; None: not in files of the usual names."""
    base = folder / path
    grid = [range(-(-n // c)) for n, c in zip(node["shape"], node.get("shards") or node["chunks"])]
    try:
        if (base / "zarr.json").exists():
            encoding = json.loads((base / "zarr.json").read_bytes()).get("chunk_key_encoding", {})
            name = encoding.get("name", "default")
            separator = encoding.get("configuration", {}).get("separator", "/" if name == "default" else ".")
        else:
            separator, name = json.loads((base / ".zarray").read_bytes()).get("dimension_separator", "."), "v2"
    except (OSError, ValueError):
        return None
    if node.get("rectilinear") or name not in ("default", "v2"):
        return None
    lead = [f"{base}/c"] if name == "default" else []
    if name == "default":
        return (separator.join([*lead, *map(str, at)]) for at in itertools.product(*grid))
    return (f"{base}/" + (separator.join(map(str, at)) or "0") for at in itertools.product(*grid))


def _scdl_columns(archive: Any, folder: Path | None) -> int | None:
    """Genes of an SCDL: rows of the first parquet of var. None: it is none, or they cannot be told."""
    if folder is None or "n_obs" not in archive.attributes:
        return None
    try:
        import pyarrow.parquet as pq

        found = sorted((folder / "var_features").glob("dataframe_*.parquet"))
        return int(pq.read_metadata(found[0]).num_rows) if len(found) == 1 else None
    except (ImportError, OSError, ValueError):
        return None


# ---- rules -----------------------------------------------------------------------------------------------------------


def rules(reader: Any, path: str) -> Rule | None:
    """What has to be true of the values of an array."""
    place, _, name = path.rpartition("/")
    if place in reader.matrices():
        if name == "indptr":
            return _ascends(reader, path, int(reader.nodes[f"{place}/data"]["shape"][0]))
        if name == "indices" and reader.shape(place)[1] is not None:
            return _below(reader, path, 0, reader.shape(place)[1], "column", "genes")
    if name == "codes" and f"{place}/categories" in reader.nodes:
        shape = reader.nodes[f"{place}/categories"]["shape"] or reader.nodes.get(f"{place}/categories/values", {}).get(
            "shape"
        )
        if shape:
            return _below(reader, path, -1, int(shape[0]), "code", "categories")
    return None


def _ascends(reader: Any, path: str, nnz: int) -> Rule:
    rows = int(reader.nodes[path]["shape"][0]) - 1
    before = {"value": 0, "at": 0}

    def rule(values: Any, at: int) -> None:
        if at == 0 and len(values) and values[0] != 0:
            reader.found.add(path, f"begins with {values[0]} instead of 0")
        joined = (
            np.concatenate([[before["value"]], values.astype("int64", copy=False)])
            if at == before["at"] and at
            else values
        )
        shift = at - 1 if at == before["at"] and at else at
        down = np.flatnonzero(joined[1:] < joined[:-1])
        for i in down[:_MOST_NAMED]:
            reader.found.add(path, f"row {count(shift + int(i))} ends before it begins", "order")
        if len(values):
            before["value"], before["at"] = int(values[-1]), at + len(values)
            if at + len(values) == rows + 1 and values[-1] != nnz:
                reader.found.add(path, f"ends with {count(int(values[-1]))}, and there are {count(nnz)} values")

    return rule


def _below(reader: Any, path: str, low: int, high: int, word: str, words: str) -> Rule:
    def rule(values: Any, at: int) -> None:
        if not len(values) or (values.max() < high and values.min() >= low):
            return
        bad = np.flatnonzero((values >= high) | (values < low))
        for i in bad[:_MOST_NAMED]:
            reader.found.add(
                path, f"item {count(at + int(i))} is {word} {values[i]}, and there are {count(high)} {words}", word
            )

    return rule
