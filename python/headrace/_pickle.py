"""Samples as bytes: what they were described by, and which ids are left.

Nothing of an opened archive travels. The archive is opened again from what `open` was given, the views are described
again, and the ids are taken: a range where they have no holes, else a bit for each position from the first to the last.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._archive import Archive
    from headrace._samples import Samples

    Packed = tuple[int, int, int, bytes | None]

_PIECE = 1 << 20  # ids held at a time


def pack(handle: Any, start: int = 0, stop: int | None = None) -> Packed:
    """(how many, the first id, one after the last, bits where there are holes) of the ids at start … stop in order."""
    import numpy as np

    stop = handle.count() if stop is None else stop
    n = stop - start
    if n <= 0:
        return 0, 0, 0, None
    first, last = id_at(handle, start), id_at(handle, stop - 1)
    if last - first + 1 == n:
        return n, first, last + 1, None
    there: Any = np.zeros(last - first + 1, bool)
    for at in range(start, stop, _PIECE):
        there[np.frombuffer(handle.ids(at, min(_PIECE, stop - at)), np.int64) - first] = True
    return n, first, last + 1, np.packbits(there).tobytes()


def id_at(handle: Any, position: int) -> int:
    return int.from_bytes(handle.ids(position, 1), _order(), signed=True)


def _order() -> Any:
    import sys

    return sys.byteorder


def unpack(archive: Archive, along: Any, views: dict[str, Any], packed: Packed) -> Samples:
    from headrace._samples import build

    return left_over(build(archive, along, views), packed)


def left_over(samples: Samples, packed: Packed) -> Samples:
    """Of samples described anew, those with the ids."""
    import numpy as np

    n, first, end, bits = packed
    if len(samples) == n:  # derived samples are among the described ones
        return samples
    if bits is None:
        ids: Any = np.arange(first, end, dtype=np.int64)
    else:
        ids = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), count=end - first)) + first
    return samples._derived(samples._handle.take(ids))
