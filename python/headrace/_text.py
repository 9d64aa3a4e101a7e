"""Small texts without the standard library's heavy modules: JSON out, sizes in."""

from __future__ import annotations

from headrace._arguments import real, refuse, refuse_type, text


def quote(words: str) -> str:
    out = ['"']
    for c in words:
        if c in '"\\':
            out.append("\\" + c)
        elif c < " " or c in "\x7f\u2028\u2029":
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    out.append('"')
    return "".join(out)


def to_json(value: object, what: str) -> str:
    """JSON of labels and options: None, bool, numbers, str, lists, dicts; numpy scalars and arrays, dates and times.
    `what` names the argument in messages."""
    try:
        return _json(value, what)
    except RecursionError:
        refuse(what, value, "it contains itself, or is nested too deeply")


def _json(value: object, what: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**64) < value < 2**64:
            refuse(what, value, "an integer of at most 64 bits is expected")
        return int.__repr__(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            refuse(what, value, "a finite number is expected")
        return float.__repr__(value)
    if isinstance(value, str):
        return quote(text(what, value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(str(k))}: {_json(v, what)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        return _json({"start": value.start, "stop": value.stop, "step": value.step}, what)
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(_json(v, what) for v in value) + "]"
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "M":  # numpy dates: their text is ISO 8601
        shape = getattr(value, "shape", ())
        return "[" + ", ".join(quote(str(v)) for v in value) + "]" if shape else quote(str(value))  # type: ignore[attr-defined]
    if hasattr(value, "isoformat"):
        return quote(value.isoformat())
    if hasattr(value, "tolist"):
        return _json(value.tolist(), what)
    refuse_type(what, value, "numbers, str, dates, or lists and slices of them are expected")


_UNITS = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12, "tb": 10**12,
    "ki": 2**10, "kib": 2**10, "mi": 2**20, "mib": 2**20, "gi": 2**30, "gib": 2**30, "ti": 2**40, "tib": 2**40,
}  # fmt: skip


_SIZES = "a positive number of bytes, or a text such as '4GiB' or '512 MB', is expected"


def parse_bytes(value: int | float | str | None) -> int:
    """4 GiB as int, "4GiB", "4 GB", "512MiB"; None → 0, the default."""
    if value is None:
        return 0
    if isinstance(value, str):
        words = value.strip().lower()
        number = words.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = words[len(number) :].strip()
        try:
            size = float(number) * _UNITS[unit]
        except (KeyError, ValueError):
            refuse("memory", value, _SIZES)
    else:
        size = real("memory", value, _SIZES)
    if not 1 <= size <= 2**62:
        refuse("memory", value, _SIZES)
    return int(size)
