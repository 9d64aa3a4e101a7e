"""Any zarr Store, and any mapping of keys to bytes, as a source of archives.

One thread per store runs an event loop, from `open_store` to the end of the archive and its loaders. It is woken once
for any number of new tasks, starts a coroutine for each, and hands back what they returned many at a time; nothing of
Python runs on the threads of the engine. See docs/stores.md for what a store has to do.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
import weakref
from collections.abc import Mapping

from headrace import _headrace
from headrace._errors import Error, InvalidError, UnsupportedError
from headrace._pool import Threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any

    from headrace._archive import Archive

_READ, _LIST, _CANCEL = 1, 2, 3  # enum hr_task_kind
_STORE, _UNSUPPORTED = -6, -5  # enum hr_code
_MISSING = (KeyError, FileNotFoundError)
_DOCUMENTS = frozenset(("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"))
_CAUSES = 32
_GRACE = 0.05  # seconds for what is cancelled to end
_live: weakref.WeakSet[Bridge] = weakref.WeakSet()


def open_store(store: Any, options: dict[str, Any] | None) -> Archive:
    """The archive in a zarr Store, in a part of one (a StorePath) or in a mapping."""
    from headrace._archive import Archive

    source = _source(store)
    bridge = Bridge(source, _concurrency(options))
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


# ---- what can be read from --------------------------------------------------------------------------------------------


def _source(store: Any) -> Any:
    abc = sys.modules.get("zarr.abc.store")  # whoever has a Store has imported it
    if abc is not None and hasattr(abc, "Store"):
        if isinstance(store, abc.Store):
            return ZarrSource(store, "")
        if isinstance(getattr(store, "store", None), abc.Store) and isinstance(getattr(store, "path", None), str):
            return ZarrSource(store.store, store.path)
    if isinstance(store, Mapping):
        return FsspecSource(store) if hasattr(store, "fs") and hasattr(store, "root") else MappingSource(store)
    kind = f"{type(store).__module__}.{type(store).__qualname__}"
    hint = "; wrap it: zarr.storage.ObjectStore(store, read_only=True)" if kind.startswith("obstore.") else ""
    raise UnsupportedError(
        f"no archive can be opened from a {kind}: give a path, a URL, a zarr Store (of zarr-python 3) or a mapping of "
        f"keys to bytes{hint}"
    )


class ZarrSource:
    """A zarr Store; its coroutines run on the bridge's loop."""

    def __init__(self, store: Any, path: str) -> None:
        from zarr.abc.store import RangeByteRequest, SuffixByteRequest
        from zarr.core.buffer import default_buffer_prototype

        self.store = store
        self.prefix = path.strip("/") + "/" if path.strip("/") else ""
        self.shown = f"{store}/{self.prefix}".rstrip("/") if self.prefix else str(store)
        self._range, self._suffix, self._prototype = RangeByteRequest, SuffixByteRequest, default_buffer_prototype()

    async def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._own_file_system(loop)
        ensure_open = getattr(self.store, "_ensure_open", None)
        if ensure_open is not None:  # zarr-python opens stores in this way too
            await ensure_open()

    def _own_file_system(self, loop: asyncio.AbstractEventLoop) -> None:
        """An fsspec file system keeps connections of the loop on which it was first used, perhaps zarr's own: this loop
        gets a file system of its own."""
        fs = getattr(self.store, "fs", None)
        if not getattr(fs, "async_impl", False) or hasattr(fs, "sync_fs") or type(self.store).__name__ != "FsspecStore":
            return
        from copy import copy

        options = {**fs.storage_options, "asynchronous": True, "loop": loop, "skip_instance_cache": True}
        own = copy(self.store)
        try:
            own.fs = self._own = type(fs)(*fs.storage_args, **options)
        except Exception:
            return  # one that cannot be made anew: as it is
        self.store = own

    async def end(self) -> None:
        """Close the connections of a file system of our own."""
        session = getattr(getattr(self, "_own", None), "_session", None)
        closed = session.close() if hasattr(session, "close") else None
        if asyncio.iscoroutine(closed):
            await closed

    async def get(self, key: str, offset: int, length: int) -> Any:
        where = None
        if offset < 0:
            where = self._suffix(-offset)
        elif length:
            where = self._range(offset, offset + length)
        data = await self.store.get(self.prefix + key, self._prototype, where)
        array = getattr(data, "as_numpy_array", None)
        return data if array is None else array()

    async def list(self, prefix: str) -> list[str]:
        if not self.store.supports_listing:
            raise NotImplementedError("the store cannot list")
        return [name async for name in self.store.list_dir((self.prefix + prefix).rstrip("/"))]


class MappingSource:
    """Any mapping of keys to bytes, read on a few threads."""

    def __init__(self, store: Mapping[str, Any]) -> None:
        self.store = store
        self.shown = f"<{type(store).__module__}.{type(store).__qualname__} of keys and bytes>"

    async def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def end(self) -> None:
        pass

    async def get(self, key: str, offset: int, length: int) -> Any:
        return await self._loop.run_in_executor(None, self.read, key, offset, length)

    async def list(self, prefix: str) -> list[str]:
        return await self._loop.run_in_executor(None, self.names, prefix)

    def read(self, key: str, offset: int, length: int) -> Any:
        data = self.store[key]
        if offset == 0 and length == 0:
            return data
        view = memoryview(data).cast("B")
        return view[max(0, len(view) + offset) :] if offset < 0 else view[offset : offset + length]

    def names(self, prefix: str) -> list[str]:
        start = prefix + "/" if prefix else ""
        return sorted({key[len(start) :].split("/", 1)[0] for key in self.store if key.startswith(start)})


class FsspecSource(MappingSource):
    """`fs.get_mapper(…)`: ranges are read as ranges, and folders listed, through its file system."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.root = str(store.root).rstrip("/")
        self.shown = str(store.fs.unstrip_protocol(self.root))
        self._absent = tuple(getattr(store, "missing_exceptions", None) or (FileNotFoundError,))

    def read(self, key: str, offset: int, length: int) -> Any:
        if offset == 0 and length == 0:
            return self.store[key]
        end = None if offset < 0 else offset + length
        try:
            return self.store.fs.cat_file(f"{self.root}/{key}", start=offset, end=end)
        except self._absent:
            return None

    def names(self, prefix: str) -> list[str]:
        try:
            found = self.store.fs.ls(f"{self.root}/{prefix}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return [str(name).rstrip("/").rsplit("/", 1)[-1] for name in found]


class BrokenSource:
    """What could not be opened: every read says why."""

    def __init__(self, why: Exception) -> None:
        self.why = why

    async def end(self) -> None:
        pass

    async def get(self, key: str, offset: int, length: int) -> Any:
        raise RuntimeError(f"the store could not be opened: {type(self.why).__name__}: {self.why}") from self.why

    async def list(self, prefix: str) -> list[str]:
        return list(await self.get(prefix, 0, 0))


# ---- the bridge -------------------------------------------------------------------------------------------------------


class Bridge:
    """The loop of one store, its thread, and what is under way on it."""

    def __init__(self, source: Any, concurrency: int) -> None:
        self.source = source
        self.shown = " ".join(source.shown.split()).encode("utf-8", "replace").decode()[:160]
        self._handle = _headrace.store(self.shown, concurrency)
        self._process = os.getpid()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._answers: list[tuple[int, Any]] = []
        self._causes: dict[str, BaseException] = {}
        self._thread = threading.Thread(target=self._run, name="headrace-store", daemon=True)

    def open(self) -> Any:
        """The handle of the archive. The thread starts here, and ends with the archive."""
        _live.add(self)
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        return self._handle.open()

    def close(self) -> None:
        """Before the interpreter ends: everything that is asked fails, and the thread ends."""
        if self._process == os.getpid():
            self._handle.close()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(4 * _GRACE)

    def explain(self, error: BaseException) -> None:
        """Say which exception of the store an error of the library came from."""
        text = str(error)
        for why, cause in reversed(self._causes.items()):
            if why in text and error.__cause__ is None:
                error.__cause__ = cause

    # everything below runs on the loop's thread

    def _run(self) -> None:
        loop = self._loop
        threads = Threads(min(32, (os.cpu_count() or 1) + 4))
        loop.set_default_executor(threads)
        try:
            loop.run_until_complete(self._begin(loop))
            loop.run_forever()
        finally:
            self._handle.close()
            loop.remove_reader(self._handle.fileno())
            loop.run_until_complete(self._end())
            threads.shutdown(wait=False)
            loop.close()
            self._causes.clear()
            _live.discard(self)

    async def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await self.source.begin(loop)
        except Exception as e:
            self.source = BrokenSource(e)
        loop.add_reader(self._handle.fileno(), self._take)

    async def _end(self) -> None:
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_GRACE)
        try:
            await asyncio.wait_for(self.source.end(), _GRACE)
        except Exception:
            pass

    def _take(self) -> None:
        tasks = self._handle.take()
        if tasks is None:
            self._loop.stop()
            return
        for kind, ident, key, offset, length in tasks:
            if kind == _CANCEL:
                task = self._tasks.get(ident)
                if task is not None:
                    task.cancel()
                continue
            what = self.source.get(key, offset, length) if kind == _READ else self._list(key)
            self._tasks[ident] = self._loop.create_task(self._serve(ident, key, what))

    async def _serve(self, ident: int, key: str, what: Awaitable[Any]) -> None:
        answer: Any = None
        try:
            answer = await what
        except _MISSING:
            pass
        except BaseException as e:
            answer = self._failure(key, e)
            if isinstance(e, GeneratorExit):
                raise
        finally:
            del self._tasks[ident]
            self._answers.append((ident, answer))
            if len(self._answers) == 1:
                self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        self._handle.answer(answers)
        self._take()

    def _failure(self, key: str, e: BaseException) -> tuple[int, str, int]:
        code = _UNSUPPORTED if isinstance(e, NotImplementedError) else _STORE
        why = " ".join(f"{type(e).__name__}: {e}".split()).encode("utf-8", "replace").decode()
        if not isinstance(e, asyncio.CancelledError):
            self._causes[f"{key} of {self.shown}: {why[:40]}"] = e
            while len(self._causes) > _CAUSES:
                del self._causes[next(iter(self._causes))]
        return code, why, isinstance(e, (ConnectionError, TimeoutError))

    async def _list(self, prefix: str) -> bytes:
        names = []
        for found in await self.source.list(prefix):
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
    for bridge in list(_live):
        bridge.close()
