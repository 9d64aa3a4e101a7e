"""A server with every fault there is, as four kinds of stores: whole shuffled epochs are byte-identical, nothing is filled."""

from __future__ import annotations

import gzip
import hashlib
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from faults import KINDS, QUICK, archive, batches, epoch, faults_of, opened, serving, want, watch, watched

__all__ = ["archive", "want", "watched"]  # fixtures


def least(samples: hr.Samples, n: int, **options: Any) -> hr.Loader:
    """With the smallest budget."""
    minimum = samples.batches(n, **options).plan()["memory"]["minimum"]
    return samples.batches(n, memory=minimum, **options)


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


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_that_is_no_chunk_asks_for_no_memory(archive: str, want: list[tuple[bytes, bytes]], kind: str) -> None:
    """It is larger than any chunk, and memory is for one chunk at a time."""
    with serving(archive, ("login",), 0.3, kind) as server:
        samples = opened(server, **QUICK).samples(along="time", x="whole", y="sharded")
        with least(samples, n=4, shuffle=True, seed=5) as loader:
            assert list(epoch(loader)) == want
        assert server.done["login"] > 5


@pytest.mark.parametrize("kind", KINDS)
def test_nor_among_cells(tmp_path: Path, kind: str) -> None:
    from atlases import atlas, same, write

    cells = atlas(60)
    path = write(cells, tmp_path / "cells.zarr", chunks=(40, 40))
    with serving(path, ("login",), 0.3, kind) as server:
        with least(opened(server, **QUICK).cells(row_chunk=4), n=4, shuffle=True) as loader:
            for batch in loader:
                same(batch["X"].scipy(), cells.X[batch.index.numpy()])
        assert server.done["login"] > 5


def test_a_chunk_that_is_larger_than_all_memory_is_said(tmp_path: Path) -> None:
    """Every answer says so: no page of something else, but a chunk."""
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    data = np.arange(64, dtype="u1").reshape(8, 8)
    root.create_array("x", data=data, chunks=(1, 8), compressors=zarr.codecs.GzipCodec(), dimension_names=("n", "b"))
    zarr.consolidate_metadata(tmp_path / "a.zarr")
    stored = io.BytesIO()
    with gzip.GzipFile("a name of so many bytes" * 1000, "wb", fileobj=stored) as out:
        out.write(data[5].tobytes())
    (tmp_path / "a.zarr" / "x" / "c" / "5" / "0").write_bytes(stored.getvalue())
    with serving(str(tmp_path / "a.zarr")) as server:
        samples = opened(server, **QUICK).samples(along="n", x="x")
        with samples.batches(1, memory="8MiB") as loader:
            np.testing.assert_array_equal(np.concatenate([b["x"].numpy() for b in loader]), data)
        with (
            least(samples, n=1) as loader,
            pytest.raises(hr.BudgetError, match=r"x/c/5/0.*2[0-9]{4} stored bytes.*raise memory="),
        ):
            list(loader)


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
