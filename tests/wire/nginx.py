"""nginx over a folder, for tests and benchmarks: plain HTTP and TLS, with ports, certificate and state of its own.

One worker, as one core's worth of server is what a loopback test on few cores can afford. The open-file cache keeps path
look-ups out of measurements and stays below the limit of open files. `within` is put before the command, so that it can
run in the namespace of an emulated network (wan.py); it ends with the process that started it.

Debian: nginx-light, openssl.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

FILES = 16384
CONFIGURATION = """
worker_processes 1; pid {state}/nginx.pid; error_log {state}/error.log warn; worker_rlimit_nofile {files}; daemon off;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000; keepalive_timeout 75s;
  open_file_cache max={cached} inactive=60s; default_type application/octet-stream; root {root};
  client_body_temp_path {state}/t; proxy_temp_path {state}/t; fastcgi_temp_path {state}/t; uwsgi_temp_path {state}/t;
  scgi_temp_path {state}/t;
  server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ }} }}
  server {{
    listen 127.0.0.1:{tls_port} ssl backlog=1024; location / {{ }}
    ssl_certificate {certificate}; ssl_certificate_key {state}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def program() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def missing() -> str | None:
    """Why it cannot run here."""
    if not program():
        return "nginx is not installed (Debian: nginx-light)"
    return None if shutil.which("openssl") else "openssl is not installed"


class Nginx:
    """`with Nginx(root, state) as server:` serves the files below `root` at server.url and server.tls_url."""

    def __init__(self, root: Path, state: Path, within: Sequence[str] = ()) -> None:
        self.root, self.state, self.within = root, state, list(within)
        self.port, self.tls_port = free_port(), free_port()
        self.url, self.tls_url = f"http://127.0.0.1:{self.port}", f"https://127.0.0.1:{self.tls_port}"
        self.certificate = state / "certificate.pem"

    def __enter__(self) -> Nginx:
        if reason := missing():
            raise FileNotFoundError(reason)
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "nginx.pid").unlink(missing_ok=True)
        self.make_certificate()
        configuration = self.state / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(
                state=self.state, root=self.root, port=self.port, tls_port=self.tls_port, certificate=self.certificate,
                files=FILES, cached=FILES // 2, user="user root;" if os.getuid() == 0 else "",
            )
        )  # fmt: skip
        ends_with_us = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        command = [*ends_with_us, *self.within, str(program()), "-p", str(self.state), "-c", str(configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            self.wait_until_up()
        except Exception:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)

    def make_certificate(self) -> None:
        command = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
            " -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
        )
        files = ["-keyout", str(self.state / "key.pem"), "-out", str(self.certificate)]
        subprocess.run([*command.split(), *files], check=True, capture_output=True)

    def wait_until_up(self) -> None:
        """It listens once its pid is written; from another namespace there is no port to try."""
        for _ in range(500):
            if self.process.poll() is not None:
                raise RuntimeError(f"nginx ended at once; see {self.state}/error.log")
            pid = self.state / "nginx.pid"
            if pid.exists() and pid.stat().st_size:
                return
            time.sleep(0.01)
        raise RuntimeError(f"nginx does not start; see {self.state}/error.log")
