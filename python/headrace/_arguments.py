"""Checks of arguments. What is wrong is named with its value and with what is accepted, as an `InvalidError`.

They stand before the extension, which would say OverflowError or TypeError and nothing of the argument.
Numbers of numpy are taken like those of Python; True and False are not taken for 1 and 0, because nobody means that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

INT64 = 2**63 - 1


def shown(value: object) -> str:
    """The value for a message: short, on one line, and never an exception of its own."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a repr of the caller's, or an integer of more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:60] + "…" + text[-10:]


def refuse(what: str, value: object, accepted: str) -> NoReturn:
    """The value makes no sense."""
    from headrace._errors import InvalidError

    raise InvalidError(f"{what}={shown(value)}: {accepted}")


def refuse_type(what: str, value: object, accepted: str) -> NoReturn:
    """The value is of a type that makes no sense."""
    from headrace._errors import InvalidTypeError

    raise InvalidTypeError(f"{what}={shown(value)}: {accepted}, not {type(value).__name__}")


def near(name: str, names: Iterable[str]) -> str:
    """ "; did you mean 'a' or 'b'?", or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(names), 3)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def _as_int(value: Any) -> int | None:
    if _is_bool(value) or getattr(value, "ndim", None):
        return None
    try:
        return int(value.__index__())
    except Exception:  # no integer, whatever it says
        return None


def integer(what: str, value: Any, least: int = -INT64 - 1, most: int = INT64, accepted: str = "") -> int:
    """An integer of [least, most], of Python or numpy."""
    number = _as_int(value)
    if number is None:
        refuse_type(what, value, accepted or f"an integer {_ends(least, most)} is expected")
    if not least <= number <= most:
        refuse(what, value, f"an integer {_ends(least, most)} is expected")
    return number


def _ends(least: int, most: int) -> str:
    names = {-INT64 - 1: "-2**63", INT64: "2**63 - 1", 2**64 - 1: "2**64 - 1"}
    return f"from {names.get(least, least)} to {names.get(most, most)}"


def optional(what: str, value: Any, least: int, most: int = INT64) -> int:
    """The same; None is 0, the library's word for "not given"."""
    return 0 if value is None else integer(what, value, least, most)


def real(what: str, value: Any, accepted: str) -> float:
    """A number, of Python or numpy; infinities and NaN too."""
    if not _is_bool(value) and not isinstance(value, str) and not getattr(value, "ndim", None):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
        except Exception:  # no number, whatever it says
            pass
    refuse_type(what, value, accepted)


def text(what: str, value: Any, accepted: str = "a name, as str, is expected") -> str:
    """A text that the library can take: no NUL, no half characters."""
    if not isinstance(value, str):
        refuse_type(what, value, accepted)
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        refuse(what, value, "a text without NUL and surrogates is expected")
    return value


def flag(what: str, value: Any) -> bool:
    """True or False."""
    if not _is_bool(value) or getattr(value, "ndim", None):
        refuse_type(what, value, "True or False is expected")
    return bool(value)


def choice(what: str, value: Any, choices: dict[Any, int]) -> int:
    """The number of a choice."""
    try:
        return choices[value]
    except (KeyError, TypeError):
        hint = near(value, [c for c in choices if isinstance(c, str)]) if isinstance(value, str) else ""
        refuse(what, value, f"one of {', '.join(map(repr, choices))} is expected{hint}")


def mapping(what: str, value: Any, accepted: str) -> dict[str, Any]:
    """A dict whose keys are names; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        refuse_type(what, value, accepted)
    for key in value:
        text(f"a key of {what}", key)
    return value


_PYTHON_TYPES = {"bool": "bool", "int": "int64", "float": "float64", "complex": "complex128"}
_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "datetime64", "timedelta64",
)  # fmt: skip


def dtype(what: str, value: Any) -> str:
    """numpy's name of a type given as name, numpy dtype or class, or torch dtype."""
    from headrace._headrace import dtype as known

    name = value
    if not isinstance(value, str):
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or shown(value)
        name = str(name).rpartition(".")[2]
    found = known(_PYTHON_TYPES.get(name, name)) if "\0" not in name and name.isascii() else None
    if found not in _DTYPES:
        refuse(what, value, f"a data type is expected: {', '.join(_DTYPES)}{near(name, _DTYPES)}")
    return found
