"""Values along the sample axis: coordinates and other one-dimensional arrays, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import near, text
from headrace._dates import PARTS, SEASONS, part

if TYPE_CHECKING:
    from headrace._archive import Array
    from headrace._samples import Samples

_GREGORIAN = ("standard", "proleptic_gregorian")


class Coordinates:
    """What a condition sees: ``c["time"]``, ``c["time.month"]``, ``c["station"]``: one value for each position of its
    sample axis, as numpy arrays, read when they are asked for.

    Times are datetime64 (of other calendars than the Gregorian: objects of `cftime`); their parts are integers:
    year, month, day, hour, minute, second, dayofyear, dayofweek (Monday is 0), quarter; and season ("DJF", …).
    """

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._known: dict[str, Any] = {}
        self._time_of: dict[str, Any] = {}

    def __repr__(self) -> str:
        columns = self._samples.obs_columns
        names = [*([] if columns is None else columns.columns), *along_arrays(self._samples)]
        return f"<coordinates of {axes_text(self._samples)}: {', '.join(names) or 'none'}>"

    def __contains__(self, name: object) -> bool:
        columns = self._samples.obs_columns
        if columns is not None and name in columns:
            return True
        return isinstance(name, str) and (find(self._samples, name) is not None or name.rpartition(".")[2] in PARTS)

    def __getitem__(self, name: str) -> Any:
        name = text("coordinates[…]", name)
        if self._samples.obs_columns is not None and name in self._samples.obs_columns:
            return self._samples.obs_columns[name].values
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def times(self, name: str) -> tuple[Any, str] | None:
        """Microseconds since 1970-01-01 and the calendar, or None where an array holds no times."""
        import numpy as np

        if name not in self._time_of:
            array = self._array(name)
            kind = array.dtype if array.dtype.startswith("datetime64") else array.attributes.get("units", "")
            found = None
            if isinstance(kind, str) and (" since " in kind or kind.startswith("datetime64")):
                found = self._samples._handle.times(name, array.shape[0])
            self._time_of[name] = None if found is None else (np.frombuffer(found[0], np.int64), found[1])
        return self._time_of[name]  # type: ignore[no-any-return]

    def part(self, name: str, which: str) -> Any:
        """One of `PARTS`, as integers; season as numbers."""
        times = self.times(name)
        if times is None:
            from headrace._errors import InvalidError

            raise InvalidError(f"{name}.{which}: {name} holds no times")
        return part(times[0], times[1], which)

    def _array(self, name: str) -> Array:
        array = find(self._samples, name)
        if array is None:
            from headrace._errors import NotFoundError

            if self._samples.obs_columns is not None:
                self._samples.obs_columns[name]  # says what there is
            known = along_arrays(self._samples)
            raise NotFoundError(
                f"{name}: no one-dimensional array along {axes_text(self._samples)} of that name{near(name, known)}; "
                f"there are {', '.join(known) or 'none'}"
            )
        return array

    def _read(self, name: str) -> Any:
        import numpy as np

        stem, dot, which = name.rpartition(".")
        if dot and which in PARTS and find(self._samples, name) is None:
            values = self.part(stem, which)
            return np.array(SEASONS)[values] if which == "season" else values
        array = self._array(name)
        times = self.times(name)
        if times is None:
            return array.read()
        us, calendar = times
        if calendar in _GREGORIAN:
            return us.view("datetime64[us]")
        return _objects(us, calendar)


def _objects(us: Any, calendar: str) -> Any:
    try:
        import cftime
    except ImportError:
        from headrace._errors import UnsupportedError

        raise UnsupportedError(
            f"times of the calendar {calendar} are objects of cftime, which is not installed; their parts, such as "
            "time.month, need no package"
        ) from None
    epoch = "1969-12-19" if calendar == "julian" else "1970-01-01"  # one day count for what history dated
    return cftime.num2date(us, f"microseconds since {epoch}", calendar)


def beside(samples: Samples, name: str) -> Array | None:
    """The array of that name: beside the arrays of the views, or in a folder around them, up to the root."""
    archive = samples.archive
    folder = samples.info["views"][0]["arrays"][0].rpartition("/")[0]
    while True:
        path = f"{folder}/{name}" if folder else name
        if path in archive:
            return archive[path]
        if not folder:
            return None
        folder = folder.rpartition("/")[0]


def find(samples: Samples, name: str) -> Array | None:
    """… if it is one-dimensional along a sample axis."""
    array = beside(samples, name)
    return array if array is not None and axis_of(samples, array.shape, array.dims) is not None else None


def find_axis(samples: Samples, name: str) -> str | None:
    """The axis that the array `name` runs along."""
    array = beside(samples, name)
    return None if array is None else axis_of(samples, array.shape, array.dims)


def axis_of(samples: Samples, shape: Any, dims: Any) -> str | None:
    """The axis, each position of which is a sample, that a one-dimensional array runs along: by its dimension's name;
    where there is but one axis, by its length."""
    axes = [axis for axis in samples.info["axes"] if axis["kind"] == "steps"]
    for axis in axes:
        named = dims and dims[0] == axis["name"]
        if list(shape) == [axis["length"]] and (named or len(samples.info["axes"]) == 1):
            return str(axis["name"])
    return None


def axes_text(samples: Samples) -> str:
    return " × ".join(axis["name"] for axis in samples.info["axes"])


def along_arrays(samples: Samples) -> list[str]:
    """Names of the 1-D arrays along a sample axis."""
    nodes = [n for n in samples.archive.info["nodes"] if n["kind"] == "array" and n.get("shape")]
    return [n["path"] for n in nodes if axis_of(samples, n["shape"], n.get("dims")) is not None]


class Grid:
    """`Coordinates` for a condition on several axes: each array has one dimension per axis, of length 1 along the
    others, so that conditions on different axes combine as numpy broadcasts."""

    def __init__(self, coordinates: Coordinates) -> None:
        self._coordinates = coordinates

    def __contains__(self, name: object) -> bool:
        return name in self._coordinates

    def __getitem__(self, name: str) -> Any:
        samples = self._coordinates._samples
        values = self._coordinates[name]
        axis = find_axis(samples, name) or find_axis(samples, name.rpartition(".")[0])
        return values.reshape([-1 if a["name"] == axis else 1 for a in samples.info["axes"]])
