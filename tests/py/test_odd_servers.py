"""Servers, shapes, moments and arguments that are allowed and odd: the same batches as from a directory, or one line."""

from __future__ import annotations

import gc
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write
from faults import KINDS, QUICK, SEED, Server, archive, batches, epoch, opened, serving, shuffled, want, watched
from test_store_bridge import Own, objects_of

__all__ = ["archive", "want", "watched"]  # fixtures
Batches = list[tuple[bytes, bytes]]
FAILING = ("short", "reset", "busy", "vanish", "truncated", "page")


@pytest.mark.parametrize("kind", KINDS)
def test_hosts_of_ipv6(archive: str, want: Batches, kind: str) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(archive, FAILING, 0.1, kind, hosts=("::1",)) as server:
        url, own = server.kind.open(server.port)
        six = {k: v.replace("127.0.0.1", "[::1]") if isinstance(v, str) else v for k, v in own.items()}
        with shuffled(hr.open(url.replace("127.0.0.1", "[::1]"), {**six, **QUICK})) as loader:
            assert list(epoch(loader)) == want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lasts", [2, 3])
def test_connections_that_are_closed_at_the_second_request(archive: str, want: Batches, kind: str, lasts: int) -> None:
    """Without an answer, as by a server that has just decided to close: no failure, since it is tried anew at once."""
    with serving(archive, kind=kind) as server, batches(server, **QUICK, concurrency=4) as loader:
        server.lasts = lasts
        assert list(epoch(loader)) == want
        retries = loader.stats()["store"]["retries"]
        assert retries["stale"] > 0
        assert retries["stale"] == sum(retries.values())


def read_all(loader: hr.Loader, into: list[Any]) -> None:
    into.extend(epoch(loader))


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_four_loaders_of_one_archive_at_once(archive: str, want: Batches, kind: str) -> None:
    with serving(archive, FAILING, 0.05, kind) as server:
        one = opened(server, **QUICK)
        loaders = [shuffled(one) for _ in range(4)]
        got: list[list[Any]] = [[] for _ in loaders]
        threads = [threading.Thread(target=read_all, args=pair) for pair in zip(loaders, got)]
        for thread in threads:
            thread.start()
        del one
        for thread in threads:
            thread.join(120)
        assert got == [want] * 4


def test_a_loader_prints_what_its_store_has_done(archive: str) -> None:
    with serving(archive, kind="s3") as server, batches(server, **QUICK) as loader:
        loader.next()
        assert repr(loader).splitlines()[-1].startswith("  store: ")
        assert " requests, " in repr(loader)
    assert "store:" not in repr(batches(archive))


# ---- shapes ------------------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]] = {
    "none along time": ((0, 3), (2, 3), None),
    "none across": ((5, 0), (2, 1), None),
    "chunk larger": ((7, 3), (100, 50), None),
    "shard larger": ((7, 3), (4, 2), (64, 32)),
    "one": ((1, 1), (1, 1), (1, 1)),
    "line": ((9,), (4,), None),
    "long chunk": ((3, 2), (1, 2), (1000, 2)),
    "many dimensions": ((4, 1, 2, 1, 3, 1, 2), (1, 1, 1, 1, 2, 1, 5), (2, 1, 1, 1, 2, 1, 5)),
}


def outcome(archive: hr.Archive, name: str) -> Any:
    """What comes of an epoch: bytes, or the error without the archive's name."""
    try:
        with archive.samples(along="time", x=name).batches(2, shuffle=True, seed=1, remainder="short") as loader:
            return [(b.index.numpy().tolist(), b["x"].numpy().tobytes()) for b in loader]
    except hr.Error as e:
        return type(e), str(e).replace(archive.url, "")


@pytest.mark.parametrize("way", [*KINDS, "bridge"])
def test_odd_shapes(tmp_path: Path, way: str) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    for name, (shape, chunks, shards) in SHAPES.items():
        dims = ("time", "b", "c", "d", "e", "f", "g")[: len(shape)]
        data = np.arange(int(np.prod(shape)), dtype="f4").reshape(shape)
        write(root, name.replace(" ", "_"), data, chunks, dims, shards=shards)
    zarr.consolidate_metadata(tmp_path / "a.zarr")
    local = hr.open(tmp_path / "a.zarr")
    expected = {name: outcome(local, name.replace(" ", "_")) for name in SHAPES}
    if way == "bridge":
        there = hr.open(Own(objects_of(str(tmp_path / "a.zarr"))))
        assert {name: outcome(there, name.replace(" ", "_")) for name in SHAPES} == expected
        return
    with serving(str(tmp_path / "a.zarr"), kind=way) as server:
        there = opened(server, **QUICK)
        assert {name: outcome(there, name.replace(" ", "_")) for name in SHAPES} == expected


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_hundred_thousand_shards_of_which_few_are_there(tmp_path: Path, kind: str) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    x = root.create_array(
        "x",
        shape=(1_000_000, 4),
        chunks=(2, 4),
        shards=(10, 4),
        dtype="f4",
        fill_value=-1,
        dimension_names=("time", "b"),
    )
    for first in range(0, 1_000_000, 50_000):
        x[first : first + 10] = np.arange(40, dtype="f4").reshape(10, 4) + first
    zarr.consolidate_metadata(tmp_path / "a.zarr")

    def some(archive: hr.Archive) -> list[tuple[list[int], bytes]]:
        with archive.samples(along="time", x="x").batches(64, shuffle=True, seed=2) as loader:
            batches = [loader.next(timeout=100) for _ in range(12)]
            assert loader.stats()["chunks"]["missing"] > 0
            return [(b.index.numpy().tolist(), b["x"].numpy().tobytes()) for b in batches]

    with serving(str(tmp_path / "a.zarr"), kind=kind) as server:
        assert some(opened(server, **{**QUICK, "first_byte_timeout": 5})) == some(hr.open(tmp_path / "a.zarr"))


# ---- moments -----------------------------------------------------------------------------------------------------


@pytest.fixture
def pressed() -> Iterator[random.Random]:
    """Ctrl-C reaches Python as ever, and pytest does not see it."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    yield random.Random(SEED)
    signal.signal(signal.SIGUSR1, before)


def press_within(seconds: float) -> threading.Thread:
    """Ctrl-C for the main thread, soon."""
    main = threading.main_thread().ident
    assert main

    def press() -> None:
        ready.wait()
        time.sleep(seconds)
        signal.pthread_kill(main, signal.SIGUSR1)

    ready = threading.Event()
    thread = threading.Thread(target=press)
    thread.start()
    ready.set()
    return thread


@pytest.mark.parametrize("way", ["http", "s3", "bridge"])
def test_ctrl_c_at_fifty_moments_of_an_epoch(archive: str, want: Batches, pressed: random.Random, way: str) -> None:
    """Each time the loader goes on where it was told to, and nothing is left behind."""
    with serving(archive, FAILING, 0.05, way if way != "bridge" else "http") as server:
        server.delay = 0.002
        whole = Own(objects_of(archive)) if way == "bridge" else server
        loader = shuffled(hr.open(whole)) if isinstance(whole, Own) else batches(whole, **QUICK)
        got: Batches = []
        times = 0
        while times < 50:
            state, here, epochs = loader.state_dict(), len(got), 0
            press = threading.Thread()
            try:
                press = press_within(pressed.uniform(0.001, 0.03))
                while True:
                    batch = loader.next()
                    if batch is None:
                        assert epochs or got == want
                        epochs += 1
                    elif not epochs:
                        got.append((batch["x"].numpy().tobytes(), batch["y"].numpy().tobytes()))
            except KeyboardInterrupt:
                times += 1
                del got[here:]
                loader.load_state_dict(state)
            if press.ident:
                press.join()
        while (batch := loader.next(timeout=100)) is not None:
            got.append((batch["x"].numpy().tobytes(), batch["y"].numpy().tobytes()))
        assert got == want
        loader.close()


@pytest.mark.parametrize("way", ["http", "bridge"])
def test_ctrl_c_while_opening(archive: str, want: Batches, pressed: random.Random, way: str) -> None:
    with serving(archive) as server:
        server.delay = 0.002
        for _ in range(30):
            press = threading.Thread()
            try:
                press = press_within(pressed.uniform(0.001, 0.02))
                while True:
                    hr.open(Own(objects_of(archive)) if way == "bridge" else f"http://127.0.0.1:{server.port}")
            except KeyboardInterrupt:
                pass
            if press.ident:
                press.join()
        server.delay = 0
        with batches(server) as loader:
            assert list(epoch(loader)) == want
    until = time.monotonic() + 20
    while any(t.name == "headrace-store" for t in threading.enumerate()) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.05)
    assert not [t.name for t in threading.enumerate() if t.name == "headrace-store"]


# ---- arguments ---------------------------------------------------------------------------------------------------

URLS = [
    "", " ", "http:", "http:/", "http://", "http:///x", "https://:80/x", "http://:/x", "http://[::1/x", "http://[]/x", "http://[::1]x/",
    "http://[::1]:99999/x", "http://127.0.0.1:0/x", "http://127.0.0.1:-1/x", "http://127.0.0.1:8o/x", "http://exa mple/x",
    "http://h\n/x", "http://h\r\nX: y/x", "http://h\t/x", "http://127.0.0.1:9/x?a b", "http://u\n:p@127.0.0.1:9/", "http://%00/x",
    "http://127.0.0.1:9/%zz", "http://127.0.0.1:9/\udc80", "http://127.0.0.1:9/" + "x" * 100_000, "http://" + "a" * 300 + "/x",
    "s3://", "s3:///x", "s3://?", "s3://b", "s3://b?x=1", "s3://B_/x", "s3://bu cket/x", "s3://bucket\n/x", "s3://u:p@bucket/x",
    "s3://" + "b" * 300, "s3:bucket", "gs://", "gs:///x", "gs://bu/c\n", "gs://b\udc80/x", "az://", "az:///x", "az://@/x",
    "abfs://c@/x", "abfs://c@host\n/x", "az://c@a.blob.core.windows.net:x/", "file://", "file://host/x", "file:///%zz", "ftp://h/x",
    "memory://", "://x", "http//x", "x::http://y", "simplecache::s3://b/x", "HTTP://[fe80::1%25lo]/x", "http://127.1:99999999999/x",
]  # fmt: skip
OPTIONS: list[Any] = [
    {"connect_timeout": v} for v in (float("nan"), float("inf"), -1, 0, 1e300, 10**400, "1", None.__class__, True, [], {})
] + [
    {"concurrency": v} for v in (0, -1, 1.5, 2**70, True, "4", [4], float("nan"))
] + [
    {"headers": v} for v in ({"a b": "c"}, {"a": "b\r\nX: y"}, {"a": "b\0"}, {"a": 1}, {"": "x"}, {"Range": "x"}, {1: "x"}, "x", ["x"], {"a": "\udc80"})
] + [
    {"proxy": v} for v in ("nonsense://x", "http://", "http://127.0.0.1:99999", "\n", 5, "socks9://x")
] + [
    {"ca_file": v} for v in ("/nonexistent", "", 5, b"x", Path("/nonexistent"))
] + [{"x" * 1000: 1}, {"\0": 1}, {1: 2}, {None: 1}, {"missing_403": "yes"}, {"max_retries": 10**30}, {"proxy": object()}, 5, "x", [("a", 1)], {"a"}]  # fmt: skip


@pytest.mark.parametrize("url", URLS, ids=range(len(URLS)))
def test_urls_that_lead_nowhere(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"connect_timeout": 0.5, "first_byte_timeout": 0.5, "max_retries": 0}
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    local = not url.partition("://")[1] or url.startswith(("file", "memory", "://"))
    endpoint = (
        {"endpoint_url": "http://127.0.0.1:9", "anon": True} if url.startswith(("s3", "gs", "az", "abfs")) else {}
    )
    with pytest.raises((hr.Error, ValueError, TypeError)) as caught:
        hr.open(url, None if local else {**quick, **endpoint})
    assert str(caught.value).strip("'").isprintable()
    assert len(str(caught.value)) <= 600


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises((hr.Error, ValueError, TypeError)) as caught:
        hr.open("http://127.0.0.1:9/x", options if not isinstance(options, dict) else {"max_retries": 0, **options})
    assert "\n" not in str(caught.value)


def test_names_of_arrays_that_are_odd(tmp_path: Path) -> None:
    """By all kinds of servers as from a directory."""
    names = [
        "a b",
        "ü",
        "a%20b",
        "a+b",
        "#x",
        "q?x=1",
        "&",
        "日本",
        "'quoted'",
        '"',
        "~",
        "a;b=c",
        "@",
        "%",
        "*",
        "(x)",
        "\x7f",
        "c\x01",
    ]
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    for i, name in enumerate(names):
        write(root, name, field((6, 2, 2), seed=i), (2, 2, 2), ("time", "y", "x"))
    zarr.consolidate_metadata(tmp_path / "a.zarr")
    local = hr.open(tmp_path / "a.zarr")
    for kind in KINDS:
        with serving(str(tmp_path / "a.zarr"), kind=kind) as server:
            decode(server)
            there = opened(server, **QUICK)
            for name in names:
                assert outcome(there, name) == outcome(local, name), (kind, name)


def decode(server: Server) -> None:
    """Paths come encoded, and are those of files."""
    from urllib.parse import unquote

    honest = server.answer
    server.answer = lambda s, path, fields: honest(s, unquote(path), fields)  # type: ignore[method-assign]
