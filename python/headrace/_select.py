"""What one sample takes out of arrays: `view`, and the words for the sample axis: `steps`, `window`, `lag`."""

from __future__ import annotations

from headrace._arguments import dtype as known_dtype
from headrace._arguments import flag, integer, mapping, real, refuse, text
from headrace._transform import Transform, transform


class steps:
    """Index steps around the sample, from `first` to `last`, both included.

    A single step (``last`` left out) drops the dimension.

    >>> hr.steps(-6, 0)        # seven steps that end at the sample
    steps(-6, 0)
    """

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int | None = None) -> None:
        self.first = integer("steps: first", first)
        self.last = self.first if last is None else integer("steps: last", last)
        if self.last < self.first:
            refuse("steps: last", last, f"the last step lies before the first, {first}")

    def __repr__(self) -> str:
        return f"steps({self.first})" if self.first == self.last else f"steps({self.first}, {self.last})"


class window:
    """The `n` steps that end at the sample; the dimension stays, also for n = 1."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = integer("window: n", n, 1)

    def __repr__(self) -> str:
        return f"window({self.n})"


class lag:
    """The step that lies `duration` *before* the sample, by coordinate: ``lag("6h")``; ``lag("-1D")`` lies after it.

    The coordinate must be uniformly spaced. On coordinates that are no times, a number in the coordinate's unit.
    """

    __slots__ = ("duration",)

    def __init__(self, duration: str | int | float) -> None:
        accepted = "a duration such as '6h', '30min' or '-1D', or a number in the coordinate's unit, is expected"
        if isinstance(duration, str):
            self.duration = text("lag: duration", duration)
        elif abs(real("lag: duration", duration, accepted)) < 2.0**63:  # neither NaN nor infinite
            self.duration = str(duration)
        else:
            refuse("lag: duration", duration, accepted)

    def __repr__(self) -> str:
        return f"lag({self.duration!r})"


class View:
    """Made by `view`. Immutable."""

    __slots__ = ("arrays", "decode", "dims", "dtype", "isel", "sel", "stack", "transform")

    def __init__(
        self,
        arrays: tuple[str, ...],
        stack: str | None,
        sel: dict[str, object],
        isel: dict[str, object],
        dtype: str | None,
        decode: bool,
        transform: Transform | None = None,
    ) -> None:
        self.arrays = arrays
        self.stack = stack
        self.sel = sel
        self.isel = isel
        self.dtype = dtype
        self.decode = decode
        self.transform = transform

    def __repr__(self) -> str:
        words = [repr(a) for a in self.arrays]
        if self.stack:
            words.append(f"stack={self.stack!r}")
        words += [f"{k}={v!r}" if k.isidentifier() else f"sel={{{k!r}: {v!r}}}" for k, v in self.sel.items()]
        if self.isel:
            words.append(f"isel={self.isel!r}")
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
    return View(arrays, stack, labels, indices, kind, flag("view: decode", decode), steps_of_values)
