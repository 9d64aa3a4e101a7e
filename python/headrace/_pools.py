"""Pools of cells that sentences are drawn from: which cells lie near each other and belong together, and which controls
lie near them. Numbers alone, with numpy; what is drawn of a pool is the library's part (src/plan/members.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCK = 8 << 20  # bytes of row chunks that a window has at least …
_LEAST = 4  # … and of these so many, for at its borders one more is read …
_WINDOWS = 32  # … where that leaves as many windows …
_MOST = 64 << 20  # … and at most, wherever cells of a group are far apart
_COUNTED = 1 << 24
_LOOKED = 100_000  # cells, to see how far apart they are


class Pools:
    """Pool k: the cells ``rows[first[k] : first[k] + size[k]]``, for `count[k]` sentences, of group ``group[k]``."""

    def __init__(self, first: Any, size: Any, count: Any, group: Any, rows: Any) -> None:
        self.first, self.size, self.count, self.group, self.rows = first, size, count, group, rows

    def drop_cells(self) -> None:
        """What the library has a copy of: a number for each cell."""
        self.rows = self.first = self.size = None

    @property
    def middle(self) -> Any:
        """The cell that the pool counts as lying at."""
        return self.rows[self.first + self.size // 2]

    @property
    def begin(self) -> Any:
        """The first sentence of each, and one behind the last."""
        import numpy as np

        return np.concatenate([[0], np.cumsum(self.count)]).astype(np.int64)


def groups_of(columns: Sequence[Any], rows: Any) -> tuple[Any, Any]:
    """Of codes by cell (-1: in no group) the group of each of `rows`, and one of `rows` that stands for each group."""
    import numpy as np

    codes: Any = np.zeros(len(rows), np.int64)
    there: Any = np.ones(len(rows), bool)
    most = 1
    for column in columns:
        own = column[rows]
        there &= own >= 0
        codes, most = _numbered(codes * (int(own.max(initial=0)) + 1) + own, there)
    codes[~there] = -1
    representative: Any = np.empty(most, np.int64)
    representative[codes[there][::-1]] = rows[there][::-1]
    return codes, representative[: most if there.any() else 0]


def _numbered(codes: Any, there: Any) -> tuple[Any, int]:
    """Codes as numbers of those that are there, by rising code, and how many these are."""
    import numpy as np

    kept: Any = codes[there]
    if int(kept.max(initial=0)) < _COUNTED:  # counted, not sorted
        found = np.bincount(kept, minlength=1) > 0
        number: Any = np.cumsum(found) - 1
        return number[np.where(there, codes, 0)], int(found.sum())
    different = np.unique(kept)
    return np.searchsorted(different, codes), len(different)


def sorted_by(numbers: Any) -> Any:
    """The stable order by small numbers, from -1 on."""
    import numpy as np

    few = int(numbers.max(initial=0)) < (1 << 16) - 1
    return np.argsort((numbers + 1).astype(np.uint16) if few else numbers, kind="stable")


def window_chunks(rows: Any, groups: Any, n: int, edges: Any, row_bytes: float) -> int:
    """Row chunks of a window: so many that most groups have several sentences in one, up to 64 MiB."""
    import numpy as np

    each = max(1.0, float(edges[-1]) / max(1, len(edges) - 1))
    chunk = max(1.0, each * row_bytes)
    most = max(1, int(_MOST / chunk))
    least = max(_LEAST, round(_BLOCK / chunk))
    least = min(least, most, max(1, (len(edges) - 1) // _WINDOWS))
    at: Any = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED)).astype(np.int64))
    ends: Any = np.searchsorted(groups, groups[at], "right")  # of their groups
    span = rows[np.minimum(at + 4 * n, ends) - 1] - rows[at] + 1
    wanted = int(np.ceil(float(np.median(span)) / each))
    return int(min(max(wanted, least), most, max(1, len(edges) - 1)))


def cut(rows: Any, groups: Any, n: int, windows: Any, repeat: bool) -> Pools:
    """Cells in the order of (group, row) into pools: at the borders of windows, moved to the nearest second sentence,
    so that a pool has at least two, which share it out anew in each epoch, where the group has two. What a group has
    more than whole sentences is in its last pool; `repeat`: makes a sentence of its own."""
    import numpy as np

    window = np.searchsorted(windows, rows, "right")
    new_group = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes: Any = np.diff(np.append(new_group, len(rows)))
    whole: Any = (sizes + n - 1) // n if repeat else sizes // n
    number: Any = np.cumsum(np.diff(groups, prepend=-1) != 0) - 1  # groups as they come here
    change = np.flatnonzero((np.diff(groups, prepend=-1) != 0) | (np.diff(window, prepend=-1) != 0))
    of = number[change]
    rank = (change - new_group[of] + n) // (2 * n) * 2 * n
    kept = (rank == 0) & (whole[of] > 0) | (rank <= (whole[of] - 2) * n)
    of, rank = of[kept], rank[kept]
    once: Any = np.ones(len(of), bool)
    once[1:] = (of[1:] != of[:-1]) | (rank[1:] != rank[:-1])
    of, rank = of[once], rank[once]
    last: Any = np.ones(len(of), bool)
    last[:-1] = of[1:] != of[:-1]
    following: Any = np.append(rank[1:], 0)
    size = np.where(last, sizes[of], following) - rank
    count = np.where(last, whole[of] * n, following) // n - rank // n
    first = new_group[of] + rank
    made = Pools(first, size, count, groups[first] if len(first) else of, rows)
    order = np.argsort(made.middle, kind="stable")
    return Pools(first[order], size[order], count[order], made.group[order], rows)


def nearest(pools: Pools, keys: Any, windows: Any, edges: Any, rows: Any, of: Any, size: int) -> tuple[Any, Any]:
    """For each pool a run of controls: those of its window with its key, or, where these are fewer, the `size`
    nearest and whatever else lies in the row chunks of these. `rows`, `of`: the controls and their keys, in the order
    of (key, row). (first, size): of size 0 where none are."""
    import numpy as np

    middle = pools.middle
    wide = int(max(rows.max(initial=0), middle.max(initial=0), windows.max(initial=0))) + 1
    place: Any = of.astype(np.int64) * wide + rows
    low, high = np.searchsorted(place, keys * wide), np.searchsorted(place, (keys + 1) * wide)
    window = np.searchsorted(windows, middle, "right")
    bounds = np.concatenate([[0], windows, [wide]])
    inside = np.searchsorted(place, keys * wide + bounds[window])
    behind = np.searchsorted(place, keys * wide + np.minimum(bounds[window + 1], wide))
    centre = np.searchsorted(place, keys * wide + middle)
    first = np.minimum(np.maximum(centre - size // 2, behind - size), inside)
    first = np.maximum(np.minimum(first, high - size), low)
    enough = behind - inside >= size
    first = np.where(enough, inside, first)
    last = np.where(enough, behind, np.minimum(first + size, high))
    some = np.flatnonzero(~enough & (last > first))
    chunk = np.searchsorted(edges, rows[first[some]], "right") - 1
    first[some] = np.searchsorted(place, keys[some] * wide + edges[chunk])
    chunk = np.searchsorted(edges, rows[last[some] - 1], "right")
    last[some] = np.searchsorted(place, keys[some] * wide + np.minimum(edges[chunk], wide))
    return first.astype(np.int64), (last - first).astype(np.int64)
