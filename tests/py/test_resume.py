"""The order is a pure function: resume anywhere, at any world size that divides the streams."""

from __future__ import annotations

import json

import numpy as np
import pytest

import headrace as hr
from conftest import ids_of


def test_state_before_every_batch_resumes_the_whole_remainder(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.steps(-1, 1)))
    loader = samples.batches(5, shuffle=True, seed=2)
    states, ids = [], []
    for _ in range(2):
        for batch in loader:
            ids.append(batch.index.numpy().copy())
            states.append(loader.state_dict())
    steps = len(loader)
    for done, state in enumerate(states[:-steps], start=1):
        assert len(json.dumps(state)) < 400
        resumed = samples.batches(5, shuffle=True, seed=2)
        resumed.load_state_dict(state)
        rest = [b.index.numpy().copy() for b in resumed] if done % steps else []
        rest += [b.index.numpy().copy() for b in resumed]
        np.testing.assert_array_equal(rest, ids[done:])


@pytest.mark.parametrize("world", [1, 2, 3, 4, 6, 12])
def test_every_world_sees_the_same_global_batches(climate: str, world: int) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    one = samples.batches(global_batch=12, shuffle=True, streams=12, spread=2)
    want = [set(b.index.numpy().tolist()) for b in one]
    ranks = [
        samples.batches(global_batch=12, shuffle=True, streams=12, spread=2, rank=r, world=world) for r in range(world)
    ]
    got = [set().union(*(b.index.numpy().tolist() for b in step)) for step in zip(*ranks)]
    assert got == want


def test_a_run_continues_on_another_number_of_ranks(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    make = lambda rank, world: samples.batches(
        global_batch=12, shuffle=True, streams=12, spread=2, rank=rank, world=world
    )
    want = [set(b.index.numpy().tolist()) for b in make(0, 1)]
    four = [make(r, 4) for r in range(4)]
    for loader in four:
        iterator = iter(loader)
        next(iterator), next(iterator)
    states = [loader.state_dict() for loader in four]
    assert all(s == states[0] for s in states), "one state serves all ranks"
    six = [make(r, 6) for r in range(6)]
    for loader in six:
        loader.load_state_dict(states[0])
    assert [set().union(*(b.index.numpy().tolist() for b in step)) for step in zip(*six)] == want[2:]


def test_a_restoring_loader_takes_what_it_was_not_given(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    loader = samples.batches(6, shuffle=True, seed=77, spread=4)
    next(iter(loader))
    state = loader.state_dict()
    plain = samples.batches(6)
    plain.load_state_dict(state)
    other = samples.batches(6, shuffle=True, seed=77, spread=4)
    other.load_state_dict(state)
    assert ids_of(plain) == ids_of(other)
    with pytest.raises(hr.StateError, match="seed"):
        samples.batches(6, seed=1).load_state_dict(state)
    with pytest.raises(hr.StateError, match='remainder="pad" was given, but the state was taken with "drop"'):
        samples.batches(6, remainder="pad").load_state_dict(state)
    with pytest.raises(hr.StateError, match='shuffle="global" was given, but the state was taken with True'):
        samples.batches(6, shuffle="global").load_state_dict(state)
    with pytest.raises(hr.StateError, match="global batch"):
        samples.batches(4).load_state_dict(state)
    samples.batches(4).load_state_dict(state, allow="batch")


def test_a_state_of_another_split_or_view_is_refused_by_name(climate: str) -> None:
    archive = hr.open(climate)
    samples = archive.samples(along="time", x="t2m")
    state = samples.batches(6).state_dict()
    with pytest.raises(hr.StateError, match="split"):
        samples.isel(time=slice(0, 30)).batches(6).load_state_dict(state)
    with pytest.raises(hr.StateError, match="views"):
        archive.samples(along="time", x=hr.view("t2m", isel={"lat": 0})).batches(6).load_state_dict(state)
    with pytest.raises(hr.StateError):
        samples.batches(6).load_state_dict({"nonsense": 1})


def test_leaving_a_loop_early_abandons_the_epoch(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    loader = samples.batches(6, shuffle=True, seed=4)
    for batch in loader:
        assert batch.epoch == 0
        break
    assert {b.epoch for b in loader} == {1}
    assert len(loader) == 10


def test_two_live_iterators_are_an_error(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(6)
    first = iter(loader)
    next(first)
    with pytest.raises(hr.StateError, match="live iterator"):
        iter(loader)
    first.close()
    assert next(iter(loader)).epoch == 1


def test_a_state_of_the_last_batch_names_the_next_epoch(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(8, shuffle=True, seed=3)
    for _ in range(2):
        for batch in loader:
            state = loader.state_dict()
            assert state["epoch"] == batch.epoch + (batch.step == len(loader) - 1)
        assert (state["epoch"], state["position"]) == (batch.epoch + 1, 0)
        assert loader.state_dict() == state
