"""Epochs by steps: where a loader is, counted in batches since its first.

The library counts passes over the samples. An epoch of a given number of steps is a stretch of them: epoch e has the
batches e·steps … (e + 1)·steps - 1, whichever passes they belong to. So an epoch is a pure function of its number, as a
pass is. Only after a state was loaded with another batch size do batches not count from the first any more.
"""

from __future__ import annotations

import json
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Stretch:
    """The count of one loader whose epochs have `steps` steps."""

    def __init__(self, handle: Any, steps: int) -> None:
        self._handle = handle
        self.steps = steps
        self.taken = 0
        self.lock = threading.RLock()  # two threads may share an iterator
        self._exact = True  # `taken` says where the library is

    def left(self) -> int:
        return self.steps - self.taken % self.steps

    def seek(self, taken: int) -> None:
        """To any batch."""
        seek(self._handle, taken)
        self.taken = taken
        self._exact = True

    def abandon(self) -> None:
        """To the next epoch; after a change of the batch size, from where it is."""
        following = (self.taken // self.steps + 1) * self.steps
        if self._exact:
            self.seek(following)
        self.taken = following

    def resume(self, state: dict[str, Any], same_batch: bool) -> None:
        """The library has loaded the state."""
        counted = state.get("taken")
        self._exact = same_batch
        if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
            self.taken = counted
            self._exact = same_batch and counted == position(self._handle)
        else:
            self.taken = position(self._handle)


def position(handle: Any) -> int:
    """Batches before the next one, counted from the first pass on."""
    state = json.loads(handle.state())
    share = state["global_batch"] // state["streams"]
    return int(state["epoch"] * handle.steps() + state["position"] // share)


def seek(handle: Any, taken: int) -> None:
    """To the batch before which that many were given, from the first pass on."""
    state = json.loads(handle.state())
    passes, step = divmod(taken, handle.steps())
    state.update(epoch=passes, position=step * (state["global_batch"] // state["streams"]))
    handle.load_state(json.dumps(state), True)
