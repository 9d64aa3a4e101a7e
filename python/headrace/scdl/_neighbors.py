"""Neighbours of cells: the three arrays beside a plain dataset that hold a sparse matrix, a row of it for each cell."""

from __future__ import annotations

import os
import warnings

from headrace._errors import DataError, InvalidError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ARRAYS = {"neighbor_indptr.npy": "uint64", "neighbor_indices.npy": "uint32", "neighbor_values.npy": "float32"}
STRATEGIES = ("random", "first")


class Neighbors:
    def __init__(self, folder: str, rows: int) -> None:
        import numpy as np

        arrays: list[Any] = []
        for name, dtype in _ARRAYS.items():
            size, item = os.path.getsize(f"{folder}/{name}"), np.dtype(dtype).itemsize
            if size % item:
                raise DataError(f"{folder}/{name}: {size} bytes, no multiple of {item}; the file is cut")
            arrays.append(np.memmap(f"{folder}/{name}", dtype, "r") if size else np.empty(0, dtype))
        self.folder, self.rows = folder, rows
        self.indptr, self.indices, self.values = arrays
        if (
            len(self.indptr) != rows + 1
            or self.indptr[-1] != len(self.indices)
            or len(self.values) != len(self.indices)
        ):
            raise DataError(
                f"{folder}/neighbor_indptr.npy: {len(self.indptr)} offsets, {rows} cells, {len(self.indices)} indices "
                f"and {len(self.values)} values do not fit each other"
            )

    def of(self, cell: int) -> tuple[Any, Any]:
        """(cells, weights)."""
        start, stop = int(self.indptr[cell]), int(self.indptr[cell + 1])
        if not start <= stop <= len(self.indices):
            raise DataError(
                f"{self.folder}/neighbor_indptr.npy: neighbours of cell {cell} go from {start} to {stop}, of "
                f"{len(self.indices)}; the file is damaged"
            )
        cells = self.indices[start:stop]
        if len(cells) and cells.max() >= self.rows:
            raise DataError(f"{self.folder}/neighbor_indices.npy: cell {cell} has the neighbour {cells.max()}, of "
                            f"{self.rows} cells; the file is damaged")  # fmt: skip
        return cells, self.values[start:stop]

    def stats(self) -> dict[str, Any]:
        import numpy as np

        counts = np.diff(self.indptr.astype(np.int64))
        return {
            "has_neighbors": True,
            "total_connections": len(self.indices),
            "min_neighbors_per_cell": int(counts.min()),
            "max_neighbors_per_cell": int(counts.max()),
            "avg_neighbors_per_cell": float(counts.mean()),
            "cells_with_no_neighbors": int((counts == 0).sum()),
        }


def open_neighbors(folder: str, rows: int) -> Neighbors | None:
    """None, and a warning, where there are none."""
    if all(os.path.exists(f"{folder}/{name}") for name in _ARRAYS):
        return Neighbors(folder, rows)
    warnings.warn("Neighbor loading was requested but neighbor files are missing", stacklevel=3)
    return None


def strategy_of(value: Any) -> str:
    name = str(getattr(value, "value", value))
    if name not in STRATEGIES:
        raise InvalidError(
            f"Unsupported neighbor_sampling_strategy: {value}; one of {', '.join(STRATEGIES)} is expected"
        )
    return name
