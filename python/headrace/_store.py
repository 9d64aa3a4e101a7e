"""Any zarr Store, and any mapping of keys to bytes, as a source of archives.

One thread per store runs an event loop, from `open_store` to the end of the archive and its loaders. It is woken once
for any number of new tasks, starts a coroutine for each, and hands back what they returned many at a time; nothing of
Python runs on the threads of the engine. See docs/stores.md for what a store has to do.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import threading

from headrace import _headrace
from headrace._errors import Error, InvalidError
from headrace._pool import Threads
from headrace._sources import BrokenSource, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace._archive import Archive

_READ, _LIST, _CANCEL = 1, 2, 3  # enum hr_task_kind
_STORE, _UNSUPPORTED = -6, -5  # enum hr_code
_MISSING = (KeyError, FileNotFoundError)
_DOCUMENTS = frozenset(("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"))
_GIVEN_UP = (_STORE, "the read was cancelled", 0)
_CAUSES = 32
_GRACE = 0.05  # seconds for what is cancelled to end
_LAST = 1.0  # for the thread, before the interpreter ends
_live: dict[Bridge, None] = {}


def open_store(store: Any, options: dict[str, Any] | None) -> Archive:
    """The archive in a zarr Store, in a part of one (a StorePath) or in a mapping."""
    from headrace._archive import Archive

    bridge = Bridge(source_of(store), _concurrency(options))
    try:
        return Archive(bridge.open(), bridge.shown)
    except Error as e:
        bridge.explain(e)
        raise


def _concurrency(options: dict[str, Any] | None) -> int:
    options = dict(options or {})
    n = options.pop("concurrency", 64)
    if options:
        raise InvalidError(
            f"storage option {next(iter(options))!r}: of a store object only concurrency= is understood; "
            "everything else is the store's own"
        )
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 1024:
        raise InvalidError(f"storage option concurrency={n!r}: an integer from 1 to 1024")
    return n


def _line(text: str) -> str:
    line = " ".join(text.split()).encode("utf-8", "replace").decode()
    return re.sub(r"[\0-\x1f\x7f]", "?", line)  # a NUL would end it


class Bridge:
    """The loop of one store, its thread, and what is under way on it."""

    def __init__(self, source: Any, concurrency: int) -> None:
        self.source = source
        self._concurrency = concurrency
        self.shown = _line(source.shown)[:160]
        if "://" in self.shown:  # no secrets: user, password, signature
            self.shown = re.sub("://[^/?#]*@|[?#].*", lambda m: "://" if m[0].startswith(":") else "", self.shown)
        self._handle = _headrace.store(self.shown, concurrency)
        self._process = os.getpid()
        self._waiting: dict[int, tuple[int, str, int, int]] = {}  # taken, and not begun: kind, key, offset, length
        self._reading: dict[int, asyncio.Task[None]] = {}
        self._reader_begins = self._ending = False
        self._answers: list[tuple[int, Any]] = []
        self._causes: dict[tuple[str, str], BaseException] = {}
        self._thread = threading.Thread(target=self._run, name="headrace-store", daemon=True)

    def open(self) -> Any:
        """The handle of the archive. The thread starts here, and ends with the archive."""
        self._loop = asyncio.new_event_loop()
        _live[self] = None
        try:
            self._start()
            return self._handle.open()
        except BaseException:  # perhaps interrupted, before anything else would end the thread
            self._tell_to_end()
            raise

    def _start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError:  # there is none to be had
            self._loop.close()
            _live.pop(self, None)
            raise

    def _tell_to_end(self) -> None:
        self._handle.close()
        try:
            self._loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            pass  # it has ended by itself

    def close(self) -> None:
        """Before the interpreter ends: everything that is asked fails, and the thread ends."""
        if self._process != os.getpid():
            return
        self._tell_to_end()
        if self._thread.ident is not None:
            self._thread.join(_LAST)  # on a busy machine its end takes a moment; a store that blocks has that long

    def explain(self, error: BaseException) -> None:
        """Say which exception of the store an error of the library came from."""
        text = str(error)
        for parts, cause in reversed(list(self._causes.items())):
            if error.__cause__ is None and all(part in text for part in parts):
                error.__cause__ = cause

    # everything below runs on the loop's thread

    def _run(self) -> None:
        loop = self._loop
        threads = Threads(min(32, self.source.threads or self._concurrency))
        loop.set_default_executor(threads)
        self._begun = loop.create_task(self._begin(loop))
        loop.add_reader(self._handle.fileno(), self._take)
        try:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                pass  # of a task that the store has made: whoever reads hears that the store is closed
            self._handle.close()
            loop.remove_reader(self._handle.fileno())
            loop.run_until_complete(self._end())
        finally:
            self._handle.close()
            threads.shutdown(wait=False)
            loop.close()
            _live.pop(self, None)

    def _stop(self) -> None:
        """Once: the loop runs on for `_end`, which a second stop would cut off."""
        if not self._ending:
            self._ending = True
            self._loop.stop()

    async def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await self.source.begin(loop)
        except asyncio.CancelledError:
            raise
        except BaseException as e:  # SystemExit would end the loop, and leave who waits waiting
            self.source = BrokenSource(e)

    async def _end(self) -> None:
        """All tasks of the loop are told to end: readers, those that have not begun among them, and the store's own."""
        self._waiting.clear()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # some refuse; the loop ends all the same
            task.cancel()
        ended = (await asyncio.wait(left, timeout=_GRACE))[0] if left else set()
        for task in ended:
            if not task.cancelled():
                task.exception()  # seen: nobody is told of it any more
        try:
            await asyncio.wait_for(self.source.end(), _GRACE)
        except Exception:
            pass

    def _take(self) -> None:
        tasks = [] if self._ending else self._handle.take()
        if tasks is None:
            self._stop()
            return
        for kind, ident, key, offset, length in tasks:
            if kind != _CANCEL:
                self._waiting[ident] = kind, key, offset, length
            elif ident in self._reading:
                self._reading[ident].cancel()
            elif self._waiting.pop(ident, None):
                self._answer(ident, _GIVEN_UP)
        self._another_reader()

    def _another_reader(self) -> None:
        if self._waiting and not self._reader_begins:
            self._reader_begins = True
            self._loop.create_task(self._read())

    async def _read(self) -> None:
        """Read what waits. As soon as one read suspends, another reader goes on beside this one; a store that never
        suspends is read by one."""
        me: Any = asyncio.current_task()
        self._reader_begins = False
        if not self._begun.done():
            await asyncio.wait([self._begun])
        while self._waiting:
            ident = next(iter(self._waiting))
            kind, key, offset, length = self._waiting.pop(ident)
            self._another_reader()
            self._reading[ident] = me
            answer: Any = _GIVEN_UP
            try:
                answer = await (self.source.get(key, offset, length) if kind == _READ else self._list(key))
            except _MISSING:
                answer = None
            except (asyncio.CancelledError, GeneratorExit):
                return  # this reader was, in most cases; others go on
            except BaseException as e:
                answer = self._failure(key, e)
            finally:
                del self._reading[ident]
                self._answer(ident, answer)

    def _answer(self, ident: int, answer: Any) -> None:
        self._answers.append((ident, answer))
        if len(self._answers) == 1 and not self._loop.is_closed():
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        self._handle.answer(answers)
        self._take()

    def _failure(self, key: str, e: BaseException) -> tuple[int, str, int]:
        code = _UNSUPPORTED if isinstance(e, NotImplementedError) else _STORE
        try:
            why = _line(f"{type(e).__name__}: {e}")
        except BaseException:  # its __str__ fails too
            why = _line(type(e).__name__)
        self._causes[f" {key} of ", why[:40]] = e
        while len(self._causes) > _CAUSES:
            del self._causes[next(iter(self._causes))]
        return code, why, isinstance(e, (ConnectionError, TimeoutError))

    async def _list(self, prefix: str) -> bytes:
        names = []
        for found in await self.source.names(prefix):
            name = found.strip("/").rsplit("/", 1)[-1]
            if name:
                names.append(name if name in _DOCUMENTS else name + "/")
        return b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in sorted(set(names)))


def explain(error: BaseException) -> None:
    """The same, by whichever store it came from."""
    for bridge in list(_live):
        bridge.explain(error)


@atexit.register
def _close_all() -> None:
    _headrace.ending()  # whoever waits for a store of these does not hear that it is closed, nor anything else
    for bridge in list(_live):
        bridge.close()
