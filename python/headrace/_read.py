"""Regions of one array as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._arguments import dtype as dtype_name
from headrace._arguments import integer, refuse, shown

if TYPE_CHECKING:
    from headrace._archive import Array


_ACCEPTED = "integers, slices and an ellipsis are expected (lists and masks: read the region, then index in numpy)"


def _index(key: Any) -> int:
    """An integer of any size: what is out of range is said with the length beside."""
    return integer("index", key, -(2**200), 2**200, _ACCEPTED)


def _slice(key: slice) -> slice:
    ends = [None if end is None else _index(end) for end in (key.start, key.stop, key.step)]
    if ends[2] == 0:
        refuse("index", key, "the step of a slice is not 0")
    return slice(*ends)


def _basic_index(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int], list[int]]:
    """start, count, step of every dimension, and the dimensions that integers drop."""
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(k is not Ellipsis for k in keys)
    if given > len(shape) or sum(k is Ellipsis for k in keys) > 1:
        from headrace._errors import OutOfRangeError

        dims = f"{len(shape)} dimension" + ("" if len(shape) == 1 else "s")
        raise OutOfRangeError(f"index {shown(key)}: the array has {dims}, and an ellipsis stands once at most")
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
    keys = keys[:at] + [slice(None)] * (len(shape) - given) + keys[at + 1 :]
    start, count, step, dropped = [], [], [], []
    for d, (k, n) in enumerate(zip(keys, shape)):
        if isinstance(k, slice):
            a, b, by = _slice(k).indices(n)
            start.append(a)
            count.append(len(range(a, b, by)))
            step.append(by)
        else:
            i = _index(k)
            if not -n <= i < n:
                from headrace._errors import OutOfRangeError

                raise OutOfRangeError(f"index {i} is outside dimension {d} of length {n}")
            start.append(i % n)
            count.append(1)
            step.append(1)
            dropped.append(d)
    return start, count, step, dropped


def read(array: Array, key: Any, dtype: Any, decode: bool) -> Any:
    import numpy as np

    if array.info["error"]:  # says so, with the class that fits; also where its length is not known
        none = [0] * len(array.shape)
        array.archive._handle.read(array.path, none, none, [1] * len(none), None, False, 0, None)
    start, count, step, dropped = _basic_index(key, array.shape)
    wanted = None if dtype is None else dtype_name("dtype", dtype)
    stored = array.info
    if wanted is not None and stored["dtype"] in ("string", "bytes"):
        refuse("dtype", dtype, f"{array.path} holds texts of variable length, which are no numbers")
    if stored["dtype"] in ("string", "bytes"):
        raw = array.archive._handle.read(array.path, start, count, step, None, False, 0, None)
        items: list[bytes] = raw.split(b"\0") if np.prod(count, dtype=np.int64) else []
        texts: list[Any] = [i.decode("utf-8", "replace") for i in items] if stored["dtype"] == "string" else items
        result = np.array(texts, dtype=object).reshape(count)
    else:
        result = _numbers(array, start, count, step, wanted, decode)
        if decode and result.dtype.kind == "S":
            whole = bool(count) and count[-1] == array.shape[-1] and step[-1] == 1
            return _texts(array, result, dropped, whole)
    return result[tuple(0 if d in dropped else slice(None) for d in range(len(count)))] if dropped else result


def _texts(array: Array, items: Any, dropped: list[int], whole: bool) -> Any:
    """The text conventions of CF and netCDF: the last dimension of single characters is that of a text (CF §2.2), where
    all of it was asked for, and `_Encoding` says how bytes are meant."""
    import numpy as np

    last = items.ndim - 1
    if whole and items.dtype.itemsize == 1 and last not in dropped and items.shape[-1]:
        items = np.ascontiguousarray(items).view(f"S{items.shape[-1]}").reshape(items.shape[:-1])
    items = items[tuple(0 if d in dropped else slice(None) for d in range(items.ndim))]
    encoding = array.attributes.get("_Encoding")
    if not isinstance(encoding, str):
        return items
    try:
        texts = [bytes(item).decode(encoding) for item in np.ravel(items)]
    except (LookupError, UnicodeDecodeError) as e:
        from headrace._errors import DataError

        raise DataError(f"{array.path}: attribute _Encoding: {e}; read it with decode=False") from None
    return np.array(texts, dtype=object).reshape(np.shape(items))


def _numpy_type(described: Any) -> Any:
    """numpy's dtype of the report's description: a name, or [[name, type, repeat], …]."""
    import numpy as np

    if isinstance(described, str):
        return np.dtype("uint16" if described == "bfloat16" else described)
    return np.dtype([(name, _numpy_type(kind), *(tuple(r) for r in repeat)) for name, kind, *repeat in described])


def _numbers(
    array: Array, start: list[int], count: list[int], step: list[int], wanted: str | None, decode: bool
) -> Any:
    import numpy as np

    stored = array.info
    name = wanted or (stored["decoded_dtype"] if decode else stored["dtype"])
    plain = name != stored["dtype"]
    out_type = _numpy_type(name if plain else stored["numpy_dtype"])
    if 0 in count:
        return np.empty(count, out_type)
    tensor = array.archive._handle.read(
        array.path, start, count, step, name if plain else None, decode, out_type.itemsize, None
    )
    return np.asarray(memoryview(tensor)).reshape(-1).view(np.uint8).view(out_type).reshape(count)
