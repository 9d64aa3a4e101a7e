"""Predictions of whole archives: arrays that batches are written into, made as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import mapping, refuse, refuse_type, text
from headrace._axes import plain
from headrace._batch import as_numpy, check_write, names_of, put, samples_of, write
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
    path = isinstance(target, str) or hasattr(target, "__fspath__")
    if not path and not isinstance(target, zarr.Group):
        refuse_type("write_predictions: target", target, "a path, a zarr group or a zarr array is expected")
    arrays = {text("write_predictions: values", name): as_numpy(rows) for name, rows in named.items()}
    group = _opened(zarr, target) if path else target
    designs = {name: _design(group, name, batch, rows, like, step) for name, rows in arrays.items()}
    if group is None:  # nothing was wrong: now things are made
        group = zarr.open_group(target, mode="a")
    for name, rows in arrays.items():
        design = designs[name]
        put(batch, group[name] if design is None else design.make(zarr, group, name, samples_of(batch)), rows, step)


def _opened(zarr: Any, path: Any) -> Any:
    """The group at a path that may be written; None where there is none yet."""
    try:
        return zarr.open_group(path, mode="r+")
    except FileNotFoundError:
        return None


class _Design:
    """An array to be made."""

    def __init__(self, samples: Samples, rows: Any, like: str | None) -> None:
        self.view, dims = _like(samples, rows, like)
        self.shape, self.names = _whole(samples, rows, dims)
        self.steps = len(self.shape) + 1 - rows.ndim
        chunk = max(1, min(self.shape[0], len(rows), _CHUNK // max(1, rows[:1].nbytes)))
        self.chunks = (*(chunk, 1, 1, 1, 1, 1, 1, 1)[: self.steps], *rows.shape[1:])
        self.dtype = rows.dtype

    def make(self, zarr: Any, group: Any, name: str, samples: Samples) -> Any:
        """… with its coordinates."""
        fill = float("nan") if self.dtype.kind == "f" else 0
        made = _create(zarr, group, name, self.shape, self.chunks, self.dtype, self.names, fill_value=fill)
        for number, dim in enumerate(self.names):
            if dim not in group:
                _copy_coordinate(zarr, group, samples, self.view, dim, number - self.steps, self.shape[number])
        return made


def _design(group: Any, name: str, batch: Batch, rows: Any, like: str | None, step: int) -> _Design | None:
    """What is to be made for these rows; None: it is there. Whatever is wrong with them is an error."""
    if not rows.ndim or len(rows) != len(batch):
        refuse(f"write_predictions: {name}", rows.shape, f"one row for each of {len(batch)} samples is expected")
    if group is not None and name in group:
        if not hasattr(group[name], "shape"):
            refuse("write_predictions: values", name, "there is a group of that name in the target")
        check_write(batch, group[name].shape, names_of(group[name]), rows, step)
        return None
    design = _Design(samples_of(batch), rows, like)
    check_write(batch, design.shape, design.names, rows, step)
    return design


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
