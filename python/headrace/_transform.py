"""What a view does to its values after decoding: the keywords of `view` that are no selections.

The library computes them in the pass that scatters a chunk into the batch; here they are only checked and handed over.
Whatever their order in the call, they are applied in this one: decode, affine, log1p, clip, normalise, NaN, cast.
"""

from __future__ import annotations

from headrace._arguments import flag, real, refuse, refuse_type, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LAYOUTS = ("channels_first", "channels_last")


class Transform:
    """The steps of one view. Immutable."""

    __slots__ = ("affine", "clip", "layout", "log1p", "mask", "moments", "nan", "order", "words")

    def __init__(
        self,
        affine: tuple[float, float] | None,
        log1p: bool,
        clip: tuple[float, float] | None,
        moments: tuple[bytes, bytes, tuple[int, ...], tuple[str, ...] | None] | None,
        nan: float | None,
        mask: bool | str,
        layout: str | None,
        order: tuple[str, ...] | None,
        words: list[str],
    ) -> None:
        self.affine = affine
        self.log1p = log1p
        self.clip = clip
        self.moments = moments
        self.nan = nan
        self.mask = mask
        self.layout = layout
        self.order = order
        self.words = words  # of the repr

    def apply(self, handle: Any, view: str) -> None:
        """To a view that is being built."""
        if self.affine:
            handle.affine(view, *self.affine)
        if self.log1p:
            handle.log1p(view)
        if self.clip:
            handle.clip(view, *self.clip)
        if self.moments:
            handle.normalize(view, *self.moments)
        if self.nan is not None:
            handle.nan(view, self.nan)
        if self.layout:
            handle.layout(view, self.layout)
        if self.order:
            handle.order(view, self.order)
        if self.mask:
            handle.mask(view, self.mask if isinstance(self.mask, str) else f"{view}_mask")


def _pair(what: str, value: Any, accepted: str) -> tuple[Any, Any]:
    if isinstance(value, (str, bytes, dict)):
        refuse_type(what, value, accepted)
    try:
        first, second = value
    except TypeError:
        refuse_type(what, value, accepted)
    except ValueError:
        refuse(what, value, accepted)
    return first, second


def _affine(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    accepted = "two numbers, (scale, offset), are expected"
    scale, offset = (real("view: affine", v, accepted) for v in _pair("view: affine", value, accepted))
    return scale, offset


def _clip(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    accepted = "two numbers, (low, high), are expected; None: no limit"
    low, high = _pair("view: clip", value, accepted)
    return (
        float("-inf") if low is None else real("view: clip", low, accepted),
        float("inf") if high is None else real("view: clip", high, accepted),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (hasattr(value, "ndim") and value.ndim == 0)


def _doubles(what: str, value: Any) -> Any:
    import numpy as np

    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        refuse(what, value, "a number, or an array of numbers that a sample can be broadcast against, is expected")


def _moments(mean: Any, std: Any) -> tuple[bytes, bytes, tuple[int, ...], tuple[str, ...] | None] | None:
    """(mean, std, shape, names of dimensions) as the library takes them."""
    if mean is None and std is None:
        return None
    mean = 0.0 if mean is None else mean
    std = 1.0 if std is None else std
    if _is_number(mean) and _is_number(std):
        from struct import pack

        accepted = "a number, or an array of numbers, is expected"
        return pack("d", real("view: mean", mean, accepted)), pack("d", real("view: std", std, accepted)), (), None
    import numpy as np

    names = {tuple(x.dims) for x in (mean, std) if isinstance(getattr(x, "dims", None), tuple)}  # xarray's
    if len(names) > 1:
        refuse("view: std", std, "mean and std of the same dimensions are expected")
    means, stds = _doubles("view: mean", mean), _doubles("view: std", std)
    try:
        means, stds = np.broadcast_arrays(means, stds)
    except ValueError:
        refuse("view: std", std, f"its shape {stds.shape} does not go with that of mean, {means.shape}")
    dims = tuple(text("view: mean: dims", name) for name in names.pop()) if names else None
    return means.tobytes(), stds.tobytes(), means.shape, dims


def _nan(value: Any) -> float | None:
    if value is None or (isinstance(value, str) and value == "keep"):
        return None
    accepted = "'keep', or the number that NaN becomes, is expected"
    if isinstance(value, str):
        refuse("view: nan", value, accepted)
    number = real("view: nan", value, accepted)
    return None if number != number else number


def _order(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, (tuple, list)):
        refuse_type("view: order", value, "names of dimensions, as a tuple, are expected")
    return tuple(text("view: order", name) for name in value)


def transform(
    affine: object, log1p: object, clip: object, mean: object, std: object, normalize: object, nan: object,
    mask: object, layout: object, order: object,
) -> Transform | None:  # fmt: skip
    """The keywords of `view`, checked; None when there are none."""
    if normalize is not None:
        if mean is not None or std is not None:
            refuse("view: normalize", normalize, "mean and std are given too")
        if not hasattr(normalize, "normalization"):
            refuse_type("view: normalize", normalize, "what samples.moments() gave is expected (or mean= and std=)")
        mean, std = normalize.normalization()
    if layout is not None and (not isinstance(layout, str) or layout not in _LAYOUTS):
        refuse("view: layout", layout, "'channels_first' or 'channels_last' is expected")
    if layout is not None and order is not None:
        refuse("view: layout", layout, "the order of dimensions is given too")
    if not isinstance(mask, str):
        mask = flag("view: mask", mask)
    else:
        text("view: mask", mask)
    made = Transform(
        _affine(affine), flag("view: log1p", log1p), _clip(clip), _moments(mean, std), _nan(nan), mask,
        layout, _order(order),
        _words(affine=affine, log1p=log1p or None, clip=clip, normalize=normalize,
               mean=None if normalize is not None else mean, std=None if normalize is not None else std,
               nan=None if nan == "keep" else nan, mask=mask or None, layout=layout, order=order),
    )  # fmt: skip
    return made if made.words else None


def _words(**given: object) -> list[str]:
    from headrace._arguments import shown

    return [f"{name}={shown(value)}" for name, value in given.items() if value is not None]
