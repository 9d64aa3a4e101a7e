"""nginx on loopback over bench/data, with a configuration, port and state of its own, for as long as one cell runs.

One worker, as one core's worth of server is what a loopback test on few cores can afford. The open-file cache keeps
path look-ups out of the measurement and stays below the limit of open files.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
}}
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def installed() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def nginx(root: Path, state: Path) -> Iterator[str]:
    """Serve the files below `root`; yields the base URL."""
    program = installed()
    if not program:
        raise FileNotFoundError("nginx is not installed (Debian: nginx-light)")
    state.mkdir(parents=True, exist_ok=True)
    port, files = free_port(), 16384
    configuration = state / "nginx.conf"
    configuration.write_text(
        CONFIGURATION.format(
            state=state, root=root, port=port, files=files, cached=files // 2,
            user="user root;" if os.getuid() == 0 else "",
        )
    )  # fmt: skip
    server = subprocess.Popen([program, "-p", str(state), "-c", str(configuration)], stderr=subprocess.DEVNULL)
    try:
        wait_until_up(server, port, state)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def wait_until_up(server: subprocess.Popen[bytes], port: int, state: Path) -> None:
    for _ in range(200):
        if server.poll() is not None:
            raise RuntimeError(f"nginx ended at once; see {state}/error.log")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"nginx does not answer on port {port}")
