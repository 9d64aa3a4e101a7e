"""Numbers of groups that columns of obs make together, for all cells, a piece of them at a time: there may be a hundred
million, and of those no more than one array is made, of the smallest type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headrace._frame import FrameColumn

PIECE = 1 << 20  # cells
_COUNTED = 1 << 24  # groups that are looked up, not searched for
_MOST = 1 << 62


def pieces(n: int) -> Iterator[slice]:
    return (slice(at, min(at + PIECE, n)) for at in range(0, n, PIECE))


class _Coded:
    """Integers below `n` that a column has, -1 where a value is missing: `at` gives those of a piece, as int64."""

    def __init__(self, codes: Any, n: int) -> None:
        self.codes, self.n = codes, n

    def at(self, piece: slice) -> Any:
        import numpy as np

        return self.codes[piece].astype(np.int64)


class _Numbered(_Coded):
    """A column of numbers: the place of each among the different ones."""

    def __init__(self, column: FrameColumn) -> None:
        self._column = column
        self._different = _different(column.numbers[p] for p in pieces(len(column)))
        super().__init__(None, len(self._different))

    def at(self, piece: slice) -> Any:
        import numpy as np

        column = self._column.part(piece, {})
        codes: Any = np.searchsorted(self._different, column.numbers)
        codes[column.missing] = -1
        return codes


def _different(arrays: Iterator[Any]) -> Any:
    """The different values of all, ascending."""
    import numpy as np

    held: list[Any] = []
    for array in arrays:
        held.append(np.unique(array))
        if (len(held) > 1 and len(held[-1]) * 4 > len(held[0])) or len(held) > 16:
            held = [np.unique(np.concatenate(held))]
    return np.unique(np.concatenate(held)) if held else np.empty(0)


def group_codes(columns: Sequence[FrameColumn], n: int) -> tuple[Any, int]:
    """(code of each of n cells, groups): below 0 where a value is missing. Of one column with categories that are its
    own codes, not copied, and some of the groups may have no cells."""
    import numpy as np

    if not columns:
        return np.zeros(n, np.int8), 1
    parts = [_Numbered(c) if c.numbers is not None else _Coded(c.codes, len(c.categories)) for c in columns]
    if len(parts) == 1 and parts[0].codes is not None:
        return np.ascontiguousarray(parts[0].codes), parts[0].n
    joined = _all_joined(parts, n)
    return joined.codes, joined.n


def joined_codes(codes: Sequence[tuple[Any, int]]) -> tuple[Any, int]:
    """Codes and how many there are, of several columns, as those of all together: by the first, then the second …"""
    joined = _all_joined([_Coded(c, n) for c, n in codes], len(codes[0][0]))
    return joined.codes, joined.n


def _all_joined(parts: list[_Coded], n: int) -> _Coded:
    while True:
        count, size = 0, 1
        while count < len(parts) and size * max(1, parts[count].n) <= _MOST:
            size *= max(1, parts[count].n)
            count += 1
        parts = [_joined(parts[:count], size, n), *parts[count:]]
        if len(parts) == 1:
            return parts[0]


def _joined(parts: list[_Coded], size: int, n: int) -> _Coded:
    """Codes of what several have together, below `size`, numbered as they are there."""
    import numpy as np

    from headrace._frame import code_type

    if size <= _COUNTED:
        found: Any = np.zeros(size + 1, bool)  # the last is for -1
        for piece in pieces(n):
            found[_product(parts, piece)] = True
        found[-1] = False
        number: Any = np.cumsum(found, dtype=np.int32) - 1
        number[-1] = -1
        count = int(number[-2]) + 1
    else:
        different = _different(k[k >= 0] for k in (_product(parts, p) for p in pieces(n)))
        count = len(different)
    codes: Any = np.empty(n, code_type(count))
    for piece in pieces(n):
        key = _product(parts, piece)
        codes[piece] = number[key] if size <= _COUNTED else np.where(key < 0, -1, np.searchsorted(different, key))
    return _Coded(codes, count)


def _product(parts: list[_Coded], piece: slice) -> Any:
    """One number for the codes that cells have in all of `parts`; -1 where one is missing."""
    key = parts[0].at(piece)
    gone = key < 0
    for part in parts[1:]:
        own = part.at(piece)
        gone |= own < 0
        key = key * part.n + own
    key[gone] = -1
    return key
