"""Chunked SCDL, written in bounded memory: a directory for every run of rows, each with three files of bare numbers.

The layout is the reference's to the byte: the header is the source's with backend 2 and how the rows are cut; row_ptr
of each chunk begins with 0 and keeps the type it has for all rows; features and metadata are copied whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headrace._cli import cells_features, cells_header
from headrace._cli.cells_header import CHUNKED, ArrayInfo, ChunkedInfo, Header, to_bytes
from headrace._cli.cells_raw import smallest, steps
from headrace._cli.cells_source import Cells
from headrace._cli.cells_work import Work

VERSION = "0.1.3"  # of the layout's package whose files these are
Report = Callable[[int], None]  # bytes that were written


class ScdlWriter:
    def __init__(self, cells: Cells, work: Work, chunk_size: int, dtype: str | None, memory: int) -> None:
        self.cells, self.work, self.chunk_size = cells, work, chunk_size
        self.chunks = -(-cells.rows // chunk_size)
        self.types = _types(cells, dtype)
        self._block = max(1 << 12, memory // 32)  # values at a time: a copy in each of two types, and what reads make

    @property
    def total(self) -> int:
        """Bytes of all chunks."""
        size = {n: np.dtype(t).itemsize for n, t in self.types.items()}
        return (self.cells.rows + self.chunks) * size["ROWPTR"] + self.cells.nnz * (size["COLPTR"] + size["DATA"])

    def write(self, report: Report) -> None:
        for k in range(self.chunks):
            name = f"chunk_{k:05d}"
            if self.work.has(name):
                report(sum(f.stat().st_size for f in (self.work.folder / name).iterdir()))
                continue
            with self.work.directory(name) as folder:
                self._write_chunk(k, folder, report)
        self._write_features()
        if self.cells.folder is None:
            for name, value in (("version.json", VERSION), ("metadata.json", {"num_rows": self.cells.rows})):
                with self.work.file(name) as file:
                    file.write(json.dumps(value).encode())
        with self.work.file("header.sch") as file:
            file.write(to_bytes(self.header()))

    def _write_chunk(self, k: int, folder: Path, report: Report) -> None:
        first, end = k * self.chunk_size, min((k + 1) * self.chunk_size, self.cells.rows)
        a, b = self.bounds(first), self.bounds(end)
        with (folder / "row_ptr.npy").open("wb") as file:
            for i, j in steps(first, end + 1, self._block):
                part = offsets(self.cells, i, j, a, b) - np.uint64(a)
                file.write(memoryview(part.astype(self.types["ROWPTR"])))
                report((j - i) * np.dtype(self.types["ROWPTR"]).itemsize)
        for name, array in (("DATA", self.cells.data), ("COLPTR", self.cells.indices)):
            dtype = np.dtype(self.types[name])
            with (folder / cells_header.FILES[name]).open("wb") as file:
                for i, j in steps(a, b, self._block):
                    file.write(memoryview(self.exact(name, np.asarray(array[i:j]), dtype, i)))
                    report((j - i) * dtype.itemsize)

    def bounds(self, row: int) -> int:
        return int(self.cells.indptr[row : row + 1][0])

    def exact(self, name: str, values: Any, dtype: np.dtype[Any], at: int) -> Any:
        """The same numbers in another type: none may become another. Columns are within the genes."""
        if name == "COLPTR":
            check_columns(self.cells, values, at)
        if values.dtype == dtype:
            return np.ascontiguousarray(values)
        with np.errstate(all="ignore"):
            stored = values.astype(dtype)
            same = (stored.astype(values.dtype) == values) | (values != values)
        if not same.all():
            bad = int(np.flatnonzero(~same)[0])
            raise ValueError(
                f"{self.cells.place}: value {at + bad} is {values[bad]}, which {dtype} does not hold: "
                f"--dtype {_wider(values.dtype)} does"
            )
        return stored

    def _write_features(self) -> None:
        for name in ("var_features", "obs_features"):
            if self.work.has(name):
                continue
            if self.cells.folder is None:
                with self.work.directory(name) as folder:
                    cells_features.write(self.cells, name, folder)
            elif (self.cells.folder / name).exists():
                with self.work.directory(name) as folder:
                    shutil.copytree(self.cells.folder / name, folder, dirs_exist_ok=True)
        for name in ("version.json", "metadata.json"):
            if self.cells.folder is not None and (self.cells.folder / name).exists():
                with self.work.file(name) as file:
                    file.write((self.cells.folder / name).read_bytes())

    def header(self) -> Header:
        """Of the source, or as packages that convert write one. Of a source without one, it names no array."""
        made = cells_header.new_header()
        if self.cells.folder is not None and self.cells.header is not None:
            known = self.cells.header
            made.version, made.arrays, made.feature_indices = known.version, known.arrays, known.feature_indices
        elif self.cells.folder is None:
            lengths = {"DATA": self.cells.nnz, "ROWPTR": self.cells.rows + 1, "COLPTR": self.cells.nnz}
            made.arrays = [ArrayInfo(n, lengths[n], self.types[n], None) for n in lengths]
            made.feature_indices = [cells_features.entry(self.work.folder, n) for n in ("var_features", "obs_features")]
        made.backend = CHUNKED
        made.chunked_info = ChunkedInfo(self.chunk_size, self.chunks, self.cells.rows)
        return made

    # ---- reading it back ----

    def compare(self, report: Report) -> int:
        """Every row of what was written with the source, which is read again. Rows; ValueError names what differs."""
        for k in range(self.chunks):
            first, end = k * self.chunk_size, min((k + 1) * self.chunk_size, self.cells.rows)
            a, b = self.bounds(first), self.bounds(end)
            folder = self.work.folder / f"chunk_{k:05d}"
            for name, lo, hi in (("ROWPTR", first, end + 1), ("COLPTR", a, b), ("DATA", a, b)):
                self._compare_file(folder / cells_header.FILES[name], name, lo, hi, a, report)
        return self.cells.rows

    def _compare_file(self, path: Path, name: str, lo: int, hi: int, base: int, report: Report) -> None:
        dtype = np.dtype(self.types[name])
        size = path.stat().st_size
        if size != (hi - lo) * dtype.itemsize:
            raise ValueError(f"{path}: {size} bytes, where {(hi - lo) * dtype.itemsize} were written")
        source = {"ROWPTR": self.cells.indptr, "COLPTR": self.cells.indices, "DATA": self.cells.data}[name]
        for i, j in steps(lo, hi, self._block):
            found = np.fromfile(path, dtype, j - i, offset=(i - lo) * dtype.itemsize)
            wanted = np.asarray(source[i:j])
            if name == "ROWPTR":
                found, wanted = found.astype("uint64") + np.uint64(base), wanted.astype("uint64")
            if not np.array_equal(found, wanted, equal_nan=dtype.kind == "f"):
                raise ValueError(f"{path}: read back, it differs from {self.cells.place} within items {i} to {j - 1}")
            report((j - i) * dtype.itemsize)


def _types(cells: Cells, dtype: str | None) -> dict[str, str]:
    if cells.kind == "scdl" and cells.dtypes:
        if dtype not in (None, cells.dtypes["DATA"]):
            raise ValueError(f"--dtype {dtype}: SCDL keeps its types, and {cells.place} holds {cells.dtypes['DATA']}")
        return {n: cells.dtypes[n] for n in cells_header.FILES}
    columns = smallest(max(0, (cells.columns or 1) - 1))
    return {"DATA": dtype or "float32", "COLPTR": columns, "ROWPTR": smallest(cells.nnz)}


def _wider(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.name in cells_header.NUMBERS else "float64"


def offsets(cells: Cells, i: int, j: int, low: int, high: int) -> Any:
    """indptr[i:j], which never goes down and stays within [low, high]."""
    part = np.asarray(cells.indptr[i:j])
    down = np.flatnonzero(part[1:] < part[:-1])
    if len(down) or (len(part) and (part[0] < low or part[-1] > high)):
        row = i + int(down[0]) if len(down) else i
        raise ValueError(f"{cells.place}: row {row} ends before it begins: its offsets do not ascend")
    return part.astype("uint64")


def check_columns(cells: Cells, values: Any, at: int) -> None:
    if len(values) and cells.columns is not None and (values.max() >= cells.columns or values.min() < 0):
        bad = int(np.flatnonzero((values >= cells.columns) | (values < 0))[0])
        raise ValueError(
            f"{cells.place}: value {at + bad} is in column {values[bad]}, and there are {cells.columns} genes"
        )
