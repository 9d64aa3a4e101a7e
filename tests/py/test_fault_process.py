"""A process that forks or is interrupted in the middle of an epoch over S3."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import headrace as hr
from faults import QUICK, archive, batches, epoch, serving, want, watched

__all__ = ["archive", "want", "watched"]  # fixtures
Batches = list[tuple[bytes, bytes]]


def test_a_fork_in_mid_epoch(archive: str, want: Batches) -> None:
    """The child is told and reads by a store of its own; the parent does not notice."""
    with serving(archive, ("busy", "short"), 0.1, "s3") as server, batches(server, **QUICK) as loader:
        server.delay = 0.003
        rest = epoch(loader)
        got = [next(rest)]
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            text = b"failed"
            try:
                try:
                    next(rest)
                except hr.ForkError:
                    with batches(server, **QUICK) as own:
                        text = b"%d" % (list(epoch(own)) == want)
                loader.close()
            finally:
                os.write(write, text)
                os._exit(0)
        got += rest
        os.waitpid(pid, 0)
        assert os.read(read, 100) == b"1"
        assert got == want


def test_ctrl_c_in_mid_epoch(archive: str, want: Batches) -> None:
    """Interrupts a wait at once, and the loader goes on afterwards where it was."""
    with serving(archive, ("silent",), 1.0, "s3") as server:
        server.honest = 12
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with batches(server, **{**QUICK, "first_byte_timeout": 3}) as loader:
                got: Batches = []
                pressed: list[float] = []

                def press() -> None:
                    pressed.append(time.monotonic())
                    os.kill(os.getpid(), signal.SIGINT)

                threading.Timer(0.7, press).start()
                with pytest.raises(KeyboardInterrupt):
                    while True:
                        batch = loader.next()
                        got.append((batch["x"].numpy().tobytes(), batch["y"].numpy().tobytes()))
                assert time.monotonic() - pressed[0] < 5
                server.rate = 0.0
                while len(got) < len(want):
                    batch = loader.next()
                    got.append((batch["x"].numpy().tobytes(), batch["y"].numpy().tobytes()))
                assert got == want
        finally:
            signal.signal(signal.SIGINT, before)
