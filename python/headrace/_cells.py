"""Views of single cells: rows of sparse matrices in the form a model takes, and tables from memory."""

from __future__ import annotations

from headrace._samples import Added

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CellsView(Added):
    """Rows of a matrix: `parts` are (indptr, indices, data, columns, set), the first two None where rows are dense,
    `maps` one int32 array a data set, or None, and `options` those of hr_cells_options."""

    def __init__(self, parts: list[Any], maps: list[Any], options: dict[str, Any]) -> None:
        self.parts, self.maps, self.options = parts, maps, options

    def add(self, handle: Any, name: str) -> None:
        handle.cells(name, self.parts, self.maps, self.options)


class Table(Added):
    """Numbers of all samples, by sample id: shape (n,) or (n, items). `categories`: what its codes stand for. The
    library uses the array itself, which is read-only from then on."""

    def __init__(self, values: Any, categories: Any = None) -> None:
        self.values, self.categories = values, categories

    def add(self, handle: Any, name: str) -> None:
        values = self.values
        values.setflags(write=False)
        handle.table(name, values.dtype.name, values, len(values), 1 if values.ndim == 1 else values.shape[1])
