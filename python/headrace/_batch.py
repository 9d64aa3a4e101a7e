"""What a batch gives besides tensors: coordinates, an xarray.Dataset, and its place in an array of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import integer, refuse, refuse_type
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


def coords(batch: Batch) -> dict[str, Any]:
    """Values of the sample axis's coordinate, one per row; without such a coordinate: the ids."""
    import numpy as np

    samples = samples_of(batch)
    ids = np.asarray(memoryview(batch.index))
    if find(samples, samples.along) is None:
        return {samples.along: ids.copy()}
    return {samples.along: samples.coords[samples.along][ids]}


# ---- xarray ----------------------------------------------------------------------------------------------------------


def xarray(batch: Batch) -> Any:
    import numpy as np
    import xarray as xr

    samples = samples_of(batch)
    along = samples.along
    data: dict[str, Any] = {}
    known: dict[str, tuple[int, Any]] = {}
    for number, view in enumerate(samples.info["views"]):
        dims = [along]
        for dim, n in zip(view["dims"], view["shape"]):
            values = _labels(samples, number, dim, n)
            dims.append(_dim_name(known, dim, view["name"], n, values))
        data[view["name"]] = (dims, batch[view["name"]].numpy(), _attributes(samples, view["arrays"]))
    labels: dict[str, Any] = {name: (name, values) for name, (_, values) in known.items() if values is not None}
    labels.update({name: (along, values) for name, values in coords(batch).items()})
    labels["sample"] = (along, np.asarray(memoryview(batch.index)).copy())
    labels["valid"] = (along, np.asarray(memoryview(batch.valid)).astype(bool))
    return xr.Dataset(data, {name: value for name, value in labels.items() if name not in data})


def _dim_name(known: dict[str, tuple[int, Any]], dim: str, view: str, n: int, values: Any) -> str:
    """The dimension's own name, or one with the view's where another view shows other labels along it."""
    import numpy as np

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
    """Write one value per row at the place of the row's sample, plus `step`, along the sample axis of a zarr array."""
    import numpy as np

    samples = samples_of(batch)
    rows = as_numpy(values)
    shift = integer("write: step", step)
    ids = np.asarray(memoryview(batch.index))
    if not hasattr(array, "shape") or not hasattr(array, "__setitem__"):
        refuse_type("write: array", array, "an array of zarr-python is expected")
    axis = _axis(array, samples.along)
    wanted = array.shape[:axis] + array.shape[axis + 1 :]
    if rows.shape[:1] != ids.shape or rows.shape[1:] != tuple(wanted):
        refuse(
            "write: values", rows.shape, f"{(len(ids), *wanted)} is expected: {len(ids)} rows of what {array!r} holds"
        )
    kept = np.asarray(memoryview(batch.valid)).astype(bool)
    places, first = np.unique(ids[kept] + shift, return_index=True)
    rows = rows[kept][first]
    if len(places) and not (places[0] >= 0 and places[-1] < array.shape[axis]):
        refuse(
            "write: step",
            step,
            f"rows {places[0]} … {places[-1]} of an array with {array.shape[axis]} along {samples.along}",
        )
    for run in np.split(np.arange(len(places)), np.flatnonzero(np.diff(places) > 1) + 1):
        if len(run):
            region = (slice(None),) * axis + (slice(int(places[run[0]]), int(places[run[-1]]) + 1),)
            array[region] = np.moveaxis(rows[run[0] : run[-1] + 1], 0, axis)


def _axis(array: Any, along: str) -> int:
    """Which dimension of an array is the sample axis: by name; without names the first."""
    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    names = names or dict(getattr(array, "attrs", {})).get("_ARRAY_DIMENSIONS")
    return list(names).index(along) if names and along in names else 0


def as_numpy(values: Any) -> Any:
    """An array of any framework on the CPU."""
    import numpy as np

    if hasattr(values, "detach"):  # of torch, which may want gradients or lie elsewhere
        values = values.detach().cpu()
    return np.asarray(values)
