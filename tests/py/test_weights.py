"""Weights: how often samples appear, whatever the geometry, the ranks and the step at which a loader goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from headrace._columns import classes

N = 1200
RNG = np.random.default_rng(7)
LABELS = (RNG.random(N) < 0.02).astype("i4") + 5
QUALITY = RNG.random(N) * 3
STATIONS = np.array(["Oslo", "Bern", "Rome"])[np.arange(N) // 400]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> hr.Samples:
    """x: its own sample's number. Chunks of 8 samples."""
    path = tmp_path_factory.mktemp("weights") / "a.zarr"
    root = zarr.create_group(path, zarr_format=3)

    def put(name: str, values: Any, chunk: int, **attributes: str) -> None:
        array = root.create_array(
            name, shape=values.shape, chunks=(chunk, *values.shape[1:]), dtype=values.dtype,
            dimension_names=("time", "c")[: values.ndim], attributes=attributes,
        )  # fmt: skip
        array[...] = values

    put("x", np.arange(N, dtype="f4").reshape(N, 1), 8)
    put("time", np.arange(N), N, units="hours since 1999-01-01")
    put("label", LABELS, N)
    put("quality", QUALITY, N)
    put("station", STATIONS.astype("U4"), N)
    return hr.open(path).samples(along="time", x="x")


def counts(loader: Any, epochs: int = 1) -> Any:
    found = np.zeros(N, int)
    for _ in range(epochs):
        for batch in loader:
            ids, valid = batch.index.numpy(), batch.valid.numpy()
            assert (batch["x"].numpy()[:, 0] == ids).all()
            np.add.at(found, ids[valid], 1)
    return found


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_every_sample_appears_as_often_as_it_weighs(samples: hr.Samples, shuffle: Any) -> None:
    with samples.batches(16, shuffle=shuffle, weights="quality", remainder="pad", block=1) as loader:
        found = counts(loader)
        assert ((found == np.floor(QUALITY)) | (found == np.ceil(QUALITY))).all()
        assert found.sum() == int(QUALITY.sum()) == loader.plan()["epoch_rows"]
        other = counts(loader)
    assert (found != other).any() or not shuffle


def test_fractions_are_chances(samples: hr.Samples) -> None:
    epochs = 40
    with samples.batches(16, shuffle=True, weights=QUALITY, remainder="pad", block=1, seed=3) as loader:
        found = counts(loader, epochs)
    part = QUALITY % 1
    assert (np.abs(found / epochs - QUALITY) <= 5 * np.sqrt(part * (1 - part) / epochs) + 0.1).all()


def test_whole_numbers_repeat_and_zero_leaves_out(samples: hr.Samples) -> None:
    wanted = np.arange(N) % 4
    with samples.batches(10, shuffle=True, weights=wanted, remainder="pad") as loader:
        assert (counts(loader) == wanted).all()
        assert loader.plan()["samples"] == np.count_nonzero(wanted)


def test_order_stays_that_of_the_archive_without_shuffling(samples: hr.Samples) -> None:
    wanted = np.arange(N) % 3
    with samples.batches(50, weights=wanted) as loader:
        ids = np.concatenate([b.index.numpy()[b.valid.numpy()] for b in loader])
    assert (ids == np.repeat(np.arange(N), wanted)).all()


def test_a_class_gets_its_weight(samples: hr.Samples) -> None:
    with samples.batches(16, shuffle=True, weights={"label": {5: 1, 6: 20}}, remainder="pad", block=1) as loader:
        assert (counts(loader) == np.where(LABELS == 6, 20, 1)).all()
    with samples.batches(16, shuffle=True, weights={"station": {"Oslo": 2, "Bern": 0, "Rome": 1}}) as loader:
        assert loader.plan()["epoch_rows"] == 1200
        assert loader.plan()["samples"] == 800


@pytest.mark.parametrize("subset", [False, True])
def test_balanced_classes_come_equally_often(samples: hr.Samples, subset: bool) -> None:
    chosen = samples.where(np.arange(N) % 3 > 0) if subset else samples
    with chosen.batches(16, shuffle=True, weights={"label": "balanced"}, remainder="pad", block=1) as loader:
        found = counts(loader)
    kept = np.arange(N) % 3 > 0 if subset else np.ones(N, bool)
    assert not found[~kept].any()
    assert found.sum() == kept.sum()
    for label in (5, 6):
        assert abs(found[label == LABELS].sum() - kept.sum() / 2) <= 12  # fractions are drawn sample by sample
        each = found[kept & (label == LABELS)]
        assert each.max() - each.min() <= 1


def test_parts_of_dates_are_columns(samples: hr.Samples) -> None:
    with samples.batches(16, shuffle=True, weights={"hour": {h: float(h < 6) for h in range(24)}}) as loader:
        assert set((counts(loader).nonzero()[0] % 24).tolist()) == set(range(6))


def test_a_quarter_is_no_fixed_hour(samples: hr.Samples) -> None:
    """Weights all alike take no regular pattern, with one sample a block neither."""
    with samples.batches(20, shuffle=True, weights=np.full(N, 1 / 24), block=1) as loader:
        hours = counts(loader).nonzero()[0] % 24
    assert len(set(hours.tolist())) > 12


@pytest.mark.parametrize("kind", ["quality", "balanced"])
def test_resuming_anywhere_gives_the_same_batches(samples: hr.Samples, kind: str) -> None:
    weights: Any = "quality" if kind == "quality" else {"label": "balanced"}
    options: dict[str, Any] = {"shuffle": True, "weights": weights, "block": 1, "seed": 5}
    with samples.batches(32, **options) as loader:
        states, batches = [], []
        for batch in loader:
            batches.append(batch.index.numpy().copy())
            states.append(json.loads(json.dumps(loader.state_dict())))
    for step in range(0, len(states) - 1, 7):
        with samples.batches(32, **options) as loader:
            loader.load_state_dict(states[step])
            for expected in batches[step + 1 :]:
                assert (loader.next().index.numpy() == expected).all()
            assert loader.next() is None


def test_worlds_see_the_same_batches(samples: hr.Samples) -> None:
    def ids(world: int) -> list[Any]:
        loaders = [
            samples.batches(global_batch=24, shuffle=True, weights="quality", streams=12, rank=r, world=world, block=1)
            for r in range(world)
        ]
        steps = [np.concatenate(rows) for rows in zip(*([b.index.numpy().copy() for b in x] for x in loaders))]
        for loader in loaders:
            loader.close()
        return steps

    whole = ids(1)
    for world in (2, 3, 4, 6, 12):
        assert all((a == b).all() for a, b in zip(ids(world), whole, strict=True))


def test_a_state_of_other_weights_is_named(samples: hr.Samples) -> None:
    def state(weights: Any) -> Any:
        with samples.batches(16, shuffle=True, weights=weights) as loader:
            loader.next()
            return loader.state_dict()

    states = {name: state(w) for name, w in (("none", None), ("quality", "quality"), ("ones", np.ones(N)))}
    assert "weights" not in states["none"]
    for given, words in (("none", "taken without weights"), ("ones", "differ from those"), ("quality", None)):
        with samples.batches(16, shuffle=True, weights="quality") as loader:
            if words is None:
                loader.load_state_dict(states[given])
                continue
            with pytest.raises(hr.StateError, match=f"weights differ.*{words.partition('differ ')[2] or words}"):
                loader.load_state_dict(states[given])
    with samples.batches(16, shuffle=True) as loader, pytest.raises(hr.StateError, match="the loader has none"):
        loader.load_state_dict(states["ones"])


def test_weights_are_copied(samples: hr.Samples) -> None:
    weights = np.ones(N)
    with samples.batches(16, shuffle=True, weights=weights, remainder="pad") as loader:
        weights[:] = 0
        assert (counts(loader) == 1).all()


def test_several_axes(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "a.zarr", zarr_format=3)
    array = root.create_array("x", shape=(30, 7), chunks=(4, 2), dtype="i4", dimension_names=("time", "member"))
    array[...] = np.arange(210).reshape(30, 7)
    member = root.create_array("member", shape=(7,), chunks=(7,), dtype="i4", dimension_names=("member",))
    member[...] = np.arange(7)
    samples = hr.open(tmp_path / "a.zarr").samples(along=["time", "member"], x="x")
    for weights in (np.arange(210) % 5, (np.arange(210) % 5).reshape(30, 7), {"member": {m: m for m in range(7)}}):
        wanted = np.arange(210) % 7 if isinstance(weights, dict) else np.arange(210) % 5
        with samples.batches(6, shuffle=True, weights=weights, remainder="pad") as loader:
            found = np.zeros(210, int)
            for batch in loader:
                ids = batch.index.numpy()
                assert (batch["x"].numpy().reshape(-1) == ids).all()
                np.add.at(found, ids[batch.valid.numpy()], 1)
        assert (found == wanted).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.full(N, -0.5), "position 0 has -0.5"),
        (np.where(np.arange(N) == 9, np.nan, 1), "position 9 has nan"),
        (np.where(np.arange(N) == 9, np.inf, 1), "position 9 has inf"),
        (np.where(np.arange(N) == 9, 1e12, 1), "at most 2"),
        (np.zeros(N), "weights of all 1200 samples are 0"),
        (np.full(N, 1e-4), "add up to 0.12, less than one row an epoch.*1.* times as much"),
        (np.full(N, 1e-2), "the weights give 12 rows an epoch"),
        (np.full(N, 1 / N), "multiply them"),
        (np.ones(N, complex), "numbers are expected, not complex128$"),
        ([[1], [1, 2]], r"^weights=\[\[1\]"),
        ({"label": {"5": 1, "6": 1}}, "has no value '5', only 5, 6$"),
        (np.ones(N - 1), "one value for each position of time, 1200 values"),
        (np.ones((2, N)), "1200 values"),
        ("balanced", 'weights={"label": "balanced"}'),
        ("labl", "did you mean 'label'"),
        ("station", "numbers are expected"),
        ("time", "numbers are expected"),
        ({"label": {5: 1}}, "weights of 6 are missing"),
        ({"label": {5: 1, 6: 1, 7: 1}}, "has no value 7, only 5, 6"),
        ({"station": {"Oslo": 1, "Bern": 1, "Roma": 1}}, "no value 'Roma', only Bern, Oslo, Rome; did you mean 'Rome'"),
        ({"label": {5: 1, 6: -1}}, "label: 6=-1: a number from 0 on"),
        ({"label": {5: 1, 6: "a"}}, "a number from 0 on"),
        ({"label": {5: 0, 6: 0}}, "are 0"),
        ({"label": 3}, 'or "balanced", is expected'),
        ({"label": {}, "station": {}}, "one column"),
        (3.5, "one value for each position"),
        (object(), "an array with a value for each position"),
    ],
)
def test_what_cannot_be_weights(samples: hr.Samples, weights: Any, words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        samples.batches(64, shuffle=True, weights=weights)


@pytest.mark.parametrize("kind", ["i1", "i2", ">i2", "u1", "u8", "i8"])
def test_classes_of_any_integers(kind: str) -> None:
    info = np.iinfo(kind)
    values = np.random.default_rng(0).integers(info.min, info.max, 500, kind.strip(">"), endpoint=True)
    for some in (values.astype(kind), np.array([info.max, info.max - 3, info.max], kind), values[:0].astype(kind)):
        different, codes = classes(some)
        assert different.tolist() == sorted(set(some.tolist()))
        assert [different[c] for c in codes] == some.tolist()


def test_classes_that_have_no_order(samples: hr.Samples) -> None:
    labels = np.array(["a", None] * (N // 2), object)
    with pytest.raises(hr.InvalidTypeError, match=r"not objects \(NoneType, str\)"):
        samples.batches(8, shuffle=True, stratify=labels)


def test_a_length_that_is_that_of_the_samples_left(samples: hr.Samples) -> None:
    with pytest.raises(hr.InvalidError, match="as many as samples are left: 1200 positions count"):
        samples.isel(time=slice(0, 100)).batches(8, weights=np.ones(100))


def test_the_plan_says_what_an_epoch_has(samples: hr.Samples) -> None:
    with samples.batches(16, shuffle=True, weights=np.full(N, 2.5)) as loader:
        assert "3,000 rows an epoch: a sample appears 2.5 times on average" in repr(loader.plan())
        assert len(loader) == 3000 // 16
    with samples.batches(16, shuffle=True) as loader:
        assert not loader.plan()["weighted"]
        assert loader.plan()["epoch_rows"] == N
