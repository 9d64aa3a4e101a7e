"""SCDL archives by the letter of their layout, so that the tests need no other writer.

`write_plain`, `write_chunked` and `write_npz` take a matrix as CSR (data, indices, indptr) in the types it is to be stored
in, and return its directory. The header can be left out, or given other facts than the files have.
"""

import json
import pathlib
import struct
from collections.abc import Collection
from typing import Any

import numpy as np

_TYPES = {"u1": 1, "u2": 2, "u4": 3, "u8": 4, "f2": 5, "f4": 6, "f8": 7}


class Matrix:
    """A CSR matrix of cells × genes."""

    def __init__(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, genes: int) -> None:
        self.data, self.indices, self.indptr, self.genes = data, indices, indptr, genes

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    def part(self, first: int, end: int) -> "Matrix":
        """Some rows, counted from 0, in the types of the whole."""
        a, b = int(self.indptr[first]), int(self.indptr[end])
        indptr = (self.indptr[first : end + 1] - self.indptr[first]).astype(self.indptr.dtype)
        return Matrix(self.data[a:b], self.indices[a:b], indptr, self.genes)


def smallest(most: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds `most`."""
    return next(t for t in map(np.dtype, ("u1", "u2", "u4", "u8")) if most <= np.iinfo(t).max)


def random_matrix(rows: int, genes: int, *, density: float = 0.1, dtype: str = "f4", seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, genes)) < density
    row, column = np.nonzero(dense)
    indptr = np.zeros(rows + 1, smallest(len(row)))
    np.cumsum(np.bincount(row, minlength=rows), out=indptr[1:], dtype=indptr.dtype)
    return Matrix(rng.integers(1, 100, len(row)).astype(dtype), column.astype(smallest(genes - 1)), indptr, genes)


def _text(s: str) -> bytes:
    return struct.pack(">I", len(s.encode())) + s.encode()


def header(
    m: Matrix,
    *,
    chunk_rows: int = 0,
    info: bool | None = None,
    version: tuple[int, int, int] = (0, 1, 0),
    features: dict[str, list[str]] | None = None,
    **lengths: int,
) -> bytes:
    """`header.sch`; info: the branch's last part, absent with None. lengths: DATA=…, in place of the truth."""
    out = b"SCDL" + bytes(version) + bytes([1]) + struct.pack(">II", 2 if chunk_rows else 1, 3)
    for name, array in (("DATA", m.data), ("ROWPTR", m.indptr), ("COLPTR", m.indices)):
        kind = _TYPES[array.dtype.str[1:]]
        out += _text(name) + struct.pack(">QIB", lengths.get(name, len(array)), kind, 0)
    if features is None:
        return out
    out += struct.pack(">I", len(features))
    for name, files in features.items():
        out += _text(name) + struct.pack(">QII", m.rows, 8, len(files)) + b"".join(map(_text, files)) + b"\0"
    if info is None:
        return out
    chunks = -(-m.rows // chunk_rows) if chunk_rows else 0
    return out + (b"\1" + struct.pack(">IIQ", chunk_rows, chunks, m.rows) if info else b"\0")


def index_files(name: str, blocks: int = 1) -> list[str]:
    """What the header lists for the features of `blocks` sources."""
    digits = len(str(blocks))
    return [f"{name}/{part}.npy" for part in ("cumulative_sum_index", "labels", "version")] + [
        f"{name}/dataframe_{i:0{digits}d}.parquet" for i in range(blocks)
    ]


_FEATURES = {name: index_files(name) for name in ("var_features", "obs_features")}


def _arrays(where: pathlib.Path, m: Matrix) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for name, array in (("data", m.data), ("row_ptr", m.indptr), ("col_ptr", m.indices)):
        (where / f"{name}.npy").write_bytes(array.tobytes())


def _root(where: pathlib.Path, m: Matrix, head: bytes | None) -> pathlib.Path:
    where.mkdir(parents=True, exist_ok=True)
    (where / "version.json").write_text(json.dumps("0.1.3"))
    (where / "metadata.json").write_text(json.dumps({"num_rows": m.rows}))
    if head is not None:
        (where / "header.sch").write_bytes(head)
    return where


def write_plain(where: pathlib.Path, m: Matrix, *, head: bytes | bool | None = True) -> pathlib.Path:
    _arrays(where, m)
    return _root(where, m, header(m, features=_FEATURES) if head is True else head or None)


def write_neighbors(where: pathlib.Path, m: Matrix) -> None:
    for name, array, kind in (("values", m.data, "f4"), ("indices", m.indices, "u4"), ("indptr", m.indptr, "u8")):
        (where / f"neighbor_{name}.npy").write_bytes(array.astype(kind).tobytes())


def _pieces(m: Matrix, chunk_rows: int) -> list[tuple[str, Matrix]]:
    starts = range(0, m.rows, chunk_rows)
    return [(f"chunk_{i:05d}", m.part(a, min(a + chunk_rows, m.rows))) for i, a in enumerate(starts)]


def _chunk_head(m: Matrix, chunk_rows: int) -> bytes:
    return header(m, chunk_rows=chunk_rows, info=True, features=_FEATURES)


def write_chunked(
    where: pathlib.Path,
    m: Matrix,
    chunk_rows: int,
    *,
    head: bytes | bool | None = True,
    only: Collection[int] | None = None,
) -> pathlib.Path:
    """only: the numbers of the chunks that are written, of all."""
    for k, (name, piece) in enumerate(_pieces(m, chunk_rows)):
        if only is None or k in only:
            _arrays(where / name, piece)
    return _root(where, m, _chunk_head(m, chunk_rows) if head is True else head or None)


def write_npz(where: pathlib.Path, m: Matrix, chunk_rows: int, *, compress: bool = True) -> pathlib.Path:
    """Each chunk one zip of real NPY files."""
    save = np.savez_compressed if compress else np.savez
    for name, piece in _pieces(m, chunk_rows):
        (where / name).mkdir(parents=True)
        save(where / name / "chunk.npz", data=piece.data, row_ptr=piece.indptr, col_ptr=piece.indices)
    return _root(where, m, _chunk_head(m, chunk_rows))
