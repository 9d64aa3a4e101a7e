"""Rows as torch has them, and how they become a batch.

`dataset[i]` is a tensor of two rows, values over column numbers, as BioNeMo's is; its type is registered with torch's
own collate function, which makes one sparse CSR tensor of a fixed width of a batch. The rows of a whole batch are
gathered at once and cut only where somebody looks at single ones, as BioNeMo's collate function does.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from headrace._errors import InvalidError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_SIGNED = {"uint16": np.int32, "uint32": np.int64, "uint64": np.int64}  # of what torch can hardly compute with
_INT32 = 2**31 - 1


class Row(torch.Tensor):
    """(2, non-zeros): values, then column numbers, in a type that holds both. `about`: the width of the dataset, 0
    where it is unknown, and the type its values are stored in. What is computed with it is an ordinary tensor."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    about: tuple[int, Any]


class Rows:
    """Some rows: `indptr`, `columns` (int32) and `values` as numpy arrays, and each row where it is asked for."""

    def __init__(self, indptr: Any, columns: Any, values: Any, n_cols: int, column_dtype: Any) -> None:
        self.indptr, self.columns, self.values = indptr, columns, values
        self.n_cols, self._column_dtype = n_cols, column_dtype
        self._cut: list[Row] | None = None

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def _stacked(self, part: slice) -> torch.Tensor:
        values, columns = self.values[part], self.columns[part]
        both = np.empty((2, len(values)), np.result_type(values.dtype, self._column_dtype))
        both[0], both[1] = values, columns
        return torch.from_numpy(both)

    def _row(self, stacked: torch.Tensor) -> Row:
        row: Row = stacked.as_subclass(Row)
        row.about = (self.n_cols, self.values.dtype)
        return row

    def __getitem__(self, i: int) -> Row:
        """Alone, as torch's collate function looks at the first to see what it has."""
        if self._cut is not None:
            return self._cut[i]
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"row {i} of a batch of {n}")
        i %= n
        return self._row(self._stacked(slice(int(self.indptr[i]), int(self.indptr[i + 1]))))

    def __iter__(self) -> Iterator[Row]:
        if self._cut is None:
            pieces = self._stacked(slice(None)).split(np.diff(self.indptr).tolist(), 1) if len(self) else ()
            self._cut = [self._row(piece) for piece in pieces]
        return iter(self._cut)

    def torch(self) -> torch.Tensor:
        """The rows as one sparse CSR tensor."""
        return _csr(self.indptr, self.columns, self.values, self.n_cols)


def _csr(indptr: Any, columns: Any, values: Any, n_cols: int) -> torch.Tensor:
    if not n_cols:
        raise InvalidError(
            "the number of genes of this dataset is unknown, as it has no var features: give n_cols= to the dataset"
        )
    index = np.int32 if len(values) <= _INT32 else np.int64
    signed = _SIGNED.get(values.dtype.name)
    if signed is not None:
        values = values.astype(signed)
    return torch.sparse_csr_tensor(
        torch.from_numpy(indptr.astype(index, copy=False)),
        torch.from_numpy(columns.astype(index, copy=False)),
        torch.from_numpy(values),
        size=(len(indptr) - 1, n_cols),
        check_invariants=False,  # by the dataset, where it knows the row
    )


def collate(batch: Rows | Sequence[Row], *, collate_fn_map: Any = None) -> torch.Tensor:
    """For torch's default collate function."""
    if isinstance(batch, Rows):
        return batch.torch()
    indptr: Any = np.zeros(len(batch) + 1, np.int64)
    np.cumsum([row.shape[1] for row in batch], out=indptr[1:])
    both = torch.cat([row.as_subclass(torch.Tensor) for row in batch], 1).numpy()
    width, dtype = max(row.about[0] for row in batch), batch[0].about[1]
    return _csr(indptr, both[1].astype(np.int32), both[0].astype(dtype, copy=False), width)


default_collate_fn_map[Row] = collate


def collate_sparse_matrix_batch(batch: Any) -> torch.Tensor:
    """As BioNeMo's function of this name, with a width that is the dataset's in every batch."""
    if isinstance(batch, Rows) or all(isinstance(row, Row) for row in batch):
        return collate(batch)
    indptr: Any = np.zeros(len(batch) + 1, np.int64)
    np.cumsum([row.shape[1] for row in batch], out=indptr[1:])
    both = torch.cat(list(batch), 1)
    columns = both[1].to(torch.int32).numpy()
    return _csr(indptr, columns, both[0].numpy(), int(columns.max()) + 1 if len(columns) else 1)
