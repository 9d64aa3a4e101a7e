"""What a bridge reads from: a zarr Store, an fsspec mapper, any mapping of keys to bytes.

A source has `shown`, its name for people; `threads` for calls that block (0: as many as reads under way); `begin` and
`end`, on the bridge's loop; `get(key, offset, length)`, the bytes of a range as headrace.h has it, or None; and
`names(prefix)`, what lies directly below.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def source_of(store: Any) -> Any:
    """What reads from it; `UnsupportedError` where nothing does."""
    abc = sys.modules.get("zarr.abc.store")  # whoever has a Store has imported it
    if abc is not None and hasattr(abc, "Store"):
        if isinstance(store, abc.Store):
            return ZarrSource(store, "")
        if isinstance(getattr(store, "store", None), abc.Store) and isinstance(getattr(store, "path", None), str):
            return ZarrSource(store.store, store.path)
    if type(store).__module__.partition(".")[0] == "xarray":
        from headrace._errors import UnsupportedError

        raise UnsupportedError(
            'an xarray object is no archive: give the path or URL that it was opened from, as in hr.open("era5.zarr")'
        )
    if isinstance(store, Mapping):
        return FsspecSource(store) if hasattr(store, "fs") and hasattr(store, "root") else MappingSource(store)
    from headrace._errors import UnsupportedError

    kind = f"{type(store).__module__}.{type(store).__qualname__}"
    hint = "; wrap it: zarr.storage.ObjectStore(store, read_only=True)" if kind.startswith("obstore.") else ""
    raise UnsupportedError(
        f"no archive can be opened from a {kind}: give a path, a URL, a zarr Store (of zarr-python 3) or a mapping of "
        f"keys to bytes{hint}"
    )


def _name(thing: Any) -> str:
    """What it calls itself; its type where it cannot say."""
    try:
        return str(thing)
    except Exception:
        return f"<{type(thing).__module__}.{type(thing).__qualname__}>"


class ZarrSource:
    """A zarr Store; its coroutines run on the bridge's loop."""

    threads = (os.cpu_count() or 1) + 4  # as asyncio has it, for stores that use asyncio.to_thread

    def __init__(self, store: Any, path: str) -> None:
        from zarr.abc.store import RangeByteRequest, SuffixByteRequest
        from zarr.core.buffer import default_buffer_prototype

        self.store = store
        self.prefix = path.strip("/") + "/" if path.strip("/") else ""
        self.shown = f"{_name(store)}/{self.prefix}".rstrip("/") if self.prefix else _name(store)
        self._range, self._suffix, self._prototype = RangeByteRequest, SuffixByteRequest, default_buffer_prototype()

    async def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._own_file_system(loop)
        ensure_open = getattr(self.store, "_ensure_open", None)
        if ensure_open is not None:  # zarr-python opens stores in this way too
            await ensure_open()

    def _own_file_system(self, loop: asyncio.AbstractEventLoop) -> None:
        """An fsspec file system keeps connections of the loop on which it was first used, perhaps zarr's own: this loop
        gets a file system of its own."""
        fs: Any = getattr(self.store, "fs", None)
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
        for name in ("_session", "_s3", "service_client"):  # of http and gcsfs, s3fs, adlfs
            session: Any = getattr(getattr(self, "_own", None), name, None)
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

    async def names(self, prefix: str) -> list[str]:
        if not self.store.supports_listing:
            raise NotImplementedError("the store cannot list")
        return [name async for name in self.store.list_dir((self.prefix + prefix).rstrip("/"))]


class MappingSource:
    """Any mapping of keys to bytes, read on a few threads."""

    threads = 0

    def __init__(self, store: Any) -> None:
        self.store = store
        self.shown = f"<{type(store).__module__}.{type(store).__qualname__} of keys and bytes>"

    async def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def end(self) -> None:
        pass

    async def get(self, key: str, offset: int, length: int) -> Any:
        return await self._loop.run_in_executor(None, self.read, key, offset, length)

    async def names(self, prefix: str) -> list[str]:
        return await self._loop.run_in_executor(None, self.names_below, prefix)

    def read(self, key: str, offset: int, length: int) -> Any:
        data = self.store[key]
        if data is None or (offset == 0 and length == 0):
            return data
        view = memoryview(data).cast("B")
        return view[max(0, len(view) + offset) :] if offset < 0 else view[offset : offset + length]

    def names_below(self, prefix: str) -> list[str]:
        start = prefix + "/" if prefix else ""
        return sorted({key[len(start) :].split("/", 1)[0] for key in self.store if key.startswith(start)})


class FsspecSource(MappingSource):
    """`fs.get_mapper(…)`: ranges are read as ranges, and folders listed, through its file system."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.root = str(store.root).rstrip("/")
        try:
            self.shown = str(store.fs.unstrip_protocol(self.root))
        except Exception:  # a file system of the caller's own
            self.shown = f"{self.shown} at {self.root}"
        self._absent = tuple(getattr(store, "missing_exceptions", None) or (FileNotFoundError,))

    def read(self, key: str, offset: int, length: int) -> Any:
        if offset == 0 and length == 0:
            return self.store[key]
        end = None if offset < 0 else offset + length
        try:
            return self.store.fs.cat_file(f"{self.root}/{key}", start=offset, end=end)
        except self._absent:
            return None

    def names_below(self, prefix: str) -> list[str]:
        try:
            found = self.store.fs.ls(f"{self.root}/{prefix}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return [str(name).rstrip("/").rsplit("/", 1)[-1] for name in found]


class BrokenSource:
    """What could not be opened: every read says why."""

    def __init__(self, why: BaseException) -> None:
        self.why = why

    async def end(self) -> None:
        pass

    async def get(self, key: str, offset: int, length: int) -> Any:
        raise RuntimeError(f"the store could not be opened: {type(self.why).__name__}: {self.why}") from self.why

    async def names(self, prefix: str) -> list[str]:
        return list(await self.get(prefix, 0, 0))
