"""Rows out of chunks: each chunk is held while its rows are copied, and a batch is copied once."""

from __future__ import annotations

from headrace._errors import DataError, OutOfRangeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace.scdl._layout import Chunk, Layout


def one(layout: Layout, chunks: Any, row: int) -> tuple[Any, Any]:
    """(values, columns) of a row, as slices of what is mapped."""
    number = row + layout.rows if row < 0 else row
    if not 0 <= number < layout.rows:
        raise OutOfRangeError(f"row {row} of {layout.files.shown}, which has {layout.rows}")
    chunk, at = divmod(number, layout.chunk_size)
    x = chunks.acquire(chunk)
    try:
        start, end = int(x.row_ptr[at]), int(x.row_ptr[at + 1])
        if not start <= end <= len(x.values):
            raise x.disorder(number)
        return x.values[start:end], x.columns[start:end]
    finally:
        chunks.release(chunk)


def many(layout: Layout, chunks: Any, rows: Any, n_cols: int) -> tuple[Any, Any, Any]:
    """(indptr, columns as int32, values) of rows, in their order."""
    import numpy as np

    rows = np.asarray(rows, np.int64).reshape(-1)
    if len(rows) and (rows.min() < 0 or rows.max() >= layout.rows):
        rows = np.where(rows < 0, rows + layout.rows, rows)
        if rows.min() < 0 or rows.max() >= layout.rows:
            worst = rows[(rows < 0) | (rows >= layout.rows)][0]
            raise OutOfRangeError(f"row {worst} of {layout.files.shown}, which has {layout.rows}")
    values, columns = _pieces(layout, chunks, rows)
    indptr: Any = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(v) for v in values], out=indptr[1:])
    if not len(rows):
        return indptr, np.empty(0, np.int32), np.empty(0, layout.dtypes["data.npy"])
    gathered = np.concatenate(columns, dtype=np.int32, casting="unsafe")
    if n_cols and len(gathered) and (gathered.max() >= n_cols or gathered.min() < 0):
        _refuse_column(layout, rows, indptr, gathered, n_cols)
    return indptr, gathered, np.concatenate(values)


def _refuse_column(layout: Layout, rows: Any, indptr: Any, columns: Any, n_cols: int) -> None:
    import numpy as np

    at = int(np.flatnonzero((columns >= n_cols) | (columns < 0))[0])
    row = int(rows[np.searchsorted(indptr, at, side="right") - 1])
    place = layout.files.place(layout.key(row // layout.chunk_size, "col_ptr.npy"))
    raise DataError(f"{place}: row {row} has column {columns[at]}, where there are {n_cols} genes")


def _pieces(layout: Layout, chunks: Any, rows: Any) -> tuple[list[Any], list[Any]]:
    """Slices of each row. All of their chunks are released: a slice keeps what it lies in readable; where the chunks
    are more than may be held at once, rows are copied chunk by chunk."""
    import numpy as np

    of = rows // layout.chunk_size
    if len(rows) and (of[0] == of).all():
        x = chunks.acquire(int(of[0]))
        try:
            return _cut(x, rows - of[0] * layout.chunk_size, int(of[0]) * layout.chunk_size)
        finally:
            chunks.release(int(of[0]))
    values: list[Any] = [None] * len(rows)
    columns: list[Any] = [None] * len(rows)
    ids, firsts = np.unique(of, return_index=True)
    copies = len(ids) > chunks.at_once()
    held = []
    try:
        for chunk in ids[np.argsort(firsts)].tolist():  # in the order of the rows: windows one after the other
            x = chunks.acquire(chunk)
            held.append(chunk)
            where = np.flatnonzero(of == chunk)
            base = chunk * layout.chunk_size
            for i, v, c in zip(where.tolist(), *_cut(x, rows[where] - base, base)):
                values[i], columns[i] = (v.copy(), c.copy()) if copies else (v, c)
            if copies:
                chunks.release(held.pop())
    finally:
        for chunk in held:
            chunks.release(chunk)
    return values, columns


def _cut(x: Chunk, at: Any, base: int) -> tuple[list[Any], list[Any]]:
    starts, ends = x.row_ptr[at], x.row_ptr[at + 1]
    if (ends < starts).any() or (len(ends) and ends.max() > len(x.values)):
        bad = (ends < starts) | (ends > len(x.values))
        raise x.disorder(base + int(at[bad][0]))
    pairs = list(zip(starts.tolist(), ends.tolist()))
    return [x.values[a:b] for a, b in pairs], [x.columns[a:b] for a, b in pairs]
