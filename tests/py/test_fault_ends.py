"""Servers that go away, change, or stay broken: what an epoch does then, and how quickly it can be closed."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

import headrace as hr
from faults import KINDS, QUICK, Server, archive, batches, drain, epoch, serving, want, watched

__all__ = ["archive", "want", "watched"]  # fixtures
Batches = list[tuple[bytes, bytes]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_killed_and_started_again_does_not_show(archive: str, want: Batches, kind: str) -> None:
    with serving(archive, kind=kind) as server, batches(server, **QUICK) as loader:

        def kill() -> None:
            server.stop()
            threading.Timer(0.7, server.start).start()

        server.honest, server.then = 20, kill
        assert list(epoch(loader)) == want
        assert sum(loader.stats()["store"]["retries"].values()) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_allows_four_requests_at_once(archive: str, want: Batches, kind: str) -> None:
    with serving(archive, kind=kind) as server, batches(server, **QUICK) as loader:
        server.most, server.delay = 4, 0.01
        assert list(epoch(loader)) == want
        stats = loader.stats()["store"]
        assert stats["throttles"] == stats["retries"]["throttle"] == server.done.get("throttle", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_is_overwritten_stops_the_epoch_with_its_name(archive: str, tmp_path: Path, kind: str) -> None:
    copy = shutil.copytree(archive, tmp_path / "copy")

    def overwrite() -> None:
        for shard in sorted((copy / "sharded" / "c").rglob("*")):
            if shard.is_file():
                data = shard.read_bytes()
                shard.with_suffix(".new").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # as long as before
                os.replace(shard.with_suffix(".new"), shard)

    with serving(str(copy), kind=kind) as server, batches(server, **QUICK, concurrency=1) as loader:
        server.honest, server.then = 30, overwrite
        with pytest.raises(hr.StoreError, match=r"sharded/c/.*changed"):
            list(epoch(loader))


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_disappears_is_not_filled(archive: str, tmp_path: Path, kind: str) -> None:
    copy = shutil.copytree(archive, tmp_path / "copy")
    with serving(str(copy), kind=kind) as server, batches(server, **QUICK, concurrency=1) as loader:
        server.honest, server.then = 30, lambda: shutil.rmtree(copy / "sharded" / "c")
        with pytest.raises(hr.Error, match=r"sharded/c/.*(disappeared|gone)"):
            list(epoch(loader))


def closing(server: Server, fault: str) -> float:
    """Seconds that close() takes while a batch is waited for from a server that is broken so."""
    patient = {"first_byte_timeout": 60, "stall_timeout": 60, "max_retries": 100}
    loader = batches(server, **patient)
    rest = epoch(loader)
    if fault == "running":
        server.delay = 0.01
    elif fault != "down":
        server.faults, server.rate = (fault,), 1.0
    thread = threading.Thread(target=drain, args=(rest,))
    thread.start()
    time.sleep(0.15)
    if fault == "down":
        server.stop()
        time.sleep(0.05)
    began = time.monotonic()
    loader.close()
    took = time.monotonic() - began
    thread.join(10)
    assert not thread.is_alive()
    return took


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("fault", ["running", "stall", "silent", "busy", "short", "reset", "misnamed", "login", "down"])
def test_closing_takes_no_time_in_any_of_these_states(archive: str, fault: str, kind: str) -> None:
    best = 10.0
    for _ in range(5):  # a busy machine may be slow once
        with serving(archive, kind=kind) as server:
            best = min(best, closing(server, fault))
        if best < 0.1:
            break
    assert best < 0.1


BEYOND = {"busy": "503|429", "internal": "500", "page": "502", "short": "cut", "reset": "reset|cut", "silent": "no answer",
          "stall": "stopped", "misnamed": "HTTP", "down": "connect"}  # fmt: skip


@pytest.mark.alone
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", BEYOND)
def test_beyond_all_retries_one_error_and_the_rest_later(archive: str, want: Batches, fault: str, kind: str) -> None:
    few = {**QUICK, "max_retries": 1, "first_byte_timeout": 0.3, "stall_timeout": 0.3}
    with serving(archive, kind=kind) as server:
        server.honest = 12
        if fault == "down":
            server.then = server.stop
        else:
            server.faults, server.rate = (fault,), 1.0
        with batches(server, **few, concurrency=16) as loader:
            got = []
            with pytest.raises(hr.StoreError, match=BEYOND[fault]) as caught:
                got.extend(epoch(loader))
            text, state = str(caught.value), loader.state_dict()
            assert "\n" not in text
            assert "/c/" in text
            assert len(text) <= 512
            began = time.monotonic()
            loader.close()
            assert time.monotonic() - began < 0.5
        if fault == "down":
            server.start()
        server.rate = 0.0
        with batches(server, **QUICK) as loader:
            loader.load_state_dict(state)
            got += list(epoch(loader))
    assert got == want


def test_the_same_loader_goes_on_once_the_server_is_well_again(archive: str, want: Batches) -> None:
    with serving(archive, ("internal",), 1.0) as server:
        server.honest = 12
        with batches(server, **{**QUICK, "max_retries": 1}, concurrency=4) as loader:
            got = []
            with pytest.raises(hr.StoreError) as caught:
                got.extend(epoch(loader))
            assert caught.value.retryable
            server.rate = 0.0
            loader.load_state_dict(loader.state_dict())
            assert got + list(epoch(loader)) == want
