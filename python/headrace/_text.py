"""Small texts without the standard library's heavy modules: JSON out, sizes in."""

from __future__ import annotations


def quote(text: str) -> str:
    out = ['"']
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c < " " or c in "\x7f\u2028\u2029":
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    out.append('"')
    return "".join(out)


def to_json(value: object) -> str:
    """JSON of labels and options: None, bool, numbers, str, lists, dicts; numpy scalars and arrays, dates and times."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is no label")
        return float.__repr__(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(str(k))}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        return f'{{"start": {to_json(value.start)}, "stop": {to_json(value.stop)}, "step": {to_json(value.step)}}}'
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(to_json(v) for v in value) + "]"
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "M":  # numpy dates: their text is ISO 8601
        shape = getattr(value, "shape", ())
        return "[" + ", ".join(quote(str(v)) for v in value) + "]" if shape else quote(str(value))  # type: ignore[attr-defined]
    if hasattr(value, "isoformat"):
        return quote(value.isoformat())
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    raise TypeError(f"{value!r} is no label: use numbers, str, dates, lists or slices of them")


_UNITS = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12, "tb": 10**12,
    "ki": 2**10, "kib": 2**10, "mi": 2**20, "mib": 2**20, "gi": 2**30, "gib": 2**30, "ti": 2**40, "tib": 2**40,
}  # fmt: skip


def parse_bytes(value: int | float | str | None) -> int:
    """4 GiB as int, "4GiB", "4 GB", "512MiB"; None → 0, the default."""
    if value is None:
        return 0
    if isinstance(value, str):
        text = value.strip().lower()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(number) :].strip()
        try:
            size = float(number) * _UNITS[unit]
        except (KeyError, ValueError):
            raise ValueError(f"memory={value!r}: write a number of bytes, or a text such as '4GiB'") from None
        value = size
    if not value > 0 or value > 2**62:
        raise ValueError(f"memory={value!r}: the budget is a positive number of bytes")
    return int(value)
