#!/usr/bin/env python3
"""A proxy for tests/wire: CONNECT tunnels to loopback, whatever the name. Standard library only.

Prints its port and serves until standard input closes. CONNECT refuse.test is answered 407, CONNECT broken.test by a
close. Each tunnel's target is kept; `CONNECT log` (or GET /log) returns them, a line each.
"""

import socket
import sys
import threading

tunnels = []


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(sock):
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return
        data += more
    method, target = data.split(b" ")[:2]
    target = target.decode()
    if method != b"CONNECT":
        body = "\n".join(tunnels).encode()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        return
    host, port = target.rsplit(":", 1)
    tunnels.append(target)
    if host == "refuse.test":
        sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    elif host != "broken.test":
        there = socket.create_connection(("127.0.0.1", int(port)))
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=pump, args=(there, sock), daemon=True).start()
        pump(sock, there)


def run(sock):
    with sock:
        serve(sock)


def main():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(64)

    def accept():
        while True:
            sock, _ = server.accept()
            threading.Thread(target=run, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
