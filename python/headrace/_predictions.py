"""Predictions of whole archives: arrays that batches are written into, made as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import mapping, refuse, refuse_type
from headrace._axes import plain
from headrace._batch import as_numpy, samples_of, write
from headrace._coords import beside

if TYPE_CHECKING:
    from headrace._headrace import Batch
    from headrace._samples import Samples

_CHUNK = 1 << 20  # bytes, about


def write_predictions(target: Any, batch: Batch, values: Any, *, step: int = 0, like: str | None = None) -> None:
    """Write predictions of a batch at the places of its samples.

    Parameters
    ----------
    target
        A zarr array whose sample axis is as long as the archive's; or a zarr group or a path, for `values` by name.
        Arrays that do not exist yet are made, with the coordinates of the archive, so that xarray opens the result.
    values
        An array with one row per sample of the batch (numpy, torch or jax), or a dict of them by name.
    step
        Steps of the sample axis between a sample and its prediction: 6 for ``y=hr.view(…, time=hr.steps(6))``.
    like
        Name of the view that new arrays take the names of their dimensions from; default: the first of the same shape.

    Rows of padding are left out. Two processes must not write into one chunk at a time: give each whole chunks, as
    ranks of a loader in archive order have but for the chunks at their borders.

    For example::

        for batch in samples.batches(32):
            hr.write_predictions("forecast.zarr", batch, {"t2m": model(batch["x"].torch())}, step=6)
    """
    if hasattr(target, "shape"):
        write(batch, target, values, step)
        return
    import zarr

    named = mapping("write_predictions: values", values, "a dict of arrays by name is expected for a group")
    if isinstance(target, str) or hasattr(target, "__fspath__"):
        group = zarr.open_group(target, mode="a")
    elif isinstance(target, zarr.Group):
        group = target
    else:
        refuse_type("write_predictions: target", target, "a path, a zarr group or a zarr array is expected")
    for name, rows in named.items():
        write(batch, _array(zarr, group, name, batch, as_numpy(rows), like), rows, step)


def _array(zarr: Any, group: Any, name: str, batch: Batch, rows: Any, like: str | None) -> Any:
    """The array of that name, made where there is none."""
    if name in group:
        return group[name]
    samples = samples_of(batch)
    view, dims = _like(samples, rows, like)
    row_bytes = max(1, rows[:1].nbytes)
    lengths, names = _whole(samples, rows, dims)
    chunk = max(1, min(lengths[0], len(rows), _CHUNK // row_bytes))
    steps = len(lengths) + 1 - rows.ndim
    lead = (chunk, 1, 1, 1, 1, 1, 1, 1)[:steps]
    made = _create(
        zarr, group, name, lengths, (*lead, *rows.shape[1:]), rows.dtype, names,
        fill_value=float("nan") if rows.dtype.kind == "f" else 0,
    )  # fmt: skip
    for number, dim in enumerate(names):
        if dim not in group:
            _copy_coordinate(zarr, group, samples, view, dim, number - steps, lengths[number])
    return made


def _whole(samples: Samples, rows: Any, dims: list[str]) -> tuple[tuple[int, ...], list[str]]:
    """Shape and names of the array that all samples' rows make up: axes whose positions are samples, then what a row
    has, of boxes as long as their axis."""
    steps = [axis for axis in samples.info["axes"] if axis["kind"] == "steps"]
    lengths, names = [axis["length"] for axis in steps], [axis["name"] for axis in steps]
    for dim, n in zip(dims, rows.shape[1:]):
        axis = samples.axes.get(dim)
        lengths.append(n if axis is None else -(-axis["length"] * n // axis["size"]))
        names.append(dim)
    return tuple(lengths), names


def _create(zarr: Any, group: Any, name: str, shape: Any, chunks: Any, dtype: Any, dims: Any, **options: Any) -> Any:
    attributes = dict(options.pop("attributes", {}))
    if group.metadata.zarr_format == 2:
        attributes["_ARRAY_DIMENSIONS"] = dims
    else:
        options["dimension_names"] = dims
    try:
        return group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, attributes=attributes, **options)
    except zarr.errors.ContainsArrayError:  # another process was quicker
        return group[name]


def _like(samples: Samples, rows: Any, like: str | None) -> tuple[int | None, list[str]]:
    """The view that rows have the dimensions of, and their names."""
    for number, view in enumerate(samples.info["views"]):
        if (like is None or view["name"] == like) and tuple(view["shape"]) == rows.shape[1:]:
            return number, list(view["dims"])
    if like is not None:
        refuse("write_predictions: like", like, f"no view of that name has samples of shape {rows.shape[1:]}")
    for number, view in enumerate(samples.info["views"]):
        if dims := _part_of(samples, view, rows.shape[1:]):
            return number, dims
    if not plain(samples.info):
        refuse(
            "write_predictions: values",
            rows.shape,
            "these are no boxes of any view: give an array of zarr whose dimensions have the names of the sample axes",
        )
    return None, [f"dim_{d}" for d in range(1, rows.ndim)]


def _part_of(samples: Samples, view: dict[str, Any], shape: tuple[int, ...]) -> list[str]:
    """Dimensions of a view, in their order, that have these lengths: classes of an image with channels, for example.
    Patches and crops have to be among them; else none."""
    from itertools import combinations

    boxes = {name for name, axis in samples.axes.items() if axis["kind"] in ("patch", "crop")}
    for chosen in combinations(list(zip(view["dims"], view["shape"])), len(shape)):
        names = [name for name, _ in chosen]
        if tuple(n for _, n in chosen) == tuple(shape) and boxes <= set(names) and boxes:
            return names
    return []


def _copy_coordinate(
    zarr: Any, group: Any, samples: Samples, view: int | None, dim: str, number: int, length: int
) -> None:
    """`number`: of the dimension in a row, unless it is a sample axis."""
    import numpy as np

    source = beside(samples, dim)
    if source is None or len(source.shape) != 1 or source.dtype in ("string", "bytes"):
        return
    values = source[:]
    if dim in samples.axes:
        if len(values) != length:
            return
    else:
        if view is None:
            return
        n = samples.info["views"][view]["shape"][number]
        values = values[np.frombuffer(samples._handle.index(view, dim, n), np.int64)]
    attributes = {k: v for k, v in source.attributes.items() if k != "_ARRAY_DIMENSIONS"}
    made = _create(zarr, group, dim, values.shape, values.shape, values.dtype, [dim], attributes=attributes)
    made[...] = values
