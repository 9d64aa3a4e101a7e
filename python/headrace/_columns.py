"""A value for each sample, from a coordinate, a part of its dates, or an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import near, refuse, refuse_type
from headrace._codes import pieces
from headrace._coords import along_arrays, axes_text, find, find_axis
from headrace._dates import PARTS, SEASONS
from headrace._where import _as_array, _time_axis

if TYPE_CHECKING:
    from headrace._samples import Samples

_ACCEPTED = (
    "the name of a coordinate or of a part of its dates, or an array with a value for each position, is expected"
)


class Column:
    """`values` along one axis (its number), or, where `axis` is None, one for each position of all axes."""

    def __init__(self, name: str, values: Any, axis: int | None, samples: Samples, categories: Any = None) -> None:
        self.name, self.values, self.axis, self.categories = name, values, axis, categories
        self._lengths = [int(a["n"]) for a in samples.info["axes"]]

    def at(self, ids: Any) -> Any:
        """The values of sample ids, as numpy arrays both."""
        import numpy as np

        if self.axis is None or len(self._lengths) == 1:
            return self.values[ids]
        return self.values[np.unravel_index(ids, self._lengths)[self.axis]]

    def flat(self) -> Any:
        """One value for each id, all positions of all axes."""
        import numpy as np

        if self.axis is None or len(self._lengths) == 1:
            return self.values
        one = [n if a == self.axis else 1 for a, n in enumerate(self._lengths)]
        return np.broadcast_to(self.values.reshape(one), self._lengths).reshape(-1)

    def classes(self) -> tuple[Any, Any]:
        """The different values, ascending, and the number of each sample's among them. Of categories all that there
        are, in their order, and None behind them if any value is missing."""
        import numpy as np

        if self.categories is None:
            return classes(self.flat())
        from headrace._frame import spelled

        missing = len(self.values) > 0 and int(self.values.min()) < 0
        n = len(self.categories)
        if n + missing > 1 << 16:
            return classes(np.array([str(c) for c in spelled(self.categories)], object)[self.flat()])
        numbers: Any = np.empty(len(self.values), np.uint16)
        for piece in pieces(len(numbers)):
            numbers[piece] = self.values[piece].astype(np.uint16)
            numbers[piece][self.values[piece] < 0] = n
        return spelled(self.categories)[: n + missing], numbers


def column(samples: Samples, what: str, given: object) -> Column:
    """`what`: the argument, for messages."""
    if isinstance(given, str):
        return _named(samples, what, given)
    values = _as_array(given, what, _ACCEPTED)
    if values.dtype.kind == "O" and not values.ndim:
        refuse_type(what, given, _ACCEPTED)
    lengths, n = tuple(int(a["n"]) for a in samples.info["axes"]), int(samples.info["axis"])
    if values.shape == lengths and values.ndim > 1:
        values = values.reshape(-1)
    if values.shape != (n,):
        left = f" (as many as samples are left: {n} positions count)" if values.shape == (len(samples),) else ""
        shapes = f"{n} values" + (f", or of shape {lengths}" if len(lengths) > 1 else "")
        refuse(f"{what}: an array", values.shape, f"one value for each position of {axes_text(samples)}, {shapes}, "
               f"is expected{left}")  # fmt: skip
    return Column("values", values, None, samples)


def _named(samples: Samples, what: str, name: str) -> Column:
    if samples.obs_columns is not None:
        found = samples.obs_columns[name]
        if found.numbers is None:
            return Column(name, found.codes, 0, samples, found.categories)
        return Column(name, found.table(), 0, samples)
    coordinates, names = samples.coords, [a["name"] for a in samples.info["axes"]]
    axes = [a["name"] for a in samples.info["axes"] if a["kind"] == "steps"]
    if find(samples, name) is not None:
        return Column(name, coordinates[name], names.index(find_axis(samples, name)), samples)
    stem, _, which = name.rpartition(".")
    if which in PARTS and axes:
        stem = stem or _time_axis(coordinates, axes)
        return Column(name, coordinates[f"{stem}.{which}"], names.index(find_axis(samples, stem)), samples)
    hint = near(name, [*axes, *along_arrays(samples), *PARTS])
    refuse(what, name, f"neither an array along {axes_text(samples)}, nor a part of its dates, has that name{hint}")


def classes(values: Any) -> tuple[Any, Any]:
    """The different values, ascending, and the number of each sample's among them (uint16). Seasons in their order."""
    import numpy as np

    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < 1 << 16:  # counted, not sorted
            base, flat = values.dtype.type(low), values.reshape(-1)
            codes: Any = np.empty(len(flat), np.uint16)
            found: Any = np.zeros(high - low + 1, bool)
            for piece in pieces(len(flat)):
                codes[piece] = (flat[piece] - base).astype(f"u{values.itemsize}", copy=False)  # wraps, rightly
                found[codes[piece]] = True
            there = np.flatnonzero(found)
            number: Any = np.zeros(high - low + 1, np.uint16)
            number[there] = np.arange(len(there))
            for piece in pieces(len(flat)):
                codes[piece] = number[codes[piece]]
            return there + low if high < 1 << 63 else there.astype(np.uint64) + np.uint64(low), codes
    try:
        different, codes = np.unique(values, return_inverse=True)
    except TypeError:  # objects that cannot be ordered, such as None
        from headrace._errors import InvalidTypeError

        kinds = ", ".join(sorted({type(v).__name__ for v in values.flat})[:4])
        raise InvalidTypeError(f"classes are numbers, texts or dates, not objects ({kinds})") from None
    codes = codes.reshape(-1)
    if values.dtype.kind == "U" and set(different.tolist()) <= set(SEASONS):
        order = np.argsort([SEASONS.index(s) for s in different.tolist()])
        number = np.argsort(order)
        different, codes = different[order], number[codes]
    return different, codes
