"""The files of a dataset, wherever it lies, through Headrace's stores: whole, their ends, and down to a local file.

One of these belongs to one process; after a fork, or in another process, it opens the store anew at the first read.
"""

from __future__ import annotations

import os
import threading
import weakref

from headrace import _headrace
from headrace._errors import DataError, StoreError, UnsupportedError
from headrace._pool import Threads
from headrace._text import to_json
from headrace.scdl._forks import watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any

_PART = 4 << 20  # bytes of one read; large enough that its round trip does not count


class Files:
    """What `url` has below it. `readers`: ranges of large files read at once."""

    def __init__(self, url: str, options: dict[str, Any] | None, readers: int = 10) -> None:
        from headrace._archive import _shown

        self.url, self.options, self.readers = url, dict(options or {}), readers
        self.shown = _shown(url).rstrip("/")
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._process = -1
        self._guard = threading.Lock()
        self._handle: Any = None
        self._pools: list[Threads] = []
        self.ranges = True  # until the server turns out not to serve them

    def __reduce__(self) -> tuple[Any, ...]:
        return Files, (self.url, self.options, self.readers)

    def forked(self) -> None:
        """In a forked child: threads and connections are the parent's."""
        self._begin()

    def _open(self) -> Any:
        with self._guard:
            if self._process != os.getpid():
                options = to_json(self.options, "storage_options") if self.options else None
                self._handle = _headrace.objects(self.url, options)
                self._pools = [Threads(self.readers), Threads(self.readers)]
                for pool in self._pools:
                    weakref.finalize(self, pool.shutdown, False)
                self._process = os.getpid()
            return self._handle

    def submit(self, urgent: bool, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """On a reader; urgent ones do not stand behind what is fetched ahead."""
        self._open()
        return self._pools[urgent].submit(call, *arguments)

    def place(self, key: str) -> str:
        return f"{self.shown}/{key}"

    def read(self, key: str) -> bytes | None:
        """The whole of a small file; None where there is none."""
        found = self._open().read(key, 0, 0)
        return found[0] if found else None

    def end(self, key: str, n: int) -> tuple[bytes, int, int] | None:
        """(the last n bytes, size of the file, its version: 0 where it cannot be told). None where there is none."""
        if self.ranges:
            try:
                found = self._open().read(key, -n, 0)
                return found if found is None or found[1] else (found[0], len(found[0]), found[2])
            except (StoreError, UnsupportedError, DataError) as e:
                if getattr(e, "retryable", False) or not self._whole_instead(e):
                    raise
        found = self._open().read(key, 0, 0)
        return (found[0][-n:] if n else b"", len(found[0]), found[2]) if found else None

    def _whole_instead(self, error: BaseException) -> bool:
        """Servers without ranges: whole files are all they give."""
        if "range" not in str(error).lower():
            return False
        self.ranges = False
        return True

    def fetch(self, key: str, size: int, to: str, urgent: bool = True) -> None:
        """All `size` bytes of a file into the new file `to`. Raises `DataError` when they are not that many."""
        handle = self._open()
        file = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            if self.ranges and size:
                self._ranges(handle, key, size, file, urgent)
            else:
                self._whole(handle, key, size, file)
        finally:
            os.close(file)

    def _ranges(self, handle: Any, key: str, size: int, file: int, urgent: bool) -> None:
        jobs: list[Future[None]] = [
            self.submit(urgent, self._part, handle, key, size, at, file) for at in range(0, size, _PART)
        ]
        failed: BaseException | None = None
        for job in jobs:  # all of them end before the file is closed
            if failed is not None and job.cancel():
                continue
            try:
                job.result()
            except BaseException as e:
                failed = failed or e
        if failed is not None:
            raise failed

    def _part(self, handle: Any, key: str, size: int, at: int, file: int) -> None:
        buffer = memoryview(bytearray(min(_PART, size - at)))
        found = handle.read_into(key, at, buffer)
        if found is None:
            raise DataError(f"{self.place(key)}: gone while it was being read")
        if found[0] and found[0] != size:
            raise DataError(f"{self.place(key)}: {found[0]} bytes, where {size} are expected")
        _write(file, buffer, at)

    def _whole(self, handle: Any, key: str, size: int, file: int) -> None:
        found = handle.read(key, 0, 0)
        if found is None:
            raise DataError(f"{self.place(key)}: gone while it was being read")
        if len(found[0]) != size:
            raise DataError(f"{self.place(key)}: {len(found[0])} bytes, where {size} are expected")
        _write(file, memoryview(found[0]), 0)


def _write(file: int, data: memoryview, at: int) -> None:
    while data:
        n = os.pwrite(file, data, at)
        data, at = data[n:], at + n
