"""Where in its order a process is: what is needed now, what next, and what not for longest."""

from __future__ import annotations

import json
import os

from headrace.scdl._plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

NEVER = 1 << 40
_DEEPEST = 4  # windows


class Ahead:
    """The windows of an epoch and the place in them. Without a plan everything is needed never, thus evicted by age."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.windows: list[list[int]] = []
        self.position = 0
        self._at: dict[int, int] = {}
        self._again: dict[int, int] = {}

    def set(self, plan: Plan, epoch: int, position: int) -> None:
        self.plan, self.windows, self.position = plan, plan.windows(epoch), position
        self._at = {c: w for w, chunks in enumerate(self.windows) for c in chunks}
        self._again = {c: w for w, chunks in enumerate(plan.windows(epoch + 1)) for c in chunks}

    def advance(self, chunk: int) -> bool:
        """Rows of this chunk are being read: windows before its own are done. Whether that is news."""
        at = self._at.get(chunk, -1)
        if at <= self.position:
            return False
        self.position = at
        return True

    def done(self, chunk: int) -> bool:
        return self._at.get(chunk, NEVER) < self.position

    def next_use(self, chunk: int) -> int:
        """Windows until it is needed, beyond the end of the epoch too."""
        at = self._at.get(chunk, -1)
        if at >= self.position:
            return at - self.position
        again = self._again.get(chunk)
        return NEVER if again is None else len(self.windows) - self.position + again

    def wanted(self, most: int) -> list[int]:
        """Chunks of this window and of those that fit beside it, in order."""
        if self.plan is None:
            return []
        deep = min(most // max(1, self.plan.window) - 1, _DEEPEST)
        return [c for w in self.windows[self.position : self.position + 1 + max(0, deep)] for c in w]


class Notice:
    """Tells the other processes of a dataset (a DataLoader's workers) which plan and epoch are being read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0

    def post(self, plan: Plan, epoch: int, position: int) -> None:
        temporary = f"{self._path}.{os.getpid()}"
        with open(temporary, "w") as f:
            json.dump([plan.arguments, epoch, position], f)
        os.replace(temporary, self._path)
        self._seen = os.stat(self._path).st_mtime_ns

    def news(self) -> tuple[Plan, int, int] | None:
        """What was posted since the last call, by another process."""
        try:
            written = os.stat(self._path).st_mtime_ns
            if written == self._seen:
                return None
            with open(self._path) as f:
                arguments, epoch, position = json.load(f)
        except (OSError, ValueError):
            return None
        self._seen = written
        return Plan(*arguments), int(epoch), int(position)

    def remove(self) -> None:
        try:
            os.unlink(self._path)
        except OSError:
            pass
