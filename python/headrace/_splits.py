"""Splits: samples cut by fractions, coordinates, groups or blocks, folds, and the audit of what the parts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import integer, mapping, real, refuse, refuse_type, shown, text
from headrace._axes import plain, shape
from headrace._coords import find_axis
from headrace._samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

_AND, _WITHOUT = 0, 2
_FRACTION = "a fraction, above 0 and at most 1, is expected"
_GAP = "a number of samples, a duration such as '5D', or 'auto', is expected"
_PARTS = 1000
_FAR = 0.1  # of all samples, by which a part of whole groups may miss its share without a word


class Splits(tuple[Samples, ...]):
    """The parts of a split, in order: ``train, val = samples.split(0.9, 0.1)``. Where they have names,
    ``parts["train"]`` too. `report` says what the parts share.

    Parts made by hand can be audited as well: ``hr.Splits({"train": a, "val": b}).report()``.
    """

    names: tuple[str, ...]

    def __new__(cls, parts: Any, names: Any = None) -> Splits:
        if isinstance(parts, dict):
            names, parts = list(parts), list(parts.values())
        parts = tuple(parts)
        for part in parts:
            if not isinstance(part, Samples):
                refuse_type("Splits", part, "samples are expected")
        self = super().__new__(cls, parts)
        self.names = tuple(names) if names else tuple(f"part {i}" for i in range(len(parts)))
        return self

    def __getnewargs__(self) -> Any:
        return tuple(self), self.names

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            from headrace._errors import NotFoundError

            raise NotFoundError(f"no part is called {key!r}; there are {', '.join(self.names)}")
        return super().__getitem__(self.names.index(key))

    def keys(self) -> tuple[str, ...]:
        """The names, so that ``dict(parts)`` is one of samples by name."""
        return self.names

    def items(self) -> list[tuple[str, Samples]]:
        """(name, samples) of every part."""
        return list(zip(self.names, self))

    def __repr__(self) -> str:
        return f"Splits({', '.join(f'{name}: {len(part):,} samples' for name, part in self.items())})"

    def report(self) -> SplitReport:
        """Which samples, rows and chunks the parts share: prints as a table, and is a dict of the numbers.

        A row is a step along the sample axis of one array. Rows in two parts are leakage: the windows of one part's
        samples show what the other is judged by. Along several axes, and of patches, what is counted under "rows" are
        samples of the first part whose boxes meet one of the second's, and ``unit`` says so. Chunks in two parts are
        none; they are read for both. Of cells it says, too, how many categories of the batch's columns each part has.
        """
        from headrace._categories import facts

        parts = [
            {"name": name, "samples": len(part), "chunks": part._handle.shared(part._handle)[2]}
            for name, part in self.items()
        ]
        pairs = []
        for i, (a, first) in enumerate(self.items()):
            for b, second in self.items()[i + 1 :]:
                samples, rows, chunks = first._handle.shared(second._handle)
                pairs.append({"a": a, "b": b, "samples": samples, "rows": rows, "chunks": chunks})
        unit = "rows" if plain(self[0].info) else "boxes that meet"
        leaks = any(p["samples"] or p["rows"] for p in pairs)
        categories = facts(list(self)) if self else []
        return SplitReport({"parts": parts, "pairs": pairs, "unit": unit, "leaks": leaks, "categories": categories})


class SplitReport(dict):  # type: ignore[type-arg]
    """The numbers of `Splits.report`: `parts`, `pairs`, `leaks`, whether any two share a sample or a row, and
    `categories`."""

    def _tables(self) -> list[list[tuple[str, ...]]]:
        from headrace._format import count

        total = sum(p["samples"] for p in self["parts"]) or 1
        parts: list[tuple[str, ...]] = [("", "samples", "share", "chunks")]
        parts += [
            (p["name"], count(p["samples"]), f"{100 * p['samples'] / total:.1f} %", count(p["chunks"]))
            for p in self["parts"]
        ]
        pairs: list[tuple[str, ...]] = [("shared", "samples", self["unit"], "chunks", "")]
        pairs += [
            (f"{p['a']}, {p['b']}", *(count(p[k]) for k in ("samples", "rows", "chunks")), self._verdict(p))
            for p in self["pairs"]
        ]
        columns: list[tuple[str, ...]] = [("categories", "in all", *(p["name"] for p in self["parts"]))]
        columns += [(c["name"], *(count(n) for n in (c["categories"], *c["parts"]))) for c in self["categories"]]
        return [rows for rows in (parts, pairs, columns) if len(rows) > 1]

    @staticmethod
    def _verdict(pair: dict[str, Any]) -> str:
        return "leaks" if pair["samples"] or pair["rows"] else "apart"

    def __repr__(self) -> str:
        from headrace._format import table

        return "\n\n".join(table(rows) for rows in self._tables())

    def _repr_html_(self) -> str:
        from headrace._format import html, html_table

        return html("".join(html_table(rows[1:], rows[0]) for rows in self._tables()))


# ---- making them -----------------------------------------------------------------------------------------------------


def split(
    samples: Samples,
    fractions: tuple[Any, ...],
    named: dict[str, Any],
    gap: object,
    by: object,
    blocks: object,
    seed: object,
    along: object = None,
) -> Splits:
    shares, names, coordinate = _what(fractions, named)
    axis = _axis(samples, along)
    distance = _gap(samples, gap, axis)
    if coordinate is not None:
        if by is not None or blocks is not None:
            refuse("split: " + ("by" if by is not None else "blocks"), by or blocks, "this is a split by coordinate")
        name, parts = coordinate
        return _by_coordinate(samples, name, parts, distance)
    if by is not None and blocks is not None:
        refuse("split: blocks", blocks, "groups (by=) are dealt whole already: give one of the two")
    dealt = _deal(samples, shares, distance, by, blocks, seed, axis)
    parts = Splits((samples._derived(h) for h in dealt), names)
    if by is None and blocks is None and samples.obs_columns is not None:
        from headrace._categories import warn_if_sorted

        warn_if_sorted(list(parts), parts.names, "split")
    if by is not None:
        _warn_if_far(samples, parts, shares)
    return parts


def _warn_if_far(samples: Samples, parts: Splits, shares: list[float]) -> None:
    """Groups are dealt whole and in the seed's order, so that of few or large ones a part may be far from its share."""
    n = len(samples)
    off, at = max((abs(len(part) / max(n, 1) - share), i) for i, (part, share) in enumerate(zip(parts, shares)))
    if off > _FAR:
        import warnings

        lost = round(n * sum(shares)) - sum(map(len, parts))
        why = "groups stay whole, and some are large; another seed= deals them anew"
        if lost > off * n / 2:
            why = f"gap= leaves out {lost:,} that are near samples of other parts"
        warnings.warn(
            f"split: {parts.names[at]} has {len(parts[at]):,} of {n:,} samples, {len(parts[at]) / n:.0%} where "
            f"{shares[at]:.0%} was asked for: {why}",
            RuntimeWarning,
            stacklevel=4,
        )


def _what(fractions: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[float], list[str] | None, Any]:
    """Fractions and their names, or (coordinate, parts)."""
    if len(fractions) == 1 and isinstance(fractions[0], dict):
        given = mapping("split", fractions[0], "a dict of fractions by name is expected")
        fractions, named = (), {**given, **named}
    coordinates = {k: v for k, v in named.items() if isinstance(v, (dict, list, tuple))}
    if coordinates:
        if len(named) > 1 or fractions:
            refuse("split", named, "one coordinate alone is expected, or fractions alone")
        return [], None, next(iter(coordinates.items()))
    if fractions and named:
        refuse("split", named, "fractions with names, or without, are expected")
    values = list(named.values()) or list(fractions)
    if not 1 <= len(values) <= _PARTS:
        refuse("split", values, "fractions are expected, such as split(0.8, 0.1, 0.1)")
    shares = [real("split: fraction", f, _FRACTION) for f in values]
    for share in shares:
        if not 0 < share <= 1:
            refuse("split: fraction", share, _FRACTION)
    return shares, list(named) or None, None


def _axis(samples: Samples, along: object) -> str:
    """The axis that is cut."""
    if along is None:
        return samples.along
    if along not in samples.axes:
        refuse("split: along", along, f"one of the sample axes {', '.join(samples.axes)} is expected")
    return str(along)


def _gap(samples: Samples, gap: object, axis: str) -> int:
    """In positions of the axis; -1: so that no row is shared."""
    if isinstance(gap, str):
        if gap == "auto":
            return -1
        return _steps(samples, "gap", gap, 0, axis)
    return integer("split: gap", gap, 0, accepted=_GAP)


def _steps(samples: Samples, what: str, duration: str, least: int, axis: str) -> int:
    """Positions that a duration is."""
    from headrace._errors import Error

    try:
        steps = int(samples._handle.duration(text(f"split: {what}", duration), axis))
    except Error as e:
        refuse(f"split: {what}", duration, f"a duration in whole steps of {axis} is expected ({e})")
    if steps < least:
        refuse(f"split: {what}", duration, f"at least {least} step{'s' if least != 1 else ''} of {axis}")
    return steps


def _deal(samples: Samples, shares: list[float], gap: int, by: object, blocks: object, seed: object, axis: str) -> Any:
    handle = samples._handle
    key = 0 if seed is None else integer("split: seed", seed, 0, 2**64 - 1)
    if by is not None:
        codes, dim = group_numbers(samples, by, axis)
        return handle.split_groups(codes.dtype.name, codes, shares, key, gap, dim)
    if blocks is None:
        if seed is not None:
            refuse("split: seed", seed, "runs in archive order have no seed: blocks=100 deals so many runs to the "
                   "parts, in that seed's order, by=… groups")  # fmt: skip
        return handle.split(shares, gap, axis)
    return handle.split_blocks(shares, _block_count(samples, blocks, axis), seed is not None, key, gap, axis)


def _block_count(samples: Samples, blocks: object, axis: str) -> int:
    """How many; of a text, how many of that duration."""
    if not isinstance(blocks, str):
        return integer("split: blocks", blocks, 1, _PARTS)
    steps = _steps(samples, "blocks", blocks, 1, axis)
    range_of = samples.axes[axis]
    n: int = -(-(range_of["last"] - range_of["first"] + 1) // steps)
    if n > _PARTS:
        refuse("split: blocks", blocks, f"these would be {n} blocks; at most {_PARTS}")
    return n


def group_numbers(samples: Samples, by: object, axis: str) -> tuple[Any, str | None]:
    """Codes of the groups, integers, one for each position of an axis, and which one; None: one for each id."""
    import numpy as np

    dim = axis
    if isinstance(by, str) and samples.obs_columns is not None:
        column = samples.obs_columns[by]
        return _codes(column.codes if column.numbers is None else column.table()), axis
    if isinstance(by, str):
        values = samples.coords[by]
        dim = find_axis(samples, by) or find_axis(samples, by.rpartition(".")[0]) or axis
    else:
        values = np.asarray(by.values if hasattr(by, "dims") and hasattr(by, "values") else by)
    n, everything = samples.axes[axis]["n"], samples.info["axis"]
    if not isinstance(by, str) and len(samples.axes) > 1 and values.shape in ((everything,), shape(samples.info)):
        return _codes(values.reshape(-1)), None
    if values.shape != (samples.axes[dim]["n"],):
        left = f" (as many as samples are left: {n} positions count)" if values.shape == (len(samples),) else ""
        refuse("split: by", values.shape, f"one group for each of the {n} positions of {axis} is expected{left}")
    return _codes(values), dim


def _codes(values: Any) -> Any:
    import numpy as np

    if values.dtype.kind in "iub":
        return np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    try:
        codes = np.unique(values, return_inverse=True)[1]
    except TypeError:
        refuse_type("split: by", list(values[:3]), "values of one kind are expected")
    return np.ascontiguousarray(codes, np.int64)


def _by_coordinate(samples: Samples, name: str, parts: Any, gap: int) -> Splits:
    from headrace._where import _named

    names = list(parts) if isinstance(parts, dict) else None
    wanted = list(parts.values()) if isinstance(parts, dict) else list(parts)
    if not wanted:
        refuse(f"split: {name}", parts, "a dict or a list of slices and labels, one for each part, is expected")
    coordinates = samples.coords
    handles = [_named(samples, samples._handle, coordinates, name, value) for value in wanted]
    label = names or [f"part {i}" for i in range(len(wanted))]
    for i, a in enumerate(handles):
        if not a.count():
            refuse(f"split: {name}", wanted[i], f"{label[i]} has no samples")
        for j in range(i):
            both = handles[j].combine(a, _AND).count()
            if both:
                refuse(
                    f"split: {name}",
                    wanted[i],
                    f"{both} of its samples are in {label[j]} too ({shown(wanted[j])}): both ends of a slice count",
                )
    for i in reversed(range(len(handles))):
        for later in handles[i + 1 :]:
            handles[i] = handles[i].apart(later, gap) if gap else handles[i]
        if not handles[i].count():
            refuse(f"split: {name}", wanted[i], f"the gap leaves no samples in {label[i]}: give a smaller gap=")
    return Splits((samples._derived(h) for h in handles), names)


def folds(
    samples: Samples, k: object, gap: object, by: object, blocks: object, seed: object, along: object = None
) -> Iterator[Splits]:
    number = integer("folds", k, 2, _PARTS)
    axis = _axis(samples, along)
    distance = _gap(samples, gap, axis)
    if by is not None and blocks is not None:
        refuse("folds: blocks", blocks, "groups (by=) are dealt whole already: give one of the two")
    parts = _deal(samples, [1 / number] * number, 0, by, blocks, seed, axis)
    if by is None and blocks is None and samples.obs_columns is not None:
        from headrace._categories import warn_if_sorted

        warn_if_sorted([samples._derived(h) for h in parts], tuple(f"fold {i}" for i in range(number)), "folds")
    return _folds(samples, parts, distance, gap)


def _folds(samples: Samples, parts: Any, gap: int, given: object) -> Iterator[Splits]:
    for i, part in enumerate(parts):
        rest = samples._handle.combine(part, _WITHOUT)
        rest = rest.apart(part, gap) if gap else rest
        if not rest.count():
            refuse("folds: gap", given, f"it leaves nothing to train on in fold {i}")
        yield Splits((samples._derived(rest), samples._derived(part)), ("train", "val"))
