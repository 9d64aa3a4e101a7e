"""Chunks of a remote dataset, as a process holds them: what is asked for comes down once, what comes next is on its
way.

    acquire ─► held: pinned, at once
            ├► coming: waited for
            └► neither: downloaded by whoever asks, on readers of its own, past what is fetched ahead

The rows of a batch are copied while their chunks are pinned, so whoever reads owns what it reads, however far ahead
the sampler is. Windows that reading has left behind are let go; what has to leave the disk is what is needed last (by
the plan of this epoch and the next) and is neither pinned here nor held by another process.

Locks: `_room` while room is made on the disk; `_guard`, taken after it, for everything else: nothing is read, written
or waited for under that.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
import weakref
from concurrent.futures import Future
from pathlib import Path

from headrace._errors import ClosedError, DataError, FormatError
from headrace._pool import Threads
from headrace.scdl import _bring
from headrace.scdl._ahead import Ahead, Notice
from headrace.scdl._cache import Cache, Entry
from headrace.scdl._forks import watch
from headrace.scdl._layout import Chunk, Layout
from headrace.scdl._stats import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headrace.scdl._plan import Plan

_AT_ONCE = 4  # chunks fetched ahead at once


class _Held:
    def __init__(self, chunk: Chunk, use: int, pins: int) -> None:
        self.chunk, self.use, self.pins = chunk, use, pins
        self.last = time.time()


class _Coming:
    def __init__(self, waiters: int) -> None:
        self.waiters = waiters
        self.future: Future[None] = Future()


class _NoRoom(Exception):
    """Fetching ahead has to wait."""


class RemoteChunks:
    """`owner`: process that removes what was made for this dataset alone; 0: nobody, as in a copy."""

    def __init__(self, layout: Layout, cache_dir: str, max_chunks: int, max_bytes: int | None, ahead: bool,
                 session: str = "", made_here: bool = False) -> None:  # fmt: skip
        self._layout, self.cache_dir = layout, cache_dir
        self.max_cached_chunks, self.max_cached_bytes, self._fetches_ahead = max_chunks, max_bytes, ahead
        self._session = session or uuid.uuid4().hex[:12]
        self._cache = Cache(cache_dir, layout.files.url)
        folder = self._cache.folder / f"stats-{self._session}"
        if not session:
            self._cache.sweep()
            folder.mkdir(exist_ok=True)
            leftovers = [cache_dir] if made_here else [str(folder), str(self._cache.folder / f"plan-{self._session}")]
            self._end = weakref.finalize(self, _remove, leftovers, os.getpid())
        self.stats = Stats(folder)
        self._notice = Notice(self._cache.folder / f"plan-{self._session}")
        self._parcels: dict[int, _bring.Parcel] = {}
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._room = threading.Lock()  # who makes room; taken before the guard
        self._held: dict[int, _Held] = {}
        self._coming: dict[int, _Coming] = {}
        self._failed: dict[int, BaseException] = {}
        self._taken: dict[int, int] = {}  # room of what is being downloaded
        self._full = False  # fetching ahead waits until something is let go
        self._been: set[int] = set()
        self._ahead = Ahead()
        self._threads: Threads | None = None
        self._closed = False
        self._posts = False  # this process draws the order itself

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteChunks, (self._layout, self.cache_dir, self.max_cached_chunks, self.max_cached_bytes,
                              self._fetches_ahead, self._session)  # fmt: skip

    def forked(self) -> None:
        for held in self._held.values():
            os.close(held.use)  # the lock stays the parent's
        self._begin()
        self.stats.begin()

    # ---- what a sampler says

    def follow(self, plan: Plan, epoch: int, position: int = 0) -> None:
        """This is the order from now on, here and in the workers."""
        self._posts = True
        self._notice.post(plan, epoch, position)
        with self._guard:
            self._ahead.set(plan, epoch, position)
            self._failed.clear()
            self._top_up()

    def _hear(self) -> None:
        if self._posts:
            return
        news = self._notice.news()
        if news is not None:
            with self._guard:
                self._ahead.set(*news)

    # ---- what a reader does

    def acquire(self, chunk: int) -> Chunk:
        """The chunk, pinned until it is released."""
        self.stats.begun()
        self._hear()
        with self._guard:
            if self._closed:
                raise ClosedError(
                    f"{self._layout.files.shown}: the cache of this dataset was cleaned up; open it again"
                )
            if self._ahead.advance(chunk):
                self._full = False
                self._let_go()
            held = self._held.get(chunk)
            coming = self._coming.get(chunk)
            failure = self._failed.pop(chunk, None)
            mine = held is None and coming is None and failure is None
            if held is not None:
                held.pins += 1
                held.last = time.time()
            elif coming is not None:
                coming.waiters += 1
            elif mine:
                coming = self._coming[chunk] = _Coming(1)
            self._top_up()
        if failure is not None:
            raise failure
        if held is None and coming is not None:
            held = self._wait(chunk, coming, mine)
        else:
            self.stats.add(hits=1)
        self.stats.served()
        assert held is not None
        return held.chunk

    def _wait(self, chunk: int, coming: _Coming, mine: bool) -> _Held:
        begun = time.perf_counter()
        try:
            while True:
                try:
                    return self._await(chunk, coming, mine)
                except _NoRoom:  # it was given up just when it was asked for
                    with self._guard:
                        there, mine = self._coming.get(chunk), chunk not in self._coming
                        coming = self._coming.setdefault(chunk, there or _Coming(0))
                        coming.waiters += 1
        finally:
            self.stats.add(wait_s=time.perf_counter() - begun)

    def _await(self, chunk: int, coming: _Coming, mine: bool) -> _Held:
        try:
            if mine:
                self._come(chunk, coming, urgent=True)
            coming.future.result()
        except BaseException:
            with self._guard:
                if not coming.future.done():  # interrupted: it comes for nobody
                    coming.waiters -= 1
                elif chunk in self._held and not coming.future.exception():
                    self._held[chunk].pins -= 1
            raise
        with self._guard:
            return self._held[chunk]

    def release(self, chunk: int) -> None:
        with self._guard:
            held = self._held.get(chunk)
            if held is not None:
                held.pins -= 1
                if held.pins == 0 and self._ahead.done(chunk):
                    self._drop(chunk)
                    self._top_up()

    def at_once(self) -> int:
        """Chunks that can be pinned together within the bound."""
        return self.max_cached_chunks

    # ---- under the guard

    def _drop(self, chunk: int) -> None:
        os.close(self._held.pop(chunk).use)
        self._full = False

    def _let_go(self) -> None:
        for chunk in [c for c, held in self._held.items() if held.pins == 0 and self._ahead.done(c)]:
            self._drop(chunk)

    def _top_up(self) -> None:
        """Begin what comes next, as far as there is room."""
        if not self._fetches_ahead or self._closed or self._full:
            return
        for chunk in self._ahead.wanted(self.max_cached_chunks):
            if chunk in self._held or chunk in self._coming or chunk in self._failed:
                continue
            if len(self._coming) >= _AT_ONCE or len(self._held) + len(self._coming) >= self.max_cached_chunks:
                return
            if self._threads is None:
                self._threads = Threads(_AT_ONCE)
                weakref.finalize(self, self._threads.shutdown, False)
            coming = self._coming[chunk] = _Coming(0)
            self._threads.submit(self._come, chunk, coming, False)

    # ---- how a chunk comes

    def _come(self, chunk: int, coming: _Coming, urgent: bool) -> None:
        try:
            arrays, use = self._fetch(chunk, coming, urgent)
        except BaseException as e:
            with self._guard:
                self._coming.pop(chunk, None)
                self._taken.pop(chunk, None)
                self._full = self._full or isinstance(e, _NoRoom)
                if not coming.waiters and not isinstance(e, _NoRoom):
                    self._failed[chunk] = e
            coming.future.set_exception(e)
            return
        with self._guard:
            self._coming.pop(chunk, None)
            self._taken.pop(chunk, None)
            self._held[chunk] = _Held(arrays, use, coming.waiters)
            if self._closed or (not coming.waiters and self._ahead.done(chunk)):
                self._drop(chunk)
            self._top_up()
        coming.future.set_result(None)

    def _fetch(self, chunk: int, coming: _Coming, urgent: bool) -> tuple[Chunk, int]:
        parcel = self._parcels.get(chunk) or self._look(chunk, urgent)
        path = self._cache.path(chunk, parcel.identity, parcel.bytes)
        if not path.exists():
            self._make_room(chunk, parcel.bytes, coming, urgent)
        place = self._layout.files.place(self._layout.key(chunk, "")).rstrip("/")
        for attempt in (0, 1):
            use, fresh = self._cache.obtain(path, lambda folder: self._download(chunk, parcel, folder, urgent))
            try:
                arrays = Chunk(self._layout, chunk, str(path), place)
                arrays.check_order(chunk * self._layout.chunk_size)
                return arrays, use
            except (DataError, FormatError):
                os.close(use)
                self._cache.remove(path)
                if fresh or attempt:  # what came is what lies there
                    raise
        raise AssertionError

    def _look(self, chunk: int, urgent: bool) -> _bring.Parcel:
        parcel = _bring.look(self._layout, chunk, self._session, urgent)
        self._parcels[chunk] = parcel.without_bytes()  # a run reads one version of a chunk; the store sees to that
        return parcel

    def _download(self, chunk: int, parcel: _bring.Parcel, folder: str, urgent: bool) -> None:
        begun = time.perf_counter()
        if not parcel.whole:
            parcel = self._look(chunk, urgent)
        _bring.download(self._layout, chunk, parcel, folder, urgent)
        again = chunk in self._been
        self._been.add(chunk)
        self.stats.add(bytes=sum(parcel.sizes.values()), downloads=1, redownloads=int(again),
                       download_s=time.perf_counter() - begun)  # fmt: skip

    # ---- room on the disk

    def _make_room(self, chunk: int, size: int, coming: _Coming, urgent: bool) -> None:
        """Evict until the chunk fits, and take its room. What is asked for comes in any case; what is fetched ahead
        displaces only what is needed later than it, and leaves room for what comes before it."""
        with self._room:
            while not self._fits(chunk, size, coming, urgent):
                asked = urgent or coming.waiters > 0
                if not self._evict_one(None if asked else chunk):
                    if not asked:
                        raise _NoRoom
                    break
            with self._guard:
                self._taken[chunk] = size

    def _fits(self, chunk: int, size: int, coming: _Coming, urgent: bool) -> bool:
        entries = {e.chunk: e.bytes for e in self._cache.entries()}
        parts = self._cache.under_way()
        with self._guard:
            before = {} if urgent else {c: size for c in self._sooner(chunk)}
            room = {**before, **dict.fromkeys(parts, 0), **self._taken, **entries}
        room[chunk] = size
        total = sum(room.values())
        return len(room) <= self.max_cached_chunks and (self.max_cached_bytes is None or total <= self.max_cached_bytes)

    def _sooner(self, chunk: int) -> list[int]:
        """What is on its way and needed before this one, or was begun before it."""
        mine, sooner = self._ahead.next_use(chunk), []
        begun = True
        for other in self._coming:
            begun = begun and other != chunk
            need = self._ahead.next_use(other)
            if other != chunk and (need < mine or (need == mine and begun)):
                sooner.append(other)
        return sooner

    def _evict_one(self, before: int | None) -> bool:
        """`before`: only what is needed later than this chunk."""
        entries = self._cache.entries()
        with self._guard:
            need = {e.chunk: self._ahead.next_use(e.chunk) for e in entries}
            last = {c: held.last for c, held in self._held.items()}
            least = -1 if before is None else self._ahead.next_use(before)
        entries.sort(key=lambda e: (-need[e.chunk], max(e.used_at(), last.get(e.chunk, 0))))
        return any(need[e.chunk] > least and self._evict(e) for e in entries)

    def _evict(self, entry: Entry) -> bool:
        with self._guard:
            held = self._held.get(entry.chunk)
            if entry.chunk in self._coming or (held is not None and held.pins):
                return False
            if held is not None:
                self._drop(entry.chunk)
        if not self._cache.remove(entry.path):
            return False
        self.stats.add(evictions=1)
        return True

    # ---- the names of the published loader

    def get_chunk(self, chunk_id: int) -> tuple[Any, Any, Any]:
        """(values, row pointers, columns), mapped; readable as long as somebody has them."""
        chunk = self.acquire(chunk_id)
        self.release(chunk_id)
        return chunk.values, chunk.row_ptr, chunk.columns

    def cleanup(self) -> None:
        """Let go of everything, and remove what this dataset has in the cache and nobody else uses."""
        with self._guard:
            self._closed = True
            for chunk in [c for c, held in self._held.items() if not held.pins]:
                self._drop(chunk)
        for entry in self._cache.entries():
            self._cache.remove(entry.path)
        if hasattr(self, "_end"):
            self._end()


def _remove(paths: list[str], process: int) -> None:
    if process == os.getpid():
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
            Path(path).unlink(missing_ok=True) if Path(path).is_file() else None
