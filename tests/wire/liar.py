#!/usr/bin/env python3
"""A web server that breaks HTTP on purpose, for tests/wire. Loopback only, standard library only.

Prints its port and serves until standard input closes. The first part of a path says how to behave, the rest is the key:

    /ok,size=1000/any/key       /status,code=503,n=2,retry_after=1/k       /truncate,at=500,n=1/k

`n` (default: always) is how often a path misbehaves before it turns honest. Byte i of an object of version v is
(i % 251) ^ (i // 251 % 241) ^ v. Honest means: Range, suffix ranges, 416, ETag, If-Match, keep-alive.

    ok          honest; etag=strong|weak|none, version=v, resume=strict: only with If-Match after the first request
                `ranges` (here and below): with Accept-Ranges
                `idle`: ms after which connections made later are closed where no request has come
    every       honest, but for each `k`-th request of a path, which gets a `code`
    echo        the request's head comes back as the body
    status      `code`, with retry_after, size of the error body, location
    truncate    `at` bytes of the body, then close            chunkcut  the same, chunked
    reset       `at` bytes (-1: not even a header), then RST
    stall       `at` bytes, then silence for 60 s             silent    not even a header
    drip        the body in pieces of `bytes` every `ms` ms
    ignore      200 and everything, whatever the range (claim=N: announces N bytes, sends a few)
    shift       206 of other bytes
    liarrange   206 whose Content-Range is right and whose Content-Length is not
    surplus     more bytes than announced (`late` ms after)   nolength  ended by close
    chunked     honest, chunked                               gzip      claims Content-Encoding
    page        200 of another kind: announces `claim` bytes, sends `at`, closes; etag=strong|none
    stale       answers once per connection, then closes it at the next request
    junk        not HTTP
    change      version 1 for `n` requests, then version 2; at=B also cuts those `n` bodies
    busy        `ms` ms per request; more than `most` at once get a 503
    late        every `every`-th request of all waits `ms` ms and then sends `at` bytes and
                closes, if given; with rst, all others are reset meanwhile
    mute        silent on the address 127.0.0.`at`, else honest
    hold        no answer until no request has come for `ms` ms; then to all that wait
    waves       (as a whole path) how many waited each time
    peak        (as a whole path) the most requests of "busy" that ever were open at once; "count": requests in all;
                "places": connections by the last number of the address they came to, as in "1=16 2=16 "

It listens on 127.0.0.1, .2 and .3, for tests of hosts with several addresses.
"""

import socket
import struct
import sys
import threading
import time

REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found", 412: "Precondition Failed", 503: "Slow Down"}
lock = threading.Lock()
waves, held, newest = [], 0, 0.0
seen, open_now, peak, count, late, places, idle = {}, 0, 0, 0, 0, {}, None


def content(size, version):
    period = b"".join(bytes(j ^ row ^ version for j in range(251)) for row in range(241))
    return (period * (size // len(period) + 1))[:size]


class Cache(dict):
    def __missing__(self, key):
        self[key] = content(*key)
        return self[key]


contents = Cache()


def head(status, fields, close=False):
    lines = ["HTTP/1.1 %d %s" % (status, REASONS.get(status, "Status"))]
    lines += ["%s: %s" % f for f in fields]
    lines += ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Connection: %s" % ("close" if close else "keep-alive")]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def part(request, size):
    """(first, end) of the Range header; None: whole; False: not satisfiable."""
    r = request.get("range", "")
    if not r.startswith("bytes="):
        return None
    a, b = r[6:].split("-")
    if a == "":
        return (max(0, size - int(b)), size) if size else False
    if int(a) >= size:
        return False
    return int(a), min(size, int(b) + 1 if b else size)


class Connection(threading.Thread):
    def __init__(self, sock):
        super().__init__(daemon=True)
        self.sock, self.data, self.served = sock, b"", 0
        self.place = sock.getsockname()[0].rsplit(".", 1)[1]
        with lock:
            places[self.place] = places.get(self.place, 0) + 1

    def read_request(self):
        while b"\r\n\r\n" not in self.data:
            more = self.sock.recv(65536)
            if not more:
                return None
            self.data += more
        raw, self.data = self.data.split(b"\r\n\r\n", 1)
        lines = raw.decode("latin-1").split("\r\n")
        request = {k.strip().lower(): v.strip() for k, v in (x.split(":", 1) for x in lines[1:])}
        request["target"], request["raw"] = lines[0].split(" ")[1], raw
        return request

    def run(self):
        try:
            self.sock.settimeout(idle)
            while True:
                request = self.read_request()
                if request is None or not self.serve(request):
                    break
                self.served += 1
        except OSError:
            pass
        self.sock.close()

    def rst(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def serve(self, request):
        global count, peak, idle
        path = request["target"].split("?")[0]
        if path.startswith("http://"):  # we are the proxy
            path = "/" + path.split("/", 3)[3]
        if path.startswith(("/peak", "/count", "/places")):
            body = str(peak if path.startswith("/peak") else count).encode()
            if path.startswith("/places"):
                body = "".join("%s=%d " % p for p in sorted(places.items())).encode()
                places.clear()
            else:
                peak = count = 0
            self.sock.sendall(head(200, [("Content-Length", len(body))]) + body)
            return True
        if path.startswith("/waves"):
            body = " ".join(map(str, waves)).encode()
            waves.clear()
            self.sock.sendall(head(200, [("Content-Length", len(body))]) + body)
            return True
        words = path.split("/")[1].split(",")
        how, a = words[0], dict(w.partition("=")[::2] for w in words[1:])
        idle = int(a["idle"]) / 1000 if "idle" in a else None
        with lock:
            count += 1
            nth = seen[path] = seen.get(path, 0) + 1
        if "n" in a and nth > int(a["n"]) and how != "change":
            how = "ok"
        return getattr(self, "do_" + how)(request, a, nth)

    # ---- honest -------------------------------------------------------------------------------------------------

    def answer(self, request, a, version=None):
        """(head fields, status, body) of an honest answer."""
        version = int(a.get("version", 1)) if version is None else version
        data = contents[int(a.get("size", 1000)), version]
        etag = {"strong": '"v%d"', "weak": 'W/"v%d"', "none": ""}[a.get("etag", "strong")] % (
            () if a.get("etag") == "none" else (version,)
        )
        fields = [("ETag", etag)] if etag else []
        if "ranges" in a:
            fields.append(("Accept-Ranges", "bytes"))
        if "if-match" in request and request["if-match"] != etag:
            return fields, 412, b""
        where = part(request, len(data))
        if where is None:
            return fields, 200, data
        if where is False:
            return [("Content-Range", "bytes */%d" % len(data))], 416, b"no such range"
        first, end = where
        return fields + [("Content-Range", "bytes %d-%d/%d" % (first, end - 1, len(data)))], 206, data[first:end]

    def do_ok(self, request, a, nth):
        if a.get("resume") == "strict" and nth > 1 and "if-match" not in request:
            return self.do_status(request, {"code": "400"}, nth)
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields + [("Content-Length", len(body))]) + body)
        return True

    def do_chunked(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields + [("Transfer-Encoding", "chunked")]))
        for i in range(0, len(body), 3000):
            piece = body[i : i + 3000]
            self.sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.sock.sendall(b"0\r\nX-Trailer: yes\r\n\r\n")
        return True

    def do_echo(self, request, a, nth):
        self.sock.sendall(head(200, [("Content-Length", len(request["raw"]))]) + request["raw"])
        return True

    def do_drip(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields + [("Content-Length", len(body))]))
        for i in range(0, len(body), int(a["bytes"])):
            self.sock.sendall(body[i : i + int(a["bytes"])])
            time.sleep(int(a["ms"]) / 1000)
        return True

    def do_every(self, request, a, nth):
        return self.do_status(request, a, nth) if nth % int(a["k"]) == 0 else self.do_ok(request, a, nth)

    def do_late(self, request, a, nth):
        global late
        if late and "rst" in a:
            return self.rst()
        if count % int(a["every"]) == 0:
            late += 1
            time.sleep(int(a["ms"]) / 1000)
            late -= 1
            if "at" in a:
                self.cut(request, a)
                return False
        return self.do_ok(request, a, nth)

    def do_mute(self, request, a, nth):
        return (self.do_silent if self.place == a["at"] else self.do_ok)(request, a, nth)

    # ---- not ----------------------------------------------------------------------------------------------------

    def do_status(self, request, a, nth):
        body = b"e" * int(a.get("body", 10))
        fields = [("Content-Length", len(body))]
        if "retry_after" in a:
            fields.append(("Retry-After", a["retry_after"].replace("_", " ")))
        if "location" in a:
            fields.append(("Location", "http://elsewhere.invalid/x?sig=SECRET"))
        self.sock.sendall(head(int(a["code"]), fields) + body)
        return True

    def cut(self, request, a, version=None):
        fields, status, body = self.answer(request, a, version)
        self.sock.sendall(head(status, fields + [("Content-Length", len(body))]) + body[: int(a["at"])])

    def do_truncate(self, request, a, nth):
        self.cut(request, a)
        return False

    def do_chunkcut(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(
            head(status, fields + [("Transfer-Encoding", "chunked")]) + b"%x\r\n" % len(body) + body[: int(a["at"])]
        )
        return False

    def do_reset(self, request, a, nth):
        if int(a["at"]) >= 0:
            self.cut(request, a)
            time.sleep(0.05)
        return self.rst()

    def do_stall(self, request, a, nth):
        self.cut(request, a)
        time.sleep(60)
        return False

    def do_silent(self, request, a, nth):
        time.sleep(60)
        return False

    def do_ignore(self, request, a, nth):
        fields, status, body = self.answer({k: v for k, v in request.items() if k != "range"}, a)
        if "claim" in a:
            self.sock.sendall(head(status, fields + [("Content-Length", a["claim"])]) + body)
            return False
        self.sock.sendall(head(status, fields + [("Content-Length", len(body))]) + body)
        return True

    def do_shift(self, request, a, nth):
        data = contents[int(a.get("size", 1000)), 1]
        self.sock.sendall(
            head(206, [("Content-Range", "bytes 0-9/%d" % len(data)), ("Content-Length", 10)]) + data[:10]
        )
        return True

    def do_liarrange(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields + [("Content-Length", len(body) - 1)]) + body[:-1])
        return True

    def do_surplus(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields + [("Content-Length", len(body))]) + body)
        time.sleep(int(a.get("late", 0)) / 1000)
        self.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nEVIL!" * 3)
        return True

    def do_nolength(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields, close=True) + body)
        return False

    def do_gzip(self, request, a, nth):
        fields, status, body = self.answer(request, a)
        self.sock.sendall(head(status, fields + [("Content-Encoding", "gzip"), ("Content-Length", len(body))]) + body)
        return True

    def do_stale(self, request, a, nth):
        return self.do_ok(request, a, nth) if not self.served else self.rst()

    def do_page(self, request, a, nth):
        fields = [("ETag", '"page"')] if a.get("etag") == "strong" else []
        page = b"<html>%s</html>" % (b"log in " * 1000)
        self.sock.sendall(head(200, fields + [("Content-Length", a["claim"])]) + page[: int(a["at"])])
        return False

    def do_junk(self, request, a, nth):
        self.sock.sendall(b"\x16\x03\x01 this is not HTTP at all\r\n\r\n")
        return False

    def do_change(self, request, a, nth):
        if nth > int(a["n"]):
            return self.do_ok(request, dict(a, version=2), nth)
        if "at" not in a:
            return self.do_ok(request, a, nth)
        self.cut(request, a)
        return False

    def do_busy(self, request, a, nth):
        global open_now, peak
        with lock:
            open_now += 1
            peak = max(peak, open_now)
            many = open_now > int(a.get("most", 1000))
        time.sleep(int(a["ms"]) / 1000)
        with lock:
            open_now -= 1
        return self.do_status(request, {"code": "503"}, nth) if many else self.do_ok(request, a, nth)

    def do_hold(self, request, a, nth):
        global held, newest
        with lock:
            held, newest, mine = held + 1, time.monotonic(), len(waves)
        while True:
            time.sleep(0.005)
            with lock:
                if len(waves) > mine:
                    break
                if time.monotonic() - newest > int(a["ms"]) / 1000:
                    waves.append(held)
                    held = 0
                    break
        return self.do_ok(request, a, nth)


def listener(host, port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((host, port))
    server.listen(512)

    def accept():
        while True:
            sock, _ = server.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Connection(sock).start()

    threading.Thread(target=accept, daemon=True).start()
    return server.getsockname()[1]


def main():
    port = listener("127.0.0.1", 0)
    for more in ("127.0.0.2", "127.0.0.3"):
        try:
            listener(more, port)
        except OSError:  # taken there, or a system without these addresses
            pass
    print(port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
