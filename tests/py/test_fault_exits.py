"""A consumer that loses interest, and an interpreter that ends, with transfers in flight: at once, and without a word.

HEADRACE_FAULT_EXITS=50 repeats each as often."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faults import Server, archive, batches, serving, watched

__all__ = ["archive", "watched"]  # fixtures
pytestmark = pytest.mark.alone
OFTEN = int(os.environ.get("HEADRACE_FAULT_EXITS", "0"))


@pytest.mark.parametrize("fault", ["none", "silent", "stall", "busy"])
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_consumer_that_goes_away(archive: str, fault: str, kind: str) -> None:
    """Nobody closes: dropping the last reference ends it all, at once."""
    best = 10.0
    gc.collect()
    gc.freeze()  # what other tests have imported takes long to look through
    for _ in range(OFTEN or 5):  # a busy machine may be slow once
        with serving(archive, (fault,), 0.0, kind) as server:
            server.delay = 0.02
            loader = batches(server, first_byte_timeout=60, stall_timeout=60, max_retries=100, concurrency=8)
            iterator = iter(loader)
            next(iterator)
            server.rate = 1.0
            time.sleep(0.03)
            began = time.monotonic()
            del iterator, loader
            gc.collect()
            best = min(best, time.monotonic() - began)
            assert gone(server)
        if best < 0.1 and not OFTEN:
            break
    gc.unfreeze()
    assert best < 0.1


def gone(server: Server) -> bool:
    """Whether the client's connections are closed within a while."""
    server.over.set()  # those who stall look again
    for _ in range(500):
        with server.lock:
            if not server.sockets:
                return True
        time.sleep(0.01)
    return False


PROGRAM = """
import sys, threading, time
sys.path[:0] = {paths!r}
import headrace as hr
had = threading.Event()
{opening}
loader = archive.samples(along="time", x="whole", y="sharded").batches(4, shuffle=True)
iterator = iter(loader)
kept = [next(iterator)]
had.set()
{early}
print("first", flush=True)
sys.stdin.readline()
time.sleep(0.03)
sys.kept = kept, iterator
def leave():
    print("leaving", time.monotonic(), flush=True)
{end}
"""
BY_URL = "archive = hr.open({url!r}, {options!r})"
BY_STORE = """
import asyncio
from test_store_bridge import Own, objects_of
stuck = threading.Event()
async def hang():
    await (asyncio.sleep(0.005) if {fault!r} == "none" else asyncio.Event().wait())
def hook(key):
    if "/c/" in key and stuck.is_set():
        return time.sleep(3600) if {fault!r} == "blocks" else hang()
archive = hr.open(Own(objects_of({root!r}), hook), {{"concurrency": 4}})
def soon():  # but not before the first batch is there
    time.sleep(0.1)
    had.wait()
    stuck.set()
threading.Thread(target=soon, daemon=True).start() if {fault!r} != "none" else stuck.set()
"""
# A daemon thread that waits for batches is what background prefetchers are.
ENDS = {
    "end": "leave()",
    "exit": "leave(); sys.exit(0)",
    "error": "leave(); raise SystemExit(0) from ValueError()",
    "thread": "threading.Thread(target=lambda: list(iterator), daemon=True).start(); time.sleep(0.05); leave()",
    "threads": "[threading.Thread(target=lambda: list(iterator), daemon=True).start() for _ in range(4)]; leave()",
    "loop": "for batch in [0]: leave(); sys.exit(0)",
}


def leave_once(opening: str, how: str, early: str = "", server: Server | None = None) -> float:
    """Seconds from the last statement to the end of the process."""
    here = Path(__file__).resolve().parent
    paths = [str(here), str(here.parent / "wire")]
    text = PROGRAM.format(paths=paths, opening=opening, end=ENDS[how], early=early)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", text], text=True, **pipes)
    assert child.stdout
    assert child.stdout.readline() == "first\n"
    if server:
        server.rate = 1.0
    out, err = child.communicate("go\n", timeout=200)
    ended = time.monotonic()
    assert (child.returncode, err) == (0, "")
    return ended - float(out.split()[1])


def by_url(archive: str, kind: str, fault: str, how: str, early: str = "") -> float:
    with serving(archive, (fault,), 0.0, kind) as server:
        server.delay = 0.02
        url, options = server.kind.open(server.port)
        patient = {**options, "first_byte_timeout": 60, "stall_timeout": 60, "max_retries": 100, "concurrency": 16}
        return leave_once(BY_URL.format(url=url, options=patient), how, early, server)


def by_store(archive: str, kind: str, fault: str, how: str, early: str = "") -> float:
    return leave_once(BY_STORE.format(root=archive, fault=fault), how, early)


WAYS = [
    *((kind, fault) for kind in ("http", "s3") for fault in ("none", "silent", "stall")),
    ("bridge", "none"),
    ("bridge", "silent"),
]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize(("kind", "fault"), WAYS, ids=[f"{k}-{f}" for k, f in WAYS])
def test_the_interpreter_ends_with_transfers_in_flight(archive: str, kind: str, fault: str, how: str) -> None:
    """As soon as one whose loader was closed before, but for a tenth of a second: nothing is waited for."""
    once = by_store if kind == "bridge" else by_url
    best, closed = 10.0, 0.0
    for _ in range(OFTEN or 4):
        took = once(archive, kind, fault, how)
        assert took < 20
        best = min(best, took)
        if best >= 0.1:  # how long does it take here, and now, to end an interpreter?
            closed = max(closed, once(archive, kind, "none", "end", "loader.close()"))
        if best < 0.1 + 2 * closed and not OFTEN:
            break
    assert best < 0.1 + 2 * closed
