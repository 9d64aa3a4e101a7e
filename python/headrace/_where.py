"""Conditions on samples, as masks over the positions of the sample axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import mapping, near, refuse, refuse_type, shown
from headrace._coords import along_arrays, find
from headrace._dates import PARTS, SEASONS, known_range

if TYPE_CHECKING:
    from headrace._coords import Coordinates
    from headrace._samples import Samples

_ACCEPTED = "a boolean array, sample ids, a dict of conditions, or a function of the coordinates is expected"


def where(samples: Samples, condition: object, named: dict[str, Any]) -> Any:
    """The handle of what is kept."""
    handle = samples._handle
    if condition is None and not named:
        refuse("where", None, _ACCEPTED + ", or conditions by name")
    coordinates = samples.coords
    conditions = dict(named)
    if isinstance(condition, dict):
        conditions = {**mapping("where", condition, _ACCEPTED), **conditions}
    elif callable(condition):
        handle = handle.where(_mask(samples, condition(coordinates), "the function's result"))
    elif condition is not None:
        handle = _array(samples, condition)
    for name, value in conditions.items():
        handle = _named(samples, handle, coordinates, name, value)
    return handle


def _array(samples: Samples, condition: object) -> Any:
    """A mask, or ids."""
    import numpy as np

    values = _as_array(condition)
    if values.dtype.kind == "b":
        return samples._handle.where(_mask(samples, values, "the mask"))
    if values.dtype.kind not in "iu" and values.size:
        refuse_type("where", condition, _ACCEPTED)
    if values.ndim != 1:
        refuse("where", condition, f"ids are expected in one dimension, not in {values.ndim}")
    if len(values) == samples.info["axis"] > 2 and values.size and int(values.min()) >= 0 and int(values.max()) <= 1:
        refuse("where", condition, "these are numbers, which would be ids: give a mask as booleans, .astype(bool)")
    return samples._handle.take(np.ascontiguousarray(values, np.int64))


def _as_array(value: object) -> Any:
    import numpy as np

    if hasattr(value, "values") and hasattr(value, "dims"):  # of xarray
        value = value.values
    try:
        values = np.asarray(value)
    except Exception:  # ragged lists and what has an __array__ that fails
        refuse_type("where", value, _ACCEPTED)
    return values


def _mask(samples: Samples, result: object, what: str) -> Any:
    import numpy as np

    values = _as_array(result)
    if values.dtype.kind != "b":
        refuse_type(f"where: {what}", result, "booleans are expected")
    n = samples.info["axis"]
    if values.shape != (n,):
        left = f" (as many as samples are left: {n} positions count)" if values.shape == (len(samples),) else ""
        refuse(
            f"where: {what}",
            values.shape,
            f"one boolean for each of the {n} positions of {samples.along} is expected{left}",
        )
    return np.ascontiguousarray(values)


# ---- conditions by name ----------------------------------------------------------------------------------------------


def _named(samples: Samples, handle: Any, coordinates: Coordinates, name: str, value: object) -> Any:
    from headrace._text import to_json

    if name == samples.along:
        return handle.keep_labels(to_json(value, f"where: {name}"))
    if find(samples, name) is not None:
        return handle.where(_values_mask(coordinates[name], name, value))
    stem, _, which = name.rpartition(".")
    if which in PARTS:
        return handle.where(_part_mask(coordinates, stem or samples.along, which, value))
    hint = near(name, [samples.along, *along_arrays(samples), *PARTS])
    refuse(
        f"where: {name}", value, f"neither an array along {samples.along}, nor a part of its dates, has that name{hint}"
    )


def _listed(value: object) -> list[Any] | None:
    """The values of a list, or None where it is one value or a slice."""
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return list(value)
    return list(value) if getattr(value, "ndim", 0) == 1 else None  # type: ignore[call-overload]


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
        mask = np.asarray(values == _like(values, wanted, name))
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
