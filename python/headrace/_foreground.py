"""Which patches hold enough of a label: counted on one level of its pyramid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import real, refuse, text

if TYPE_CHECKING:
    from headrace._archive import Array
    from headrace._samples import Samples

_SHARE = "a share of a patch's area, above 0 and at most 1, is expected"


def foreground(samples: Samples, label: object, share: object, values: object) -> Any:
    """The handle of the samples whose box holds at least `share` of `values` (None: all but 0 and NaN)."""
    import numpy as np

    path = text("foreground: label", label, "the path of an array, as str, is expected")
    least = real("foreground: share", share, _SHARE)
    if not 0 < least <= 1:
        refuse("foreground: share", share, _SHARE)
    array = samples.archive[path]
    axes = [axis for axis in samples.info["axes"] if axis["name"] in array.dims]
    _check(array, axes)
    keep: Any = np.zeros([axis["n"] for axis in axes], bool)
    steps = [axis for axis in axes if axis["kind"] == "steps"]
    patches = [axis for axis in axes if axis["kind"] == "patch"]
    order = [axes.index(axis) for axis in (*steps, *patches)]
    for at in np.ndindex(*[axis["n"] for axis in steps]):
        plane = _plane(array, dict(zip([axis["name"] for axis in steps], at)), [axis["name"] for axis in patches])
        shares = _shares(_is_foreground(plane, values), patches)
        np.moveaxis(keep, order, range(len(order)))[at] = shares >= least
    shape = [axis["n"] if axis in axes else 1 for axis in samples.info["axes"]]
    from headrace._where import _masked

    return _masked(samples, _spread(samples, keep.reshape(shape)), "the foreground")


def _spread(samples: Samples, keep: Any) -> Any:
    """A mask that `where` takes: one axis as it is, several as they broadcast."""
    return keep.reshape(-1) if len(samples.info["axes"]) == 1 else keep


def _check(array: Array, axes: list[dict[str, Any]]) -> None:
    names = [axis["name"] for axis in axes]
    if not any(axis["kind"] == "patch" for axis in axes):
        refuse("foreground: label", array.path, "an array along the axes that patches are taken of is expected")
    crops = [axis["name"] for axis in axes if axis["kind"] == "crop"]
    if crops:
        refuse("foreground: label", array.path, f"crops along {crops[0]} lie elsewhere in each epoch: take patches")
    others = [dim for dim in array.dims if dim not in names]
    if others:
        refuse("foreground: label", array.path, f"its dimension {others[0]} is no sample axis")
    for axis in axes:
        length = array.shape[array.dims.index(axis["name"])]
        if axis["kind"] == "steps" and length != axis["length"]:
            refuse("foreground: label", array.path, f"{length} positions along {axis['name']}, not {axis['length']}")
        if length > axis["length"]:
            refuse("foreground: label", array.path, f"it is finer along {axis['name']} than what patches are taken of")


def _plane(array: Array, at: dict[str, int], order: list[str]) -> Any:
    """The label at one position of the other axes, its dimensions in the order of the patch axes."""
    import numpy as np

    values = array[tuple(at.get(str(dim), slice(None)) for dim in array.dims)]
    left = [dim for dim in array.dims if dim not in at]
    return np.transpose(values, [left.index(dim) for dim in order])


def _is_foreground(plane: Any, values: object) -> Any:
    import numpy as np

    if values is not None:
        return np.isin(plane, np.atleast_1d(np.asarray(values)))
    return (plane != 0) & (plane == plane)


def _shares(mask: Any, axes: list[dict[str, Any]]) -> Any:
    """Of each patch, the share of its pixels inside the array that are true, from a summed-area table."""
    import numpy as np

    table: Any = np.zeros([n + 1 for n in mask.shape])
    table[tuple(slice(1, None) for _ in mask.shape)] = mask
    area: Any = np.ones([1] * mask.ndim)
    for d, axis in enumerate(axes):
        np.cumsum(table, axis=d, out=table)
        low, high = _edges(axis, mask.shape[d])
        table = np.take(table, high, d) - np.take(table, low, d)
        area = area * (high - low).reshape([-1 if k == d else 1 for k in range(mask.ndim)])
    return table / np.maximum(area, 1)


def _edges(axis: dict[str, Any], length: int) -> tuple[Any, Any]:
    """First and one past the last pixel of each patch on the label's own grid, rounded outwards."""
    import numpy as np

    begin = np.arange(axis["n"]) * axis["stride"]
    if axis["edge"] == "clip":
        begin = np.minimum(begin, axis["length"] - axis["size"])
    scale = max(1, round(axis["length"] / length))
    return np.clip(begin // scale, 0, length), np.clip(-(-(begin + axis["size"]) // scale), 0, length)
