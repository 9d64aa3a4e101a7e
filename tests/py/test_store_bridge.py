"""Any zarr Store and any mapping: the same batches as by path, and nothing hangs, whatever the store does."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import obstore.store
import pytest
import zarr
from fsspec.asyn import AsyncFileSystem
from zarr.abc.store import RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, StorePath, ZipStore

import headrace as hr
from conftest import field, write
from headrace import _store
from headrace._sources import source_of

PROTOTYPE = default_buffer_prototype()


class Own(Store):
    """A store of the caller's: objects from a dict, and a hook that may do anything else."""

    supports_writes = supports_deletes = supports_partial_writes = False
    supports_listing = True

    def __init__(self, objects: dict[str, bytes], hook: Callable[[str], Any] | None = None) -> None:
        super().__init__(read_only=True)
        self.objects, self.hook = objects, hook
        self.threads: set[str] = set()
        self.active = self.most = self.cancelled = 0

    def __eq__(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        return "own://store"

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        self.threads.add(threading.current_thread().name)
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await asyncio.sleep(0)
            special = self.hook(key) if self.hook else None
            if asyncio.iscoroutine(special):
                special = await special
            if special is not None:
                return special
            data = self.objects[key]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.active -= 1
        if isinstance(byte_range, RangeByteRequest):
            data = data[byte_range.start : byte_range.end]
        elif isinstance(byte_range, SuffixByteRequest):
            data = data[-byte_range.suffix :]
        return prototype.buffer.from_bytes(data)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        start = prefix.rstrip("/") + "/" if prefix else ""
        for name in sorted({k[len(start) :].split("/")[0] for k in self.objects if k.startswith(start)}):
            yield name

    async def _no(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    list = list_prefix = exists = set = delete = get_partial_values = _no


def objects_of(path: str) -> dict[str, bytes]:
    files = [p for p in Path(path).rglob("*") if p.is_file()]
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in files}


def epoch(archive: hr.Archive, name: str = "t2m", rows: int = 8, **options: Any) -> dict[int, bytes]:
    """Every row of a shuffled epoch by its id."""
    out = {}
    with archive.samples(along="time", x=name).batches(
        rows, shuffle=True, seed=3, remainder="pad", **options
    ) as loader:
        for batch in loader:
            ids, valid, x = batch.index.numpy(), batch.valid.numpy(), batch["x"].numpy()
            out.update({int(i): x[n].tobytes() for n, i in enumerate(ids) if valid[n]})
    return out


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """t2m as in `climate`, `s` sharded, `old/v` of Zarr v2; metadata not consolidated."""
    folder = tmp_path_factory.mktemp("bridge") / "a.zarr"
    root = zarr.open_group(folder, mode="w", zarr_format=3)
    write(root, "t2m", field((60, 6, 8)), (4, 6, 8), ("time", "lat", "lon"))
    write(root, "s", field((60, 6, 8), seed=5), (1, 6, 8), ("time", "lat", "lon"), shards=(12, 6, 8))
    write(root.create_group("deep"), "u", field((60, 4), seed=6), (7, 4), ("time", "x"))
    return str(folder)


@pytest.fixture(scope="module")
def path_v2(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bridge") / "b.zarr"
    root = zarr.open_group(folder, mode="w", zarr_format=2)
    write(root, "t2m", field((60, 6, 8)), (4, 6, 8), ("time", "lat", "lon"))
    write(root, "s", field((60, 6, 8), seed=5), (9, 3, 8), ("time", "lat", "lon"))
    write(root.create_group("deep"), "u", field((60, 4), seed=6), (7, 4), ("time", "x"))
    return str(folder)


def in_memory(objects: dict[str, bytes]) -> MemoryStore:
    return MemoryStore({key: PROTOTYPE.buffer.from_bytes(data) for key, data in objects.items()})


def in_zip(path: str) -> ZipStore:
    name = path + ".zip"
    if not os.path.exists(name):
        import zipfile

        with zipfile.ZipFile(name, "w") as z:
            for key, data in objects_of(path).items():
                z.writestr(key, data)
    return ZipStore(name, mode="r")


def in_obstore(path: str) -> ObjectStore:
    memory = obstore.store.MemoryStore()
    for key, data in objects_of(path).items():
        memory.put(key, data)
    return ObjectStore(memory, read_only=True)


def in_fsspec_memory(path: str) -> str:
    fs = fsspec.filesystem("memory")
    for key, data in objects_of(path).items():
        fs.pipe(f"/bridge{path}/{key}", data)
    return f"/bridge{path}"


STORES: dict[str, Callable[[str], Any]] = {
    "local": LocalStore,
    "memory": lambda p: in_memory(objects_of(p)),
    "zip": in_zip,
    "obstore_memory": in_obstore,
    "obstore_local": lambda p: ObjectStore(obstore.store.LocalStore(p), read_only=True),
    "fsspec_local": lambda p: FsspecStore.from_url("file://" + p),
    "fsspec_memory": lambda p: FsspecStore.from_url("memory://" + in_fsspec_memory(p)),
    "mapper_local": lambda p: fsspec.filesystem("file").get_mapper(p),
    "mapper_memory": lambda p: fsspec.filesystem("memory").get_mapper(in_fsspec_memory(p)),
    "dict": objects_of,
    "own": lambda p: Own(objects_of(p)),
    "store_path": lambda p: StorePath(LocalStore(str(Path(p).parent)), Path(p).name),
}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("version", [2, 3])
def test_the_same_archive_as_by_path(path: str, path_v2: str, kind: str, version: int) -> None:
    place = path if version == 3 else path_v2
    by_path, by_store = hr.open(place), hr.open(STORES[kind](place))
    assert [n["path"] for n in by_store.info["nodes"]] == [n["path"] for n in by_path.info["nodes"]]
    assert by_store.arrays == ["deep/u", "s", "t2m"]
    for name in by_store.arrays:
        expected = epoch(by_path, name)
        assert len(expected) == 60
        assert epoch(by_store, name) == expected
    np.testing.assert_array_equal(by_store["s"][3:9, 1], by_path["s"][3:9, 1])


def test_a_store_that_cannot_list_is_probed_by_name(path: str) -> None:
    class Silent(Own):
        supports_listing = False

    class Refusing(Own):
        async def list_dir(self, prefix: str) -> AsyncIterator[str]:
            raise PermissionError("no listing here")
            yield ""

    for kind in (Silent, Refusing):
        archive = hr.open(kind(objects_of(path)))
        assert len(epoch(archive)) == 60
        assert archive.info["complete"] is False


def test_one_state_serves_store_and_path(path: str) -> None:
    def loader(where: Any) -> hr.Loader:
        return hr.open(where).samples(along="time", x="t2m").batches(8, shuffle=True, seed=1)

    with loader(LocalStore(path)) as a, loader(path) as b:
        rest = iter(a)
        next(rest)
        b.load_state_dict(a.state_dict())
        for x, y in zip(rest, b):
            np.testing.assert_array_equal(x["x"].numpy(), y["x"].numpy())


def test_two_loaders_and_many_epochs_of_one_store(path: str) -> None:
    store = Own(objects_of(path))
    archive = hr.open(store, {"concurrency": 3})
    samples = archive.samples(along="time", x="t2m")
    with samples.batches(8, shuffle=True) as a, samples.batches(5) as b:
        for _ in range(3):
            assert sum(1 for _ in zip(a, b)) == 7
    assert store.threads == {"headrace-store"}
    assert 1 < store.most <= 3


def test_counters(path: str) -> None:
    objects = objects_of(path)
    del objects["t2m/c/3/0/0"]
    with hr.open(Own(objects)).samples(along="time", x="t2m").batches(60) as loader:
        assert loader.next().filled == 1
        store = loader.stats()["store"]
    assert store["missing"] >= 1
    assert store["requests"] >= 15
    assert store["bytes"] > sum(len(v) for k, v in objects.items() if k.startswith("t2m/c"))
    assert store["failed"] == 0


@pytest.mark.parametrize("absent", [KeyError("gone"), FileNotFoundError("gone"), None])
def test_missing_is_keyerror_filenotfounderror_or_none(path: str, absent: Exception | None) -> None:
    class Absent(Own):
        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            if key == "t2m/c/2/0/0":
                if absent is not None:
                    raise absent
                return None
            return await super().get(key, prototype, byte_range)

    rows = epoch(hr.open(Absent(objects_of(path))))
    expected = epoch(hr.open(path))
    zeros = np.zeros((6, 8), "f4").tobytes()
    assert rows == {i: zeros if 8 <= i < 12 else row for i, row in expected.items()}


FAILURES = [RuntimeError("boom"), OSError(5, "Input/output error"), PermissionError("no"), ZeroDivisionError(), ValueError("x" * 5000)]  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES, ids=lambda f: type(f).__name__)
def test_exceptions_are_carried_through(path: str, failure: Exception) -> None:
    def fail(key: str) -> None:
        if key == bad:
            raise failure

    bad = "zarr.json"
    with pytest.raises(hr.StoreError, match=r"zarr.json of own://store: " + type(failure).__name__) as caught:
        hr.open(Own(objects_of(path), fail))
    assert caught.value.__cause__ is failure

    bad = "t2m/c/2/0/0"
    archive = hr.open(Own(objects_of(path), fail))
    with archive.samples(along="time", x="t2m").batches(8) as loader:
        loader.next()
        with pytest.raises(hr.StoreError, match=r"t2m/c/2/0/0 of own://store") as caught:
            loader.next()
        assert caught.value.__cause__ is failure
        assert not caught.value.retryable
    with pytest.raises(hr.StoreError, match=r"t2m/c/2/0/0 of own://store") as caught:
        archive["t2m"][...]
    assert caught.value.__cause__ is failure


def test_temporary_failures_say_so(path: str) -> None:
    def fail(key: str) -> None:
        if key.startswith("t2m/c"):
            raise ConnectionResetError("try later")

    with hr.open(Own(objects_of(path), fail)).samples(along="time", x="t2m").batches(8) as loader:
        with pytest.raises(hr.StoreError) as caught:
            loader.next()
        assert caught.value.retryable
        assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_an_epoch_goes_on_where_the_store_failed(path: str) -> None:
    broken = True

    def fail(key: str) -> None:
        if broken and key == "t2m/c/7/0/0":
            raise RuntimeError("boom")

    samples = hr.open(Own(objects_of(path), fail)).samples(along="time", x="t2m")
    got = []
    with samples.batches(8, shuffle=True, seed=4) as loader:
        with pytest.raises(hr.StoreError):
            for batch in loader:
                got.append(batch["x"].numpy().copy())
        state = loader.state_dict()
    broken = False
    with samples.batches(8, shuffle=True, seed=4) as loader:
        loader.load_state_dict(state)
        got += [batch["x"].numpy().copy() for batch in loader]
    with hr.open(path).samples(along="time", x="t2m").batches(8, shuffle=True, seed=4) as loader:
        expected = [batch["x"].numpy().copy() for batch in loader]
    np.testing.assert_array_equal(np.concatenate(got), np.concatenate(expected))


@pytest.mark.parametrize("wrong", ["text", 7, [b"x"], object()], ids=lambda w: type(w).__name__)
def test_what_holds_no_bytes_is_an_error(path: str, wrong: Any) -> None:
    store = Own(objects_of(path), lambda key: wrong if key == "t2m/c/0/0/0" else None)
    loader = hr.open(store).samples(along="time", x="t2m").batches(8)
    with loader, pytest.raises(hr.StoreError, match=f"t2m/c/0/0/0 of own://store: .*{type(wrong).__name__}"):
        loader.next()


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b""], ids=["short", "long", "empty"]
)
@pytest.mark.parametrize("key", ["t2m/c/0/0/0", "s/c/0/0/0"])
def test_wrong_byte_counts_are_errors(path: str, key: str, change: Callable[[bytes], bytes]) -> None:
    """Whole chunks, suffixes (the index of a shard) and ranges (chunks of a shard)."""

    class Wrong(Own):
        async def get(self, name: str, prototype: Any, byte_range: Any = None) -> Any:
            data = await super().get(name, prototype, byte_range)
            return prototype.buffer.from_bytes(change(data.to_bytes())) if name == key else data

    class WrongRange(Own):
        async def get(self, name: str, prototype: Any, byte_range: Any = None) -> Any:
            data = await super().get(name, prototype, byte_range)
            wrong = isinstance(byte_range, RangeByteRequest)
            return prototype.buffer.from_bytes(change(data.to_bytes())) if wrong else data

    kinds = [Wrong, WrongRange] if key[0] == "s" else [Wrong]
    for kind in kinds:
        loader = hr.open(kind(objects_of(path))).samples(along="time", x=key.partition("/")[0]).batches(8)
        with loader, pytest.raises(hr.Error, match=r"own://store"):
            loader.next()


def hangs_at(key_part: str) -> Callable[[str], Any]:
    return lambda key: asyncio.Event().wait() if key_part in key else None


@pytest.mark.alone
def test_a_store_that_never_answers_can_be_left(path: str) -> None:
    store = Own(objects_of(path), hangs_at("t2m/c"))
    loader = hr.open(store).samples(along="time", x="t2m").batches(8)
    with pytest.raises(TimeoutError):
        loader.next(timeout=0.2)
    start = time.perf_counter()
    loader.close()
    assert time.perf_counter() - start < 0.1
    wait_until(lambda: store.active == 0)
    assert store.cancelled > 0
    store.hook = None
    assert len(epoch(hr.open(store))) == 60


@pytest.mark.alone
def test_a_store_that_blocks_its_loop_can_be_left(path: str) -> None:
    free = threading.Event()
    store = Own(objects_of(path), lambda key: free.wait(20) and None if "t2m/c" in key else None)
    archive = hr.open(store)
    loader = archive.samples(along="time", x="t2m").batches(8)
    with pytest.raises(TimeoutError):
        loader.next(timeout=0.2)
    start = time.perf_counter()
    loader.close()
    del loader, archive
    assert time.perf_counter() - start < 0.1
    free.set()


@pytest.mark.alone
def test_a_store_that_refuses_to_be_cancelled_can_be_left(path: str) -> None:
    async def stubborn() -> None:
        for _ in range(20):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                pass

    store = Own(objects_of(path), lambda key: stubborn() if "t2m/c" in key else None)
    loader = hr.open(store).samples(along="time", x="t2m").batches(8)
    with pytest.raises(TimeoutError):
        loader.next(timeout=0.1)
    start = time.perf_counter()
    loader.close()
    del loader
    assert time.perf_counter() - start < 0.1
    gc.collect()
    wait_until(lambda: bridge_threads() == 0)


def test_close_while_another_thread_waits(path: str) -> None:
    store = Own(objects_of(path), hangs_at("t2m/c"))
    loader = hr.open(store).samples(along="time", x="t2m").batches(8)
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            loader.next()
        except hr.ClosedError as e:
            caught.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    loader.close()
    thread.join(1)
    assert len(caught) == 1


def wait_until(true: Callable[[], bool], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def bridge_threads() -> int:
    return sum(t.name.startswith("headrace-store") for t in threading.enumerate())


def test_store_and_thread_go_with_the_archive(path: str) -> None:
    gc.collect()
    wait_until(lambda: bridge_threads() == 0)
    for kind in ("own", "dict", "local"):
        store = STORES[kind](path)
        alive = weakref.ref(store) if kind != "dict" else None
        archive = hr.open(store)
        loader = archive.samples(along="time", x="t2m").batches(8)
        loader.next()
        assert bridge_threads() > 0
        del store, archive
        gc.collect()
        loader.next()
        loader.close()
        del loader
        gc.collect()
        wait_until(lambda: bridge_threads() == 0)
        gc.collect()
        assert alive is None or alive() is None


def test_failed_opens_leave_no_thread(path: str) -> None:
    for store in (Own({}), {}, Own({"zarr.json": b"{"})):
        with pytest.raises(hr.Error):
            hr.open(store)
    with pytest.raises(hr.StoreError, match="could not be opened"):
        hr.open(ZipStore(path + ".none.zip", mode="r"))
    wait_until(lambda: bridge_threads() == 0)


def test_open_inside_a_running_loop(path: str) -> None:
    async def main() -> dict[int, bytes]:
        return epoch(hr.open(LocalStore(path)))

    assert asyncio.run(main()) == epoch(hr.open(path))


class Bound(AsyncFileSystem):
    """An asynchronous file system whose connections belong to the loop that first used it, as those over HTTP do."""

    protocol = "bound"
    objects: ClassVar[dict[str, bytes]] = {}

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        loop = asyncio.get_running_loop()
        if not hasattr(self, "first_loop"):
            self.first_loop = loop
        if self.first_loop is not loop:
            raise RuntimeError("attached to a different loop")
        await asyncio.sleep(0)
        try:
            return self.objects[self._strip_protocol(path)][start:end]
        except KeyError:
            raise FileNotFoundError(path) from None

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        start = self._strip_protocol(path).rstrip("/") + "/"
        return sorted({start + k[len(start) :].split("/")[0] for k in self.objects if k.startswith(start)})


def test_a_file_system_that_zarr_has_used_on_its_own_loop(path: str) -> None:
    fsspec.register_implementation("bound", Bound, clobber=True)
    Bound.objects = {f"a/{k}": v for k, v in objects_of(path).items()}
    store = FsspecStore.from_url("bound://a", read_only=True)
    first = zarr.open_group(store, mode="r")["t2m"][:4]
    archive = hr.open(store)
    assert epoch(archive) == epoch(hr.open(path))
    np.testing.assert_array_equal(zarr.open_group(store, mode="r")["t2m"][:4], first)
    mapper = fsspec.filesystem("bound", asynchronous=False).get_mapper("a")
    assert epoch(hr.open(mapper)) == epoch(hr.open(path))


def test_what_is_no_store(path: str) -> None:
    for wrong in (7, b"bytes", [path], object()):
        with pytest.raises(hr.InvalidTypeError, match="zarr Store"):
            hr.open(wrong)
    with pytest.raises(hr.UnsupportedError, match=r"zarr\.storage\.ObjectStore"):
        hr.open(obstore.store.LocalStore(path))
    with pytest.raises(hr.InvalidError, match="region"):
        hr.open(LocalStore(path), {"region": "x"})
    for n in (0, -1, 1.5, True, "9"):
        with pytest.raises(hr.InvalidError, match="concurrency"):
            hr.open(LocalStore(path), {"concurrency": n})
    with pytest.raises(hr.NotFoundError):
        hr.open(LocalStore(path + ".none"))


def test_names_of_stores_are_one_line_and_hold_no_data(path: str) -> None:
    class Wordy(Own):
        def __str__(self) -> str:
            return "several\nlines \ud800 " + "x" * 1000

    assert len(hr.open(Wordy(objects_of(path))).url.splitlines()) == 1
    assert "dict" in hr.open(objects_of(path)).url
    assert "zarr_format" not in hr.open(objects_of(path)).url


def test_a_forked_child_is_told(path: str) -> None:
    archive = hr.open(Own(objects_of(path)))
    loader = archive.samples(along="time", x="t2m").batches(8)
    loader.next()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            try:
                loader.next()
            except hr.ForkError:
                code = 2
            del loader, archive
            gc.collect()
            code += len(epoch(hr.open(LocalStore(path)))) != 60
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    assert sum(1 for _ in loader) == 7
    assert len(epoch(archive)) == 60


PROGRAM = """
import asyncio, sys, threading, time
import headrace as hr
from zarr.storage import LocalStore
class Hang(LocalStore):
    async def _open(self, **kwargs):
        if mode == "begin":
            await asyncio.Event().wait()
        await super()._open(**kwargs)
    async def get(self, key, prototype=None, byte_range=None):
        if "/c/" in key and mode != "read":
            if mode == "thread":
                await asyncio.to_thread(time.sleep, 60)
            elif mode == "block":
                time.sleep(60)
            await asyncio.Event().wait()
        if mode == "open":
            await asyncio.Event().wait()
        return await super().get(key, prototype, byte_range)
mode = sys.argv[1]
print("ready", flush=True)
archive = hr.open(Hang(sys.argv[2]))
loader = archive.samples(along="time", x="t2m").batches(8, shuffle=True)
if mode == "read":
    kept = [loader.next() for _ in range(3)]
else:
    try:
        loader.next(timeout=0.3)
    except TimeoutError:
        pass
sys.kept = loader, archive  # alive until the end
print("end", flush=True)
"""


@pytest.mark.parametrize("mode", ["read", "wait", "thread", "block"])
def test_the_interpreter_ends_with_loaders_alive(path: str, mode: str) -> None:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode, path], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["ready", "end"], "")
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("mode", ["begin", "open"])
def test_opening_a_store_that_hangs_can_be_interrupted(path: str, mode: str) -> None:
    p = subprocess.Popen([sys.executable, "-c", PROGRAM, mode, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout is not None
    assert p.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    _, errors = p.communicate(timeout=20)
    assert p.returncode in (1, -signal.SIGINT), errors
    assert b"KeyboardInterrupt" in errors
    assert b"Task" not in errors


def test_closing_a_store_that_is_ending_already_does_not_cut_that_off(path: str) -> None:
    bridge = _store.Bridge(source_of(LocalStore(path)), 4)
    ending = threading.Event()

    async def end() -> None:
        ending.set()
        await asyncio.sleep(0.03)

    bridge.source.end = end
    archive = bridge.open()
    del archive
    assert ending.wait(10)
    bridge.close()
    assert not bridge._thread.is_alive()


def test_opening_that_is_interrupted_leaves_no_thread(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = _store.Bridge(source_of(LocalStore(path)), 4)

    def start() -> None:
        threading.Thread.start(bridge._thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(bridge._thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        bridge.open()
    bridge._thread.join(10)
    assert not bridge._thread.is_alive()


@pytest.fixture(autouse=True)
def no_failures_behind_the_scenes(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """asyncio and threading report what nobody awaited on stderr."""
    yield
    gc.collect()
    assert capfd.readouterr().err == ""
