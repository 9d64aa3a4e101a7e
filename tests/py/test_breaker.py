"""What tries to break a loader: odd layouts against zarr-python, archives and servers that go away, threads, processes,
signals, leaks."""

from __future__ import annotations

import gc
import http.server
import os
import pickle
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

import headrace as hr
from conftest import field, write

# ---- several views of arrays that are chunked differently -------------------------------------------------------------


def some_layout(r: random.Random, shape: list[int]) -> dict[str, Any]:
    """Chunks, shards in shards, codecs: what zarr's create_array takes."""
    chunks = tuple(r.randint(1, n + 2) for n in shape)
    compressor = r.choice([None, ZstdCodec(level=1), GzipCodec(), Crc32cCodec()])
    if r.random() < 0.3:
        middle = tuple(c * r.randint(1, 2) for c in chunks)
        outer = tuple(c * r.randint(1, 3) for c in middle)
        codecs = [BytesCodec(endian="little"), *([compressor] if compressor else [])]
        where = [r.choice(["start", "end"]) for _ in range(2)]
        inner = ShardingCodec(chunk_shape=chunks, codecs=codecs, index_location=where[0])
        nested = ShardingCodec(chunk_shape=middle, codecs=[inner], index_location=where[1])
        return {"chunks": outer, "serializer": nested, "compressors": None}
    options: dict[str, Any] = {
        "chunks": chunks,
        "compressors": compressor,
        "serializer": BytesCodec(endian=r.choice(["little", "big"])),
    }
    if r.random() < 0.3:
        options["filters"] = [TransposeCodec(order=tuple(r.sample(range(len(shape)), len(shape))))]
    if r.random() < 0.3:
        options["shards"] = tuple(c * r.randint(1, 4) for c in chunks)
    return options


def some_view(r: random.Random, name: str, shape: tuple[int, ...], axis: int) -> tuple[hr.View, Any]:
    """A view, and what of the array numpy would take for sample ids."""
    first = r.choice([0, 0, -1, -4, 2])
    last = first + r.choice([0, 0, 1, 3])
    isel, picks = {}, []
    for d, n in enumerate(shape):
        pick: Any = r.choice([slice(None), r.randrange(-n, n), [r.randrange(n) for _ in range(3)], slice(0, n, 2)])
        if d != axis:
            picks.append(pick)
            if pick != slice(None):
                isel[f"d{d}"] = pick

    def expected(array: np.ndarray, ids: np.ndarray) -> np.ndarray:
        moved = np.moveaxis(array, axis, 0)
        rows = np.stack([moved[ids + s] for s in range(first, last + 1)], 1)
        for d in reversed(range(len(picks))):
            rows = rows[(slice(None),) * (2 + d) + (picks[d],)]
        return rows if last > first else rows[:, 0]

    return hr.view(name, sel={f"d{axis}": hr.steps(first, last)}, isel=isel, decode=False), expected


@pytest.mark.parametrize("seed", range(24))
def test_views_of_arrays_with_other_chunks_agree_with_zarr(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    ndim = r.choice([1, 2, 3, 5])
    axis = r.randrange(ndim)
    shape = [r.choice([1, 2, 3, 5]) for _ in range(ndim)]
    shape[axis] = r.choice([13, 29, 64])
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3)
    for i, name in enumerate("abc"):
        data = np.random.default_rng(seed + i).integers(0, 100, shape).astype(r.choice([">i2", "f4", ">f8", "u1"]))
        write(root, name, data, dims=tuple(f"d{d}" for d in range(ndim)), **some_layout(r, shape))
    stored = {name: zarr.open_group(tmp_path, mode="r")[name][...] for name in "abc"}
    views = {v: (name, *some_view(r, name, tuple(shape), axis)) for v, name in zip("xyz", "abc")}
    samples = hr.open(tmp_path).samples({v: view for v, (_, view, _) in views.items()}, along=f"d{axis}")
    for shuffle in (False, True, "global"):
        seen: list[int] = []
        options = {"shuffle": shuffle, "remainder": "pad", "memory": r.choice(["200kB", "4MB"])}
        with samples.batches(5, seed=seed, **options) as loader:
            for batch in loader:
                ids = batch.index.numpy()
                for v, (name, _, expected) in views.items():
                    want = expected(stored[name], ids)
                    np.testing.assert_array_equal(batch[v].numpy(), want)
                    assert batch[v].numpy().dtype == want.dtype.newbyteorder("=")
                seen += ids[batch.valid.numpy()].tolist()
        assert sorted(seen) == samples.ids.tolist()


def test_a_label_that_is_nearly_there_is_told_apart(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3)
    write(root, "x", field((8, 3)), (8, 3), ("time", "lat"))
    write(root, "lat", np.array([0.1, 0.2, 0.1 + 0.2]), (3,), ("lat",))
    with pytest.raises(hr.NotFoundError, match=r"no label 0\.3 .*nearest is 0\.30000000000000004"):
        hr.open(tmp_path).samples(along="time", x=hr.view("x", lat=0.3))
    write(root, "y", field((8, 3)), (8, 3), ("time", "lat32"))
    write(root, "lat32", np.array([0.1, 0.2, 0.3], "f4"), (3,), ("lat32",))
    with pytest.raises(hr.NotFoundError, match=r"\(0\.1 … 0\.3\); the nearest is 0\.3$"):
        hr.open(tmp_path).samples(along="time", x=hr.view("y", lat32=0.31))


# ---- archives that change while they are read -------------------------------------------------------------------------


def store_of(root: Path, layout: str, rows: int = 200) -> np.ndarray:
    """Array x, five in every element but noise, so that fill values (0) would show."""
    data = field((rows, 6, 10)) * 0 + 5
    group = zarr.open_group(root, mode="w", zarr_format=2 if layout == "v2" else 3)
    options: dict[str, Any] = {"shards": (8, 6, 10)} if layout == "shards" else {}
    write(group, "x", data, (2, 6, 10), ("time", "lat", "lon"), fill_value=0, **options)
    return data


def drain(loader: hr.Loader) -> int:
    """Batches until the end; none of them may hold anything but fives."""
    n = 0
    while (batch := loader.next(timeout=20)) is not None:
        assert (batch["x"].numpy() == 5).all(), "fill values in place of data"
        n += 1
    return n


@pytest.mark.parametrize("layout", ["plain", "shards", "v2"])
def test_an_array_that_was_deleted_is_no_array_of_fill_values(tmp_path: Path, layout: str) -> None:
    store_of(tmp_path / "a", layout)
    archive = hr.open(tmp_path / "a")
    loader = archive.samples(along="time", x="x").batches(5, shuffle=True, memory="1MB")
    assert loader.next() is not None
    os.rename(tmp_path / "a" / "x", tmp_path / "moved")
    with pytest.raises(hr.Error, match=r"disappeared|is gone"):
        for _ in range(3):  # what was read already is given out
            drain(loader)
    with pytest.raises(hr.StoreError, match="disappeared"):
        archive["x"][...]
    state = loader.state_dict()
    loader.close()
    os.rename(tmp_path / "moved", tmp_path / "a" / "x")
    again = hr.open(tmp_path / "a").samples(along="time", x="x").batches(5, shuffle=True, memory="1MB")
    again.load_state_dict(state)
    assert drain(again) == len(again) - state["position"] // 5


def test_chunks_that_never_were_are_fill_values(tmp_path: Path) -> None:
    store_of(tmp_path / "a", "plain")
    os.remove(tmp_path / "a" / "x" / "c" / "3" / "0" / "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr, about version 3
        zarr.consolidate_metadata(tmp_path / "a")
    for consolidated_alone in (False, True):
        if consolidated_alone:
            os.remove(tmp_path / "a" / "x" / "zarr.json")
        with hr.open(tmp_path / "a").samples(along="time", x="x").batches(200) as loader:
            batch = loader.next()
        assert batch.filled == 1 and (batch["x"].numpy()[6:8] == 0).all()


def rewritten(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str) -> None:
    shutil.rmtree(path / "x")
    write(zarr.open_group(path), "x", np.ones(shape, dtype), chunks, ("time", "lat", "lon"), compressors=None)


@pytest.mark.alone
@pytest.mark.parametrize(
    "change",
    [
        lambda p: [os.truncate(f, f.stat().st_size // 2) for f in p.glob("x/c/**/0") if f.is_file()],
        lambda p: [os.truncate(f, 0) for f in p.glob("x/c/**/0") if f.is_file()],
        lambda p: [f.write_bytes(bytes(100_000) + f.read_bytes()) for f in p.glob("x/c/**/0") if f.is_file()],
        lambda p: rewritten(p, (200, 3, 10), (2, 3, 10), "f4"),
        lambda p: rewritten(p, (200, 60, 100), (2, 60, 100), "f8"),
        lambda p: shutil.rmtree(p),
    ],
    ids=["cut", "emptied", "grown", "smaller", "larger", "deleted"],
)
@pytest.mark.parametrize("layout", ["plain", "shards"])
def test_a_change_in_mid_epoch_is_an_error_and_never_other_data(tmp_path: Path, layout: str, change: Any) -> None:
    store_of(tmp_path / "a", layout)
    loader = hr.open(tmp_path / "a").samples(along="time", x="x").batches(5, shuffle=True, memory="1MB")
    assert loader.next() is not None
    os.rename(tmp_path / "a", tmp_path / "b")  # nobody reads while it changes
    change(tmp_path / "b")
    if (tmp_path / "b").exists():
        os.rename(tmp_path / "b", tmp_path / "a")
    with pytest.raises(hr.Error, match="x/c/"):
        for _ in range(3):
            drain(loader)
    start = time.perf_counter()
    loader.close()
    assert time.perf_counter() - start < 0.5


# ---- a server that goes away ------------------------------------------------------------------------------------------


class Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.open_connections: list[socket.socket] = []
        super().__init__(("127.0.0.1", 0), lambda *a: Files(*a, directory=str(folder)))
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self) -> Any:
        connection, address = super().get_request()
        self.open_connections.append(connection)
        return connection, address

    def kill(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.open_connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was over already

    def handle_error(self, *words: Any) -> None:
        pass


@pytest.mark.alone
def test_a_server_killed_in_mid_epoch(tmp_path: Path) -> None:
    store_of(tmp_path, "plain")
    options = {"max_retries": 1, "retry_total": 1}
    with Server(tmp_path) as server:
        samples = hr.open(f"http://127.0.0.1:{server.server_port}", options).samples(along="time", x="x")
        loader = samples.batches(5, shuffle=True, memory="300kB")
        assert loader.next() is not None
        server.kill()
    with pytest.raises(hr.StoreError, match=r"x/c/.*127\.0\.0\.1") as caught:
        drain(loader)
    assert caught.value.retryable
    state = loader.state_dict()
    start = time.perf_counter()
    loader.close()
    assert time.perf_counter() - start < 0.5
    with Server(tmp_path) as server:
        samples = hr.open(f"http://127.0.0.1:{server.server_port}").samples(along="time", x="x")
        with samples.batches(5, shuffle=True, memory="300kB") as again:
            again.load_state_dict(state)
            assert drain(again) == 40 - state["position"] // 5
        server.kill()


# ---- threads ----------------------------------------------------------------------------------------------------------


def in_threads(n: int, work: Any) -> list[BaseException]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    return errors


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_threads_that_share_an_iterator_get_each_batch_once(climate: str, shuffle: Any) -> None:
    t2m = zarr.open_group(climate, mode="r")["t2m"][...]
    loader = hr.open(climate).samples(along="time", x="t2m").batches(1, shuffle=shuffle)
    for epoch in range(3):
        iterator, seen = iter(loader), []

        def work(iterator: Any = iterator, seen: list[int] = seen) -> None:
            for batch in iterator:
                np.testing.assert_array_equal(batch["x"].numpy(), t2m[batch.index.numpy()])
                seen.extend(batch.index.numpy().tolist())

        assert in_threads(6, work) == []
        assert sorted(seen) == list(range(60)), epoch


def test_threads_that_share_next_get_whole_epochs(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(1, shuffle=True)
    got: list[tuple[int, int]] = []

    def work() -> None:
        while (batch := loader.next(timeout=30)) is not None:
            got.append((batch.epoch, int(batch.index.numpy()[0])))

    assert in_threads(6, work) == []
    assert sorted(got) == [(e, i) for e in range(6) for i in range(60)]


def test_every_call_from_another_thread(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(2, shuffle=True)
    until = time.monotonic() + 1.0
    calls = [
        lambda: loader.next(timeout=10), loader.state_dict, loader.stats, lambda: loader.set_epoch(3), loader.plan,
        lambda: loader.load_state_dict(loader.state_dict()), lambda: len(loader), lambda: repr(loader),
    ]  # fmt: skip

    def work() -> None:
        call = calls.pop()
        while time.monotonic() < until:
            call()

    assert in_threads(len(calls), work) == []
    loader.close()


def test_closing_while_threads_wait(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="z")
    for i in range(30):
        loader = samples.batches(2, shuffle=True, memory="1MB")
        threading.Timer(0.001 * (i % 7), loader.close).start()

        def work(loader: hr.Loader = loader) -> None:
            while True:
                loader.next()

        errors = in_threads(1 + i % 3, work)
        assert {type(e) for e in errors} == {hr.ClosedError}


STALLED = """
import headrace as hr, http.server, os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the parent ignores it
class Stall(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if '/c/' in self.path: time.sleep(60)
        super().do_GET()
    def __init__(self, *a): super().__init__(*a, directory=sys.argv[1])
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Stall); server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
loader = hr.open(f'http://127.0.0.1:{server.server_port}').samples(along='time', x='x').batches(2)
def consume():
    try: loader.next()
    except hr.ClosedError: pass
def behind():  # another thread has the turn
    threading.Thread(target=consume).start(); time.sleep(0.3)
"""


def stalled(folder: Path, program: str) -> str:
    """What a program prints whose loader waits for a server that does not answer."""
    store_of(folder, "plain", 20)
    done = subprocess.run(
        [sys.executable, "-c", STALLED + program, str(folder)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


INTERRUPTED = """
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try: loader.next()
except KeyboardInterrupt: print('interrupted', time.monotonic() - start < 3)
loader.close()
"""


@pytest.mark.parametrize("before", ["", "behind()\n"], ids=["waiting for a batch", "waiting for its turn"])
def test_ctrl_c_in_next(tmp_path: Path, before: str) -> None:
    assert stalled(tmp_path, before + INTERRUPTED) == "interrupted True"


def test_a_signal_handler_may_ask_for_the_state(tmp_path: Path) -> None:
    program = """
def save(*unused):
    print(loader.state_dict()['position'], flush=True)
    loader.close()
signal.signal(signal.SIGTERM, save)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
try: loader.next()
except hr.ClosedError: print('closed')
"""
    assert stalled(tmp_path, program) == "0\nclosed"


def test_waiting_behind_another_thread_ends_in_time(tmp_path: Path) -> None:
    program = """
behind()
try: loader.next(timeout=0.2)
except hr.TimeoutError as e: print(e)
loader.close()
"""
    assert "another thread" in stalled(tmp_path, program)


def test_a_fork_while_another_thread_has_the_turn(tmp_path: Path) -> None:
    program = """
behind()
pid = os.fork()
if pid == 0:
    try: loader.next()
    except hr.ForkError: os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
loader.close()
"""
    assert stalled(tmp_path, program) == "7"


# ---- processes --------------------------------------------------------------------------------------------------------


def test_what_cannot_be_pickled_says_what_to_do(climate: str) -> None:
    archive = hr.open(climate)
    samples = archive.samples(along="time", x="t2m")
    loader = samples.batches(4)
    batch = loader.next()
    for thing, hint in [
        (loader, "num_workers=0"), (loader.numpy(), "num_workers=0"), (iter(loader), "num_workers=0"), (batch, r"batch\.numpy\(\)"),
        (batch["x"], r"tensor\.numpy\(\)"),
    ]:  # fmt: skip
        with pytest.raises(hr.InvalidTypeError, match=hint):
            pickle.dumps(thing)
    again = pickle.loads(pickle.dumps(archive["t2m"]))  # opened anew
    assert (again[3] == archive["t2m"][3]).all()
    view = hr.view("t2m", time=hr.steps(-1, 0))
    assert repr(pickle.loads(pickle.dumps(view))) == repr(view)


@pytest.mark.filterwarnings("ignore:Got pickle error")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_dataloader_workers_are_told_of_num_workers_0(climate: str, method: str) -> None:
    data = pytest.importorskip("torch").utils.data
    dataset = hr.open(climate).samples(along="time", x="t2m").batches(4).torch()
    with pytest.raises((RuntimeError, TypeError), match="num_workers=0"):
        next(iter(data.DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=method)))


def test_a_loader_given_to_dataloader_itself(climate: str) -> None:
    data = pytest.importorskip("torch").utils.data
    loader = hr.open(climate).samples(along="time", x="t2m").batches(4)
    with pytest.raises(TypeError, match=r"loader\.torch\(\)"):
        next(iter(data.DataLoader(loader, batch_size=None)))


# ---- lives ------------------------------------------------------------------------------------------------------------


def open_things() -> tuple[int, int, int]:
    """Resident bytes, descriptors, threads."""
    with open("/proc/self/statm") as f:
        rss = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return rss, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


@pytest.mark.alone
def test_nothing_is_left_of_loaders_that_were_closed(climate: str) -> None:
    def round(i: int) -> None:
        samples = hr.open(climate).samples(along="time", x=hr.view("z", time=hr.steps(-1, 0)))
        loader = samples.batches(5, shuffle=bool(i % 2), memory="4MB")
        for _, batch in zip(range(1 + i % 10), loader):
            batch["x"].numpy()
        if i % 3:
            loader.close()

    for i in range(30):
        round(i)
    gc.collect()
    rss, descriptors, threads = open_things()
    for i in range(300):
        round(i)
    gc.collect()
    after = open_things()
    assert after[0] - rss < 8_000_000 and after[1] <= descriptors and after[2] <= threads


def test_loaders_collected_in_mid_iteration_leave_their_batches(climate: str) -> None:
    t2m = zarr.open_group(climate, mode="r")["t2m"][...]
    samples = hr.open(climate).samples(along="time", x="t2m")
    kept = []
    for _ in range(40):
        iterator = iter(samples.batches(5, shuffle=True, memory="1MB"))
        batch = next(iterator)
        kept.append((batch["x"].numpy(), batch.index.numpy()))
        del iterator, batch
    gc.collect()
    for x, ids in kept:
        np.testing.assert_array_equal(x, t2m[ids])


def test_a_loop_that_raised_starts_the_next_epoch(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(5, shuffle=True)
    for epoch in range(4):
        with pytest.raises(RuntimeError, match="of the consumer"):
            for batch in loader:
                assert batch.epoch == epoch
                if batch.step == 2:
                    raise RuntimeError("of the consumer")
        gc.collect()
    assert next(iter(loader)).epoch == 4


def test_a_store_that_went_down_is_said_at_once(climate: str) -> None:
    """Not when all chunks of the batch have been asked for in vain; and the batches before it come first."""

    class Down(dict[str, bytes]):
        answers = 0

        def __getitem__(self, key: str) -> bytes:
            if "/c/" in key:
                self.answers -= 1
            if "/c/" not in key or self.answers >= 0:
                return super().__getitem__(key)
            time.sleep(0.1)
            raise OSError("the store is down")

    files = {str(p.relative_to(climate)): p.read_bytes() for p in Path(climate).rglob("*") if p.is_file()}
    for answers, batches in ((0, 0), (130, 2)):
        store = Down(files)
        loader = hr.open(store, {"concurrency": 1}).samples(along="time", x="z").batches(15)  # of 60 chunks each
        store.answers = answers
        got, start = 0, time.monotonic()
        with pytest.raises(hr.StoreError, match="the store is down"):
            for _ in loader:
                got, start = got + 1, time.monotonic()
        assert got == batches
        assert time.monotonic() - start < 3  # all of the batch would take 6 s, or 5
        loader.close()
