"""Feature indices: the columns of `var` (one value for each gene) and of `obs` (one for each cell), by blocks of rows.

Nothing is read before it is asked for, and the number of genes needs no more than the ends of the tables.
"""

from __future__ import annotations

import io
import json
import threading

from headrace._arguments import near
from headrace._errors import FormatError, InvalidError, UnsupportedError
from headrace._format import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace.scdl._files import Files


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise UnsupportedError(
            "the features of this dataset are Parquet tables, which pyarrow reads: pip install 'headrace[cells]'; "
            "where only the number of genes is wanted: n_cols="
        ) from None
    return parquet


class FeatureIndex:
    """What `var_features` and `obs_features` have in common. Block b covers rows from `ends[b - 1]` to `ends[b]`."""

    def __init__(self, files: Files | None = None, folder: str = "") -> None:
        self._files, self._folder = files, folder
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.RLock()
        self._ends: list[int] | None = None if self._files else []
        self._labels: list[str | None] | None = None
        self._tables: dict[int, dict[str, Any]] = {}
        self._sizes: dict[int, tuple[int, int]] = {}

    def __repr__(self) -> str:
        known = "" if self._ends is None else f": {self.number_of_rows():,} rows in {plural(len(self), 'block')}"
        return f"<{type(self).__name__} {self._folder or 'of nothing'}{known}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._files, self._folder)

    def forked(self) -> None:
        self._guard = threading.RLock()

    def _read(self, name: str) -> bytes:
        assert self._files is not None
        found = self._files.read(f"{self._folder}/{name}")
        if found is None:
            raise FormatError(f"{self._files.place(self._folder)}: {name} is missing")
        return found

    @property
    def ends(self) -> list[int]:
        with self._guard:
            if self._ends is None:
                self._ends = self._load_ends()
            return self._ends

    def _load_ends(self) -> list[int]:
        import numpy as np

        assert self._files is not None
        place = self._files.place(f"{self._folder}/cumulative_sum_index.npy")
        try:
            sums = np.load(io.BytesIO(self._read("cumulative_sum_index.npy")), allow_pickle=False)
            ends = [int(n) for n in sums.ravel()[1:]]
        except (ValueError, EOFError, OSError, TypeError) as e:
            raise FormatError(f"{place}: no readable array of row numbers: {e}") from None
        if any(b < a for a, b in zip([0, *ends], ends)):
            raise FormatError(f"{place}: the ends of the blocks decrease")
        return ends

    @property
    def labels(self) -> list[str | None]:
        """Where each block came from."""
        with self._guard:
            if self._labels is None:
                self._labels = self._load_labels()
            return self._labels

    def _load_labels(self) -> list[str | None]:
        import numpy as np

        if self._files is None:
            return []
        found = self._files.read(f"{self._folder}/labels.json")
        try:
            if found is not None:
                return [None if x is None else str(x) for x in json.loads(found)]
            return [str(x) for x in np.load(io.BytesIO(self._read("labels.npy")), allow_pickle=False)]
        except ValueError:  # broken, or a pickle, which is not opened; labels are only names
            return [None] * len(self)

    def _table_file(self, block: int) -> bytes:
        digits = len(str(len(self)))
        return self._read(f"dataframe_{block:0{digits}d}.parquet")

    def _broken(self, block: int, why: BaseException) -> FormatError:
        assert self._files is not None
        return FormatError(f"{self._files.place(self._folder)}: the table of block {block} cannot be read: {why}")

    def table(self, block: int) -> dict[str, Any]:
        """The columns of a block, as numpy arrays by name."""
        with self._guard:
            if block not in self._tables:
                parquet = _parquet()
                raw = self._table_file(block)
                try:
                    table = parquet.read_table(io.BytesIO(raw))
                    columns = {name: table[name].to_numpy() for name in table.column_names}
                except (ValueError, OSError) as e:  # pyarrow's errors are these
                    raise self._broken(block, e) from None
                self._tables[block] = columns
                self._sizes[block] = (table.num_rows, table.num_columns)
            return self._tables[block]

    def size(self, block: int) -> tuple[int, int]:
        """(rows, columns) of a block's table."""
        with self._guard:
            if block not in self._sizes:
                parquet = _parquet()
                raw = self._table_file(block)
                try:
                    end = parquet.ParquetFile(io.BytesIO(raw)).metadata
                except (ValueError, OSError) as e:
                    raise self._broken(block, e) from None
                self._sizes[block] = (end.num_rows, end.num_columns)
            return self._sizes[block]

    def block_of(self, row: int) -> int:
        from bisect import bisect_right

        if row < 0:
            raise IndexError(f"Row index {row} is not valid. It must be non-negative.")
        if not self.ends:
            raise IndexError("There are no features to lookup.")
        if row >= self.ends[-1]:
            raise IndexError(f"Row index {row} is larger than number of rows in FeatureIndex ({self.ends[-1]}).")
        return bisect_right(self.ends, row)

    def _pick(self, block: int, names: list[str] | None) -> list[Any]:
        table = self.table(block)
        for name in names or ():
            if name not in table:
                raise InvalidError(
                    f"Provided feature column {name} in select_features not present in dataset{near(name, table)}"
                )
        return [table[name] for name in (table if names is None else names)]

    def _per_row(self, block: int) -> int:
        raise NotImplementedError

    def number_vars_at_row(self, row: int) -> int:
        return self._per_row(self.block_of(row))

    def column_dims(self) -> list[int]:
        return [self._per_row(b) for b in range(len(self))]

    def number_of_values(self) -> list[int]:
        """(rows × features of each) of each block."""
        starts = [0, *self.ends]
        return [(b - a) * self._per_row(i) for i, (a, b) in enumerate(zip(starts, self.ends))] or [0]

    def number_of_rows(self) -> int:
        return self.ends[-1] if self.ends else 0

    def version(self) -> str:
        import numpy as np

        try:
            return str(np.load(io.BytesIO(self._read("version.npy")), allow_pickle=False).item())
        except ValueError as e:
            raise FormatError(f"{self._folder}/version.npy: {e}") from None

    def __len__(self) -> int:
        return len(self.ends)


class VariableFeatureIndex(FeatureIndex):
    """Columns of `var`: a look-up gives whole columns of the block that has the row."""

    def _per_row(self, block: int) -> int:
        return self.size(block)[0]

    def lookup(self, row: int, select_features: list[str] | None = None) -> tuple[list[Any], str | None]:
        block = self.block_of(row)
        return self._pick(block, select_features), self.labels[block]


class ObservedFeatureIndex(FeatureIndex):
    """Columns of `obs`: a look-up gives the row's own values."""

    def _per_row(self, block: int) -> int:
        return self.size(block)[1]

    def lookup(self, row: int, select_features: list[str] | None = None) -> tuple[list[Any], str | None]:
        block = self.block_of(row)
        at = row - (self.ends[block - 1] if block else 0)
        return [column[at] for column in self._pick(block, select_features)], self.labels[block]

    def __getitem__(self, rows: int | slice) -> Any:
        """The values of a row and its label; of a slice: tables of the blocks it touches, and their labels."""
        if isinstance(rows, slice):
            return self._slice(range(*rows.indices(self.number_of_rows())))
        return self.lookup(rows + self.number_of_rows() if rows < 0 else rows)

    def _slice(self, rows: range) -> tuple[list[dict[str, Any]], list[str | None]]:
        by_block: dict[int, list[int]] = {}
        for row in sorted(rows):
            block = self.block_of(row)
            by_block.setdefault(block, []).append(row - (self.ends[block - 1] if block else 0))
        tables = [{name: column[at] for name, column in self.table(b).items()} for b, at in by_block.items()]
        return tables, [self.labels[b] for b in by_block]
