"""In which order rows are read: chunks, windows of some of them, rows within a window.

A function of seed and epoch alone, so the process that draws row numbers and those that read them agree on what comes
next without a word. Numbers are drawn by splitmix64, not by numpy, whose generators may change.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MASK = 2**64 - 1


def _mix(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def shuffled(n: int, *key: int) -> Any:
    """A permutation of range(n) for a key, as an array of int64."""
    import numpy as np

    state = 0
    for k in key:
        state = _mix(state ^ (k & _MASK))
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(state)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(z ^ (z >> np.uint64(31)), kind="stable")


class Plan:
    """What a rank reads in an epoch.

    Rows are laid out in the order of the chunks. Rank r of w takes ⌈rows / w⌉ of them from ⌊r · rows / w⌋ on: all take
    as many, all are taken, and at most one chunk lies with two ranks, which then take different rows of it.
    """

    def __init__(self, rows: int, chunk_size: int, seed: int, shuffle_chunks: bool, shuffle_rows: bool, window: int,
                 rank: int = 0, world: int = 1) -> None:  # fmt: skip
        self.rows, self.chunk_size, self.seed = rows, max(1, chunk_size), seed
        self.shuffle_chunks, self.shuffle_rows, self.window = shuffle_chunks, shuffle_rows, window
        self.rank, self.world = rank, world

    @property
    def arguments(self) -> list[Any]:
        return [self.rows, self.chunk_size, self.seed, self.shuffle_chunks, self.shuffle_rows, self.window, self.rank,
                self.world]  # fmt: skip

    @property
    def length(self) -> int:
        """Rows of each rank."""
        return -(-self.rows // self.world)

    def _size(self, chunk: int) -> int:
        return min(self.chunk_size, self.rows - chunk * self.chunk_size)

    def _pieces(self, epoch: int) -> list[tuple[int, int, int]]:
        """(chunk, first, last) of this rank: `first` to `last` of the chunk's rows in their order."""
        n = -(-self.rows // self.chunk_size)
        order = shuffled(n, self.seed, epoch).tolist() if self.shuffle_chunks else range(n)
        start = self.rank * self.rows // self.world
        end, at, pieces = start + self.length, 0, []
        for chunk in order:
            size = self._size(chunk)
            first, last = max(start - at, 0), min(end - at, size)
            if first < last:
                pieces.append((chunk, first, last))
            at += size
        return pieces

    def windows(self, epoch: int) -> list[list[int]]:
        """The chunks of each window, in order."""
        chunks = [piece[0] for piece in self._pieces(epoch)]
        return [chunks[i : i + self.window] for i in range(0, len(chunks), self.window)]

    def _rows(self, chunk: int, first: int, last: int, epoch: int) -> Any:
        """A part of a chunk that lies with two ranks is drawn of all of its rows."""
        import numpy as np

        base = chunk * self.chunk_size
        if not self.shuffle_rows or last - first == self._size(chunk):
            return np.arange(base + first, base + last)
        return base + np.sort(shuffled(self._size(chunk), self.seed, epoch, 2, chunk)[first:last])

    def window_rows(self, epoch: int) -> Any:
        """The rows of each window, as one array at a time."""
        import numpy as np

        pieces = self._pieces(epoch)
        for w, i in enumerate(range(0, len(pieces), self.window)):
            rows = np.concatenate([self._rows(*piece, epoch) for piece in pieces[i : i + self.window]])
            yield rows[shuffled(len(rows), self.seed, epoch, 1, w)] if self.shuffle_rows else rows
