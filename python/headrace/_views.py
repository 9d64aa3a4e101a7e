"""The views of an atlas: its matrix in the form that was asked for, and rows of obsm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import integer, near, refuse
from headrace._cells import CellsView, Table
from headrace._forms import DTYPES, Form, dtype_number, flags, form_of
from headrace._select import View, view

if TYPE_CHECKING:
    from headrace._archive import Archive
    from headrace._atlas import DataSet
    from headrace._genes import Genes

_TABLE_BYTES = 256 << 20  # of obsm, up to which it is held in memory
_AXIS = "obs"


def matrix_view(
    archive: Archive, sets: list[DataSet], paths: list[str], genes: Genes, o: dict[str, Any]
) -> tuple[CellsView | View, str]:
    """The view, and the name of the axis that it runs along."""
    form = form_of(o["X"])
    if len(sets) == 1 and sets[0].matrix.kind == "dense" and form.kind == "dense" and _as_it_is(genes, o):
        return _array_view(archive, sets[0], genes, o)
    return _rows_view(sets, paths, genes, form, o), _AXIS


def _as_it_is(genes: Genes, o: dict[str, Any]) -> bool:
    """Nothing is asked of a dense array's rows that an ordinary view has not."""
    changed = o["normalize"] is not None or o["log1p"] or o["row_chunk"] is not None
    return not changed and (genes.maps[0] is None or int((genes.maps[0] >= 0).sum()) == len(genes.names))


def _rows_view(sets: list[DataSet], paths: list[str], genes: Genes, form: Form, o: dict[str, Any]) -> CellsView:
    options = {**form.resolve(genes.names), **flags(o["normalize"], o["normalize_over"], o["log1p"])}
    options["dtype"] = dtype_number("dtype", o["dtype"])
    changes = options.get("total") or options["log1p"] or options.get("factors") is not None
    if not options["dtype"] and form.kind in ("csr", "dense") and not changes:
        options["dtype"] = dtype_number("dtype", _widest(sets))
    if o["row_chunk"] is not None:
        options["row_chunk"] = integer("row_chunk", o["row_chunk"], 1)
    parts = []
    for number, (one, path) in enumerate(zip(sets, paths)):
        for indptr, indices, data in one.matrix.parts:
            placed = (_placed(p, one.path, path) for p in (indptr, indices, data))
            parts.append((*placed, one.columns, number))
    return CellsView(parts, genes.maps, options)


def _placed(path: str | None, root: str, at: str) -> str | None:
    """A path of a data set's own archive, in the one that all are in."""
    if path is None:
        return None
    below = path[len(root) :].lstrip("/")
    return f"{at}/{below}" if at else below


def _widest(sets: list[DataSet]) -> str:
    import numpy as np

    types = {one.matrix.dtype for one in sets}
    if len(types) == 1 and "bool" not in types:
        return str(types.pop())
    names = ({"bfloat16": "float32", "bool": "uint8"}.get(t, t) for t in types)
    return str(np.result_type(*map(np.dtype, names)).name)


def _array_view(archive: Archive, one: DataSet, genes: Genes, o: dict[str, Any]) -> tuple[View, str]:
    """An ordinary view: rows of an array."""
    path = one.matrix.path
    dims = archive[path].dims
    isel: dict[str, Any] = {}
    if genes.maps[0] is not None:
        isel[dims[1] or "dim_1"] = _columns(genes)
    made = view(path, isel=isel, dtype=o["dtype"] or ("uint8" if one.matrix.dtype == "bool" else None))  # as of rows
    return made, dims[0] or "dim_0"


def _columns(genes: Genes) -> Any:
    """Which columns of the array are the genes of the view, in the view's order."""
    import numpy as np

    to = genes.maps[0]
    kept = np.flatnonzero(to >= 0)
    return kept[np.argsort(to[kept])]


# ---- obsm ------------------------------------------------------------------------------------------------------------


def obsm_view(
    archive: Archive, sets: list[DataSet], paths: list[str], name: str, along: str
) -> tuple[Table | View, str]:
    """Rows of obsm: from memory where that is little, else read like everything else."""
    import numpy as np

    arrays = [_obsm_array(one, name) for one in sets]
    if len({a.shape[1] for a in arrays}) > 1:
        widths = ", ".join(f"{one.label} {a.shape[1]}" for one, a in zip(sets, arrays))
        refuse("obsm", name, f"the data sets differ in its width: {widths}")
    bytes_in_all = sum(a.shape[0] * a.shape[1] for a in arrays) * np.dtype(arrays[0].dtype).itemsize
    if bytes_in_all <= _TABLE_BYTES or len(sets) > 1:
        values = [a[...] for a in arrays]
        values = np.concatenate(values) if len(values) > 1 else values[0]
        return Table(np.ascontiguousarray(values, values.dtype.newbyteorder("="))), along
    array = arrays[0]
    own = array.dims[0] or "dim_0"
    if along not in (_AXIS, own):
        refuse("obsm", name, f"its first dimension is called {own}, that of the matrix {along}")
    return view(array.path), own


def _obsm_array(one: DataSet, name: str) -> Any:
    from headrace._errors import NotFoundError, UnsupportedError

    path = f"{one.path}/obsm/{name}" if one.path else f"obsm/{name}"
    array = one.tree.sound(path)
    if array is None and one.tree.has(path):
        kind = one.tree.attributes(path).get("encoding-type", "group")
        raise UnsupportedError(f"{path} is a {kind}: rows of obsm are those of an array with two dimensions")
    if array is None:
        known = one.tree.children(f"{one.path}/obsm" if one.path else "obsm")
        raise NotFoundError(
            f"obsm: {one.label} has no {name!r}{near(name, known)}; it has {', '.join(known) or 'none'}"
        )
    if len(array.shape) != 2 or array.shape[0] != one.n:
        refuse("obsm", name, f"it is of shape {array.shape}; a row for each of {one.n} cells is expected")
    if array.dtype not in DTYPES:
        raise UnsupportedError(f"{path}: values of type {array.dtype} are no numbers that batches can have")
    return array


# ---- neighbours ------------------------------------------------------------------------------------------------------


def neighbors_view(sets: list[DataSet], paths: list[str], name: str, number: object) -> CellsView:
    """Of each cell some of its neighbours: a row of obsp, drawn by weight. Those of a union are of the cell's own data
    set, by their ids in the union."""
    import numpy as np

    size = integer(f"neighbors: {name}", number, 1)
    cells = sum(one.n for one in sets)
    maps: list[Any] = [None] * len(sets)
    parts = []
    first = 0
    for i, (one, path) in enumerate(zip(sets, paths)):
        for p in _neighbors(one, name).parts:
            parts.append((*(_placed(array, one.path, path) for array in p), one.n, i))
        if len(sets) > 1:
            maps[i] = np.arange(first, first + one.n, dtype=np.int32)
        first += one.n
    options = {"form": 2, "pick": 3, "columns": cells, "length": size, "pad": -1, "items": "cells", "values": "weights"}
    return CellsView(parts, maps, options)


def _neighbors(one: DataSet, name: str) -> Any:
    from headrace._atlas import matrix_at
    from headrace._errors import NotFoundError

    path = f"{one.path}/obsp/{name}" if one.path else f"obsp/{name}"
    known = one.tree.children(f"{one.path}/obsp" if one.path else "obsp")
    if not one.tree.has(path):
        raise NotFoundError(
            f"neighbors: {one.label} has no {name!r}{near(name, known)}; in obsp it has {', '.join(known) or 'none'}"
        )
    return matrix_at(one.tree, path, one.label, [])
