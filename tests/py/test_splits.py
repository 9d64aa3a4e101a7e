"""Splits: disjoint, complete, gaps respected, groups whole; and what the report finds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import field, ids_of, write

N = 600
pytestmark = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> hr.Archive:
    """600 steps of 6 hours, 8 a chunk, of 37 patients in runs of different length."""
    path = tmp_path_factory.mktemp("splits") / "a.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    write(root, "x", field((N, 3)), (8, 3), ("time", "v"))
    write(root, "y", field((N, 3), seed=1), (5, 3), ("time", "v"))
    hours = np.arange(N, dtype="i8") * 6
    write(root, "time", hours, (N,), ("time",), attributes={"units": "hours since 1999-10-01", "calendar": "standard"})
    patient = np.random.default_rng(4).integers(0, 37, N).astype("i4")
    write(root, "patient", patient, (N,), ("time",))
    write(root, "name", np.array([f"patient {p}" for p in patient]), (N,), ("time",))
    return hr.open(str(path))


@pytest.fixture(scope="module")
def single(archive: hr.Archive) -> hr.Samples:
    return archive.samples(along="time", x="x")


@pytest.fixture(scope="module")
def windows(archive: hr.Archive) -> hr.Samples:
    return archive.samples(along="time", x=hr.view("x", time=hr.steps(-4, 0)), y=hr.view("x", time=hr.steps(3)))


def rows_of(part: hr.Samples, offsets: Any = (-4, -3, -2, -1, 0, 3)) -> set[int]:
    return {int(i) + o for i in part.ids for o in offsets}


def disjoint(parts: Any) -> bool:
    return all(not set(a.ids.tolist()) & set(b.ids.tolist()) for a, b in itertools.combinations(parts, 2))


# ---- names and fractions -----------------------------------------------------------------------------------------------


def test_parts_have_names_and_unpack(single: hr.Samples) -> None:
    train, val = single.split(0.75, 0.25)
    named = single.split(train=0.75, val=0.25)
    assert named.names == ("train", "val") and dict(named).keys() == {"train", "val"}
    assert named["train"].ids.tolist() == train.ids.tolist() == named[0].ids.tolist()
    assert single.split({"train": 0.75, "val": 0.25})["val"].ids.tolist() == val.ids.tolist()
    assert repr(named) == f"Splits(train: {len(train)} samples, val: {len(val)} samples)"
    with pytest.raises(hr.NotFoundError, match="train, val"):
        named["test"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.split(0.8, 0.3), "add up to 1.1"),
        (lambda s: s.split(1.5), "1.5"),
        (lambda s: s.split(0.5, 0), "0"),
        (lambda s: s.split(), "fractions are expected"),
        (lambda s: s.split(0.5, val=0.5), "with names, or without"),
        (lambda s: s.split(0.5, 0.5, gap=-1), "gap"),
        (lambda s: s.split(0.5, 0.5, gap="soon"), "gap"),
        (lambda s: s.split(0.5, 0.5, gap=1000), "none left|no samples"),
        (lambda s: s.split(0.5, 0.5, seed=3), "blocks=100 deals"),
        (lambda s: s.split(0.5, 0.5, by="patient", blocks=4), "one of the two"),
        (lambda s: s.split(0.5, 0.5, by=np.zeros(599, int)), "600 positions"),
        (lambda s: s.isel(time=slice(0, 9)).split(0.5, 0.5, by=np.zeros(9, int)), "as many as samples are left"),
        (lambda s: s.split(0.5, 0.5, by=np.zeros(600, int)), "1 group cannot be dealt to 2"),
        (lambda s: s.split(0.8, 0.4, by="patient"), "add up to 1.2"),
        (lambda s: s.split(0.5, 0.5, by="patent"), "did you mean 'patient'"),
        (lambda s: s.split(0.5, 0.5, by=3), "one group for each"),
        (lambda s: s.split(0.5, 0.5, blocks=1), "at least one for each"),
        (lambda s: s.split(0.5, 0.5, blocks="1h"), "block"),
        (lambda s: s.split(time=[slice("1999", "2000-01"), slice("2000-01", None)]), "in part 0 too"),
        (lambda s: s.split(time={"a": slice("1999-10"), "b": slice("2010", None)}), "b has no samples"),
        (lambda s: s.split(time={"a": "1871-01"}), "1871"),
        (lambda s: s.split(time=[]), "one for each part"),
        (lambda s: s.split(time=[slice(None, "2000")], val=0.3), "alone"),
        (lambda s: s.split(time=[slice("1999-10-01", "1999-10-01"), slice("1999-10-02", None)], gap=9), "gap leaves"),
        (lambda s: s.split(tme=[slice("1999", None)]), "did you mean 'time'"),
        (lambda s: next(s.folds(1)), "from 2"),
        (lambda s: next(s.folds(38, by="patient")), "37 groups cannot be dealt to 38"),
        (lambda s: next(s.folds(2, gap=600)), "nothing to train on"),
    ],
)
def test_what_makes_no_split_is_refused(single: hr.Samples, call: Any, words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        call(single)


# ---- coordinates -------------------------------------------------------------------------------------------------------


def test_a_split_by_coordinate(single: hr.Samples) -> None:
    parts = single.split(
        time={"train": slice(None, "1999-12"), "val": slice("2000-01-11", "2000-01-20"), "test": slice("2000-02", None)}
    )
    assert parts.names == ("train", "val", "test")
    when = {name: np.datetime64("1999-10-01") + part.ids * np.timedelta64(6, "h") for name, part in parts.items()}
    assert when["train"].max() == np.datetime64("1999-12-31T18") and when["val"].min() == np.datetime64("2000-01-11")
    assert when["val"].max() == np.datetime64("2000-01-20T18") and when["test"].min() == np.datetime64("2000-02-01")
    years = single.split(year=[1999, 2000])
    assert [len(p) for p in years] == [92 * 4, N - 92 * 4]
    months = single.split(**{"time.month": {"train": [10, 11, 12], "val": [1, 2]}})
    assert len(months["train"]) == 92 * 4
    patients = single.split(patient={"train": slice(0, 29), "val": [30, 31, 32]})
    assert disjoint(patients) and len(patients) == 2


def test_the_part_named_earlier_gives_way(windows: hr.Samples) -> None:
    train, val, test = windows.split(time=[slice(None, "1999-12"), slice("2000-01", "2000-01"), slice("2000-02", None)])
    assert val.ids[0] == 92 * 4 and train.ids[-1] < val.ids[0] - 1
    assert test.ids[-1] == windows.ids[-1]
    for a, b in itertools.combinations((train, val, test), 2):
        assert not rows_of(a) & rows_of(b)
    plain = windows.split(time=[slice(None, "1999-12"), slice("2000-01", None)], gap=0)
    assert sum(map(len, plain)) == len(windows)
    month = windows.split(time=[slice(None, "1999-12"), slice("2000-01", None)], gap="5D")
    assert month[1].ids[0] - month[0].ids[-1] - 1 == 20


# ---- groups ------------------------------------------------------------------------------------------------------------


def test_groups_stay_whole(single: hr.Samples, archive: hr.Archive) -> None:
    patient = archive["patient"][:]
    parts = single.split(train=0.7, val=0.2, test=0.1, by="patient", seed=1)
    assert disjoint(parts) and sum(map(len, parts)) == N
    groups = [set(patient[p.ids].tolist()) for p in parts]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
    largest = np.bincount(patient).max()
    for part, share in zip(parts, (0.7, 0.2, 0.1)):
        assert abs(len(part) - share * N) <= 2 * largest
    again = single.split(0.7, 0.2, 0.1, by=patient, seed=1)
    assert [p.ids.tolist() for p in again] == [p.ids.tolist() for p in parts], "keyed by the seed alone"
    other = single.split(0.7, 0.2, 0.1, by=patient, seed=2)
    assert [p.ids.tolist() for p in other] != [p.ids.tolist() for p in parts]
    names = single.split(0.7, 0.2, 0.1, by="name")
    assert all(not set(patient[a.ids]) & set(patient[b.ids]) for a, b in itertools.combinations(names, 2))
    years = single.split(0.5, 0.5, by="time.month")
    assert all(len(p) for p in years) and disjoint(years)
    assert [len(p) for p in single.split(0.5, 0.5, by=xr.DataArray(np.arange(N) % 2, dims="time"))] == [300, 300]


def test_fractions_below_one_leave_groups_out(single: hr.Samples, archive: hr.Archive) -> None:
    parts = single.split(0.3, 0.3, by="patient")
    assert disjoint(parts)
    assert all(abs(len(p) - 0.3 * N) <= 2 * np.bincount(archive["patient"][:]).max() for p in parts)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(2, 60), st.lists(st.floats(0.02, 1), min_size=1, max_size=4), st.integers(0, 2**64 - 1),
    st.booleans(), st.sampled_from([0, "auto", 3]), st.data(),
)  # fmt: skip
def test_any_split_by_groups(
    single: hr.Samples, n: int, weights: list[float], seed: int, whole: bool, gap: Any, data: st.DataObject
) -> None:
    group = np.random.default_rng(n).integers(0, n, N) * 10**12
    shares = [w / sum(weights) * (1 if whole else 0.8) for w in weights]
    kept = single.isel(
        time=slice(data.draw(st.integers(0, 50)), N - data.draw(st.integers(0, 50)), data.draw(st.integers(1, 3)))
    )
    present = group[kept.ids]
    if len(set(present)) < len(shares):
        return
    try:
        parts = kept.split(*shares, by=group, seed=seed, gap=gap)
    except hr.InvalidError as e:
        assert gap == 3 and "no samples left" in str(e)
        return
    assert disjoint(parts)
    sets = [set(group[p.ids].tolist()) for p in parts]
    assert all(not a & b for a, b in itertools.combinations(sets, 2))
    if gap == 3:
        for a, b in itertools.combinations(parts, 2):
            assert np.abs(a.ids[:, None] - b.ids[None]).min() > 3
        return
    largest = max(int((present == g).sum()) for g in set(present))
    assert all(len(p) <= share * len(kept) + largest + 1 for p, share in zip(parts, shares))
    if whole:
        assert sum(map(len, parts)) == len(kept)


# ---- blocks ------------------------------------------------------------------------------------------------------------


def test_blocks_are_dealt_in_turn(single: hr.Samples) -> None:
    train, val = single.split(0.75, 0.25, blocks=12)
    assert disjoint((train, val)) and len(train) + len(val) == N
    assert abs(len(val) - N / 4) <= N / 12 + 8
    runs = np.flatnonzero(np.diff(val.ids) > 1)
    assert len(runs) == 2, "three blocks, apart from each other"
    months = single.split(0.75, 0.25, blocks="10D")
    assert len(np.flatnonzero(np.diff(months[1].ids) > 1)) >= 2
    keyed = [single.split(0.75, 0.25, blocks=12, seed=s)[1].ids.tolist() for s in (0, 0, 5)]
    assert keyed[0] == keyed[1] != keyed[2]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(2, 40), st.integers(2, 3), st.one_of(st.none(), st.integers(0, 99)),
    st.sampled_from(["auto", 0, 1, 9, "1D"]), st.integers(0, 30),
)  # fmt: skip
def test_any_blocked_split_keeps_its_embargo(
    windows: hr.Samples, blocks: int, n: int, seed: int | None, gap: Any, first: int
) -> None:
    kept = windows.isel(time=slice(first, N))
    if blocks < n:
        return
    try:
        parts = kept.split(*[1 / n] * n, blocks=blocks, seed=seed, gap=gap)
    except hr.InvalidError as e:
        assert "no samples left" in str(e)
        return
    assert disjoint(parts)
    least = {"auto": 0, "1D": 4}.get(gap, gap)
    for a, b in itertools.combinations(parts, 2):
        assert np.abs(a.ids[:, None] - b.ids[None]).min() > least
        if gap == "auto":
            assert not rows_of(a) & rows_of(b)
    lost = set(kept.ids.tolist()) - set().union(*(p.ids.tolist() for p in parts))
    if gap == 0:
        assert not lost
    if gap == "auto":  # the fewest: each of them would share a row with a later part
        for id_ in lost:
            mine = rows_of(kept.isel(time=[id_]))
            assert any(mine & rows_of(p) for p in parts)


# ---- folds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "gap"),
    [({"by": "patient"}, 0)]
    + [(how, gap) for how in ({}, {"blocks": 15}, {"blocks": 15, "seed": 3}) for gap in ("auto", 0, "2D")],
)
def test_folds(windows: hr.Samples, how: dict[str, Any], gap: Any) -> None:
    seen: list[int] = []
    for fold in windows.folds(5, gap=gap, **how):
        train, val = fold
        assert fold.names == ("train", "val") and disjoint(fold)
        seen += val.ids.tolist()
        if gap == 0:
            assert len(train) + len(val) == len(windows)
        elif gap == "auto":
            assert not rows_of(train) & rows_of(val) and not fold.report()["leaks"]
            assert len(train) + len(val) >= len(windows) - 4 * 8 * 2
        else:
            assert np.abs(train.ids[:, None] - val.ids[None]).min() > 8
        if how.get("by"):
            patient = windows.archive["patient"][:]
            assert not set(patient[train.ids]) & set(patient[val.ids])
    assert sorted(seen) == windows.ids.tolist(), "each sample is in one val"


# ---- the report --------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-9, 9), st.integers(1, 9), st.integers(-9, 9), st.integers(1, 20), st.integers(1, 20))
def test_the_report_counts_what_is_shared(
    archive: hr.Archive, start: int, count: int, other: int, a: int, b: int
) -> None:
    samples = archive.samples(
        along="time", x=hr.view("x", time=hr.steps(start, start + count - 1)), y=hr.view("y", time=hr.steps(other))
    )
    first, second = samples.isel(time=slice(20, 300, a)), samples.isel(time=slice(11, 500, b))
    report = hr.Splits({"a": first, "b": second}).report()
    rows = lambda p, offsets: {int(i) + o for i in p.ids for o in offsets}
    x = [rows(p, range(start, start + count)) for p in (first, second)]
    y = [rows(p, [other]) for p in (first, second)]
    chunks = [{("x", r // 8) for r in xs} | {("y", r // 5) for r in ys} for xs, ys in zip(x, y)]
    assert report["pairs"] == [
        {
            "a": "a", "b": "b", "samples": len(set(first.ids) & set(second.ids)),
            "rows": len(x[0] & x[1]) + len(y[0] & y[1]), "chunks": len(chunks[0] & chunks[1]),
        }
    ]  # fmt: skip
    assert [p["chunks"] for p in report["parts"]] == [len(c) for c in chunks]
    assert report["leaks"] == bool(report["pairs"][0]["rows"])


def test_the_report_prints(windows: hr.Samples) -> None:
    text = repr(windows.split(train=0.8, val=0.2).report())
    assert "train" in text and "apart" in text and "leaks" not in text
    leaky = windows.split(train=0.8, val=0.2, gap=0).report()
    assert leaky["leaks"] and "leaks" in repr(leaky)
    assert "<table>" in leaky._repr_html_()
    with pytest.raises(hr.InvalidTypeError):
        hr.Splits([1, 2])


def test_the_report_counts_chunks_across_other_dimensions(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", z=hr.view("z", isel={"level": [0, 2], "lon": slice(0, 6)}))
    report = samples.split(a=0.5, b=0.5).report()
    assert [p["chunks"] for p in report["parts"]] == [30 * 4, 30 * 4] and report["pairs"][0]["chunks"] == 0
    t2m = hr.open(climate).samples(along="time", x="t2m").split(a=0.5, b=0.5, gap=0)
    assert t2m.report()["pairs"][0]["chunks"] == (1 if len(t2m[0]) % 4 else 0)


def test_parts_train_and_resume(windows: hr.Samples) -> None:
    train, val = windows.split(0.8, 0.2, blocks=10, gap=2)
    loader = train.batches(4, shuffle=True, seed=1, remainder="pad")
    assert sorted(ids_of(loader)) == train.ids.tolist()
    state = loader.state_dict()
    with pytest.raises(hr.StateError, match="split differs"):
        val.batches(4, shuffle=True, seed=1, remainder="pad").load_state_dict(state)
    windows.split(0.8, 0.2, blocks=10, gap=2)[0].batches(4).load_state_dict(state)
