"""A server with every fault there is, as four kinds of stores: whole shuffled epochs are byte-identical, nothing is filled."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

import headrace as hr
from faults import KINDS, QUICK, archive, batches, epoch, faults_of, serving, want, watch, watched

__all__ = ["archive", "want", "watched"]  # fixtures

EACH = [(kind, fault) for kind in KINDS for fault in faults_of(kind)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_an_epoch_among_all_faults(archive: str, want: list[tuple[bytes, bytes]], kind: str, rate: float) -> None:
    with serving(archive, faults_of(kind), rate, kind) as server:
        for _ in range(1 if rate == 0.2 else 2):
            with batches(server, **QUICK) as loader:
                assert list(epoch(loader)) == want
        assert rate < 0.2 or sum(n for k, n in server.done.items() if k != "none") > 5


@pytest.mark.parametrize(("kind", "fault"), EACH, ids=[f"{k}-{f}" for k, f in EACH])
def test_each_fault_alone(archive: str, want: list[tuple[bytes, bytes]], kind: str, fault: str) -> None:
    with serving(archive, (fault,), 0.15, kind) as server, batches(server, **QUICK) as loader:
        assert list(epoch(loader)) == want
        assert server.done.get(fault, 0) > 0


@pytest.mark.parametrize("kind", ["http", "az"])
def test_large_objects_that_come_in_parts(tmp_path: Path, kind: str) -> None:
    """18 MiB uncompressed: read up to 8 MiB, the rest by range, each part with faults of its own."""
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    data = np.random.default_rng(3).integers(0, 256, (3, 18 << 20), dtype="u1")
    root.create_array(
        "x", shape=data.shape, chunks=(1, 18 << 20), dtype="u1", compressors=None, dimension_names=("n", "b")
    )[...] = data
    zarr.consolidate_metadata(tmp_path / "a.zarr")
    faults = ("short", "reset", "truncated", "busy", "internal", "page", "shifted")
    with serving(str(tmp_path / "a.zarr"), faults, 0.2, kind) as server:
        url, options = server.kind.open(server.port)
        with (
            hr.open(url, {**options, **QUICK})
            .samples(along="n", x="x")
            .batches(1, shuffle=True, memory="80MiB") as loader
        ):
            for batch in loader:
                assert batch.filled == 0
                got = hashlib.sha256(batch["x"].numpy()[0]).digest()
                assert got == hashlib.sha256(data[batch.index.numpy()[0]]).digest()
            assert loader.stats()["store"]["parts"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_retry_after_is_a_floor(archive: str, kind: str) -> None:
    """One refusal that asks for a second: the next request for that object comes no sooner."""
    with serving(archive, kind=kind) as server:
        refused: dict[str, float] = {}
        again: dict[str, float] = {}
        honest = server.answer

        def answer(s: object, path: str, fields: dict[str, str]) -> bool:
            if "/c/3/" in path and path not in refused:
                refused[path] = time.monotonic()
                return server.refuse(s, *server.kind.busy(), "Retry-After: 1")  # type: ignore[arg-type]
            if path in refused:
                again.setdefault(path, time.monotonic())
            return honest(s, path, fields)  # type: ignore[arg-type]

        server.answer = answer  # type: ignore[method-assign]
        with batches(server, **QUICK) as loader:
            assert len(list(epoch(loader))) == 24
        assert len(refused) == 2
        assert all(again[p] - refused[p] >= 0.99 for p in refused)


def test_default_waiting_times_move_on_from_a_stall(archive: str, want: list[tuple[bytes, bytes]]) -> None:
    """No option given: a body that stops for a minute costs 20 s, an answer that never comes 10 s."""
    with serving(archive) as server:
        todo = ["do_stall", "do_silent"]
        honest = server.do_none
        with batches(server) as loader:

            def once(*a: object) -> bool:
                with server.lock:
                    how = todo.pop() if todo else ""
                return getattr(server, how)(*a) if how else honest(*a)  # type: ignore[no-any-return,arg-type]

            server.do_none = once  # type: ignore[method-assign,assignment]
            began = time.monotonic()
            with watch(60):
                assert list(epoch(loader)) == want
            assert 18 < time.monotonic() - began < 55
            retries = loader.stats()["store"]["retries"]
        assert (retries["stall"], retries["first_byte"]) == (1, 1)
