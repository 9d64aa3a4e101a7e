"""Conditions on samples, as masks over the positions of the sample axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import mapping, near, refuse, refuse_type, shown
from headrace._axes import shape
from headrace._codes import pieces
from headrace._coords import Grid, along_arrays, axes_text, find, find_axis
from headrace._dates import PARTS, SEASONS, known_range

if TYPE_CHECKING:
    from headrace._coords import Coordinates
    from headrace._frame import FrameColumn
    from headrace._samples import Samples

_ACCEPTED = (
    "a boolean array, sample ids, a condition as text, a dict of conditions, or a function of the coordinates is "
    "expected"
)


def where(samples: Samples, condition: object, named: dict[str, Any]) -> Any:
    """The handle of what is kept."""
    handle = samples._handle
    if condition is None and not named:
        refuse("where", None, _ACCEPTED + ", or conditions by name")
    coordinates = samples.coords
    conditions = dict(named)
    if isinstance(condition, str):
        handle = handle.where(_expression(samples, condition))
    elif isinstance(condition, dict):
        conditions = {**mapping("where", condition, _ACCEPTED), **conditions}
    elif callable(condition):
        seen = coordinates if len(samples.info["axes"]) == 1 else Grid(coordinates)
        handle = _masked(samples, condition(seen), "the function's result")
    elif condition is not None:
        handle = _array(samples, condition)
    for name, value in conditions.items():
        handle = _named(samples, handle, coordinates, name, value)
    return handle


def _expression(samples: Samples, condition: str) -> Any:
    """The mask of a condition as text."""
    import numpy as np

    from headrace._expression import evaluate

    axes = [axis["name"] for axis in samples.info["axes"]]
    if len(axes) > 1:
        refuse("where", condition, f"a condition as text is for samples with one axis; these have {', '.join(axes)}: "
               "give a function of the coordinates")  # fmt: skip
    return np.ascontiguousarray(evaluate(condition, lambda name: column_of(samples, name)))


def column_of(samples: Samples, name: str) -> FrameColumn:
    """What a name in a condition means: a column of obs, or a coordinate."""
    from headrace._frame import FrameColumn

    if samples.obs_columns is not None:
        return samples.obs_columns[name]
    coordinates = samples.coords
    if name in PARTS and find(samples, name) is None:
        name = f"{_time_axis(coordinates, [a['name'] for a in samples.info['axes']])}.{name}"
    values = coordinates[name]
    if values.dtype.kind in "biuf":
        return FrameColumn(name, numbers=values)
    if values.dtype.kind not in "OUS":
        refuse("where", name, f"it is of type {values.dtype}: conditions on it are given by name, as where({name}=…)")
    return FrameColumn(name, texts=values.astype(str).astype(object))


def _array(samples: Samples, condition: object) -> Any:
    """A mask, or ids."""
    import numpy as np

    values = _as_array(condition)
    if values.dtype.kind == "b":
        return _masked(samples, values, "the mask")
    if values.dtype.kind not in "iu" and values.size:
        refuse_type("where", condition, _ACCEPTED)
    if values.ndim != 1:
        refuse("where", condition, f"ids are expected in one dimension, not in {values.ndim}")
    if len(values) == samples.info["axis"] > 2 and values.size and int(values.min()) >= 0 and int(values.max()) <= 1:
        refuse("where", condition, "these are numbers, which would be ids: give a mask as booleans, .astype(bool)")
    return samples._handle.take(np.ascontiguousarray(values, np.int64))


def _as_array(value: object, what: str = "where", accepted: str = _ACCEPTED) -> Any:
    import numpy as np

    if hasattr(value, "values") and hasattr(value, "dims"):  # of xarray
        value = value.values
    try:
        values = np.asarray(value)
    except Exception:  # ragged lists and what has an __array__ that fails
        refuse_type(what, value, accepted)
    return values


def _masked(samples: Samples, result: object, what: str) -> Any:
    """The handle of the samples for which a mask holds: one value for each id, or a shape that the axes broadcast."""
    import numpy as np

    values = _as_array(result)
    if values.dtype.kind != "b":
        refuse_type(f"where: {what}", result, "booleans are expected")
    n, axes = samples.info["axis"], samples.info["axes"]
    if values.shape == (n,):
        return samples._handle.where(np.ascontiguousarray(values))
    wide = [d for d, length in enumerate(values.shape) if length > 1]
    fits = values.ndim == len(axes) and all(k in (1, length) for k, length in zip(values.shape, shape(samples.info)))
    if len(axes) > 1 and fits and len(wide) == 1:
        return samples._handle.where(np.ascontiguousarray(values).reshape(-1), axes[wide[0]]["name"])
    if len(axes) > 1 and fits:
        return samples._handle.where(np.ascontiguousarray(np.broadcast_to(values, shape(samples.info))).reshape(-1))
    left = f" (as many as samples are left: {n} positions count)" if values.shape == (len(samples),) else ""
    wanted = f", or {shape(samples.info)}," if len(axes) > 1 else ""
    refuse(
        f"where: {what}",
        values.shape,
        f"one boolean for each of the {n} positions of {axes_text(samples)}{wanted} is expected{left}",
    )


# ---- conditions by name ----------------------------------------------------------------------------------------------


def _named(samples: Samples, handle: Any, coordinates: Coordinates, name: str, value: object) -> Any:
    from headrace._text import to_json

    axes = [axis["name"] for axis in samples.info["axes"] if axis["kind"] == "steps"]
    if samples.obs_columns is not None and name in samples.obs_columns:
        return handle.where(_column_mask(samples.obs_columns[name], name, value))
    if name in axes:
        return handle.keep_labels(to_json(value, f"where: {name}"), name)
    if find(samples, name) is not None:
        return handle.where(_values_mask(coordinates[name], name, value), find_axis(samples, name))
    stem, _, which = name.rpartition(".")
    if which in PARTS and axes:
        stem = stem or _time_axis(coordinates, axes)
        return handle.where(_part_mask(coordinates, stem, which, value), find_axis(samples, stem))
    if name in samples.axes:
        refuse(
            f"where: {name}", value, "its samples have no label of their own: choose them by number (isel) or a mask"
        )
    if samples.obs_columns is not None:
        samples.obs_columns[name]  # says what there is
    hint = near(name, [*axes, *along_arrays(samples), *PARTS])
    refuse(
        f"where: {name}",
        value,
        f"neither an array along {axes_text(samples)}, nor a part of its dates, has that name{hint}",
    )


def _time_axis(coordinates: Coordinates, axes: list[str]) -> str:
    """The axis whose coordinate holds times; the first, where none does."""
    for axis in axes if len(axes) > 1 else []:
        if axis in coordinates and coordinates.times(axis) is not None:
            return axis
    return axes[0]


def _listed(value: object) -> list[Any] | None:
    """The values of a list, or None where it is one value or a slice."""
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return list(value)
    return list(value) if getattr(value, "ndim", 0) == 1 else None  # type: ignore[call-overload]


def _column_mask(column: FrameColumn, name: str, value: object) -> Any:
    """Of a column of obs: a value, a list of values, or a slice."""
    import numpy as np

    from headrace._compare import category_number

    if column.numbers is not None:
        mask = _values_mask(column.numbers, name, value)
        for piece in pieces(len(mask)):
            mask[piece] &= ~column.part(piece, {}).missing
        return mask
    if isinstance(value, slice):
        return np.ascontiguousarray(_between(_sortable(column), name, _codes(column, value)))
    listed = _listed(value)
    holds: Any = np.zeros(len(column.categories) + 1, bool)  # the last is for what is missing
    for wanted in [value] if listed is None else listed:
        holds[category_number(column, _plain(wanted))] = True
    return holds[column.codes]


def _plain(wanted: Any) -> Any:
    """A number or a text of Python for one of numpy's; all else as it is."""
    one = getattr(wanted, "shape", None) == () and hasattr(wanted, "item")
    return wanted.item() if one else wanted


def _sortable(column: FrameColumn) -> Any:
    if not column.ordered:
        refuse(f"where: {column.name}", column.kind, "a slice is of numbers, or of categories that have an order")
    return column.codes


def _codes(column: FrameColumn, ends: slice) -> slice:
    """Of ordered categories, from one to another: as their numbers."""
    from headrace._compare import category_number

    start = 0 if ends.start is None else category_number(column, ends.start)
    stop = None if ends.stop is None else category_number(column, ends.stop)
    return slice(start, stop, ends.step)


def _part_mask(coordinates: Coordinates, stem: str, which: str, value: object) -> Any:
    import numpy as np

    numbers = coordinates.part(stem, which)
    if isinstance(value, slice):
        return _between(numbers, which, value)
    keep: Any = np.zeros(len(numbers), bool)
    listed = _listed(value)
    for wanted in [value] if listed is None else listed:
        keep |= numbers == _part_number(which, wanted)
    return keep


def _part_number(which: str, wanted: object) -> int:
    from headrace._arguments import integer

    if which == "season":
        if wanted not in SEASONS:
            refuse(f"where: {which}", wanted, f"one of {', '.join(SEASONS)} is expected")
        return SEASONS.index(wanted)
    least, most = known_range(which) or (-(2**31), 2**31)
    return integer(f"where: {which}", wanted, least, most)


def _values_mask(values: Any, name: str, value: object) -> Any:
    import numpy as np

    if isinstance(value, slice):
        return _between(values, name, value)
    listed = _listed(value)
    keep: Any = np.zeros(len(values), bool)
    for wanted in [value] if listed is None else listed:
        try:
            mask = np.asarray(values == _like(values, wanted, name))
        except (OverflowError, TypeError, ValueError):  # arrays, types, numbers beyond the type
            mask = np.asarray(False)
        if mask.shape != keep.shape:
            refuse(f"where: {name}", wanted, f"it cannot be compared with values of type {values.dtype}")
        if not mask.any():
            from headrace._errors import NotFoundError

            known = {str(v) for v in values} if values.dtype.kind in "OUST" else set()
            raise NotFoundError(f"where: {name}={shown(wanted)}: no sample has that value{near(str(wanted), known)}")
        keep |= mask
    return keep


def _like(values: Any, wanted: object, name: str) -> Any:
    """A value as the array has it: dates from texts, float32 numbers in float32, texts as bytes."""
    import numpy as np

    kind = values.dtype.kind
    try:
        if kind == "M":
            return np.datetime64(wanted)
        if kind == "f" and not isinstance(wanted, str):
            return values.dtype.type(wanted)
        if kind == "S" and isinstance(wanted, str):
            return wanted.encode()
    except (TypeError, ValueError):
        refuse(f"where: {name}", wanted, f"a value of type {values.dtype} is expected")
    return wanted


def _between(values: Any, name: str, ends: slice) -> Any:
    """Both ends included; of dates "2000" means the whole year."""
    import numpy as np

    if ends.step is not None:
        refuse(f"where: {name}", ends, "a slice of values has no step")
    keep: Any = np.ones(len(values), bool)
    try:
        if ends.start is not None:
            keep &= values >= _like(values, ends.start, name)
        if ends.stop is not None:
            stop = _like(values, ends.stop, name)
            keep &= values < stop + 1 if values.dtype.kind == "M" else values <= stop
    except TypeError:
        refuse(f"where: {name}", ends, f"it cannot be compared with values of type {values.dtype}")
    return keep
