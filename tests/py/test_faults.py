"""A server with every fault there is: whole shuffled epochs are byte-identical, or end with one clear error."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write

QUICK = {"connect_timeout": 2, "first_byte_timeout": 0.5, "stall_timeout": 0.5, "max_retries": 30}


class Server:
    """The files below `root` with ranges, ETag and If-Match. A part `rate` of the requests for chunks is broken, each in
    one of the ways `faults`; what looks like another answer, and not like a failure, never twice in a row for one file,
    since a server that repeats a lie is believed to mean it."""

    LIES = ("shifted", "html", "gzip", "ignored")

    def __init__(self, root: str, faults: tuple[str, ...] = (), rate: float = 0.0, most: int = 1000) -> None:
        self.root, self.faults, self.rate, self.most = Path(root), faults, rate, most
        self.random, self.lock = random.Random(7), threading.Lock()
        self.done: dict[str, int] = {}
        self.open, self.requests, self.lied, self.sockets = 0, 0, set[str](), set[socket.socket]()
        self.port = 0
        self.start()

    def start(self) -> None:
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def stop(self) -> None:
        """Nobody listens any more, and all connections are reset."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            sockets, self.sockets = self.sockets, set()
        for s in sockets:
            with contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                s, _ = listener.accept()
                with self.lock:
                    self.sockets.add(s)
                threading.Thread(target=self.talk, args=(s,), daemon=True).start()

    def talk(self, s: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError), s:
            while True:
                while b"\r\n\r\n" not in data:
                    more = s.recv(65536)
                    if not more:
                        return
                    data += more
                request, data = data.split(b"\r\n\r\n", 1)
                if not self.answer(s, request.decode("latin-1")):
                    return

    def choose(self, name: str) -> str:
        with self.lock:
            self.requests += 1
            fault = "none"
            if "/c/" in name and self.random.random() < self.rate:
                fault = self.random.choice(self.faults)
            if fault in self.LIES and name in self.lied:
                fault = "none"
            (self.lied.add if fault in self.LIES else self.lied.discard)(name)
            self.done[fault] = self.done.get(fault, 0) + 1
            return fault

    def answer(self, s: socket.socket, request: str) -> bool:
        lines = request.split("\r\n")
        name = lines[0].split(" ")[1].lstrip("/")
        fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        with self.lock:
            self.open += 1
            many = self.open > self.most
        try:
            if many:
                self.done["throttle"] = self.done.get("throttle", 0) + 1
                s.sendall(head(503, 4, "Retry-After: 0") + b"slow")
                return True
            if self.most < 1000:
                time.sleep(0.01)
            return self.serve(s, name, fields, self.choose(name))
        finally:
            with self.lock:
                self.open -= 1

    def serve(self, s: socket.socket, name: str, fields: dict[str, str], fault: str) -> bool:
        path = self.root / name
        if not path.is_file():
            s.sendall(head(404, 0))
            return True
        whole = path.read_bytes()
        etag = f'ETag: "{hash(whole) & 0xFFFFFFFF:x}"'
        if fields.get("if-match", etag[6:]) != etag[6:]:
            s.sendall(head(412, 0))
            return True
        first, body, status, more = 0, whole, 200, [etag]
        if "range" in fields and fault != "ignored":
            a, b = fields["range"].removeprefix("bytes=").split("-")
            first = int(a) if a else max(0, len(whole) - int(b))
            body, status = (whole[first : int(b) + 1] if a and b else whole[first:]), 206
            more.append(f"Content-Range: bytes {first}-{first + len(body) - 1}/{len(whole)}")
        return bool(getattr(self, "do_" + fault, self.do_none)(s, status, body, more))

    def do_none(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body)
        return True

    def do_short(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body[: len(body) // 2])
        return False

    def do_truncated(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more)[:60])
        return False

    def do_long(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
        return True

    def do_shifted(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(206, len(body) - 1, more[0], f"Content-Range: bytes 1-{len(body) - 1}/{len(body)}") + body[1:])
        return True

    def do_stall(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body[:10])
        time.sleep(60)
        return False

    def do_silent(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        time.sleep(60)
        return False

    def do_reset(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body[:20])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def do_busy(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(503, 8, "Retry-After: 0") + b"SlowDown")
        return True

    def do_html(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(200, 5000, "Content-Type: text/html") + b"<html>please log in</html>")
        return False

    def do_gzip(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more, "Content-Encoding: gzip") + body)
        return True


def head(status: int, size: int, *more: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status} Because", f"Content-Length: {size}", *more, "", "")).encode()


FAULTS = ("short", "truncated", "long", "shifted", "ignored", "stall", "silent", "reset", "busy", "html", "gzip")


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """whole: a chunk an object; sharded: 8 chunks an object, read by range."""
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    write(root, "whole", field((96, 6, 8)), (2, 6, 8), ("time", "lat", "lon"))
    write(root, "sharded", field((96, 6, 8), seed=1), (2, 6, 8), ("time", "lat", "lon"), shards=(16, 6, 8))
    return str(tmp_path / "a.zarr")


def batches(url: str, **options: object) -> hr.Loader:
    store = hr.open(url, storage_options=options) if options else hr.open(url)
    return store.samples(along="time", x="whole", y="sharded").batches(4, shuffle=True, seed=5)


def epoch(loader: hr.Loader) -> Iterator[tuple[bytes, bytes]]:
    for batch in loader:
        yield batch["x"].numpy().tobytes(), batch["y"].numpy().tobytes()


@contextlib.contextmanager
def serving(root: str, *arguments: object) -> Iterator[Server]:
    server = Server(root, *arguments)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_an_epoch_among_all_faults_is_byte_identical(archive: str, rate: float) -> None:
    with batches(archive) as local:
        want = list(epoch(local))
    with serving(archive, FAULTS, rate) as server:
        for _ in range(1 if rate == 0.2 else 3):
            with batches(server.url, **QUICK) as loader:
                assert list(epoch(loader)) == want
        assert rate < 0.2 or sum(n for k, n in server.done.items() if k != "none") > 5


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone(archive: str, fault: str) -> None:
    with batches(archive) as local:
        want = list(epoch(local))
    with serving(archive, (fault,), 0.15) as server, batches(server.url, **QUICK) as loader:
        assert list(epoch(loader)) == want
        assert server.done.get(fault, 0) > 0


def test_a_server_that_is_killed_and_started_again_does_not_show(archive: str) -> None:
    with batches(archive) as local:
        want = list(epoch(local))
    with serving(archive) as server, batches(server.url, **QUICK) as loader:
        got, rest = [], epoch(loader)
        got.append(next(rest))
        server.stop()
        threading.Timer(0.7, server.start).start()
        got += rest
        assert got == want


def test_a_server_that_allows_four_requests_at_once(archive: str) -> None:
    with batches(archive) as local:
        want = list(epoch(local))
    with serving(archive, (), 0.0, 4) as server, batches(server.url, **QUICK) as loader:
        assert list(epoch(loader)) == want


def test_an_object_that_is_overwritten_stops_the_epoch_with_its_name(archive: str) -> None:
    with serving(archive) as server, batches(server.url, **QUICK, concurrency=1) as loader:
        rest = epoch(loader)
        next(rest)
        for shard in sorted((Path(archive) / "sharded" / "c").rglob("*")):
            if shard.is_file():
                data = shard.read_bytes()
                os.replace(shard, shard.with_suffix(".old"))
                shard.write_bytes(data + b"x")
        with pytest.raises(hr.Error, match=r"sharded/c/.*changed"):
            for _ in range(3):
                list(rest)
                rest = epoch(loader)


@pytest.mark.parametrize("fault", ["stall", "silent", "busy", "short", "reset", "down"])
def test_closing_takes_no_time_in_any_of_these_states(archive: str, fault: str) -> None:
    patient = {"first_byte_timeout": 60, "stall_timeout": 60, "max_retries": 100}
    best = 10.0
    for _ in range(5):
        with serving(archive) as server:
            loader = batches(server.url, **patient)
            rest = epoch(loader)
            server.faults, server.rate = (fault,), 1.0
            thread = threading.Thread(target=drain, args=(rest,))
            thread.start()
            time.sleep(0.2)
            if fault == "down":
                server.stop()
                server.start()
            began = time.monotonic()
            loader.close()
            best = min(best, time.monotonic() - began)
            thread.join(10)
            assert not thread.is_alive()
        if best < 0.1:
            break
    assert best < 0.1


def drain(rest: Iterator[tuple[bytes, bytes]]) -> None:
    with contextlib.suppress(Exception):
        for _ in rest:
            pass


def test_beyond_all_retries_one_error_and_the_rest_can_be_had_later(archive: str) -> None:
    with batches(archive) as local:
        want = list(epoch(local))
    with serving(archive) as server:
        with batches(server.url, **{**QUICK, "max_retries": 2}) as loader:
            rest = epoch(loader)
            got = [next(rest)]
            server.faults, server.rate = ("busy",), 1.0
            with pytest.raises(hr.Error, match="503"):
                got.extend(rest)
            state = loader.state_dict()
        server.rate = 0.0
        with batches(server.url, **QUICK) as loader:
            loader.load_state_dict(state)
            got += list(epoch(loader))
    np.testing.assert_equal(len(got), len(want))
    assert got == want
