#!/usr/bin/env python3
"""Archives behind a server with every fault there is, for whole epochs. Loopback only, standard library only.

A module of the Python tests, and a program for the C ones: `faulty.py KIND FAULTS RATE SEED` prints its port and serves an
archive of its own (faulty_archive.py) until standard input closes. KIND is http, s3, gs or az (faulty_kinds.py), FAULTS a list
with commas or "all". A line on standard input is a command, answered by a line: `stop` and `start` (nobody listens any more),
`kill` (nobody at 127.0.0.2, where it listens too), `faults FAULTS RATE`.

The files below ROOT are served with ranges, ETag and If-Match. A part RATE of the requests for chunks is broken, each in one of
the ways below, at random.

    short       half of the body, then close             truncated   not even all of the header
    long        more than was announced                  reset       20 bytes, then RST
    stall       10 bytes, then silence                   silent      no answer
    mute        the header, then silence                 vanish      no answer, and the connection is closed
    busy        503 or 429 in the server's own words, Retry-After: 0
    dated       the same, Retry-After as a date          internal    500
    page        502 with a page of HTML                  misnamed    not HTTP at all
    shifted     206 of other bytes                       ignored     200 and everything, whatever the range
    gzip        claims Content-Encoding: gzip            login       200 and half a page of HTML
    redirect    302 to another host
    region      301: the bucket is in another region (s3); for one object not twice in a row
    denied      403 with all that the request said (not among "all")
    expired     the token is void from now on (with tokens)
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import faulty_archive
from faulty_kinds import KINDS, Http

FAILURES = (
    "short",
    "truncated",
    "long",
    "reset",
    "stall",
    "mute",
    "silent",
    "vanish",
    "busy",
    "dated",
    "internal",
    "page",
    "misnamed",
)
LIES = ("shifted", "ignored", "gzip", "login", "redirect", "region")
FAULTS = (*FAILURES, *LIES)
LINGER = struct.pack("ii", 1, 0)


def faults_of(kind: str) -> tuple[str, ...]:
    return tuple(f for f in FAULTS if f != "region" or kind == "s3")


def head(status: int, size: int, *more: str) -> bytes:
    date = "Date: " + email.utils.formatdate(usegmt=True)
    return "\r\n".join((f"HTTP/1.1 {status} Because", f"Content-Length: {size}", date, *more, "", "")).encode()


class Server:
    def __init__(
        self,
        root: str,
        faults: tuple[str, ...] = (),
        rate: float = 0.0,
        kind: Http | None = None,
        seed: int = 7,
        hosts: tuple[str, ...] = ("127.0.0.1",),
    ):
        self.root, self.faults, self.rate, self.kind = Path(root), faults, rate, kind or Http()
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.most, self.delay = 1000, 0.0  # requests at once, more are refused; seconds before each answer
        self.lasts = 0  # requests of a connection, of which the last is not answered; 0: it stays
        self.chunks, self.honest = 0, 0  # requests for chunks; how many of them go well whatever the rate
        self.everything = False  # metadata is broken too
        self.then: Callable[[], None] | None = None  # what happens, once, when these are over
        self.done: dict[str, int] = {}
        self.open, self.requests, self.moved = 0, 0, set[str]()
        self.hosts, self.listeners = hosts, dict[str, socket.socket]()
        self.sockets: dict[socket.socket, str] = {}  # and the address they came to
        self.asked: list[tuple[float, str]] = []  # when each request came, and for what
        self.port = 0
        self.over = threading.Event()
        self.start()

    def start(self) -> None:
        self.over.clear()
        for host in self.hosts:
            listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, self.port))
            listener.listen(256)
            self.port = listener.getsockname()[1]
            self.listeners[host] = listener
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        """Nobody listens any more, and all connections are reset."""
        self.over.set()
        for host in list(self.listeners):
            self.kill(host)

    def kill(self, host: str) -> None:
        """The same for one address."""
        listener = self.listeners.pop(host)
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        with self.lock:
            sockets = [s for s, at in self.sockets.items() if at == host]
            for s in sockets:
                del self.sockets[s]
        for s in sockets:
            with contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                s.shutdown(socket.SHUT_RDWR)

    # ---- connections

    def accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                s, _ = listener.accept()
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self.lock:
                    self.sockets[s] = s.getsockname()[0]
                threading.Thread(target=self.talk, args=(s,), daemon=True).start()

    def talk(self, s: socket.socket) -> None:
        data, taken = b"", 0
        with contextlib.suppress(OSError), s:
            while True:
                while b"\r\n\r\n" not in data:
                    more = s.recv(65536)
                    if not more:
                        break
                    data += more
                if b"\r\n\r\n" not in data:
                    break
                request, data = data.split(b"\r\n\r\n", 1)
                taken += 1
                if taken == self.lasts or not self.take(s, request.decode("latin-1")):
                    break
        with self.lock:
            self.sockets.pop(s, None)

    def take(self, s: socket.socket, request: str) -> bool:
        lines = request.split("\r\n")
        path = lines[0].split(" ")[1].partition("?")[0]
        fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        with self.lock:
            self.open += 1
            self.requests += 1
            self.asked.append((time.monotonic(), path))
            many = self.open > self.most
        try:
            if self.delay:
                time.sleep(self.delay)
            if many:
                return self.refuse(s, *self.kind.busy(), "Retry-After: 0", fault="throttle")
            return self.answer(s, path, fields)
        finally:
            with self.lock:
                self.open -= 1

    # ---- answers

    def refuse(self, s: socket.socket, status: int, code: str, *more: str, fault: str = "", said: str = "") -> bool:
        if fault:
            with self.lock:
                self.done[fault] = self.done.get(fault, 0) + 1
        own, body = self.kind.error(status, code)
        body = body.replace(b"<Message>m", b"<Message>m " + said.encode()) if said else body
        s.sendall(head(status, len(body), *own, *more) + body)
        return True

    def choose(self, name: str) -> str:
        with self.lock:
            fault = "none"
            self.chunks += "/c/" in name
            if (self.everything or "/c/" in name) and self.chunks >= self.honest and self.random.random() < self.rate:
                fault = self.random.choice(self.faults)
            if fault == "region" and name in self.moved:
                fault = "none"
            (self.moved.add if fault == "region" else self.moved.discard)(name)
            self.done[fault] = self.done.get(fault, 0) + 1
            return fault

    def answer(self, s: socket.socket, path: str, fields: dict[str, str]) -> bool:
        kind = self.kind
        if path.startswith(("/grant/", "/computeMetadata/")):
            body = kind.grant(path) or b""
            s.sendall(head(200, len(body), "Content-Type: application/json", "Metadata-Flavor: Google") + body)
            return True
        if kind.tokens and not kind.tokens.valid(kind.authorization(fields)):
            return self.refuse(s, *kind.refusal(), fault="refused")
        name = path.removeprefix(kind.prefix)
        with self.lock:
            then = self.then if self.chunks >= self.honest else None
            self.then = None if then else self.then
        if then:
            then()
        file = self.root / name
        if not path.startswith(kind.prefix) or not file.is_file():
            return self.refuse(s, *kind.missing())
        fault = self.choose(name)
        whole = file.read_bytes()
        version = kind.version(hashlib.sha256(whole).hexdigest()[:12])
        etag = version[0].removeprefix("ETag: ")
        if fields.get("if-match", etag) != etag:
            return self.refuse(s, 412, "PreconditionFailed")
        version.append("Accept-Ranges: bytes")
        status, body = 200, whole
        asked = fields.get("range", "").removeprefix("bytes=")
        if asked and (kind.suffixes or asked[0] != "-") and fault != "ignored":
            a, b = asked.split("-")
            first = int(a) if a else max(0, len(whole) - int(b))
            status, body = 206, (whole[first : int(b) + 1] if a and b else whole[first:])
            version.append(f"Content-Range: bytes {first}-{first + len(body) - 1}/{len(whole)}")
        if fault == "region":
            return self.move(s, fields)
        if fault == "denied":
            return self.refuse(s, 403, "AccessDenied", "X-Said: " + " ".join(fields.values()), said=f"{path} {fields}")
        do: Callable[[socket.socket, int, bytes, list[str]], bool] = getattr(self, "do_" + fault, self.do_none)
        return do(s, status, body, version)

    def move(self, s: socket.socket, fields: dict[str, str]) -> bool:
        signed = fields.get("authorization", "").split("/")[2:3]
        other = "eu-west-3" if signed == ["us-east-1"] else "us-east-1"
        return self.refuse(s, 301, "PermanentRedirect", f"x-amz-bucket-region: {other}")

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

    def do_reset(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body[:20])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        return False

    def do_stall(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more) + body[:10])
        self.over.wait(60)
        return False

    def do_mute(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more))
        self.over.wait(60)
        return False

    def do_vanish(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        return False

    def do_silent(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        self.over.wait(60)
        return False

    def do_busy(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        return self.refuse(s, *self.kind.busy(), "Retry-After: 0")

    def do_dated(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        return self.refuse(s, *self.kind.busy(), "Retry-After: " + email.utils.formatdate(usegmt=True))

    def do_internal(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        return self.refuse(s, 500, "InternalError")

    def do_page(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        page = b"<html><head><title>502</title></head><body>Bad gateway &nbsp; <p>nginx</body></html>"
        s.sendall(head(502, len(page), "Content-Type: text/html") + page)
        return True

    def do_misnamed(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        return False

    def do_shifted(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(206, len(body) - 1, more[0], f"Content-Range: bytes 1-{len(body) - 1}/{len(body)}") + body[1:])
        return True

    def do_gzip(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(status, len(body), *more, "Content-Encoding: gzip") + body)
        return True

    def do_login(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(200, 5000, "Content-Type: text/html") + b"<html>please log in</html>")
        return False

    def do_redirect(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        s.sendall(head(302, 0, "Location: http://elsewhere.invalid/x?sig=SECRET"))
        return True

    def do_expired(self, s: socket.socket, status: int, body: bytes, more: list[str]) -> bool:
        if self.kind.tokens:
            self.kind.tokens.revoke()
        return self.do_none(s, status, body, more)


def chosen(kind: str, faults: str) -> tuple[str, ...]:
    return faults_of(kind) if faults == "all" else tuple(f for f in faults.split(",") if f != "-")


def main() -> None:
    kind, faults, rate, seed = sys.argv[1:5]
    with tempfile.TemporaryDirectory(prefix="hr-faulty-") as root:
        faulty_archive.make(Path(root))
        hosts = ("127.0.0.1", "127.0.0.2")
        server = Server(root, chosen(kind, faults), float(rate), KINDS[kind](), int(seed), hosts)
        print(server.port, flush=True)
        for line in sys.stdin:
            command, *more = line.split()
            if command == "faults":
                server.faults, server.rate = chosen(kind, more[0]), float(more[1])
            elif command == "kill":
                server.kill(hosts[1])
            else:
                getattr(server, command)()
            print("ok", flush=True)


if __name__ == "__main__":
    main()
