"""A port at which nobody answers: bound, so that no other program gets it, and never listened at."""

from __future__ import annotations

import socket

_held = socket.socket()  # as long as the process lives
_held.bind(("127.0.0.1", 0))

HOST = f"127.0.0.1:{_held.getsockname()[1]}"
