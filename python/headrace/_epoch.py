"""One pass over a loader."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from headrace._loader import Loader


class Epoch:
    """Iterator over what is left of one epoch."""

    __slots__ = ("__weakref__", "_handle", "_loader", "_round", "_until", "ended")

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._handle = loader._handle
        self._round = loader._handle.round()
        stretch = loader._stretch
        self._until = 0 if stretch is None else stretch.taken + stretch.left()
        self.ended = False

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        if self.ended:
            raise StopIteration
        if self._loader._stretch is not None:
            return self._next_of_stretch()
        batch = self._handle.next(-1, self._round)
        if batch is None:
            self._end()
        batch.samples = self._loader.samples
        return batch

    def _next_of_stretch(self) -> Any:
        stretch = self._loader._stretch
        with stretch.lock:
            if self.ended or stretch.taken >= self._until:
                self._end()
            return self._loader._take(-1)

    def _end(self) -> NoReturn:
        self.ended = True
        if self._loader._live is not None and self._loader._live() is self:
            self._loader._live = None
            self._loader._ended = True
        raise StopIteration

    def close(self) -> None:
        """Abandon the epoch; the next loop starts the next one."""
        if not self.ended:
            self.ended = True
            self._loader._live = None
            self._loader._abandon()
