"""Pools of cells that sentences are drawn from: which cells lie near each other and belong together, and which controls
lie near them. What takes a pass over all cells is done by the library (src/api/codes.c, src/plan/pools.h), and what is
drawn of a pool, too (src/plan/members.h)."""

from __future__ import annotations

from typing import Any

_BLOCK = 8 << 20  # bytes of row chunks that a window has at least …
_LEAST = 4  # … and of these so many, for at its borders one more is read …
_WINDOWS = 32  # … where that leaves as many windows …
_MOST = 64 << 20  # … and at most, wherever cells of a group are far apart
_LOOKED = 100_000  # cells, to see how far apart they are


class Grouped:
    """Cells by group: ids in `rows` (uint32), one group behind another, ascending in each; `sizes` of all groups."""

    def __init__(self, handle: Any, codes: Any, n: int) -> None:
        import numpy as np

        kind = codes.dtype.name
        self.sizes: Any = np.frombuffer(handle.count_codes(kind, codes, n), np.int64)
        self.rows: Any = np.empty(int(self.sizes.sum()), np.uint32)
        handle.sort_codes(kind, codes, self.sizes, self.rows)

    @property
    def begin(self) -> Any:
        """Where each group begins in `rows`, and where the last one ends."""
        import numpy as np

        return np.concatenate([[0], np.cumsum(self.sizes)])

    def firsts(self) -> Any:
        """Of each group its first cell; -1: it has none."""
        import numpy as np

        some = self.sizes > 0
        out: Any = np.full(len(self.sizes), -1, np.int64)
        out[some] = self.rows[self.begin[:-1][some]]
        return out


class Pools:
    """Pool k: `size[k]` cells from ``first[k]`` on, for `count[k]` sentences, of group ``group[k]``, by their middle
    cell, `middle[k]`, which the pool counts as lying at."""

    def __init__(self, first: Any, size: Any, count: Any, group: Any, middle: Any) -> None:
        self.first, self.size, self.count, self.group, self.middle = first, size, count, group, middle

    @property
    def begin(self) -> Any:
        """The first sentence of each, and one behind the last."""
        import numpy as np

        return np.concatenate([[0], np.cumsum(self.count)]).astype(np.int64)


def window_chunks(grouped: Grouped, n: int, edges: Any, row_bytes: float) -> int:
    """Row chunks of a window: so many that most groups have several sentences in one, up to 64 MiB."""
    import numpy as np

    rows, ends_of = grouped.rows, grouped.begin[1:]
    each = max(1.0, float(edges[-1]) / max(1, len(edges) - 1))
    chunk = max(1.0, each * row_bytes)
    most = max(1, int(_MOST / chunk))
    least = max(_LEAST, round(_BLOCK / chunk))
    least = min(least, most, max(1, (len(edges) - 1) // _WINDOWS))
    at: Any = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED)).astype(np.int64))
    ends: Any = ends_of[np.searchsorted(ends_of, at, "right")]  # of their groups
    span = rows[np.minimum(at + 4 * n, ends) - 1].astype(np.int64) - rows[at] + 1
    wanted = int(np.ceil(float(np.median(span)) / each))
    return int(min(max(wanted, least), most, max(1, len(edges) - 1)))


def cut(grouped: Grouped, n: int, windows: Any, repeat: bool) -> Pools:
    """At the borders of windows, moved to the nearest second sentence, so that a pool has at least two, which share it
    out anew in each epoch, where the group has two. What a group has more than whole sentences is in its last pool;
    `repeat`: makes a sentence of its own."""
    import numpy as np

    from headrace import _headrace

    made = _headrace.pools_cut(grouped.rows, grouped.sizes, np.ascontiguousarray(windows, np.int64), n, repeat)
    first, size, count, group = (np.frombuffer(part, np.int64) for part in made)
    middle = grouped.rows[first + size // 2]
    order = np.argsort(middle, kind="stable")
    return Pools(first[order], size[order], count[order], group[order], middle[order].astype(np.int64))


def nearest(pools: Pools, keys: Any, windows: Any, edges: Any, controls: Grouped, size: int) -> tuple[Any, Any]:
    """For each pool a run of controls: those of its window with its key (``keys[k]``), or, where these are fewer, the
    `size` nearest and whatever else lies in the row chunks of these. `controls`: by key. (first, size): of size 0 where
    none are."""
    import numpy as np

    rows, begin, middle = controls.rows, controls.begin, pools.middle
    low, high = begin[keys], begin[keys + 1]
    wide = int(edges[-1])
    window = np.searchsorted(windows, middle, "right")
    bounds = np.concatenate([[0], windows, [wide]])
    inside = _behind(rows, low, high, bounds[window])
    behind = _behind(rows, low, high, bounds[window + 1])
    centre = _behind(rows, low, high, middle)
    first = np.minimum(np.maximum(centre - size // 2, behind - size), inside)
    first = np.maximum(np.minimum(first, high - size), low)
    enough = behind - inside >= size
    first = np.where(enough, inside, first)
    last = np.where(enough, behind, np.minimum(first + size, high))
    some = np.flatnonzero(~enough & (last > first))
    chunk = np.searchsorted(edges, rows[first[some]], "right") - 1
    first[some] = _behind(rows, low[some], high[some], edges[chunk])
    chunk = np.searchsorted(edges, rows[last[some] - 1], "right")
    last[some] = _behind(rows, low[some], high[some], np.minimum(edges[chunk], wide))
    return first.astype(np.int64), (last - first).astype(np.int64)


def _behind(rows: Any, low: Any, high: Any, value: Any) -> Any:
    """For each k the first place of ``rows[low[k] : high[k]]``, which ascend, where it is not below ``value[k]``."""
    import numpy as np

    low, high = low.copy(), high.copy()
    while True:
        open_ = np.flatnonzero(low < high)
        if not len(open_):
            return low
        middle = (low[open_] + high[open_]) // 2
        less = rows[middle] < value[open_]
        low[open_[less]] = middle[less] + 1
        high[open_[~less]] = middle[~less]
