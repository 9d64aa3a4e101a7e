"""Samples along several axes, patches, crops, draws, scales and constants: random ones against plain numpy."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from boxes import Case, draw_case, write_case
from conftest import write


def starts_of(batch: Any, row: int) -> dict[str, int]:
    return {name: int(values[row]) for name, values in batch.starts.items()}


def check_row(case: Case, batch: Any, row: int) -> int:
    sample, starts = int(batch.index[row]), starts_of(batch, row)
    for axis, position in zip(case.axes, case.positions(sample)):
        low, high = (position, position + 1) if axis.kind == "draws" else axis.span(position)
        assert low <= starts[axis.name] < high and (starts[axis.name] - low) % axis.align == 0, axis
    for view in case.views:
        wanted, got = view.expected(starts), batch[view.name].numpy()[row]
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), view.name
        assert np.ascontiguousarray(got).tobytes() == wanted.tobytes(), (view.name, sample, starts)
    return sample


def check_epoch(rng: random.Random, case: Case, samples: Any) -> None:
    """All ranks of a world see every sample once, and in it what numpy makes of it."""
    ids = samples.ids.tolist()
    world = min(rng.choice((1, 2, 3)), len(ids))
    shuffle, n, seen = rng.choice((False, True, "global")), rng.randint(1, 5), []
    for rank in range(world):
        memory = rng.choice((None, "16MiB", "1GiB"))
        with samples.batches(
            n, shuffle=shuffle, seed=n, rank=rank, world=world, remainder="pad", memory=memory
        ) as loader:
            for batch in loader:
                seen += [check_row(case, batch, r) for r in range(len(batch)) if batch.valid[r]]
    assert sorted(seen) == ids


@pytest.mark.parametrize("group", range(6))
def test_boxes_of_every_kind_are_what_numpy_makes_of_them(tmp_path: Path, group: int) -> None:
    for seed in range(20 * group, 20 * group + 20):
        rng = random.Random(seed)
        case = draw_case(rng)
        samples = case.samples(write_case(rng, case, tmp_path / f"{seed}.zarr"))
        assert samples.ids.tolist() == case.ids().tolist(), seed
        for view, info in zip(case.views, samples.info["views"]):
            dims = view.dims()
            assert info["dims"] == [dims[d] for d in view.order or range(len(dims))]
        check_epoch(rng, case, samples)


# ---- choosing and splitting ------------------------------------------------------------------------------------------


def meet(case: Case, taken: dict[int, Any], i: int, j: int) -> bool:
    """Do two samples show an element of an array both, at the same positions of the axes that others follow?"""
    a, b = case.positions(i), case.positions(j)
    known = {p.axis.name for view in case.views for p in view.parts if p.axis}
    for view in case.views:
        follows = {p.axis.name for p in view.parts if p.axis}
        same = all(x == y for x, y, axis in zip(a, b, case.axes) if axis.name in known - follows)
        if not view.constant and same and any(taken[i][n] & taken[j][n] for n in view.arrays):
            return True
    return False


def cut(rng: random.Random, case: Case, samples: Any, how: str, axis: Any, gap: Any, groups: list[int]) -> Any:
    if how == "fractions":
        return samples.split(0.6, 0.4, along=axis.name, gap=gap)
    if how == "groups":
        return samples.split(0.5, 0.5, along=axis.name, by=groups, seed=1, gap=gap)
    if how == "blocks":
        return samples.split(0.5, 0.5, along=axis.name, blocks=min(axis.n, 3), seed=rng.choice((None, 4)), gap=gap)
    if how == "folds":
        return next(samples.folds(2, along=axis.name, gap=gap))
    one = samples.where(np.array(rng.sample(samples.ids.tolist(), 1)))
    return hr.Splits([samples.apart(one, gap), one])


def check_split(rng: random.Random, case: Case, samples: Any, how: str) -> bool:
    ids = samples.ids.tolist()
    axis, gap = rng.choice(case.axes), rng.choice(("auto", "auto", 0, 1))
    groups = [rng.randrange(4) for _ in range(axis.n)]
    try:
        parts = cut(rng, case, samples, how, axis, gap, groups)
    except hr.InvalidError as e:
        assert "\n" not in str(e)
        return False
    first, second = (set(p.ids.tolist()) for p in parts)
    dropped = set(ids) - first - second
    assert not first & second and first | second <= set(ids)
    assert dropped == set() or gap != 0 or how == "apart"
    at = {i: case.positions(i)[case.axes.index(axis)] for i in ids}
    if how == "groups":
        assert not {groups[at[i]] for i in first} & {groups[at[i]] for i in second}
    taken = {i: case.elements(i) for i in ids}
    meeting = {i for i in ids if any(meet(case, taken, i, j) for j in second)}
    # boxes that may be anywhere, or have steps between their indices, count as all that lies between
    exact = all(p.step == 1 for v in case.views for p in v.parts) and all(a.kind != "crop" for a in case.axes)
    shared = parts.report()["pairs"][0]
    if gap == "auto":
        assert not first & meeting and not shared["rows"], (how, axis)
        assert how == "fractions" or not exact or dropped <= meeting
    elif len(case.axes) > 1 or axis.kind != "steps":
        assert shared["rows"] == len(first & meeting) if exact else shared["rows"] >= len(first & meeting)
    if gap == 1:
        near = {
            i for i in ids if any(all(abs(a - b) <= 1 for a, b in zip(*map(case.positions, (i, j)))) for j in second)
        }
        assert not first & near
    return True


@pytest.mark.parametrize("how", ["fractions", "groups", "blocks", "folds", "apart"])
def test_parts_share_no_element(tmp_path: Path, how: str) -> None:
    done = 0
    for seed in itertools.count(1000):
        rng = random.Random(seed)
        case = draw_case(rng)
        if np.prod(case.shape) < 5 or len(case.ids()) > 60:
            continue
        samples = case.samples(write_case(rng, case, tmp_path / f"{seed}.zarr"))
        done += check_split(rng, case, samples, how)
        if done == 12:
            break


def test_what_is_kept_is_what_numpy_keeps(tmp_path: Path) -> None:
    for seed in range(2000, 2030):
        rng = random.Random(seed)
        case = draw_case(rng)
        samples = case.samples(write_case(rng, case, tmp_path / f"{seed}.zarr"))
        there = np.zeros(case.shape, bool)
        there.reshape(-1)[case.ids()] = True
        axis = rng.randrange(len(case.axes))
        n, name = case.shape[axis], case.axes[axis].name
        wide = [n if a == axis else 1 for a in range(len(case.axes))]
        generator = np.random.default_rng(seed)
        ends = slice(rng.randint(-n, n), rng.randint(-n, n), rng.randint(1, 3))
        listed = [rng.randrange(-n, n) for _ in range(3)]
        mask, whole = generator.random(n) < 0.5, generator.random(case.shape) < 0.5
        for kept, wanted in (
            (samples.isel({name: ends}), np.isin(np.arange(n), np.arange(n)[ends]).reshape(wide)),
            (samples.isel({name: listed}), np.isin(np.arange(n), np.arange(n)[listed]).reshape(wide)),
            (samples.where(mask.reshape(wide)), mask.reshape(wide)),
            (samples.where(whole), whole),
            (samples.where(whole.reshape(-1)), whole),
            (samples.where(np.flatnonzero(whole)), whole),
            (samples.where(whole).isel({name: ends}) | samples.where(mask.reshape(wide)), None),
        ):
            if wanted is None:
                wanted = (whole & np.isin(np.arange(n), np.arange(n)[ends]).reshape(wide)) | mask.reshape(wide)
            ids = np.flatnonzero(there & wanted)
            assert kept.ids.tolist() == ids.tolist() and len(kept) == len(ids)
            for a, where in zip(case.axes, np.unravel_index(ids, case.shape)):
                assert kept.positions()[a.name].tolist() == where.tolist()
        if samples.where(whole).ids.size:
            check_epoch(rng, case, samples.where(whole))


@pytest.fixture
def ensemble(tmp_path: Path) -> str:
    """x (time 40, member 5, y 12, x 10), land (y, x) and half (time, y 6, x 5), with coordinates and a station type."""
    root = zarr.open_group(tmp_path / "e.zarr", mode="w", zarr_format=3)
    write(root, "v", np.arange(40 * 5 * 120.0).reshape(40, 5, 12, 10), (4, 2, 5, 4), ("time", "member", "y", "x"))
    write(root, "land", np.arange(120.0).reshape(12, 10), (12, 10), ("y", "x"))
    write(root, "half", np.arange(40 * 30, dtype="i2").reshape(40, 6, 5), (4, 6, 5), ("time", "y", "x"))
    write(root, "time", np.arange(40) * 12, (40,), ("time",), attributes={"units": "hours since 2001-01-01"})
    write(root, "member", np.array([3, 5, 7, 11, 13]), (5,), ("member",))
    write(root, "kind", np.array([0, 1, 0, 1, 1]), (5,), ("member",))
    write(root, "y", np.linspace(0, 1, 12), (12,), ("y",))
    return str(tmp_path / "e.zarr")


def test_conditions_by_name_are_of_their_axis(ensemble: str) -> None:
    s = hr.open(ensemble).samples(along={"time": None, "member": None, "y": hr.patch(6)}, v="v")
    t, m, y = np.indices((40, 5, 2))
    kind, member = np.array([0, 1, 0, 1, 1])[m], np.array([3, 5, 7, 11, 13])[m]
    for kept, wanted in (
        (s.where(kind=1), kind == 1),
        (s.where(kind=1, hour=0), (kind == 1) & (t % 2 == 0)),
        (s.where({"time.day": slice(3, 5)}), (t // 2 + 1 >= 3) & (t // 2 + 1 <= 5)),
        (s.where(lambda c: (c["kind"] == 1) & (c["time.hour"] == 12)), (kind == 1) & (t % 2 == 1)),
        (s.sel(member=[3, 13]), np.isin(member, [3, 13])),
        (s.sel(member=slice(5, 11), time="2001-01-03"), (member >= 5) & (member <= 11) & (t // 2 == 2)),
        (s.isel(y=1, member=slice(None, None, 2)), (y == 1) & (m % 2 == 0)),
    ):
        assert kept.ids.tolist() == np.flatnonzero(wanted).tolist()
    train, test = s.split(member={"train": slice(None, 7), "test": [11, 13]}).items()
    assert train[1].ids.tolist() == np.flatnonzero(member <= 7).tolist() and test[0] == "test"
    a, b = s.split(0.5, 0.5, by="kind", along="member", gap=0, seed=1)
    assert {len(set(kind.reshape(-1)[p.ids].tolist())) for p in (a, b)} == {1} and len(a) + len(b) == 400


# ---- crops -----------------------------------------------------------------------------------------------------------


def places(samples: Any, epochs: int = 1, **options: Any) -> dict[tuple[int, int], tuple[int, ...]]:
    found = {}
    with samples.batches(**{"n": 7, "remainder": "short", **options}) as loader:
        for epoch in range(epochs):
            for batch in loader:
                for r in np.flatnonzero(batch.valid.numpy()):
                    found[epoch, int(batch.index[r])] = tuple(starts_of(batch, r).values())
    return found


def test_where_a_crop_is_follows_from_seed_epoch_and_sample_alone(ensemble: str) -> None:
    along = {"time": None, "crop": hr.draws(2), "y": hr.crop(5, parts=2), "x": hr.crop(4)}
    s = hr.open(ensemble).samples(along=along, v=hr.view("v", isel={"member": 0}))
    known = places(s, 2, seed=5, shuffle=True)
    assert len(known) == 2 * len(s) == 2 * 40 * 2 * 2
    assert known == places(s, 2, seed=5, n=3) == places(s, 2, seed=5, n=16, shuffle="global", memory="64MiB")
    other = places(s, 1, seed=6)
    assert 0.02 < np.mean([known[0, i] == other[0, i] for i in range(len(s))]) < 0.9
    assert any(known[0, i] != known[1, i] for i in range(len(s)))
    few = s.where(s.ids[::3])
    assert places(few, 1, seed=5) == {key: where for key, where in known.items() if key[0] == 0 and key[1] % 3 == 0}
    ranks: dict[Any, Any] = {}
    for rank in range(2):
        ranks.update(places(s, 1, seed=5, shuffle=True, rank=rank, world=2, remainder="pad"))
    assert ranks == {key: where for key, where in known.items() if key[0] == 0}


def test_crops_are_anywhere_alike(ensemble: str) -> None:
    s = hr.open(ensemble).samples(along={"n": hr.draws(3000), "y": hr.crop(5), "x": hr.crop(4)}, land="land")
    where = np.array(list(places(s, seed=2, n=200).values()))
    for column, n in ((1, 8), (2, 7)):
        counts = np.bincount(where[:, column], minlength=n)
        assert len(counts) == n and ((counts - 3000 / n) ** 2 / (3000 / n)).sum() < 40
    pairs = np.bincount(where[:, 1] * 7 + where[:, 2], minlength=56)
    assert ((pairs - 3000 / 56) ** 2 / (3000 / 56)).sum() < 120  # 55 degrees of freedom


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_run_goes_on_in_the_middle_of_an_epoch_of_crops(ensemble: str, shuffle: bool) -> None:
    along = {"time": None, "y": hr.crop(5, parts=2), "x": hr.patch(4, edge="pad")}
    s = hr.open(ensemble).samples(along=along, v=hr.view("v", isel={"member": [0, 3]}), h=hr.view("land"))
    options: dict[str, Any] = {"shuffle": shuffle, "seed": 3, "remainder": "drop"}
    with s.batches(6, **options) as loader:
        whole = [(b.index.numpy().tolist(), b["v"].numpy().tobytes()) for b, _ in zip(loader, range(25))]
    with s.batches(6, **options) as loader:
        for _ in zip(range(9), loader):
            pass
        state = loader.state_dict()
    with s.batches(6, **options) as loader:
        loader.load_state_dict(state)
        rest = [(b.index.numpy().tolist(), b["v"].numpy().tobytes()) for b, _ in zip(loader, range(16))]
    assert rest == whole[9:25]
    other = hr.open(ensemble).samples(
        along={**along, "y": hr.crop(5, parts=3)}, v=hr.view("v", isel={"member": [0, 3]})
    )
    with other.batches(6, **options) as loader, pytest.raises(hr.Error):
        loader.load_state_dict(state)


# ---- what goes back --------------------------------------------------------------------------------------------------


def write_all(samples: Any, target: Path) -> Any:
    with samples.batches(7, shuffle=True, remainder="short") as loader:
        for batch in loader:
            names = [v["name"] for v in samples.info["views"]]
            hr.write_predictions(target, batch, {f"{name}2": batch[name].numpy() * 2 for name in names})
    return zarr.open_group(target)


@pytest.mark.parametrize("edge", ["pad", "clip", "reflect"])
def test_predictions_of_boxes_go_where_the_boxes_are(ensemble: str, tmp_path: Path, edge: str) -> None:
    archive, source = hr.open(ensemble), zarr.open_group(ensemble)
    along = {"time": None, "y": hr.patch(4), "x": hr.patch(4, 2 if edge == "pad" else 4, edge=edge)}
    samples = archive.samples(along=along, v=hr.view("v", isel={"member": 1}), half=hr.view("half", scale=2))
    made = write_all(samples.isel(time=slice(5)), tmp_path / "p.zarr")
    # mirrored values come back upside down, over those of the neighbour or under them: what is inside counts
    inside = slice(0, 8) if edge == "reflect" else slice(None)
    assert made["v2"].shape == (40, 12, 10)
    assert np.array_equal(made["v2"][:5][..., inside], 2 * source["v"][:5, 1][..., inside])
    assert np.array_equal(made["half2"][:5, :, :4], 2 * source["half"][:5, :, :4])
    assert list(made["v2"].metadata.dimension_names or made["v2"].attrs["_ARRAY_DIMENSIONS"]) == ["time", "y", "x"]
    assert np.array_equal(made["y"][:], source["y"][:])


def test_predictions_of_a_product_go_to_their_rows(ensemble: str, tmp_path: Path) -> None:
    s = hr.open(ensemble).samples(along=["time", "member"], v="v")
    made = write_all(s, tmp_path / "p.zarr")
    assert np.array_equal(made["v2"][:], 2 * zarr.open_group(ensemble)["v"][:])


def test_a_dataset_of_boxes_has_their_coordinates(ensemble: str) -> None:
    pytest.importorskip("xarray")
    along = {"member": None, "time": None, "y": hr.patch(5, 4, edge="clip"), "x": hr.crop(4)}
    s = hr.open(ensemble).samples(along=along, v=hr.view("v", time=hr.steps(-2, 0)), land=hr.view("land"))
    with s.batches(9, shuffle=True, seed=1) as loader:
        batch = next(iter(loader))
        found, coords, starts = batch.xarray(), batch.coords, batch.starts
    member, y = np.array([3, 5, 7, 11, 13]), np.linspace(0, 1, 12)
    assert found["v"].dims == ("sample", "step", "y", "x") and found["v"].shape == (9, 3, 5, 4)
    assert np.array_equal(found["member"], member[starts["member"]]) and np.array_equal(coords["y"], y[starts["y"]])
    assert np.array_equal(found["y_start"], y[starts["y"]]) and np.array_equal(found["id"], batch.index.numpy())
    assert np.array_equal(coords["time"], np.datetime64("2001-01-01") + 12 * starts["time"] * np.timedelta64(1, "h"))
    assert np.array_equal(coords["x"], starts["x"])


def test_moments_count_what_patches_show(ensemble: str) -> None:
    source = zarr.open_group(ensemble)
    along = {"time": None, "y": hr.patch(5, edge="valid"), "x": hr.patch(5)}
    s = hr.open(ensemble).samples(along=along, v="v", half=hr.view("land", constant=True))
    v = source["v"][:20, :, :10]
    m = s.isel(time=slice(0, 20)).moments("v", cache=False, progress=False)
    assert m.count == v.size
    assert np.allclose(m.mean, v.mean()) and np.allclose(m.std, v.std()) and m.min == v.min() and m.max == v.max()


def test_moments_leave_out_what_lies_outside(ensemble: str) -> None:
    land = np.arange(120.0)
    for value in (None, 1e6):
        s = hr.open(ensemble).samples(along={"y": hr.patch(5, edge="pad", value=value), "x": hr.patch(10)}, v="land")
        m = s.moments("v", cache=False, progress=False)
        assert (
            (m.count, m.min, m.max) == (120, 0, 119)
            and np.isclose(m.mean, land.mean())
            and np.isclose(m.std, land.std())
        )


# ---- what cannot be --------------------------------------------------------------------------------------------------


def test_steps_of_a_patch_that_is_moved_inside_count_from_where_it_begins(ensemble: str) -> None:
    along = {"y": hr.patch(5, edge="clip"), "x": hr.patch(10)}
    s = hr.open(ensemble).samples(along=along, a="land", b=hr.view("land", y=hr.steps(0, 1)))
    land = np.arange(120.0).reshape(12, 10)
    with s.batches(3) as loader:
        batch = next(iter(loader))
        assert batch.starts["y"].tolist() == [0, 5, 7]
        for name, low, high in (("a", 0, 5), ("b", 0, 2)):
            assert [
                np.array_equal(r, land[y + low : y + high]) for r, y in zip(batch[name].numpy(), (0, 5, 7))
            ] == 3 * [True]
    for axis, what in ((along, "patches of 5"), ({"y": hr.crop(5)}, "crops of 5")):
        with pytest.raises(hr.InvalidError, match=f"steps -1 … 5 reach beyond the {what}"):
            hr.open(ensemble).samples(along=axis, a="land", c=hr.view("land", y=hr.steps(-1, 5)))


@pytest.mark.parametrize(
    ("along", "text"),
    [
        ({"y": hr.patch(5)}, "2 are left over"),
        ({"y": hr.patch(13, edge="clip")}, "only 12 long: take smaller ones"),
        ({"y": hr.patch(24, edge="reflect")}, "mirrored it gives at most 23"),
        ({"y": hr.crop(13)}, "only 12 long: take smaller ones"),
        ({"y": hr.crop(10, parts=4)}, "only 3 places; take fewer parts"),
        ({"q": None}, "no array of the views has the dimension q|has no dimension q"),
        (
            {"y": hr.patch(5, edge="pad", value=1), "x": hr.patch(4, edge="pad", value=2)},
            "outside y is 1, but outside x is 2",
        ),
        ({"y": hr.draws(2**41), "x": None}, "from 1 to 2.40 are possible"),
        ({**{f"d{i}": hr.draws(1) for i in range(8)}, "y": None}, "there are 8 already"),
        ({"a": hr.draws(2**40), "b": hr.draws(2**9), "y": None}, "more than 2.48 samples"),
        ({"y": 4}, r"hr.patch\(4\), hr.crop\(4\) or None"),
        ([], "the name of a dimension"),
        (["y", "y"], "named twice"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(ensemble: str, along: Any, text: str) -> None:
    with pytest.raises(hr.Error, match=text) as e:
        hr.open(ensemble).samples(along=along, land="land")
    assert "\n" not in str(e.value)


def test_scales_that_do_not_fit_are_refused(ensemble: str) -> None:
    archive = hr.open(ensemble)
    for along, view, text in (
        ({"y": hr.patch(4)}, hr.view("half"), "the scale= at which"),
        ({"y": hr.patch(3)}, hr.view("half", scale=2), "size 3 is no multiple"),
        ({"y": hr.patch(4, 3, edge="valid")}, hr.view("half", scale=2), "stride 3 is no multiple"),
        ({"y": hr.patch(4)}, hr.view("half", scale=3), "at scale 3/1 of 12 in land, 4 are expected"),
        ({"time": None}, hr.view("half", scale={"y": 2}), "not along y"),
    ):
        with pytest.raises(hr.Error, match=text):
            archive.samples(along=along, land=hr.view("land") if "y" in along else hr.view("v"), half=view)
    for scale in (0, -1, float("nan"), float("inf"), 1e-9):
        with pytest.raises(hr.InvalidError, match="a positive number"):
            hr.view("half", scale=scale)


def test_many_ids_cost_bits(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "m.zarr", mode="w", zarr_format=3)
    root.create_array("x", shape=(10**4, 10**4), chunks=(1000, 1000), dtype="f4", dimension_names=("y", "x"))
    s = hr.open(str(tmp_path / "m.zarr")).samples(along=["y", "x"], v="x")
    mask = np.arange(10**4) % 3 == 0
    kept = s.where(mask.reshape(1, -1)).where(mask[::-1].reshape(-1, 1))
    assert len(kept) == int(mask.sum()) ** 2
    assert kept.ids[:2].tolist() == [0, 3]
