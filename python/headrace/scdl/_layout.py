"""What a dataset is made of: its header and its sizes, checked; and the arrays of a chunk, checked too.

A chunk is three raw arrays without any header of their own: `row_ptr` (from 0 to the number of values, never down),
`col_ptr` and `data` (one item a value). Files of other sizes are refused by name: a row is never short.
"""

from __future__ import annotations

import json
import os
import warnings

from headrace._errors import DataError, FormatError, InvalidError, NotFoundError
from headrace.scdl._header import CHUNKED, Header, parse_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace.scdl._files import Files

DATA, ROWS, COLUMNS = "data.npy", "row_ptr.npy", "col_ptr.npy"
PACKED = "chunk.npz"  # the three as one compressed file, in some chunked datasets
NAMES = {"DATA": DATA, "ROWPTR": ROWS, "COLPTR": COLUMNS}


class Layout:
    """`rows` in `chunks` of `chunk_size`; `dtypes` by file name."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.header = self._read_header()
        self.dtypes = {DATA: "float32", COLUMNS: "uint32", ROWS: "uint64"}
        self._take_dtypes()
        self.metadata = self._read_json("metadata.json")
        self.chunked = self.header is not None and self.header.backend == CHUNKED
        self.rows = self._count_rows()
        if self.chunked and self.header is not None and self.header.chunked_info is not None:
            self.chunk_size, self.chunks = self.header.chunked_info.chunk_size, self.header.chunked_info.num_chunks
        else:
            self.chunk_size, self.chunks = max(1, self.rows), 1

    def _read_header(self) -> Header | None:
        found = self.files.read("header.sch")
        if found is not None:
            return parse_header(found, self.files.place("header.sch"))
        if self.files.read("metadata.json") is None and self.files.end(ROWS, 1) is None:
            zarr = any(self.files.end(name, 1) is not None for name in ("zarr.json", ".zgroup"))
            hint = "; there is a Zarr archive: headrace.open(…).cells() reads those" if zarr else ""
            raise NotFoundError(f"{self.files.shown}: no SCDL dataset: neither header.sch nor {ROWS} is there{hint}")
        warnings.warn(f"{self.files.place('header.sch')} is missing: the data types are taken to be float32, uint32 "
                      "and uint64, as in datasets of that time", stacklevel=5)  # fmt: skip
        return None

    def _take_dtypes(self) -> None:
        for array in self.header.arrays if self.header else ():
            if array.name not in NAMES:
                continue
            if not array.dtype.startswith("uint") and (array.name != "DATA" or not array.dtype.startswith("float")):
                raise FormatError(f"{self.files.place('header.sch')}: {array.name} has data type {array.dtype}")
            self.dtypes[NAMES[array.name]] = array.dtype

    def _read_json(self, name: str) -> dict[str, Any]:
        found = self.files.read(name)
        try:
            value = json.loads(found) if found is not None else {}
        except ValueError as e:
            raise FormatError(f"{self.files.place(name)}: no JSON: {e}") from None
        return value if isinstance(value, dict) else {"": value}

    def version(self) -> str:
        """Of the package that wrote the dataset."""
        return str(self._read_json("version.json").get("", ""))

    def _count_rows(self) -> int:
        """metadata.json is not asked: it keeps its number when datasets are concatenated."""
        if self.chunked and self.header is not None and self.header.chunked_info is not None:
            return self.header.chunked_info.total_rows
        found = self.files.end(ROWS, 1)
        if found is None:
            raise FormatError(f"{self.files.place(ROWS)}: missing, and header.sch speaks of no chunks")
        rows, rest = divmod(found[1], self.item(ROWS))
        if rest or not rows:
            raise FormatError(f"{self.files.place(ROWS)}: {found[1]} bytes are no offsets of {self.dtypes[ROWS]}")
        return rows - 1

    def item(self, name: str) -> int:
        import numpy as np

        return np.dtype(self.dtypes[name]).itemsize

    def rows_of(self, chunk: int) -> int:
        return min(self.chunk_size, self.rows - chunk * self.chunk_size)

    def key(self, chunk: int, name: str) -> str:
        return f"chunk_{chunk:05d}/{name}" if self.chunked else name

    def check(self, chunk: int, sizes: dict[str, int], values: int, place: str) -> None:
        """The sizes of a chunk's files against its rows and values."""
        expected = {ROWS: self.rows_of(chunk) + 1, COLUMNS: values, DATA: values}
        for name, n in expected.items():
            if sizes[name] != n * self.item(name):
                raise DataError(
                    f"{place}/{name}: {sizes[name]} bytes, where {n} items of {self.dtypes[name]} take "
                    f"{n * self.item(name)}; the file is cut or header.sch names another type"
                )


class Chunk:
    """The arrays of a chunk, mapped. Slices of them stay readable whatever becomes of the files."""

    def __init__(self, layout: Layout, chunk: int, folder: str, place: str) -> None:
        """`place`: where the files come from, for messages."""
        import numpy as np

        sizes = {}
        for name in (ROWS, COLUMNS, DATA):
            try:
                sizes[name] = os.stat(f"{folder}/{name}").st_size
            except FileNotFoundError:
                raise FormatError(f"{place}/{name}: missing") from None
        arrays = {
            name: np.asarray(
                np.memmap(f"{folder}/{name}", layout.dtypes[name], "r", shape=(size // layout.item(name),))
            )
            if size >= layout.item(name)
            else np.empty(0, layout.dtypes[name])
            for name, size in sizes.items()
        }
        self.place = place
        self.row_ptr, self.columns, self.values = arrays[ROWS], arrays[COLUMNS], arrays[DATA]
        if len(self.row_ptr) != layout.rows_of(chunk) + 1 or sizes[ROWS] % layout.item(ROWS):
            layout.check(chunk, sizes, len(self.values), place)
        layout.check(chunk, sizes, int(self.row_ptr[-1]), place)
        if self.row_ptr[0] != 0:
            raise DataError(f"{place}/{ROWS}: begins with {self.row_ptr[0]} instead of 0")

    def check_order(self, first: int) -> None:
        """`row_ptr` never goes down. `first`: number of the first row, for messages."""
        import numpy as np

        down = np.flatnonzero(self.row_ptr[1:] < self.row_ptr[:-1])
        if len(down):
            raise self.disorder(first + int(down[0]))

    def disorder(self, row: int) -> DataError:
        return DataError(f"{self.place}/{ROWS}: row {row} ends before it begins")


class LocalChunks:
    """The chunks of a directory, mapped where they lie, each when it is first asked for."""

    def __init__(self, layout: Layout, root: str) -> None:
        self._layout, self._root = layout, root
        self._open: dict[int, Chunk] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalChunks, (self._layout, self._root)

    def acquire(self, chunk: int) -> Chunk:
        found = self._open.get(chunk)
        if found is None:
            folder = f"{self._root}/chunk_{chunk:05d}" if self._layout.chunked else self._root
            if os.path.exists(f"{folder}/{PACKED}") and not os.path.exists(f"{folder}/{ROWS}"):
                raise InvalidError(f"{folder}/{PACKED}: packed chunks cannot be mapped; open this dataset with "
                                   f"SingleCellMemMapDataset.from_remote({self._root!r}), which unpacks")  # fmt: skip
            found = self._open.setdefault(chunk, Chunk(self._layout, chunk, folder, folder))
            if self._layout.chunked:  # of a whole dataset in one piece, rows are checked as they are read
                found.check_order(chunk * self._layout.chunk_size)
        return found

    def release(self, chunk: int) -> None:
        pass

    def at_once(self) -> int:
        """Chunks that can be held together."""
        return 1 << 20
