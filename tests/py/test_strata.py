"""Batches that hold bins of the samples in their shares, and what the plan says of any column."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr

N = 5840  # four years of six hours
RNG = np.random.default_rng(3)
LABELS = np.where(RNG.random(N) < 0.1, "storm", "calm").astype("U5")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> hr.Samples:
    path = tmp_path_factory.mktemp("strata") / "a.zarr"
    root = zarr.create_group(path, zarr_format=3)
    for name, values, chunk in (
        ("x", np.arange(N, dtype="f4"), 8),
        ("time", np.arange(N) * 6, N),
        ("label", LABELS, N),
        ("size", RNG.random(N), N),
    ):
        units = {"units": "hours since 2001-01-01"} if name == "time" else {}
        array = root.create_array(
            name, shape=values.shape, chunks=(chunk,), dtype=values.dtype, dimension_names=("time",), attributes=units
        )
        array[...] = values
    return hr.open(path).samples(along="time", x="x")


def ids_of(loader: Any) -> Any:
    out = []
    for batch in loader:
        assert (batch["x"].numpy() == batch.index.numpy()).all()
        out.append(batch.index.numpy().copy())
    return np.stack(out)


def ratio(values: Any, codes: Any, ids: Any) -> float:
    """Variance of the shares of bins in batches over that of independent draws."""
    found = alone = 0.0
    for value in values:
        share = (codes[ids] == value).mean(1)
        p = share.mean()
        found += share.var()
        alone += p * (1 - p) / ids.shape[1]
    return found / alone


MONTHS = (np.datetime64("2001-01-01T00") + np.arange(N) * np.timedelta64(6, "h")).astype("M8[M]").astype(int) % 12


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ("month", MONTHS),
        ("time.hour", np.arange(N) * 6 % 24),
        ("label", LABELS),
        (np.arange(N) // 800, np.arange(N) // 800),
    ],
)
def test_batches_hold_the_bins(samples: hr.Samples, given: Any, codes: Any) -> None:
    with samples.batches(64, shuffle=True, stratify=given, block=1) as loader:
        ids = ids_of(loader)
        plan = loader.plan()
    assert len(np.unique(ids)) == ids.size
    with samples.batches(64, shuffle=True, block=1) as loader:
        plain = ids_of(loader)
    values = np.unique(codes)
    assert ratio(values, codes, ids) < 0.85
    assert ratio(values, codes, ids) < ratio(values, codes, plain)
    assert plan["stratified"]
    name = given if isinstance(given, str) else "values"
    assert {b["column"] for b in plan["quality"]["shares"]} >= {name}


def test_several_columns(samples: hr.Samples) -> None:
    with samples.batches(64, shuffle=True, stratify=["season", "hour"], block=1) as loader:
        assert len(np.unique(ids_of(loader))) == N // 64 * 64
        known = {c["name"]: c["variance"] for c in loader.plan()["quality"]["columns"]}
    assert known["season"] < 1
    assert known["hour"] < 0.5


def test_balanced_classes_are_even_in_each_batch(samples: hr.Samples) -> None:
    weights = {"label": "balanced"}
    sd = {}
    for stratify in (None, "label"):
        with samples.batches(64, shuffle=True, weights=weights, stratify=stratify, block=1) as loader:
            share = (LABELS[ids_of(loader)] == "storm").mean(1)
            told = next(b for b in loader.plan()["quality"]["shares"] if b["bin"] == "storm")
        assert abs(share.mean() - 0.5) < 0.02
        assert told["mean"] == pytest.approx(share.mean(), abs=0.01)
        assert told["independent_sd"] == pytest.approx(0.0625, abs=0.001)
        sd[stratify] = share.std()
    assert sd["label"] < 0.7 * sd[None]


def test_resuming_and_worlds(samples: hr.Samples) -> None:
    options: dict[str, Any] = {"shuffle": True, "stratify": "month", "weights": "size", "block": 1, "streams": 6}
    with samples.batches(global_batch=48, **options) as loader:
        whole, states = [], []
        for batch in loader:
            whole.append(batch.index.numpy().copy())
            states.append(json.loads(json.dumps(loader.state_dict())))
    for world in (1, 2, 3, 6):
        step = 8 * world
        rows = []
        for rank in range(world):
            with samples.batches(global_batch=48, rank=rank, world=world, **options) as loader:
                loader.load_state_dict(states[step - 1])
                rows.append(np.stack([loader.next().index.numpy().copy() for _ in range(5)]))
        assert (np.concatenate(rows, 1) == np.stack(whole[step : step + 5])).all()


def test_a_state_of_other_strata_is_named(samples: hr.Samples) -> None:
    with samples.batches(64, shuffle=True, stratify="month") as loader:
        loader.next()
        state = loader.state_dict()
    for stratify, words in ((None, "the loader has none; open it with the same stratify="), ("hour", "differ from")):
        with (
            samples.batches(64, shuffle=True, stratify=stratify) as loader,
            pytest.raises(hr.StateError, match=f"strata differ.*{words.partition('differ ')[2] or words}"),
        ):
            loader.load_state_dict(state)


def test_the_plan_tells_of_columns(samples: hr.Samples) -> None:
    with samples.batches(64, shuffle=True, block=1) as loader:
        plan = loader.plan(columns=["label", "size", np.arange(N)])
        ids = ids_of(loader)
    known = {c["name"]: c["variance"] for c in plan["quality"]["columns"]}
    assert set(known) == {"time.hour", "time.dayofyear", "label", "size", "values"}
    assert known["label"] == pytest.approx(ratio(np.unique(LABELS), LABELS, ids), rel=0.01)
    assert known["values"] < 0.5 < known["size"]
    assert "variance by column: time.hour" in repr(plan)
    assert "label in a batch: calm" in " ".join(repr(plan).split())
    with samples.batches(64) as loader:
        assert not loader.plan()["quality"]["columns"]


@pytest.mark.parametrize(
    ("stratify", "words"),
    [
        ("mnth", "did you mean 'month'"),
        ("size", "5840 different values.*np.digitize"),
        (np.zeros(5), "one value for each position of time, 5840 values"),
        (["month", "sise"], "did you mean 'size'"),
        (3, "one value for each position"),
    ],
)
def test_what_cannot_be_strata(samples: hr.Samples, stratify: Any, words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        samples.batches(64, shuffle=True, stratify=stratify)


@pytest.mark.parametrize("shuffle", [False, "global"])
def test_strata_need_the_spread_order(samples: hr.Samples, shuffle: Any) -> None:
    with pytest.raises(hr.InvalidError, match="shuffle=True"):
        samples.batches(64, shuffle=shuffle, stratify="month")
