"""Several loaders as one, and epochs by steps."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import ids_of

Step = tuple[str, list[int]]


@pytest.fixture
def samples(climate: str) -> hr.Samples:
    return hr.open(climate).samples(along="time", x="t2m")


def three(samples: hr.Samples, **options: Any) -> dict[str, hr.Loader]:
    """Of 40, 15 and 5 samples: 8, 3 and 1 batches a pass."""
    return {
        "a": samples.isel(time=slice(0, 40)).batches(5, shuffle=True, seed=1, **options),
        "b": samples.isel(time=slice(40, 55)).batches(5, shuffle=True, seed=2, **options),
        "c": samples.isel(time=slice(55, 60)).batches(5, **options),
    }


def steps_of(mix: hr.Mix) -> list[Step]:
    return [(b.source, b.index.numpy().tolist()) for b in mix]


WEIGHTS = {"a": 3, "b": 2, "c": 1}


def test_every_batch_tells_its_source(samples: hr.Samples) -> None:
    mix = hr.mix(three(samples), WEIGHTS, seed=0, steps=600)
    seen = steps_of(mix)
    ranges = {"a": range(40), "b": range(40, 55), "c": range(55, 60)}
    assert all(set(ids) <= set(ranges[name]) for name, ids in seen)
    counts = [sum(name == n for name, _ in seen) for n in "abc"]
    assert np.abs(np.array(counts) - [300, 200, 100]).max() < 40
    passes = [ids for name, ids in seen if name == "a"][:16]
    for half in (passes[:8], passes[8:]):
        assert sorted(itertools.chain(*half)) == list(range(40)), "each source goes pass by pass, in its own order"
    assert mix.weights == {"a": 0.5, "b": 1 / 3, "c": 1 / 6}


def test_draws_are_a_pure_function(samples: hr.Samples) -> None:
    make = lambda seed=0, **o: hr.mix(three(samples), WEIGHTS, seed=seed, steps=20, **o)
    first = make()
    seen = [steps_of(first) for _ in range(3)]
    assert [steps_of(m) for m in [make()] for _ in range(3)] == seen
    assert [n for n, _ in seen[0]] != [n for n, _ in seen[1]], "another epoch, other draws"
    assert steps_of(make(seed=1)) != seen[0]
    for epoch in (2, 0, 1):
        first.set_epoch(epoch)
        assert first.epoch == epoch and steps_of(first) == seen[epoch]


def test_epochs_end_at_the_first_or_the_last_pass(samples: hr.Samples) -> None:
    first = hr.mix(three(samples), WEIGHTS, seed=3)
    for _ in range(3):
        names = [name for name, _ in steps_of(first)]
        counts = {n: names.count(n) for n in "abc"}
        assert [n for n in "abc" if counts[n] >= {"a": 8, "b": 3, "c": 1}[n]] == [names[-1]]
    whole = hr.mix(three(samples), WEIGHTS, seed=3, stop="all")
    for _ in range(2):
        expected = len(whole)
        names = [name for name, _ in steps_of(whole)]
        assert len(names) == expected
        counts = {n: names.count(n) for n in "abc"}
        assert counts["a"] >= 8 and counts["b"] >= 3 and counts["c"] >= 1
        assert counts[names[-1]] == {"a": 8, "b": 3, "c": 1}[names[-1]], "no batch more than it takes"
    even = hr.mix(three(samples))
    assert even.weights == {"a": 8 / 12, "b": 3 / 12, "c": 1 / 12}
    without = hr.mix(three(samples), {"a": 1, "b": 1, "c": 0}, stop="all")
    assert {name for name, _ in steps_of(without)} == {"a", "b"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 70), st.sampled_from([{"steps": 13}, {}, {"stop": "all"}]), st.booleans())
def test_a_state_at_any_step_resumes(samples: hr.Samples, done: int, how: dict[str, Any], by_steps: bool) -> None:
    options = {"steps": 4} if by_steps else {}
    mix = hr.mix(three(samples, **options), WEIGHTS, seed=5, **how)
    want, state = [], None
    while len(want) < done + 30:
        if len(want) == done and state is None:
            state = json.loads(json.dumps(mix.state_dict()))
        batch = mix.next()
        if batch is not None:
            want.append((batch.source, batch.index.numpy().tolist(), mix.epoch))
    other = hr.mix(three(samples), seed=5, **how)
    other.load_state_dict(state)
    assert other.weights == mix.weights
    rest = []
    while len(rest) < 30:
        batch = other.next()
        if batch is not None:
            rest.append((batch.source, batch.index.numpy().tolist(), other.epoch))
    assert rest == want[done:]


def test_weights_change_after_a_checkpoint(samples: hr.Samples) -> None:
    mix = hr.mix(three(samples), WEIGHTS, seed=5, steps=50)
    before = [mix.next().source for _ in range(20)]
    state = mix.state_dict()
    heavy = hr.mix(three(samples), {"a": 0, "b": 0, "c": 1}, seed=5, steps=50)
    heavy.load_state_dict(state)
    rest = steps_of(heavy)
    assert len(rest) == 30 and {name for name, _ in rest} == {"c"}
    mix.weights = {"a": 0, "b": 1, "c": 1}
    assert {name for name, _ in steps_of(mix)} == {"b", "c"}
    again = hr.mix(three(samples), WEIGHTS, seed=5, steps=50)
    assert [again.next().source for _ in range(20)] == before


def test_a_loop_that_is_left_abandons_the_epoch(samples: hr.Samples) -> None:
    mix = hr.mix(three(samples), WEIGHTS, steps=10)
    for _ in mix:
        break
    assert (mix.epoch, mix.position) == (1, 0)
    live = iter(mix)
    next(live)
    with pytest.raises(hr.StateError, match="live iterator"):
        iter(mix)
    mix.set_epoch(0)
    assert len(steps_of(mix)) == 10
    assert next(live, None) is None


def test_every_rank_draws_the_same(samples: hr.Samples) -> None:
    mixes = [
        hr.mix(
            {
                name: samples.isel(time=s).batches(global_batch=4, streams=4, shuffle=True, rank=r, world=w)
                for name, s in [("a", slice(0, 40)), ("b", slice(40, 60))]
            },
            {"a": 2, "b": 1}, steps=40,
        )
        for w in (1, 2, 4) for r in range(w)
    ]  # fmt: skip
    runs = [steps_of(m) for m in mixes]
    assert all([n for n, _ in run] == [n for n, _ in runs[0]] for run in runs)
    for step in range(40):
        whole = sorted(runs[0][step][1])
        assert sorted(runs[1][step][1] + runs[2][step][1]) == whole
        assert sorted(itertools.chain(*(runs[i][step][1] for i in range(3, 7)))) == whole


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, x: m({}), "loaders"),
        (lambda m, x: m([x["a"]]), "a dict of loaders"),
        (lambda m, x: m({"a": 3}), "mix: a"),
        (lambda m, x: m(x, {"a": 1}), "'b' has none"),
        (lambda m, x: m(x, {**WEIGHTS, "bb": 1}), "did you mean 'b'"),
        (lambda m, x: m(x, {**WEIGHTS, "a": -1}), "not negative"),
        (lambda m, x: m(x, {**WEIGHTS, "a": float("nan")}), "not negative"),
        (lambda m, x: m(x, dict.fromkeys("abc", 0)), "at least one is positive"),
        (lambda m, x: m(x, WEIGHTS, stop="never"), "stop"),
        (lambda m, x: m(x, WEIGHTS, steps=0), "steps"),
        (lambda m, x: m(x, WEIGHTS, seed=-1), "seed"),
        (lambda m, x: m(x).load_state_dict(x["a"].state_dict()), "not a state of a mix"),
        (lambda m, x: x["a"].load_state_dict(m(x).state_dict()), "taken of a mix"),
        (lambda m, x: m({"a": x["a"]}).load_state_dict(m(x).state_dict()), "the mix has a"),
        (lambda m, x: m(x, seed=1).load_state_dict(m(x).state_dict()), "seed differs"),
        (lambda m, x: m({**x, "c": x["b"]}).load_state_dict(m(x).state_dict()), "^c: seed=2"),
    ],
)
def test_what_makes_no_mix_is_refused(samples: hr.Samples, call: Any, words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        call(hr.mix, three(samples))


def test_a_mix_is_used_like_a_loader(samples: hr.Samples) -> None:
    torch = pytest.importorskip("torch")
    with hr.mix(three(samples), WEIGHTS, steps=6) as mix:
        assert len(mix) == 6 and "step 0 of 6" in repr(mix)
        assert set(mix.plan()) == set(mix.stats()) == {"a", "b", "c"}
        dataset = mix.torch()
        loaded = torch.utils.data.DataLoader(dataset, batch_size=None)
        assert [tuple(b["x"].shape) for b in loaded] == [(5, 6, 8)] * 6
        assert [b["x"].shape for b in mix.numpy()] == [(5, 6, 8)] * 6
        assert "Mix" in repr(dataset) and "Mix" in repr(mix.numpy())
        state = dataset.state_dict()
        mix.torch().load_state_dict(state)
    with pytest.raises(hr.ClosedError):
        mix.next()


# ---- epochs by steps -----------------------------------------------------------------------------------------------


def test_epochs_by_steps_follow_each_other_without_a_break(samples: hr.Samples) -> None:
    passes = samples.batches(8, shuffle=True, seed=1)
    want = [b.index.numpy().tolist() for _ in range(6) for b in passes]
    loader = samples.batches(8, shuffle=True, seed=1, steps=5)
    assert len(loader) == 5
    got = [[b.index.numpy().tolist() for b in loader] for _ in range(8)]
    assert [len(e) for e in got] == [5] * 8
    assert list(itertools.chain(*got)) == want[:40]
    loader.set_epoch(3)
    assert [b.index.numpy().tolist() for b in loader] == got[3]
    for _ in loader:
        break
    assert [b.index.numpy().tolist() for b in loader] == got[5], "the epoch that was left is over"
    long = samples.batches(8, shuffle=True, seed=1, steps=20)
    assert [b.index.numpy().tolist() for b in long] == want[:20]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 20), st.integers(0, 45), st.booleans())
def test_a_state_of_epochs_by_steps_resumes(samples: hr.Samples, steps: int, done: int, explicit: bool) -> None:
    loader = samples.batches(8, shuffle=True, seed=1, steps=steps)
    seen: list[Any] = []
    state = None
    while sum(x is not None for x in seen) < 60:
        if state is None and sum(x is not None for x in seen) == done:
            state, start = json.loads(json.dumps(loader.state_dict())), len(seen)
        batch = loader.next()
        seen.append(None if batch is None else batch.index.numpy().tolist())
    other = samples.batches(8, shuffle=True, seed=1, **({"steps": steps} if explicit else {}))
    other.load_state_dict(state)
    assert len(other) == steps
    want = [x for x in seen[start:]]
    want = want[1:] if want[0] is None else want  # a state of the end of an epoch is of the next one's start
    got = [other.next() for _ in want]
    assert [None if b is None else b.index.numpy().tolist() for b in got] == want


def test_steps_with_another_batch_size(samples: hr.Samples) -> None:
    loader = samples.batches(8, shuffle=True, seed=1, steps=5)
    first = [loader.next().index.numpy() for _ in range(3)]
    other = samples.batches(4, shuffle=True, seed=1, steps=5)
    other.load_state_dict(loader.state_dict(), allow="batch")
    rest = list(other)
    assert len(rest) == 2, "3 steps of this epoch are over"
    seen = np.concatenate([*first, *(b.index.numpy() for b in rest)])
    assert len(set(seen.tolist())) == 32
    assert len(ids_of(other)) == 20
    other.set_epoch(0)
    fresh = samples.batches(4, shuffle=True, seed=1, steps=5)
    assert ids_of(other) == ids_of(fresh)
    with pytest.raises(hr.InvalidError, match="steps"):
        samples.batches(4, steps=0)
