"""`header.sch`: which arrays there are, of which types, and how the rows are cut into chunks.

Integers are big-endian, strings have a 32-bit length in front. What stands behind the arrays is optional, in the order
in which versions added it: feature indices, then the chunks.
"""

from __future__ import annotations

import struct

from headrace._errors import FormatError

PLAIN, CHUNKED = 1, 2
_DTYPES = {1: "uint8", 2: "uint16", 3: "uint32", 4: "uint64", 5: "float16", 6: "float32", 7: "float64", 8: "string",
           9: "fixed_string"}  # fmt: skip
_MOST = 4096  # arrays, files or dimensions: more is a broken header
_MAJOR = 0  # of the schema, as far as it is known


class ArrayInfo:
    """One array as the header has it. The length is what was written, which need not be what lies there."""

    def __init__(self, name: str, length: int, dtype: str, shape: tuple[int, ...] | None) -> None:
        self.name, self.length, self.dtype, self.shape = name, length, dtype, shape


class FeatureInfo(ArrayInfo):
    """A feature index: `index_files` are paths below the dataset."""

    def __init__(self, name: str, length: int, dtype: str, files: list[str], shape: tuple[int, ...] | None) -> None:
        super().__init__(name, length, dtype, shape)
        self.index_files = files


class ChunkedInfo:
    """How the rows are cut: `chunk_size` in each chunk, fewer in the last."""

    def __init__(self, chunk_size: int, num_chunks: int, total_rows: int) -> None:
        self.chunk_size, self.num_chunks, self.total_rows = chunk_size, num_chunks, total_rows

    def get_chunk_for_row(self, row: int) -> tuple[int, int]:
        """(chunk, row within it)."""
        return divmod(row, self.chunk_size)

    def rows(self, chunk: int) -> int:
        return min(self.chunk_size, self.total_rows - chunk * self.chunk_size)


class Header:
    def __init__(self) -> None:
        self.version = (0, 0, 0)
        self.backend = PLAIN
        self.arrays: list[ArrayInfo] = []
        self.feature_indices: list[FeatureInfo] = []
        self.chunked_info: ChunkedInfo | None = None

    def get_array(self, name: str) -> ArrayInfo | None:
        return next((a for a in self.arrays if a.name == name), None)

    def get_feature_index(self, name: str) -> FeatureInfo | None:
        return next((f for f in self.feature_indices if f.name == name), None)


class _Cursor:
    def __init__(self, data: bytes, place: str) -> None:
        self.data, self.place, self.at = data, place, 0

    def fail(self, what: str) -> FormatError:
        return FormatError(f"{self.place}: {what} (at byte {self.at} of {len(self.data)})")

    def number(self, kind: str, what: str) -> int:
        size = struct.calcsize(">" + kind)
        if self.at + size > len(self.data):
            raise self.fail(f"the header ends within {what}")
        (value,) = struct.unpack_from(">" + kind, self.data, self.at)
        self.at += size
        return int(value)

    def count(self, what: str) -> int:
        n = self.number("I", what)
        if n > _MOST:
            raise self.fail(f"{n} {what}: the header is broken")
        return n

    def text(self, what: str) -> str:
        n = self.number("I", what)
        raw = self.data[self.at : self.at + n]
        if len(raw) < n:
            raise self.fail(f"the header ends within {what}")
        self.at += n
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.fail(f"{what} is not UTF-8") from None

    def dtype(self, what: str) -> str:
        n = self.number("I", what)
        if n not in _DTYPES:
            raise self.fail(f"{what} has data type {n}, which is none of 1 to 9")
        return _DTYPES[n]

    def shape(self, what: str) -> tuple[int, ...] | None:
        if not self.number("B", what):
            return None
        return tuple(self.number("I", what) for _ in range(self.count("dimensions")))

    @property
    def ended(self) -> bool:
        return self.at >= len(self.data)


def parse_header(data: bytes, place: str) -> Header:
    """Raises `FormatError` naming `place`."""
    c, h = _Cursor(data, place), Header()
    if data[:4] != b"SCDL":
        raise c.fail("this is no SCDL header: it does not begin with SCDL")
    c.at = 4
    h.version = (c.number("B", "the version"), c.number("B", "the version"), c.number("B", "the version"))
    if h.version[0] > _MAJOR:
        raise c.fail(f"SCDL schema {'.'.join(map(str, h.version))} is newer than what is read here ({_MAJOR}.x)")
    if c.number("B", "the byte order") != 1:
        raise c.fail("the byte order of a header is 1 (network)")
    h.backend = c.number("I", "the backend")
    if h.backend not in (PLAIN, CHUNKED):
        raise c.fail(f"backend {h.backend}: 1 (memory-mapped) and 2 (chunked) are read")
    for _ in range(c.count("arrays")):
        name = c.text("the name of an array")
        h.arrays.append(ArrayInfo(name, c.number("Q", name), c.dtype(name), c.shape(name)))
    if not c.ended:
        h.feature_indices = [_feature(c) for _ in range(c.count("feature indices"))]
    if not c.ended and c.number("B", "the chunks"):
        h.chunked_info = _chunked(c)
    if h.backend == CHUNKED and h.chunked_info is None:
        raise c.fail("backend 2 (chunked), but the header does not say how the rows are cut")
    return h


def _feature(c: _Cursor) -> FeatureInfo:
    name = c.text("the name of a feature index")
    length, dtype = c.number("Q", name), c.dtype(name)
    files = [c.text(f"the files of {name}") for _ in range(c.count("files"))]
    return FeatureInfo(name, length, dtype, files, c.shape(name))


def _chunked(c: _Cursor) -> ChunkedInfo:
    info = ChunkedInfo(c.number("I", "the chunks"), c.number("I", "the chunks"), c.number("Q", "the chunks"))
    if info.chunk_size == 0 or info.num_chunks != -(-info.total_rows // info.chunk_size):
        raise c.fail(
            f"{info.total_rows} rows in chunks of {info.chunk_size} are not {info.num_chunks} chunks: it is wrong"
        )
    return info
