"""What loaders and their statistics print as."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write
from headrace._format import duration, size


def test_sizes_and_times_have_units_and_few_digits() -> None:
    sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 2**32: "4.3 GB", None: "?"}
    assert {n: size(n) for n in sizes} == sizes
    times = {
        0: "0 s",
        4.126e-4: "413 µs",
        9.996e-4: "1.00 ms",
        0.0414: "41.4 ms",
        1: "1.00 s",
        59.96: "60.0 s",
        3600: "3600 s",
    }
    assert {t: duration(t) for t in times} == times


def test_a_loader_says_where_it_stands(loader: hr.Loader) -> None:
    assert repr(loader).splitlines()[0] == "<Loader: epoch 0, step 0 of 7, 8 rows a batch, shuffled (spread, seed 3)>"
    loader.next()
    loader.next()
    assert "epoch 0, step 2 of 7" in repr(loader)
    for _ in loader:
        pass
    loader.set_epoch(5)
    assert "epoch 5, step 0 of 7" in repr(loader)
    assert "x  (lat: 6, lon: 8)  float32" in repr(loader)


def test_steps_are_of_the_rank(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(3, rank=1, world=4, streams=4, shuffle=True)
    loader.next()
    loader.next()
    assert "step 2 of 5, 3 rows a batch" in repr(loader)


def test_a_closed_loader_says_so(loader: hr.Loader) -> None:
    for thing in (loader, loader.numpy(), loader.torch()):
        assert "step 0 of 7" in repr(thing)
    loader.close()
    for thing in (loader, loader.numpy(), loader.torch()):
        assert ": closed, at epoch 0, step 0 of 7" in repr(thing).splitlines()[0]


def test_adapters_say_what_they_are(loader: hr.Loader) -> None:
    pytest.importorskip("torch")
    assert repr(loader.torch()).startswith("<Dataset of torch tensors: epoch 0, step 0 of 7")
    assert repr(loader.numpy()).startswith("<Loader of numpy arrays: epoch 0")
    assert repr(loader.jax()).startswith("<Loader of jax arrays: epoch 0")


def test_statistics_print_as_a_table_and_are_a_dict(loader: hr.Loader) -> None:
    before = loader.stats()
    assert isinstance(before, dict) and "0, 0 samples in 0 s" in repr(before)
    for _ in loader:
        pass
    stats = loader.stats()
    lines = repr(stats).splitlines()
    assert str(stats) == repr(stats) and 8 <= len(lines) <= 14 and max(map(len, lines)) <= 96
    assert lines[0].startswith("batches     7, 56 samples in ")
    for label in ("throughput", "waiting", "chunks", "bytes", "workers", "memory", "store"):
        assert any(line.startswith(f"{label:<12}") for line in lines), label
    assert re.search(r"[\d,]+ samples/s, [\d.]+ .?B/s decoded", repr(stats))
    assert f"{stats['chunks']['read']} read" in repr(stats)
    assert "<table>" in stats._repr_html_()


def test_statistics_name_masked_chunks(climate: str) -> None:
    import pathlib

    chunk = pathlib.Path(climate) / "t2m" / "c" / "2" / "0" / "0"
    chunk.write_bytes(b"")
    loader = hr.open(climate).samples(along="time", x="t2m").batches(4, on_error="mask")
    for _ in loader:
        pass
    text = repr(loader.stats())
    assert "1 masked" in text and "t2m/c/2/0/0" in text


def test_a_batch_of_one_row_is_one(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    assert repr(samples.batches(1).next()) == "<Batch step 0 of epoch 0, 1 row: x (1, 6, 8) float32>"
    assert "2 rows:" in repr(samples.batches(2).next())


def test_plans_keep_their_numbers(loader: hr.Loader) -> None:
    plan: Any = loader.plan()
    assert dict(plan)["steps"] == plan["steps"] == 7
    assert "60 along time, ids 0 … 59" in repr(plan) and "60 along time" in plan._repr_html_()


@pytest.mark.parametrize("how", ["plain", "weights", "stratify"])
def test_choices_know_how_often_samples_come(climate: str, how: str) -> None:
    given: dict[str, Any] = {
        "weights": {"weights": np.where(np.arange(60) < 20, 3.0, 0.0)},
        "stratify": {"stratify": np.arange(60) // 15},
    }.get(how, {})
    with hr.open(climate).samples(along="time", x="t2m").batches(4, shuffle=True, block=1, spread=4, **given) as loader:
        plan: Any = loader.plan()
        now = next(c for c in plan["choices"] if c["current"])
        assert plan["epoch_rows"] == 60
        assert now["amplification"] == plan["cost"]["amplification"] == 1
        assert abs(now["memory"] - plan["memory"]["comfortable"]) < 4096


def test_statistics_count_nothing_of_the_next_epoch(climate: str) -> None:
    with hr.open(climate).samples(along="time", x="t2m").batches(4, shuffle=True) as loader:
        for epoch in range(3):
            for _ in loader:
                pass
            stats = loader.stats()
            assert stats["in_flight"] == 0 and stats["batches"] == 15 * (epoch + 1)
            assert stats["chunks"]["read"] == loader.stats()["chunks"]["read"]


def test_blocks_that_were_chosen_can_be_asked_for(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3)
    write(root, "image", field((700, 600), "f4"), (64, 48), ("y", "x"))
    write(root, "label", field((700, 600), "f4", 1), (160, 200), ("y", "x"))
    patches = hr.open(tmp_path).samples(
        along={"y": hr.patch(64, 40, edge="valid"), "x": hr.patch(64, 40, edge="valid")}, image="image", label="label"
    )
    with patches.batches(4, shuffle=True) as chosen:
        block = chosen.plan()["block"]
        want = [b.index.numpy().tolist() for b in chosen]
        with patches.batches(4, shuffle=True, block=block) as asked:
            assert [b.index.numpy().tolist() for b in asked] == want
            asked.load_state_dict(chosen.state_dict())
            assert asked.next().index.numpy().tolist() == chosen.next().index.numpy().tolist()
