"""What a batch gives besides tensors: coordinates, an xarray.Dataset, and its place in an array of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import integer, refuse, refuse_type
from headrace._axes import plain
from headrace._axes import starts as _starts
from headrace._coords import beside, find

if TYPE_CHECKING:
    from headrace._headrace import Batch
    from headrace._samples import Samples

_PACKING = (
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "valid_min",
    "valid_max",
    "valid_range",
    "_Unsigned",
)


def samples_of(batch: Batch) -> Samples:
    if batch.samples is None:
        from headrace._errors import StateError

        raise StateError("this batch does not know its samples: take batches from a Loader of this package")
    return batch.samples  # type: ignore[no-any-return]


def sparse(batch: Batch, name: str) -> Any:
    """A sparse view, of three tensors, as one."""
    from headrace._sparse import Sparse

    width = next(v["shape"][-1] for v in samples_of(batch).info["views"] if v["name"] == name)
    data, indices, indptr = (batch[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    return Sparse(name, data, indices, indptr, (len(indptr) - 1, width))


def obs(batch: Batch, name: str) -> Any:
    """A column of obs for the cells of the batch, categories as they are called."""
    import numpy as np

    samples: Any = samples_of(batch)
    if not hasattr(samples, "obs"):
        from headrace._errors import UnsupportedError

        raise UnsupportedError("batch.obs: these samples are no cells: archive.cells(…) makes some")
    return samples.obs[name][np.asarray(memoryview(batch.index))]


def starts(batch: Batch) -> dict[str, Any]:
    """By axis, where each row's box begins, in positions of the axis' dimension; of draws, their number."""
    import numpy as np

    places = batch._places
    return _starts(
        samples_of(batch).info,
        np.asarray(memoryview(batch.index)),
        None if places is None else np.asarray(memoryview(places)),
    )


def coords(batch: Batch) -> dict[str, Any]:
    """By axis, the coordinate's value at each row's position, or where its box begins; without one: the position."""
    samples = samples_of(batch)
    found = {}
    for name, at in starts(batch).items():
        axis = samples.axes[name]
        values = samples.coords[name] if find(samples, name) is not None else None
        if values is None and axis["kind"] in ("patch", "crop"):
            array = beside(samples, name)
            values = array.read() if array is not None and array.shape == (axis["length"],) else None
        found[name] = at if values is None else values[at.clip(0, len(values) - 1)]
    return found


# ---- xarray ----------------------------------------------------------------------------------------------------------


def xarray(batch: Batch) -> Any:
    import numpy as np
    import xarray as xr

    samples = samples_of(batch)
    along = samples.along if plain(samples.info) else "sample"
    data: dict[str, Any] = {}
    known: dict[str, tuple[int, Any]] = {}
    views = {view["name"] for view in samples.info["views"]}
    for number, view in enumerate(samples.info["views"]):
        if "form" in view and view["form"] != "dense":
            from headrace._errors import UnsupportedError

            raise UnsupportedError(
                f"batch.xarray(): {view['name']} is {view['form']}, which xarray has no array for: take batch.numpy(), "
                'or the cells as X="dense"'
            )
        dims = [along]
        for dim, n in zip(view["dims"], view["shape"]):
            values = _labels(samples, number, dim, n)
            apart = "control" if dim == "cell" and view["name"].startswith("control.") else view["name"]
            dims.append(_dim_name(known, views, dim, apart, n, values))
        attributes = {} if "form" in view else _attributes(samples, view["arrays"])
        data[view["name"]] = (dims, batch[view["name"]].numpy(), attributes)
    for table in samples.info.get("tables", ()):
        name = table["name"]
        dims = [along]
        if "members" in table:
            apart = "control" if name.startswith("control.") else name
            dims.append(_dim_name(known, views, "cell", apart, table["members"], None))
        data[name] = ([*dims, *([f"dim_{name}"] if table["items"] > 1 else [])], batch[name].numpy(), {})
    labels: dict[str, Any] = {name: (name, values) for name, (_, values) in known.items() if values is not None}
    inner = {name for dims, *_ in data.values() for name in dims[1:]}  # dimensions of the tensors: patches have both
    labels.update({f"{n}_start" if n in inner else n: (along, values) for n, values in coords(batch).items()})
    labels["sample" if plain(samples.info) else "id"] = (along, np.asarray(memoryview(batch.index)).copy())
    labels["valid"] = (along, np.asarray(memoryview(batch.valid)).astype(bool))
    return xr.Dataset(data, {name: value for name, value in labels.items() if name not in data})


def _dim_name(known: dict[str, tuple[int, Any]], views: set[str], dim: str, view: str, n: int, values: Any) -> str:
    """The dimension's own name, or one with the view's where another view shows other labels along it."""
    import numpy as np

    dim = dim if dim not in views else f"dim_{dim}"  # xarray takes a variable of that name for its coordinate
    for name in (dim, f"{dim}_{view}"):
        if name not in known:
            known[name] = n, values
            return name
        length, others = known[name]
        if length == n and (
            values is others or (values is not None and others is not None and np.array_equal(values, others))
        ):
            return name
    return f"{dim}_{view}"


def _labels(samples: Samples, view: int, dim: str, n: int) -> Any:
    """Coordinate values of a tensor's dimension, or None."""
    import numpy as np

    if "members" in samples.info["views"][view] and dim == "cell":
        return None
    if "form" in samples.info["views"][view]:  # rows of a matrix of cells
        return getattr(samples, "genes", None)
    index = np.frombuffer(samples._handle.index(view, dim, n), np.int64)
    arrays = samples.info["views"][view]["arrays"]
    if dim == "step":
        return index
    if len(arrays) > 1 and dim not in _dims(samples, arrays[0]):
        return np.array(arrays)
    coordinate = beside(samples, dim)
    if coordinate is None or len(coordinate.shape) != 1 or coordinate.shape[0] <= index.max(initial=-1):
        return None
    return coordinate.read()[index]


def _dims(samples: Samples, path: str) -> tuple[str | None, ...]:
    return samples.archive[path].dims


def _attributes(samples: Samples, arrays: list[str]) -> dict[str, Any]:
    """Of a view of one array; without what was undone in decoding."""
    if len(arrays) != 1:
        return {}
    hidden = (*_PACKING, "_ARRAY_DIMENSIONS", "coordinates")
    return {k: v for k, v in samples.archive[arrays[0]].attributes.items() if k not in hidden}


# ---- predictions -----------------------------------------------------------------------------------------------------


def write(batch: Batch, array: Any, values: Any, step: int = 0) -> None:
    """Write one value per row into a zarr array, at the place of the sample plus `step` along the first axis whose
    positions are samples."""
    if not hasattr(array, "shape") or not hasattr(array, "__setitem__"):
        refuse_type("write: array", array, "an array of zarr-python is expected")
    rows = as_numpy(values)
    check_write(batch, array.shape, names_of(array), rows, step)
    put(batch, array, rows, step)


def check_write(batch: Batch, shape: Any, names: list[str], rows: Any, step: int) -> None:
    """Can rows be put into an array of that shape, whose dimensions have these names (none: it does not say)? What is
    wrong is found here, before anything is written or made."""
    import numpy as np

    samples = samples_of(batch)
    shift = integer("write: step", step)
    if not rows.ndim or rows.dtype.kind == "O":
        refuse("write: values", rows, f"an array of numbers with one row for each of {len(batch)} samples is expected")
    if not plain(samples.info):
        _check_boxes(batch, shape, names, rows, shift)
        return
    axis = _axis(names, samples.along)
    wanted = (len(batch), *shape[:axis], *shape[axis + 1 :])
    if rows.shape != wanted:
        refuse("write: values", rows.shape, f"{wanted} is expected: {len(batch)} rows of what the array holds")
    places = np.asarray(memoryview(batch.index))[np.asarray(memoryview(batch.valid)).astype(bool)] + shift
    if len(places) and not (places.min() >= 0 and places.max() < shape[axis]):
        where = f"rows {places.min()} … {places.max()} of an array with {shape[axis]} along {samples.along}"
        refuse("write: step", step, where)


def put(batch: Batch, array: Any, rows: Any, shift: int) -> None:
    """Write what `check_write` has passed."""
    import numpy as np

    samples = samples_of(batch)
    if not plain(samples.info):
        _write_boxes(batch, array, rows, shift)
        return
    axis = _axis(names_of(array), samples.along)
    kept = np.asarray(memoryview(batch.valid)).astype(bool)
    places, first = np.unique(np.asarray(memoryview(batch.index))[kept] + shift, return_index=True)
    rows = rows[kept][first]
    for run in np.split(np.arange(len(places)), np.flatnonzero(np.diff(places) > 1) + 1):
        if len(run):
            region = (slice(None),) * axis + (slice(int(places[run[0]]), int(places[run[-1]]) + 1),)
            array[region] = np.moveaxis(rows[run[0] : run[-1] + 1], 0, axis)


def names_of(array: Any) -> list[str]:
    """Of an array's dimensions; none where it does not say."""
    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    return list(names or dict(getattr(array, "attrs", {})).get("_ARRAY_DIMENSIONS") or [])


def _axis(names: list[str], along: str) -> int:
    """Which dimension of an array is the sample axis: by name; without names the first."""
    return names.index(along) if along in names else 0


def _box_axes(batch: Batch, dims: list[str]) -> tuple[dict[str, Any], list[int], str | None]:
    """The sample axes that arrays have, which of these dimensions a row has, and the axis that `step` is along."""
    axes = {name: axis for name, axis in samples_of(batch).axes.items() if axis["kind"] != "draws"}
    kept = [d for d, name in enumerate(dims) if name not in axes or axes[name]["kind"] != "steps"]
    return axes, kept, next((name for name, axis in axes.items() if axis["kind"] == "steps"), None)


def _check_boxes(batch: Batch, shape: Any, dims: list[str], rows: Any, step: int) -> None:
    import numpy as np

    axes, kept, shifted = _box_axes(batch, dims)
    missing = [name for name in axes if name not in dims]
    if missing:
        refuse("write: array", shape, f"it has no dimension {', '.join(missing)}: its dimensions are named {dims}")
    wanted = [rows.shape[1 + k] if dims[d] in axes else shape[d] for k, d in enumerate(kept) if 1 + k < rows.ndim]
    if rows.ndim != 1 + len(kept) or rows.shape != (len(batch), *wanted):
        what = ", ".join(dims[d] if dims[d] in axes else f"{dims[d]}: {shape[d]}" for d in kept)
        refuse("write: values", rows.shape, f"one row of ({what}) for each of {len(batch)}")
    if shifted is None:
        return
    at = starts(batch)[shifted][np.asarray(memoryview(batch.valid)).astype(bool)] + step
    if len(at) and not (at.min() >= 0 and at.max() < shape[dims.index(shifted)]):
        refuse("write: step", step, f"{at.min()} … {at.max()} of {shape[dims.index(shifted)]} along {shifted}")


def _write_boxes(batch: Batch, array: Any, rows: Any, step: int) -> None:
    """Row by row, each at its box; what lies outside the array is left out. Later rows win where boxes overlap."""
    import numpy as np

    dims = names_of(array)
    axes, kept, shifted = _box_axes(batch, dims)
    begin, valid = starts(batch), np.asarray(memoryview(batch.valid)).astype(bool)
    for r in np.flatnonzero(valid):
        region: list[Any] = [slice(None)] * array.ndim
        part: list[Any] = [slice(None)] * len(kept)
        for name, axis in axes.items():
            d, at = dims.index(name), int(begin[name][r])
            if axis["kind"] == "steps":
                region[d] = at + (step if name == shifted else 0)
                continue
            n = rows.shape[1 + kept.index(d)]
            at = at * n // axis["size"]  # of an array at another scale
            low, high = max(at, 0), min(at + n, array.shape[d])
            region[d], part[kept.index(d)] = slice(low, high), slice(low - at, high - at)
        array[tuple(region)] = rows[(r, *part)]


def as_numpy(values: Any) -> Any:
    """An array of any framework on the CPU."""
    import numpy as np

    if hasattr(values, "detach"):  # of torch, which may want gradients or lie elsewhere
        values = values.detach().cpu()
    return np.asarray(values)
