"""Objects that hear of a fork in the child: threads, locks and connections stay with the parent."""

from __future__ import annotations

import os
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_watched: weakref.WeakSet[Any] = weakref.WeakSet()


def watch(x: Any) -> None:
    """x.forked() is called in every child."""
    _watched.add(x)


def _in_child() -> None:
    for x in list(_watched):
        x.forked()


os.register_at_fork(after_in_child=_in_child)
