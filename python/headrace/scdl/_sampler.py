"""The order of rows for a DataLoader: windows of whole chunks, shuffled within.

Every rank takes as many rows. The order is a function of seed and epoch: breaking off changes nothing in the next
epoch, and where one was left it is taken up again by `state_dict` and `load_state_dict`.
"""

from __future__ import annotations

import warnings

from headrace._arguments import flag, integer
from headrace._errors import InvalidError, StateError
from headrace._rank import find_rank
from headrace.scdl._plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from headrace.scdl._dataset import SingleCellMemMapDataset

_FORMAT = 1


def remote_worker_init_fn(worker_id: int) -> None:
    """Nothing to do: workers share one cache. Here so that code written for the published loader runs."""


class ChunkAwareSampler:
    """Row numbers for ``DataLoader(dataset, sampler=…)``, chunk after chunk.

    Parameters
    ----------
    dataset
        A chunked `SingleCellMemMapDataset`.
    shuffle_chunks
        Chunks in another order in every epoch.
    shuffle_within_window
        Rows of a window in random order.
    chunks_per_window
        Chunks that are shuffled together; more of them mix better and need more of the cache.
    seed
        Of all that is random. None: one is drawn, and is in `state_dict`. Several ranks need a given one.
    rank, world
        Which of how many processes this is; None: as torch.distributed or the launcher's environment say.
    """

    def __init__(self, dataset: SingleCellMemMapDataset, shuffle_chunks: bool = True,
                 shuffle_within_window: bool = True, chunks_per_window: int = 1, seed: int | None = None,
                 *, rank: int | None = None, world: int | None = None) -> None:  # fmt: skip
        if not getattr(dataset, "_is_chunked", False):
            raise InvalidError(
                "ChunkAwareSampler requires a chunked dataset: `headrace cells chunk SRC DST` makes one; what is not "
                "chunked is for DataLoader(dataset, shuffle=True)"
            )
        self.dataset = dataset
        self.shuffle_chunks = flag("shuffle_chunks", shuffle_chunks)
        self.shuffle_within_window = flag("shuffle_within_window", shuffle_within_window)
        self.chunks_per_window = integer("chunks_per_window", chunks_per_window, 1)
        self.rank, self.world = find_rank(rank, world, 1)
        self.seed = self._seed(seed)
        self._epoch = self._position = 0
        self._now = (0, 0)  # epoch, rows that were yielded
        self._warn()

    def _seed(self, seed: int | None) -> int:
        if seed is not None:
            return integer("seed", seed, 0, 2**64 - 1)
        if self.world > 1:
            raise InvalidError("seed=None: the ranks of one job have to draw the same order; give them all one seed")
        from secrets import randbits

        return randbits(63)

    def _warn(self) -> None:
        loader = self.dataset._chunk_loader
        if loader is None or loader.max_cached_chunks >= 2 * self.chunks_per_window:
            return
        warnings.warn(
            f"max_cached_chunks={loader.max_cached_chunks} holds no second window of {self.chunks_per_window} beside "
            f"the first: the next one is fetched only when it is needed. Set max_cached_chunks to at least "
            f"{2 * self.chunks_per_window}",
            stacklevel=3,
        )

    def _plan(self) -> Plan:
        layout = self.dataset._layout
        return Plan(layout.rows, layout.chunk_size, self.seed, self.shuffle_chunks, self.shuffle_within_window,
                    self.chunks_per_window, self.rank, self.world)  # fmt: skip

    def __repr__(self) -> str:
        layout, rank = self.dataset._layout, f", rank {self.rank} of {self.world}" if self.world > 1 else ""
        return (
            f"<ChunkAwareSampler: {len(self):,} rows in windows of {self.chunks_per_window} of {layout.chunks:,} "
            f"chunks, seed {self.seed}{rank}; next epoch {self._epoch}>"
        )

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that epoch, from its start. Without, passes count from 0."""
        self._epoch, self._position = integer("epoch", epoch, 0), 0
        self._now = (self._epoch, 0)

    def __len__(self) -> int:
        return self._plan().length

    def __iter__(self) -> Iterator[int]:
        """A pass begins with its first row: loaders make iterators that they never use."""
        epoch, skip = self._epoch, self._position
        self._epoch, self._position = epoch + 1, 0
        self._now = (epoch, skip)
        plan, at, begun = self._plan(), 0, False
        for window, rows in enumerate(plan.window_rows(epoch)):
            at += len(rows)
            if at <= skip:
                continue
            if not begun:
                begun = True
                self._follow(plan, epoch, window)
            first = max(0, skip - (at - len(rows)))
            before = at - len(rows)
            for i, row in enumerate(rows[first:].tolist(), before + first + 1):
                self._now = (epoch, i)
                yield row
        self._now = (epoch + 1, 0)

    def _follow(self, plan: Plan, epoch: int, window: int) -> None:
        if self.dataset._chunk_loader is not None:
            self.dataset._chunk_loader.follow(plan, epoch, window)

    def state_dict(self, rows: int | None = None) -> dict[str, Any]:
        """Where this rank is. `rows`: how many rows of this epoch were used; by default those that were handed out,
        which with workers are some batches more."""
        epoch, position = self._now if self._position == 0 else (self._epoch, self._position)
        if rows is not None:
            position = integer("rows", rows, 0, len(self))
        return {"format": _FORMAT, "epoch": epoch, "position": position, **self._identity()}

    def _identity(self) -> dict[str, Any]:
        return {"seed": self.seed, "shuffle_chunks": self.shuffle_chunks, "world": self.world,
                "shuffle_within_window": self.shuffle_within_window, "chunks_per_window": self.chunks_per_window,
                "rows": self.dataset._layout.rows, "chunk_size": self.dataset._layout.chunk_size}  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next pass goes on there. Raises `StateError` where it is another dataset's, or another order's."""
        if not isinstance(state, dict) or state.get("format") != _FORMAT:
            raise StateError("load_state_dict: this is no state of a ChunkAwareSampler")
        for name, own in self._identity().items():
            if name != "seed" and state.get(name) != own:
                raise StateError(f"load_state_dict: the state has {name}={state.get(name)!r}, this sampler {own!r}")
        self.seed = integer("seed", state["seed"], 0, 2**64 - 1)
        self._epoch, self._position = integer("epoch", state["epoch"], 0), integer("position", state["position"], 0)
        if self._position >= len(self):
            self._epoch, self._position = self._epoch + 1, 0
        self._now = (self._epoch, self._position)
