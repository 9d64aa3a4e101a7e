"""What samples run along: positions, patches, crops and draws of a dimension."""

from __future__ import annotations

from headrace._arguments import integer, real, refuse, refuse_type, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EDGES = (None, "valid", "pad", "reflect", "clip")


class patch:
    """Boxes of `size` positions, one every `stride` (default: side by side; or `overlap` positions in common).

    `edge` says what becomes of the last one where patches do not come out even, and has to be given then:

    - "valid": what is left over belongs to no sample;
    - "clip": the last patch is moved inside, and overlaps the one before;
    - "pad": what lies outside is `value`, in units of the tensor (default: what a missing chunk is; where several axes
      pad, one value is for all);
    - "reflect": mirrored at the last element, which is not repeated.

    >>> tiles = {"lat": hr.patch(5, overlap=1), "lon": hr.patch(5, edge="clip")}
    >>> archive.samples(along=tiles, image="z")                        # doctest: +SKIP
    """

    __slots__ = ("edge", "size", "stride", "value")

    def __init__(
        self,
        size: int,
        stride: int | None = None,
        *,
        overlap: int | None = None,
        edge: str | None = None,
        value: float | None = None,
    ) -> None:
        self.size = integer("patch: size", size, 1)
        if overlap is not None:
            if stride is not None:
                refuse("patch: overlap", overlap, "a stride is given already")
            stride = self.size - integer("patch: overlap", overlap, 0, self.size - 1)
        self.stride = self.size if stride is None else integer("patch: stride", stride, 1)
        if edge not in _EDGES:
            refuse("patch: edge", edge, 'one of "valid", "clip", "pad" and "reflect" is expected')
        self.edge = edge
        if value is not None and edge != "pad":
            refuse("patch: value", value, 'a value outside belongs to edge="pad"')
        self.value = None if value is None else real("patch: value", value, "a number is expected")

    def __repr__(self) -> str:
        words = [str(self.size)]
        words += [f"stride={self.stride}"] if self.stride != self.size else []
        words += [f"edge={self.edge!r}"] if self.edge else []
        words += [f"value={self.value!r}"] if self.value is not None else []
        return f"patch({', '.join(words)})"


class crop:
    """A box of `size` positions at a place drawn by (seed, epoch, sample): another in every epoch.

    With `parts`, the axis has that many samples, each of which draws from its own even part: an epoch sees all of the
    axis, and neighbours in the order share chunks. Several crops anywhere: `draws`.
    """

    __slots__ = ("parts", "size")

    def __init__(self, size: int, parts: int = 1) -> None:
        self.size = integer("crop: size", size, 1)
        self.parts = integer("crop: parts", parts, 1)

    def __repr__(self) -> str:
        return f"crop({self.size})" if self.parts == 1 else f"crop({self.size}, parts={self.parts})"


class draws:
    """An axis of `n` samples of whatever the other axes make; crops are drawn anew for each.

    >>> crops = {"time": None, "crop": hr.draws(4), "lat": hr.crop(8), "lon": hr.crop(8)}
    >>> archive.samples(along=crops, image="z")                        # doctest: +SKIP
    """

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = integer("draws: n", n, 1)

    def __repr__(self) -> str:
        return f"draws({self.n})"


def add_axes(handle: Any, along: object) -> dict[str, Any]:
    """`along` as `Archive.samples` takes it, to the building calls. What each axis is, by name."""
    accepted = 'the name of a dimension, a list of names, or a dict such as {"y": hr.patch(256)} is expected'
    if isinstance(along, str):
        along = {along: None}
    elif isinstance(along, (list, tuple)):
        names = [text("along", name, accepted) for name in along]
        if len(set(names)) < len(names):
            refuse("along", along, "a dimension is named twice")
        along = dict.fromkeys(names)
    if not isinstance(along, dict) or not along:
        refuse("along", along, accepted)
    for name, what in along.items():
        _add_axis(handle, text("along", name, accepted), what)
    return along


def _add_axis(handle: Any, name: str, what: object) -> None:
    if what is None:
        handle.along(name)
    elif isinstance(what, patch):
        handle.patch(name, what.size, what.stride, _EDGES.index(what.edge))
        if what.value is not None:
            handle.pad(name, what.value)
    elif isinstance(what, crop):
        handle.crop(name, what.size, what.parts)
    elif isinstance(what, draws):
        handle.draws(name, what.n)
    elif isinstance(what, int) and not isinstance(what, bool):
        refuse_type(f"along: {name}", what, f"hr.patch({what}), hr.crop({what}) or None is expected")
    else:
        refuse_type(f"along: {name}", what, "None, hr.patch(…), hr.crop(…) or hr.draws(…) is expected")


# ---- where samples lie -----------------------------------------------------------------------------------------------


def plain(info: dict[str, Any]) -> bool:
    """One axis, each position a sample: ids are positions."""
    return len(info["axes"]) == 1 and info["axes"][0]["kind"] == "steps"


def shape(info: dict[str, Any]) -> tuple[int, ...]:
    """Positions along each axis: an id is row-major in it."""
    return tuple(axis["n"] for axis in info["axes"])


def positions(info: dict[str, Any], ids: Any) -> dict[str, Any]:
    """By axis, the positions of ids."""
    import numpy as np

    ids = np.asarray(ids)
    if plain(info):
        return {info["axes"][0]["name"]: ids.copy()}
    along = np.unravel_index(ids.clip(0), shape(info))
    return {axis["name"]: where.astype(np.int64) for axis, where in zip(info["axes"], along)}


def starts(info: dict[str, Any], ids: Any, places: Any) -> dict[str, Any]:
    """By axis, where boxes begin, in positions of its dimension. `places` is of crops, else None."""
    import numpy as np

    if places is None:
        found = positions(info, ids)
    else:
        radix = [axis.get("places") or axis["n"] for axis in info["axes"]]
        along = np.unravel_index(np.asarray(places).clip(0), radix)
        found = {axis["name"]: where.astype(np.int64) for axis, where in zip(info["axes"], along)}
    for axis in info["axes"]:
        name = axis["name"]
        if axis["kind"] == "draws":
            continue
        found[name] *= axis.get("stride", 1) * axis.get("align", 1)
        if axis.get("edge") == "clip":
            np.minimum(found[name], axis["length"] - axis["size"], out=found[name])
    return found
