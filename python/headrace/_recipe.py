"""What cells and sentences were made with, in words short enough for a state: so that a state of others is refused by
what differs, not by a fingerprint."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._samples import Samples

_LONGEST = 40


def words_of(samples: Samples) -> dict[str, str]:
    """By argument; those that are not given are left out. Empty: these are no cells."""
    recipe = getattr(samples, "_recipe", None)
    if not recipe:
        return {}
    options = recipe[1]
    found: dict[str, str] = {}
    if "cells" in options:  # of sentences, which are made of cells
        given = {name: of for name, of in options.items() if name != "cells" and not _absent(of)}
        found = {f"sentences: {name}": _words(of) for name, of in given.items()}
        options = options["cells"][0][1][1]
    found.update({name: _words(value) for name, value in options.items() if not _absent(value)})
    return found


def differing(state: Any, samples: Samples) -> str:
    """ "normalize=10000.0 (now None), genes=…": what a state was taken with and these are not; or nothing."""
    own = words_of(samples)
    if not isinstance(state, dict) or not own:
        return ""
    names = [name for name in dict.fromkeys([*own, *state]) if own.get(name, "None") != state.get(name, "None")]
    return ", ".join(f"{name}={state.get(name, 'None')} (now {own.get(name, 'None')})" for name in names)


def _absent(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, (list, tuple, dict, str)) and not len(value))


def _words(value: Any) -> str:
    """Itself where it is short, else of what type it is, with a number that tells it from others."""
    from headrace._forms import Form

    number = _number(value)
    if isinstance(value, Form) and "…" not in repr(value):
        return repr(value)
    text = repr(value) if isinstance(value, (int, float, str, list, tuple, dict)) else ""
    if text and len(text) <= _LONGEST:
        return text
    of = f"{value.kind}(…)" if isinstance(value, Form) else f"{len(value)} items" if hasattr(value, "__len__") else "…"
    return f"{of} #{number}"


def _number(value: Any) -> str:
    import hashlib

    return hashlib.sha256(_said(value).encode("utf-8", "replace")).hexdigest()[:8]


def _said(value: Any) -> str:
    """The same for the same, in every process."""
    import hashlib

    from headrace._forms import Form

    if isinstance(value, Form):
        return f"{value.kind} {_said(value.options)}"
    if isinstance(value, dict):
        return "; ".join(f"{name!r}: {_said(of)}" for name, of in value.items())
    if hasattr(value, "to_dict"):  # a Series
        return _said(value.to_dict())
    if hasattr(value, "__array__"):
        import numpy as np

        array = np.asarray(value)
        if array.dtype.kind in "biuf":  # a truth for each of 10^8 cells, perhaps
            return f"{array.dtype.str} {array.shape} {hashlib.sha256(np.ascontiguousarray(array)).hexdigest()}"
        return repr(array.tolist())
    return repr(value) if isinstance(value, (str, int, float, list, tuple, type(None))) else type(value).__name__
