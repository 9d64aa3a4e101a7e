"""What one sample takes out of arrays: `view`, and the words for the sample axis: `steps`, `window`, `lag`."""

from __future__ import annotations

from headrace._arguments import dtype as known_dtype
from headrace._arguments import flag, integer, mapping, real, refuse, text
from headrace._transform import Transform, transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class steps:
    """Index steps around the sample, from `first` to `last`, both included, or every `step`-th of them.

    A single step (``last`` left out) drops the dimension. `gaps` is for axes on which positions are missing: by default
    steps run over gaps; "drop" leaves out the samples whose steps (from the sample on) do. A gap is where neighbours
    are off their usual distance, the median, by more than half; a duration ("6h") or a number says instead how far
    apart they may be.

    >>> hr.steps(-6, 0)        # seven steps that end at the sample
    steps(-6, 0)
    >>> hr.steps(-12, 0, 6)    # three: twelve and six steps before, and the sample
    steps(-12, 0, 6)
    >>> hr.steps(6, gaps="drop")
    steps(6, gaps='drop')
    """

    __slots__ = ("first", "gaps", "last", "step")

    def __init__(self, first: int, last: int | None = None, step: int = 1, *, gaps: str | float | None = None) -> None:
        self.first = integer("steps: first", first)
        self.last = self.first if last is None else integer("steps: last", last)
        if self.last < self.first:
            refuse("steps: last", last, f"the last step lies before the first, {first}")
        self.step = integer("steps: step", step, 1)
        if (self.last - self.first) % self.step:
            near = self.last - (self.last - self.first) % self.step
            refuse("steps: last", last, f"from {first} every {step}: the last such step is {near}")
        self.gaps = _gaps("steps", gaps)

    def __repr__(self) -> str:
        numbers = [self.first, self.last, self.step][: 1 if self.first == self.last else 2 if self.step == 1 else 3]
        return f"steps({', '.join(map(str, numbers))}{_gaps_text(self.gaps)})"


class window:
    """The `n` steps that end at the sample; the dimension stays, also for n = 1. `gaps` as for `steps`."""

    __slots__ = ("gaps", "n")

    def __init__(self, n: int, *, gaps: str | float | None = None) -> None:
        self.n = integer("window: n", n, 1)
        self.gaps = _gaps("window", gaps)

    def __repr__(self) -> str:
        return f"window({self.n}{_gaps_text(self.gaps)})"


def _gaps(call: str, gaps: object) -> str | None:
    accepted = "None, 'drop', or how far apart neighbours may be ('6h', or a number) is expected"
    if gaps is None:
        return None
    if isinstance(gaps, str):
        return text(f"{call}: gaps", gaps, accepted)
    return str(real(f"{call}: gaps", gaps, accepted))


def _gaps_text(gaps: str | None) -> str:
    return "" if gaps is None else f", gaps={gaps!r}"


class lag:
    """The step that lies `duration` *before* the sample, by coordinate: ``lag("6h")``; ``lag("-1D")`` lies after it.

    On coordinates that are no times, a number in the coordinate's unit. Where the coordinate has gaps, or is not evenly
    spaced, it has to be sorted, and the value is looked for: positions without one there are no samples. `tolerance`:
    the nearest at most so far off will do (of two as near, the greater).
    """

    __slots__ = ("duration", "tolerance")

    def __init__(self, duration: str | int | float, tolerance: str | float | None = None) -> None:
        accepted = "a duration such as '6h', '30min' or '-1D', or a number in the coordinate's unit, is expected"
        if isinstance(duration, str):
            self.duration = text("lag: duration", duration)
        elif abs(real("lag: duration", duration, accepted)) < 2.0**63:  # neither NaN nor infinite
            self.duration = str(duration)
        else:
            refuse("lag: duration", duration, accepted)
        self.tolerance = _tolerance("lag: tolerance", tolerance)

    def __repr__(self) -> str:
        return f"lag({self.duration!r}{'' if self.tolerance is None else f', tolerance={self.tolerance!r}'})"


def _tolerance(what: str, value: object) -> str | None:
    accepted = "a duration such as '3h', or a number, is expected"
    if value is None:
        return None
    return text(what, value, accepted) if isinstance(value, str) else str(real(what, value, accepted))


class View:
    """Made by `view`. Immutable."""

    __slots__ = ("arrays", "constant", "decode", "dims", "dtype", "isel", "join", "scale", "sel", "stack", "transform")

    def __init__(
        self,
        arrays: tuple[str, ...],
        stack: str | None,
        sel: dict[str, object],
        isel: dict[str, object],
        dtype: str | None,
        decode: bool,
        transform: Transform | None = None,
        constant: bool = False,
        scale: object = None,
        join: Join | None = None,
    ) -> None:
        self.arrays = arrays
        self.stack = stack
        self.sel = sel
        self.isel = isel
        self.dtype = dtype
        self.decode = decode
        self.transform = transform
        self.constant = constant
        self.scale = scale
        self.join = join

    def __repr__(self) -> str:
        words = [repr(a) for a in self.arrays]
        if self.stack:
            words.append(f"stack={self.stack!r}")
        words += [f"{k}={v!r}" if k.isidentifier() else f"sel={{{k!r}: {v!r}}}" for k, v in self.sel.items()]
        if self.isel:
            words.append(f"isel={self.isel!r}")
        if self.constant:
            words.append("constant=True")
        if self.scale is not None:
            words.append(f"scale={self.scale!r}")
        if self.join is not None:
            words += self.join.words
        if self.dtype is not None:
            words.append(f"dtype={self.dtype!r}")
        if not self.decode:
            words.append("decode=False")
        if self.transform:
            words += self.transform.words
        return f"view({', '.join(words)})"


def view(
    *arrays: str,
    stack: str | None = None,
    sel: dict[str, object] | None = None,
    isel: dict[str, object] | None = None,
    constant: bool = False,
    scale: object = None,
    join: str | None = None,
    tolerance: str | float | None = None,
    on: str | dict[str, str] | None = None,
    dtype: object = None,
    decode: bool = True,
    affine: tuple[float, float] | None = None,
    log1p: bool = False,
    clip: tuple[float | None, float | None] | None = None,
    mean: object = None,
    std: object = None,
    normalize: object = None,
    nan: float | str = "keep",
    mask: bool | str = False,
    layout: str | None = None,
    order: tuple[str, ...] | None = None,
    **dims: object,
) -> View:
    """What a sample takes out of one array, or out of several stacked on a new dimension.

    Parameters
    ----------
    arrays
        Paths of arrays in the archive. Several need `stack` and the same dimensions.
    stack
        Name of the dimension that several arrays are stacked on.
    dims, sel
        Per dimension: on the sample axis `steps`, `window` or `lag`; elsewhere labels as in xarray's ``.sel``: a scalar
        (drops the dimension), a list, or a slice with both ends included. `sel` is for names that are no identifiers.
    isel
        The same by index, with Python's slice rules.
    constant
        The arrays have no sample axis: the same for all samples, fetched once, in every row of a batch.
    scale
        The arrays are that much coarser along the sample axes: 2 for a label at half the resolution, 24 for daily
        fields beside hourly ones, 0.5 for a finer one. A number is for the axes of patches and crops, or, without any,
        for all; a dict is by dimension. Views of one sample show the same region.
    join, tolerance, on
        Arrays of another archive of `combine`, laid on the sample axis by the values of its coordinate: "inner" drops
        samples without a counterpart, "left" gives them NaN. Equal values, or with `tolerance` the nearest at most so
        far off: a duration ("3h") or a number. `on` names the dimension, where there are several, or where the sample
        axis is called otherwise: ``on={"valid_time": "time"}``. Times of other calendars and steps are found by date.
    dtype
        Type of the tensor; default: the array's, after decoding.
    decode
        Whether CF packing (``scale_factor``, ``_FillValue``, …) is decoded, as xarray does.
    affine
        ``(scale, offset)``: value · scale + offset, for units. This and what follows is done in this order, in the pass
        that fills the batch, and rounded once to `dtype`, a float.
    log1p
        log(1 + value).
    clip
        ``(low, high)``; None for no limit.
    mean, std
        (value - mean) / std: numbers, one per stacked array or channel, or arrays that a sample is broadcast against.
    normalize
        The same with what ``samples.moments()`` gave.
    nan
        "keep", or what NaN becomes, in units of the result.
    mask
        True: a second tensor, the view's name and ``_mask``, bool: True where there is a value, False where it is NaN.
        A text: the same under that name.
    layout, order
        "channels_first" or "channels_last", or the names of all dimensions after the sample; no extra pass.

    Returns the view; the tensor's layout is (sample, steps, stack, the other dimensions in the array's order).

    >>> hr.view("t2m", "u10", time=hr.steps(-6, 0), stack="channel")
    view('t2m', 'u10', stack='channel', time=steps(-6, 0))
    """
    for a in arrays:
        text("view: array", a, "the path of an array, as str, is expected")
    if not arrays:
        refuse("view: arrays", arrays, "a view names at least one array")
    labels = dict(mapping("view: sel", sel, "a dict of labels by dimension is expected"))
    for name, value in dims.items():
        if name in labels:
            refuse(f"view: {name}", value, "the dimension is selected in sel= too")
        labels[name] = value
    indices = dict(mapping("view: isel", isel, "a dict of indices by dimension is expected"))
    for name, value in indices.items():
        if name in labels:
            refuse(f"view: isel[{name!r}]", value, "the dimension is selected by label too")
    stack = None if stack is None else text("view: stack", stack, "the name of a new dimension, as str, is expected")
    kind = None if dtype is None else known_dtype("view: dtype", dtype)
    steps_of_values = transform(affine, log1p, clip, mean, std, normalize, nan, mask, layout, order)
    if constant and scale is not None:
        refuse("view: scale", scale, "a constant follows no sample axis")
    return View(
        arrays,
        stack,
        labels,
        indices,
        kind,
        flag("view: decode", decode),
        steps_of_values,
        flag("view: constant", constant),
        _scale(scale),
        _join(join, tolerance, on),
    )


ARGUMENTS = tuple(view.__kwdefaults__ or ())


class Join:
    """How a view of another archive is laid on a sample axis."""

    __slots__ = ("axis", "dim", "left", "tolerance", "words")

    def __init__(self, how: str, tolerance: str | None, dim: str | None, axis: str | None, words: list[str]) -> None:
        self.left = how == "left"
        self.tolerance, self.dim, self.axis, self.words = tolerance, dim, axis, words


def _join(how: object, tolerance: object, on: object) -> Join | None:
    if how is None:
        for name, value in (("tolerance", tolerance), ("on", on)):
            if value is not None:
                refuse(f"view: {name}", value, 'it belongs to join="inner" or "left"')
        return None
    if how not in ("inner", "left"):
        refuse("view: join", how, '"inner" or "left" is expected')
    words = [f"join={how!r}"]
    words += [f"tolerance={tolerance!r}"] if tolerance is not None else []
    words += [f"on={on!r}"] if on is not None else []
    tolerance = _tolerance("view: tolerance", tolerance)
    dim: Any = on
    axis = None
    if isinstance(on, dict):
        if len(on) != 1:
            refuse("view: on", on, 'one dimension and the sample axis it is laid on, such as {"valid_time": "time"}')
        dim, axis = next(iter(on.items()))
        text("view: on", axis)
    if dim is not None:
        text("view: on", dim)
    return Join(how, tolerance, dim, axis, words)


_SCALES = 1 << 20


def _scale(scale: object) -> Any:
    """None, or the fraction for all sample axes or by dimension: (scale, scale_of)."""
    if scale is None:
        return None
    if isinstance(scale, dict):
        return {text("view: scale", dim): _fraction(f"view: scale[{dim!r}]", value) for dim, value in scale.items()}
    return _fraction("view: scale", scale)


def _fraction(what: str, value: object) -> Any:
    from fractions import Fraction

    accepted = "a positive number such as 2 or 0.5 is expected"
    given = value if isinstance(value, Fraction) else float(real(what, value, accepted))
    if not -_SCALES <= given <= _SCALES:  # nor NaN
        refuse(what, value, accepted)
    number = Fraction(given).limit_denominator(_SCALES)
    if not 0 < number <= _SCALES:
        refuse(what, value, accepted)
    return number
