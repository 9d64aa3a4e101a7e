"""Parts of arrays by `[a:b]`: of files of bare numbers, several arrays as one, rows of a dense matrix."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Numbers(Protocol):
    """What HDF5 and Zarr arrays are, too."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, key: slice) -> Any: ...


class RawFile:
    """A file that holds nothing but numbers."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        size = os.stat(path).st_size
        if size % self.dtype.itemsize:
            raise ValueError(f"{path}: {size} bytes are no whole number of {dtype}")
        self.shape = (size // self.dtype.itemsize,)

    def __getitem__(self, key: slice) -> Any:
        a, b, _ = key.indices(self.shape[0])
        found = np.fromfile(self.path, self.dtype, max(0, b - a), offset=a * self.dtype.itemsize)
        if len(found) != max(0, b - a):
            raise ValueError(f"{self.path}: it was cut while it was read")
        return found


class Joined:
    """Arrays one behind the other. `starts`: the first item of each, and the end of the last."""

    def __init__(self, parts: Sequence[Callable[[], Numbers]], starts: Sequence[int], dtype: str) -> None:
        self._parts, self._starts, self.dtype = parts, starts, np.dtype(dtype)
        self.shape = (starts[-1],)

    def __getitem__(self, key: slice) -> Any:
        a, b, _ = key.indices(self.shape[0])
        pieces = []
        while a < b:
            p = bisect_right(self._starts, a, hi=len(self._starts) - 1) - 1
            end = min(b, self._starts[p + 1])
            pieces.append(np.asarray(self._parts[p]()[a - self._starts[p] : end - self._starts[p]]))
            a = end
        return np.concatenate(pieces) if pieces else np.empty(0, self.dtype)


class Offsets:
    """Of chunks whose offsets begin with 0 each: one array of them, as of one matrix."""

    def __init__(self, parts: Sequence[Callable[[], Numbers]], rows: Sequence[int], values: Sequence[int]) -> None:
        self._parts, self._rows, self._values = parts, rows, values
        self.dtype, self.shape = np.dtype("uint64"), (rows[-1] + 1,)

    def __getitem__(self, key: slice) -> Any:
        a, b, _ = key.indices(self.shape[0])
        pieces = []
        while a < b:
            p = min(bisect_right(self._rows, a), len(self._rows) - 1) - 1
            last = p == len(self._parts) - 1
            end = min(b, self._rows[p + 1] + last)
            piece = np.asarray(self._parts[p]()[a - self._rows[p] : end - self._rows[p]])
            pieces.append(piece.astype("uint64") + np.uint64(self._values[p]))
            a = end
        return np.concatenate(pieces) if pieces else np.empty(0, self.dtype)


class DenseRows:
    """A dense matrix as a sparse one: its zeros are left out. Read once to count, and again for the values."""

    def __init__(self, array: Any, memory: int) -> None:
        self.array, self.shape = array, tuple(array.shape)
        self._block = max(1, memory // max(1, self.shape[1] * (np.dtype(array.dtype).itemsize + 9)))
        counts = [np.count_nonzero(self._rows(a, b), axis=1) for a, b in steps(0, self.shape[0], self._block)]
        self.indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts) if counts else [], dtype="uint64")])
        self.indptr = self.indptr.astype("uint64")
        self._held: tuple[int, int, Any, Any] = (0, 0, None, None)

    def _rows(self, a: int, b: int) -> Any:
        return np.asarray(self.array[a:b])

    def part(self, which: int) -> _DensePart:
        """0: columns, 1: values."""
        return _DensePart(self, which)

    def read(self, a: int, b: int, which: int) -> Any:
        pieces = []
        while a < b:
            first, end, columns, values = self._block_of(a)
            pieces.append((columns, values)[which][a - first : b - first])
            a = min(b, end)
        return np.concatenate(pieces) if pieces else np.empty(0, "uint32" if which == 0 else self.array.dtype)

    def _block_of(self, item: int) -> tuple[int, int, Any, Any]:
        """The block of rows that holds an item: its first item, the one behind its last, columns, values."""
        if not self._held[0] <= item < self._held[1]:
            row = int(np.searchsorted(self.indptr, item, side="right")) - 1
            a = row - row % self._block
            b = min(a + self._block, self.shape[0])
            rows = self._rows(a, b)
            at = np.nonzero(rows)
            self._held = (int(self.indptr[a]), int(self.indptr[b]), at[1].astype("uint32"), rows[at])
        return self._held


class _DensePart:
    def __init__(self, rows: DenseRows, which: int) -> None:
        self._rows, self._which = rows, which
        self.dtype = np.dtype("uint32") if which == 0 else np.dtype(rows.array.dtype)
        self.shape = (int(rows.indptr[-1]),)

    def __getitem__(self, key: slice) -> Any:
        a, b, _ = key.indices(self.shape[0])
        return self._rows.read(a, b, self._which)


def steps(a: int, b: int, n: int) -> Iterator[tuple[int, int]]:
    """[a, b) in runs of n."""
    for at in range(a, b, n):
        yield at, min(b, at + n)


def smallest(top: int) -> str:
    """The narrowest unsigned type that holds 0 … top."""
    return next(name for name in ("uint8", "uint16", "uint32", "uint64") if top <= np.iinfo(name).max)
