"""A web server on loopback that serves a folder: nginx where it is installed, else one made of the standard library.

``python -m headrace._cli.serve FOLDER PORT`` is that second one: enough of HTTP/1.1 for a reader of archives (GET,
HEAD, one range, keep-alive), a thread per connection.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote

_NGINX = """
{user} worker_processes 1; daemon off; pid {run}/pid; error_log {run}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; default_type application/octet-stream;
  client_body_temp_path {run}; proxy_temp_path {run}; fastcgi_temp_path {run};
  uwsgi_temp_path {run}; scgi_temp_path {run};
  open_file_cache max=1000 inactive=60s;
  server {{ listen 127.0.0.1:{port}; root "{folder}"; }}
}}
"""


class Server:
    """Serves while the context lasts; `url` is the folder's, `kind` says by what."""

    def __init__(self, folder: Path, nginx: bool = True) -> None:
        self._folder = folder.resolve()
        self._nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") if nginx else None
        self.kind = "nginx" if self._nginx else "Python"

    def __enter__(self) -> Server:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._run = tempfile.mkdtemp(prefix="headrace-demo-")
        if self._nginx:
            user = "user root;" if os.geteuid() == 0 else ""
            conf = Path(self._run, "nginx.conf")
            conf.write_text(_NGINX.format(user=user, run=self._run, port=self._port, folder=self._folder))
            command = [self._nginx, "-p", self._run, "-c", str(conf), "-e", f"{self._run}/error.log"]
        else:
            command = [sys.executable, "-m", "headrace._cli.serve", str(self._folder), str(self._port)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait(self) -> None:
        for _ in range(200):
            if self._child.poll() is not None:
                said = self._child.stderr.read().decode("utf-8", "replace")[-500:] if self._child.stderr else ""
                raise OSError(f"the web server of the demo ({self.kind}) did not start: {said}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        raise OSError(f"the web server of the demo ({self.kind}) does not answer at {self.url}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.terminate()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if self._child.stderr:
            self._child.stderr.close()
        shutil.rmtree(self._run, ignore_errors=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        path = Path(os.path.normpath(f"{self.folder}/{unquote(self.path.partition('?')[0])}"))
        if not path.is_relative_to(self.folder) or not path.is_file():
            return self._plain(404)
        size = path.stat().st_size
        part = self._range(size)
        if part is None:
            return self._plain(416, ("Content-Range", f"bytes */{size}"))
        first, last = part
        ranged = "Range" in self.headers
        self.send_response(206 if ranged else 200)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        if ranged:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.end_headers()
        if body:
            self.wfile.flush()
            with path.open("rb") as file:
                self.connection.sendfile(file, first, last - first + 1)

    def _range(self, size: int) -> tuple[int, int] | None:
        """First and last byte asked for; None when there are no such bytes (RFC 9110 §14.1.2)."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "").strip())
        if not match or match.groups() == ("", ""):
            return 0, size - 1
        if not match[1]:
            first, last = max(0, size - int(match[2])), size - 1
        else:
            first, last = int(match[1]), min(int(match[2] or size), size - 1)
        return (first, last) if first <= last else None

    def _plain(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", "0")):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256


def main(folder: str, port: int) -> None:
    handler = type("Handler", (_Handler,), {"folder": Path(folder).resolve()})
    with _Threads(("127.0.0.1", port), handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
