"""Weights of samples: how often each appears in an epoch, from what the user gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import mapping, near, real, refuse
from headrace._columns import column

if TYPE_CHECKING:
    from headrace._samples import Samples

_ACCEPTED = (
    "a number from 0 on for each position, the name of an array that holds them, or "
    '{"label": {value: weight, …}} or {"label": "balanced"} is expected'
)
_NUMBER = "a number from 0 on is expected: how often a sample of that class appears in an epoch"


def weights_of(samples: Samples, given: object) -> tuple[Any, Any, Any]:
    """(weight of each position, None, None) or (None, class of each position, weight of each class)."""
    import numpy as np

    if isinstance(given, dict):
        return _by_class(samples, given)
    if given == "balanced" if isinstance(given, str) else False:
        refuse("weights", given, 'name what is to be balanced: weights={"label": "balanced"}')
    found = column(samples, "weights", given)
    values = found.flat() if found.categories is None else np.array(found.categories)
    if values.dtype.kind not in "biuf":
        hint = f': {{"{given}": …}} gives its values weights' if isinstance(given, str) else ""
        from headrace._errors import InvalidTypeError

        raise InvalidTypeError(f"weights: numbers are expected, not {values.dtype}{hint}")
    return np.ascontiguousarray(values, np.float64), None, None


def _by_class(samples: Samples, given: dict[Any, Any]) -> tuple[Any, Any, Any]:
    import numpy as np

    if len(given) != 1:
        refuse("weights", given, "a dict with one column is expected; of several columns make one, as an array")
    ((name, wanted),) = mapping("weights", given, _ACCEPTED).items()
    different, codes = column(samples, "weights", name).classes()
    if len(different) > 1 << 16:
        refuse("weights", name, f"it has {len(different)} different values; give weights as an array")
    codes = np.ascontiguousarray(codes, np.uint16)
    count = _counts(samples, codes, len(different))
    if isinstance(wanted, str) and wanted == "balanced":
        share = count.sum() / max(1, np.count_nonzero(count))
        return None, codes, np.divide(share, count, out=np.zeros(len(different)), where=count > 0)
    if not isinstance(wanted, dict):
        refuse(f"weights: {name}", wanted, 'a dict {value: weight, …}, or "balanced", is expected')
    return None, codes, _listed(name, wanted, different, count)


def _counts(samples: Samples, codes: Any, n: int) -> Any:
    """Samples of each class, as floats."""
    import numpy as np

    if len(samples.info["axes"]) == 1:
        return np.frombuffer(samples._handle.count_codes(codes.dtype.name, codes, n), np.int64).astype(float)
    left = codes if len(samples) == len(codes) else codes[samples.ids]
    return np.bincount(left, minlength=n).astype(float)


def _listed(name: str, wanted: dict[Any, Any], different: Any, count: Any) -> Any:
    import numpy as np

    known = {_plain(v): i for i, v in enumerate(different)}
    weights: Any = np.full(len(different), -1.0)
    for label, weight in wanted.items():
        at = known.get(label, known.get(_plain(label)))
        if at is None:
            from headrace._errors import NotFoundError

            texts = [str(k) for k in known]
            some = ", ".join(texts[:8]) + (", …" if len(texts) > 8 else "")
            hint = near(str(label), [t for t in texts if t != str(label)])
            raise NotFoundError(f"weights: {name} has no value {label!r}, only {some}{hint}")
        weights[at] = real(f"weights: {name}: {label!r}", weight, _NUMBER)
        if not weights[at] >= 0:
            refuse(f"weights: {name}: {label!r}", weight, _NUMBER)
    missing = np.flatnonzero((weights < 0) & (count > 0))
    if len(missing):
        names = ", ".join(repr(_plain(different[i])) for i in missing[:8]) + (", …" if len(missing) > 8 else "")
        refuse(f"weights: {name}", wanted, f"weights of {names} are missing, which samples have; 0 leaves a class out")
    return np.maximum(weights, 0.0)


def _plain(value: Any) -> Any:
    """As Python has it: numbers and texts, so that dicts find them."""
    value = value.item() if hasattr(value, "item") else value
    return value.decode(errors="replace") if isinstance(value, bytes) else value
