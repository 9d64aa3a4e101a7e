"""Threads for calls that block, which do not keep the interpreter from ending when a call never returns."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Threads(ThreadPoolExecutor):
    """A ThreadPoolExecutor of daemon threads, which the standard one has not been since Python 3.9."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._most = most
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._guard = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls.put((future, fn, args, kwargs))
        if not self._idle.acquire(blocking=False):
            with self._guard:
                start = self._started < self._most
                self._started += start
            if start:
                self._start()
        return future

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="headrace-store-read", daemon=True).start()
        except RuntimeError:  # no more threads: the others do it, where there are others
            with self._guard:
                self._started -= 1
                if not self._started:
                    raise

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, fn, args, kwargs = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as e:
                    future.set_exception(e)
            del call, future, fn, args, kwargs
            self._idle.release()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Threads end after their call; nobody waits for them."""
        for _ in range(self._started):
            self._calls.put(None)
