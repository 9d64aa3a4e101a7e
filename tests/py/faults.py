"""Epochs over a network that fails: the archives, the loaders, and what an epoch must bring. For test_fault*.py."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zarr

import headrace as hr
from conftest import field, write

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "wire"))
from faulty import Server, faults_of
from faulty_kinds import KINDS

__all__ = [
    "KINDS",
    "QUICK",
    "SEED",
    "Server",
    "archive_in",
    "batches",
    "drain",
    "epoch",
    "faults_of",
    "opened",
    "serving",
    "shuffled",
    "watch",
]

# Waiting times that fit tests. A machine under load makes some of them too short, which costs a try and nothing else.
QUICK: dict[str, Any] = {"connect_timeout": 5, "first_byte_timeout": 0.3, "stall_timeout": 0.3, "max_retries": 30}
SEED = int(os.environ.get("HEADRACE_FAULT_SEED", "7"))


def archive_in(folder: Path, steps: int = 96) -> str:
    """whole: a chunk an object; sharded: 8 chunks an object, read by range. With consolidated metadata."""
    path = folder / "a.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    write(root, "whole", field((steps, 6, 8)), (2, 6, 8), ("time", "lat", "lon"))
    write(root, "sharded", field((steps, 6, 8), seed=1), (2, 6, 8), ("time", "lat", "lon"), shards=(16, 6, 8))
    zarr.consolidate_metadata(path)
    return str(path)


def opened(at: Server | str, **options: Any) -> hr.Archive:
    """A server's archive, or one of a folder or URL."""
    if isinstance(at, str):
        return hr.open(at, storage_options=options or None)
    url, own = at.kind.open(at.port)
    return hr.open(url, storage_options={**own, **options})


def shuffled(archive: hr.Archive) -> hr.Loader:
    return archive.samples(along="time", x="whole", y="sharded").batches(4, shuffle=True, seed=5)


def batches(at: Server | str, **options: Any) -> hr.Loader:
    return shuffled(opened(at, **options))


def epoch(loader: hr.Loader) -> Iterator[tuple[bytes, bytes]]:
    """The bytes of each batch, of which none may be filled or masked."""
    for batch in loader:
        assert batch.filled == 0
        assert batch.valid.numpy().all()
        yield batch["x"].numpy().tobytes(), batch["y"].numpy().tobytes()
    stats = loader.stats()
    assert (stats["chunks"]["missing"], stats["chunks"]["masked"]) == (0, 0)
    assert stats["store"].get("missing", 0) == 0


def drain(rest: Iterator[tuple[bytes, bytes]]) -> None:
    with contextlib.suppress(Exception):
        for _ in rest:
            pass


@contextlib.contextmanager
def serving(
    root: str, faults: tuple[str, ...] = (), rate: float = 0.0, kind: str = "http", **more: Any
) -> Iterator[Server]:
    life = more.pop("life", 0)
    server = Server(root, faults, rate, KINDS[kind](life), **{"seed": SEED, **more})
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def watch(seconds: int) -> Iterator[None]:
    """Fails what takes longer: nothing may hang."""

    def late(*_: object) -> None:
        raise AssertionError(f"still running after {seconds} s")

    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    with watch(300):
        yield


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    return archive_in(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def want(archive: str) -> list[tuple[bytes, bytes]]:
    """The batches of the archive, read from disk."""
    with batches(archive) as local:
        return list(epoch(local))
