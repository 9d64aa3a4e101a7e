"""Stores of others that say, return and do the oddest things: one error of one line each, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write
from faults import watched
from headrace._pool import Threads
from test_store_bridge import Own, objects_of

__all__ = ["watched"]  # a fixture


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("odd") / "a.zarr"
    root = zarr.open_group(folder, mode="w", zarr_format=3)
    write(root, "t2m", field((60, 6, 8)), (4, 6, 8), ("time", "lat", "lon"))
    write(root, "s", field((60, 6, 8), seed=5), (1, 6, 8), ("time", "lat", "lon"), shards=(12, 6, 8))
    return objects_of(str(folder))


def for_chunks(what: Callable[[], Any]) -> Callable[[str], Any]:
    return lambda key: what() if "/c/" in key else None


def read(store: Any, name: str = "t2m") -> None:
    with hr.open(store).samples(along="time", x=name).batches(8) as loader:
        for _ in loader:
            pass


def throw(e: BaseException) -> Any:
    raise e


class Sulking(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")


EXCEPTIONS = {
    "nul": RuntimeError("a\0b"),
    "controls": RuntimeError("a\x1b[31mb\x07\x7f"),
    "surrogates": RuntimeError("\udc80\ud800"),
    "lines": RuntimeError("one\r\ntwo\u2028three"),
    "long": RuntimeError("x" * 1_000_000),
    "empty": RuntimeError(),
    "bytes": RuntimeError(b"\xff\0"),
    "sulking": Sulking(),
    "odd type": type("Odd\0\n\udc80"[:3] + "\u202e", (Exception,), {})("x"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "stop": StopAsyncIteration(),
    "recursion": RecursionError("deep"),
    "memory": MemoryError(),
    "group": ExceptionGroup("many", [ValueError("a\0"), OSError(5, "io")]),
}


@pytest.mark.parametrize("which", EXCEPTIONS)
def test_any_exception_is_one_line(objects: dict[str, bytes], which: str) -> None:
    store = Own(objects, for_chunks(lambda: throw(EXCEPTIONS[which])))
    with pytest.raises(hr.StoreError, match=r"t2m/c/.* of own://store") as caught:
        read(store)
    text = str(caught.value)
    assert text.isprintable() or which == "odd type"
    assert len(text.encode()) <= 512
    with pytest.raises(hr.StoreError):
        hr.open(Own(objects, lambda key: throw(EXCEPTIONS[which])))


class NoArray:
    def as_numpy_array(self) -> Any:
        raise ValueError("it has none")


RETURNED = {
    "tuple": (1, 2, 3),
    "failure": (-6, "a\0b", True),
    "text": "text",
    "number": 7,
    "self": Own({}),
    "every other": memoryview(bytes(100))[::2],
    "columns": np.zeros((4, 6), "f4").T,
    "objects": np.array([object()]),
    "no array": NoArray(),
    "coroutine": asyncio.sleep,
    "nothing": b"",
    "too little": b"x",
    "too much": bytes(50_000_000),
}


@pytest.mark.parametrize("name", ["t2m", "s"])
@pytest.mark.parametrize("which", RETURNED)
def test_anything_returned_is_an_error(objects: dict[str, bytes], which: str, name: str) -> None:
    with pytest.raises((hr.StoreError, hr.DataError), match="/c/"):
        read(Own(objects, for_chunks(lambda: RETURNED[which])), name)


def test_a_store_that_cannot_be_opened(objects: dict[str, bytes]) -> None:
    class Broken(Own):
        async def _ensure_open(self) -> None:
            raise SystemExit("broken")

    with pytest.raises(hr.StoreError, match="could not be opened: SystemExit: broken"):
        hr.open(Broken(objects))


@pytest.mark.parametrize("how", ["exit", "stop", "close"])
def test_a_store_that_ends_its_loop(objects: dict[str, bytes], how: str) -> None:
    """Everything asked then, and later, is an error."""
    reads = 0

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        if how == "exit":
            raise SystemExit
        if how == "stop":
            loop.stop()
        else:
            loop.close()

    kept = []

    async def end() -> None:
        kept.append(asyncio.create_task(leave()))
        await asyncio.sleep(3600)

    def hook(key: str) -> Any:
        nonlocal reads
        reads += "/c/" in key
        return end() if reads == 3 and "/c/" in key else None

    archive = hr.open(Own(objects, hook), {"concurrency": 2})
    loader = archive.samples(along="time", x="t2m").batches(4)
    if how == "close":  # a running loop cannot be closed, and goes on
        with pytest.raises(hr.TimeoutError):
            for _ in range(20):
                loader.next(timeout=0.3)
    else:
        with pytest.raises(hr.ClosedError):
            for _ in range(20):
                loader.next(timeout=20)
        with pytest.raises(hr.ClosedError):
            archive["s"][0]
    loader.close()


class Listing(Own):
    """Lists what it is told to."""

    def __init__(self, objects: dict[str, bytes], listed: list[Any]) -> None:
        super().__init__(objects)
        self.listed = listed

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in self.listed if not prefix else []:
            if isinstance(name, BaseException):
                raise name
            yield name


@pytest.mark.parametrize(
    "odd",
    [["a\0b", "\0", "..", ".", "", "/", "//", "a/b/c", "t2m/", "\udc80", "x" * 5000, "zarr.json"], [f"n{i}" for i in range(3000)]],
    ids=["odd", "many"],
)  # fmt: skip
def test_odd_names_in_a_listing(objects: dict[str, bytes], odd: list[Any]) -> None:
    archive = hr.open(Listing(objects, ["t2m", "s", *odd]))
    assert [n["path"] for n in archive.info["nodes"] if n["kind"] == "array"] == ["s", "t2m"]


@pytest.mark.parametrize("odd", [7, b"t2m", None, RuntimeError("a\0b"), SystemExit(1)], ids=repr)
def test_a_listing_that_is_none(objects: dict[str, bytes], odd: Any) -> None:
    """As where nothing can be listed: what is known by name can be read, and the tree says that it is incomplete."""
    archive = hr.open(Listing(objects, ["t2m", odd]))
    assert archive.info["complete"] is False
    assert archive["t2m"].shape == (60, 6, 8)


class Nameless(Own):
    def __str__(self) -> str:
        raise ValueError("who am I")


class Odd(Own):
    def __str__(self) -> str:
        return "odd://a\0b\n\udc80\x1b[31m"


@pytest.mark.parametrize("kind", [Nameless, Odd])
def test_stores_without_a_decent_name(objects: dict[str, bytes], kind: type[Own]) -> None:
    read(kind(objects))
    with pytest.raises(hr.NotFoundError) as caught:
        hr.open(kind({}))
    assert str(caught.value).strip("'").isprintable()


class Map(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: str) -> Any:
        return super().get(key)


def test_a_mapping_that_returns_none(objects: dict[str, bytes]) -> None:
    """As documented: there is no such object, in whole or in part."""
    some = {k: v for k, v in objects.items() if not k.startswith(("t2m/c/1/", "s/c/0/"))}
    for name, missing in (("t2m", 1), ("s", 12)):
        with hr.open(Map(some)).samples(along="time", x=name).batches(4) as loader:
            assert sum(batch.filled for batch in loader) == missing


def test_a_mapping_of_other_things() -> None:
    with pytest.raises(hr.Error):
        hr.open({1: b"", None: 3})
    with pytest.raises(hr.Error):
        hr.open({"zarr.json": None})


def test_a_store_that_is_closed_meanwhile(objects: dict[str, bytes]) -> None:
    store = Own(objects)

    async def slow() -> None:
        await asyncio.sleep(0.02)

    store.hook = lambda key: slow() if store._is_open else throw(ValueError("store is closed"))
    store._is_open = True
    loader = hr.open(store, {"concurrency": 1}).samples(along="time", x="t2m").batches(2)
    loader.next()
    store.close()
    with pytest.raises(hr.StoreError, match="ValueError: store is closed"):
        for _ in range(40):
            loader.next(timeout=20)
    loader.close()


def test_no_thread_is_to_be_had(objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        hr.open(Own(objects))
    pool = Threads(2)
    with pytest.raises(RuntimeError, match="new thread"):
        pool.submit(int)
    monkeypatch.undo()
    assert pool.submit(int).result(10) == 0  # it is not counted as one of two
    pool.shutdown()
    read(Own(objects))


def test_closing_at_any_moment(objects: dict[str, bytes]) -> None:
    """Loader, archive and store object go at 60 moments of an epoch."""
    for i in range(60):
        store = Own(objects, lambda key: asyncio.sleep(0.001) if "/c/" in key else None)
        archive = hr.open(store, {"concurrency": 1 + i % 7})
        loader = archive.samples(along="time", x="s").batches(4, shuffle=True, seed=i)
        reader = threading.Thread(target=_until_closed, args=(loader,))
        reader.start()
        time.sleep(i * 0.0007)
        del archive, store
        loader.close()
        reader.join(20)
        assert not reader.is_alive()


def _until_closed(loader: hr.Loader) -> None:
    try:
        while True:
            loader.next()
    except hr.ClosedError:
        pass


def test_many_kinds_of_objects_are_refused_in_one_line(tmp_path: Path) -> None:
    class Get:
        get = None

    for odd in (Get(), Get, object, type, asyncio, lambda: 0, {1, 2}, [b"a"], b"bytes", 3, None, tmp_path.joinpath):
        with pytest.raises((hr.Error, TypeError)) as caught:
            hr.open(odd)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
