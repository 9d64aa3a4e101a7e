"""Archives read as one: `hr.concat` against xarray.concat and numpy, `hr.combine`."""

from __future__ import annotations

import functools
import http.server
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import Quiet, field, write

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification"),
    pytest.mark.filterwarnings("ignore:Consolidated metadata"),
]

START = np.datetime64("1990-01-01")


def year(
    path: Path,
    first: int,
    n: int,
    *,
    zarr_format: int = 3,
    chunks: tuple[int, int, int] = (4, 5, 3),
    seed: int = 0,
    units: str = "hours since 1990-01-01",
    lat: Any = None,
    **options: Any,
) -> str:
    """t2m and rain (packed) of steps first … first + n of 6 hours each, lat, a mask without time."""
    root = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    none: dict[str, Any] = {"fill_value": None} if zarr_format == 2 else {}  # or zeros would be missing
    data = field((n, 5, 7), seed=seed + first)
    write(root, "t2m", data, chunks, ("time", "lat", "lon"), **none, **options)
    rain = np.arange(n * 7, dtype="i2").reshape(n, 7) + np.int16(first)
    packing = {"scale_factor": 0.5 + seed, "add_offset": float(first), "_FillValue": -1 - seed}
    rain[rain % 5 == 0] = packing["_FillValue"]
    write(root, "rain", rain, (chunks[0], 7), ("time", "lon"), attributes=packing, **none)
    unit, since = units.split(" since ")
    steps = (START - np.datetime64(since)) + np.arange(first, first + n) * np.timedelta64(6, "h")
    times = steps / np.timedelta64(1, {"hours": "h", "minutes": "m", "seconds": "s"}[unit])
    write(
        root,
        "time",
        times.astype("i8"),
        (max(n, 1),),
        ("time",),
        attributes={"units": units, "calendar": "proleptic_gregorian"},
        **none,
    )
    write(root, "lat", np.linspace(90, -90, 5) if lat is None else lat, (5,), ("lat",), **none)
    write(root, "land", (field((5, 7), seed=3) > 0).astype("u1"), (5, 7), ("lat", "lon"), **none)
    return str(path)


def opened(paths: list[str], **options: Any) -> Any:
    """The same by xarray."""
    sets = [xr.open_zarr(p, consolidated=False, decode_timedelta=False, chunks=None) for p in paths]
    return xr.concat(
        sets, "time", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override", join="exact"
    )


def every(samples: Any, n: int = 3, **options: Any) -> dict[str, np.ndarray]:
    """All rows of an epoch in the order of ids, by view, and the ids."""
    ids, rows = [], {}
    with samples.batches(n, **{"remainder": "short", **options}) as loader:
        for batch in loader:
            keep = batch.valid.numpy().astype(bool) if hasattr(batch.valid, "numpy") else np.asarray(batch.valid, bool)
            ids.append(np.asarray(batch.index)[keep])
            for name in batch:
                rows.setdefault(name, []).append(batch[name].numpy().copy()[keep])
    order = np.argsort(np.concatenate(ids), kind="stable")
    return {"ids": np.concatenate(ids)[order], **{k: np.concatenate(v)[order] for k, v in rows.items()}}


lengths = st.lists(st.integers(1, 11), min_size=1, max_size=4)
kinds = st.sampled_from(["v2", "v3", "sharded", "raw", "blosc"])


def member(path: Path, kind: str, first: int, n: int, chunk: int) -> str:
    options: dict[str, Any] = {"compressors": None} if kind == "raw" else {}
    if kind == "sharded":
        options = {"shards": (chunk * 2, 5, 6)}
    if kind == "blosc":
        options = {"compressors": zarr.codecs.BloscCodec(cname="lz4")}
    return year(path, first, n, zarr_format=2 if kind == "v2" else 3, chunks=(chunk, 5, 3), seed=first % 3, **options)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ns=lengths,
    mix=st.lists(kinds, min_size=4, max_size=4),
    chunks=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    data=st.data(),
)
def test_random_archives_are_what_xarray_makes_of_them(
    tmp_path_factory: Any, ns: list[int], mix: list[str], chunks: list[int], data: Any
) -> None:
    folder = tmp_path_factory.mktemp("concat")
    paths, first = [], 0
    for k, n in enumerate(ns):
        paths.append(member(folder / f"{k}.zarr", mix[k], first, n, chunks[k]))
        first += n
    whole = hr.concat(paths, along="time")
    theirs = opened(paths)
    total = sum(ns)
    assert whole["t2m"].shape == (total, 5, 7) and whole["land"].shape == (5, 7)
    np.testing.assert_array_equal(whole["t2m"][...], theirs.t2m.values)
    np.testing.assert_array_equal(whole["rain"].read(dtype="f8"), theirs.rain.values.astype("f8"))
    a = data.draw(st.integers(0, total - 1))
    by = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
    np.testing.assert_array_equal(whole["t2m"][a::by, 1:, ::2], theirs.t2m.values[a::by, 1:, ::2])
    np.testing.assert_array_equal(
        whole["rain"].read((slice(a, None, by), slice(2, 5)), dtype="f8"), theirs.rain.values[a::by, 2:5]
    )
    before, after = data.draw(st.integers(-3, 0)), data.draw(st.integers(0, 2))
    if after - before >= total:
        return
    samples = whole.samples(
        along="time",
        x=hr.view("t2m", time=hr.steps(before, after), isel={"lat": [0, 3, 1], "lon": slice(1, 6, 2)}),
        y=hr.view("rain", dtype="f8"),
    )
    seed = data.draw(st.integers(0, 99))
    got = every(samples, shuffle=True, seed=seed, remainder="pad", block=data.draw(st.sampled_from([None, 1, 2])))
    assert got["ids"].tolist() == list(range(-before, total - after)), "every sample once"
    for row, i in enumerate(got["ids"]):
        np.testing.assert_array_equal(
            got["x"][row],
            theirs.t2m.values[i + before : i + after + 1][:, [0, 3, 1], 1:6:2].squeeze(0)
            if before == after
            else theirs.t2m.values[i + before : i + after + 1][:, [0, 3, 1], 1:6:2],
        )
    np.testing.assert_array_equal(got["y"], theirs.rain.values[got["ids"]].astype("f8"))
    if len(got["ids"]) < 2:
        return
    two = [every(samples, 2, rank=r, world=2, remainder="pad") for r in range(2)]
    assert sorted(np.concatenate([t["ids"] for t in two])) == list(range(-before, total - after))


def test_any_dimension(tmp_path: Path) -> None:
    """Along the last dimension the last chunk of a member is whole in store and memory, and cut in the array."""
    parts = [field((6, 5, n), seed=n) for n in (4, 5, 1, 7)]
    for k, part in enumerate(parts):
        root = zarr.open_group(tmp_path / f"{k}.zarr", mode="w", zarr_format=2 + k % 2)
        write(root, "x", part, (2, 3, 3 - k % 2), ("time", "lat", "lon"))
    for along, axis in (("lon", 2), ("lat", 1)):
        members = [hr.open(str(tmp_path / f"{k}.zarr")) for k in ((0, 1, 2, 3) if axis == 2 else (0, 0))]
        if axis == 1:
            members = [hr.open(str(tmp_path / "0.zarr"))] * 3
        want = np.concatenate(parts if axis == 2 else [parts[0]] * 3, axis)
        whole = hr.concat(members, along=along)
        np.testing.assert_array_equal(whole["x"][...], want)
        np.testing.assert_array_equal(every(whole.samples(along="time", x="x"), 2)["x"], want)
        np.testing.assert_array_equal(every(whole.samples(along=along, x="x"), 3)["x"], np.moveaxis(want, axis, 0))
        got = every(
            whole.samples(
                along="time", x=hr.view("x", isel={along: [7, 3, 4, 0], "lat" if axis == 2 else "lon": slice(1, 4)})
            ),
            4,
        )
        index = [slice(None)] * 3
        index[axis], index[1 if axis == 2 else 2] = [7, 3, 4, 0], slice(1, 4)
        np.testing.assert_array_equal(got["x"], want[tuple(index)])


@pytest.fixture
def years(tmp_path: Path) -> list[str]:
    """Three, each of which counts its time from another moment, in another unit."""
    return [
        year(tmp_path / "a.zarr", 0, 10, units="hours since 1990-01-01"),
        year(tmp_path / "b.zarr", 10, 7, units="minutes since 1990-01-02", zarr_format=2, seed=1),
        year(tmp_path / "c.zarr", 17, 12, units="seconds since 1985-06-01", shards=(8, 5, 6), seed=2),
    ]


def times(n: int) -> Any:
    return (START + np.arange(n) * np.timedelta64(6, "h")).astype("datetime64[us]")


def test_times_of_every_member_are_right(years: list[str]) -> None:
    whole = hr.concat([hr.open(years[0]), *years[1:]], along="time")
    samples = whole.samples(along="time", x="t2m")
    np.testing.assert_array_equal(samples.coords["time"], times(29))
    np.testing.assert_array_equal(samples.coords["time.hour"], np.arange(29) * 6 % 24)
    assert samples.sel(time=slice("1990-01-03", "1990-01-05")).ids.tolist() == list(range(8, 20))
    assert samples.sel(time="1990-01-05T06").ids.tolist() == [17]
    assert samples.where(lambda c: c["time"] >= np.datetime64("1990-01-08")).ids.tolist() == [28]
    lagged = whole.samples(along="time", x=hr.view("t2m", time=hr.lag("12h")))
    np.testing.assert_array_equal(every(lagged)["x"], opened(years).t2m.values[:-2])
    train, val = samples.split(time={"train": slice(None, "1990-01-04"), "val": slice("1990-01-05", None)})
    assert (len(train), len(val)) == (16, 13)
    with samples.batches(4) as loader:
        np.testing.assert_array_equal(next(iter(loader)).coords["time"], times(4))
    with pytest.raises(hr.InvalidError, match="counts time from another moment"):
        whole.samples(along="time", x="time").batches(2)


def test_times_as_numbers_count_from_one_moment(tmp_path: Path) -> None:
    paths = [
        year(tmp_path / "a.zarr", 0, 4, units="hours since 1990-01-01"),
        year(tmp_path / "b.zarr", 4, 4, units="hours since 1990-01-02"),
        year(tmp_path / "c.zarr", 8, 4, units="minutes since 1990-01-01 00:30"),
    ]
    np.testing.assert_array_equal(hr.concat(paths[:2], "time")["time"].read(), np.arange(8) * 6)
    np.testing.assert_array_equal(hr.concat(paths[:2], "time")["time"][2:6], [12, 18, 0, 6])
    with pytest.raises(hr.InvalidError, match=r"cannot be told in .hours since 1990-01-01. without loss"):
        hr.concat(paths, "time")["time"].read()


def test_packing_of_every_member(years: list[str]) -> None:
    whole = hr.concat(years, along="time")
    want = opened(years).rain.values
    for dtype in ("f4", "f8"):
        got = every(whole.samples(along="time", x=hr.view("rain", dtype=dtype)))["x"]
        np.testing.assert_array_equal(got, want.astype("f8").astype(dtype))
    words = r"rain is packed differently in .*\.zarr \(scale 0\.\d+, .* and .*\.zarr \(scale .* leave out decode=False"
    with pytest.raises(hr.InvalidError, match="view x: array " + words):
        whole.samples(along="time", x=hr.view("rain", decode=False))
    with pytest.raises(hr.InvalidError, match=words):
        whole["rain"][:2]
    np.testing.assert_array_equal(whole["rain"].read(), want)
    alike = hr.concat(years[:1], along="time")
    np.testing.assert_array_equal(alike["rain"][...], zarr.open_group(years[0])["rain"][...])
    moments = whole.samples(along="time", x=hr.view("rain", dtype="f8")).moments("x")
    np.testing.assert_allclose(np.ravel(moments.mean), np.nanmean(want), rtol=1e-12)


def test_absent_chunks_hold_what_their_member_says(tmp_path: Path) -> None:
    for k, fill in enumerate((1.5, -2.0)):
        root = zarr.open_group(tmp_path / f"{k}.zarr", mode="w", zarr_format=3)
        root.create_array("x", shape=(5,), chunks=(2,), dtype="f4", fill_value=fill, dimension_names=("time",))
    whole = hr.concat([str(tmp_path / "0.zarr"), str(tmp_path / "1.zarr")], along="time")
    want = np.repeat(np.array([1.5, -2], "f4"), 5)
    np.testing.assert_array_equal(whole["x"][...], want)
    np.testing.assert_array_equal(every(whole.samples(along="time", x="x"))["x"], want)


def test_resuming_on_a_longer_last_year(tmp_path: Path) -> None:
    a, b = tmp_path / "a.zarr", tmp_path / "b.zarr"
    year(a, 0, 9)
    year(b, 9, 6)

    def loader(*more: str) -> Any:
        samples = hr.concat([str(a), str(b), *more], along="time").samples(along="time", x="t2m")
        return samples.isel(time=slice(0, 14)).batches(2, shuffle=True, seed=5)

    with loader() as first:
        whole = [np.asarray(batch.index).tolist() for batch in first]
    with loader() as first:
        rows = iter(first)
        begun = [np.asarray(next(rows).index).tolist() for _ in range(3)]
        state = first.state_dict()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    a, b = a.rename(moved / "a.zarr"), b
    year(b, 9, 8)
    with loader() as second:
        second.load_state_dict(state)
        rest = [np.asarray(batch.index).tolist() for batch in second]
    assert begun + rest == whole, "members may move, and the last may grow"
    with loader(year(tmp_path / "c.zarr", 17, 3)) as third:
        third.load_state_dict(state)
        assert [np.asarray(batch.index).tolist() for batch in third] == rest, "more may follow"
    shutil.rmtree(a)
    shutil.rmtree(b)
    year(a, 0, 8)
    year(b, 8, 8)
    with loader() as other, pytest.raises(hr.StateError, match="archive differs"):
        other.load_state_dict(state)


def test_local_and_remote_members(years: list[str], tmp_path: Path) -> None:
    want = opened(years)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urls = [f"http://127.0.0.1:{server.server_port}/{Path(p).name}" for p in years]
    for mix in (urls, [urls[0], years[1], urls[2]], [years[0], urls[1], years[2]]):
        whole = hr.concat(mix, along="time")
        np.testing.assert_array_equal(whole["t2m"][...], want.t2m.values)
        samples = whole.samples(along="time", x="t2m", y=hr.view("rain", dtype="f8"))
        with samples.batches(3, shuffle=True, seed=1, remainder="pad") as loader:
            for batch in loader:
                np.testing.assert_array_equal(batch["x"].numpy(), want.t2m.values[np.asarray(batch.index)])
                np.testing.assert_array_equal(batch["y"].numpy(), want.rain.values[np.asarray(batch.index)])
            stats = loader.stats()
        assert stats["store"]["stores"] == 3 and stats["store"]["requests"] > 6
    with pytest.raises(hr.InvalidError, match="has that dimension; did you mean time"):  # the second can be listed
        hr.concat([urls[0], years[1]], along="tine")
    server.shutdown()
    server.server_close()


def test_what_does_not_fit_together_is_said(tmp_path: Path, years: list[str]) -> None:
    def concat(*paths: str) -> Any:
        return hr.concat(paths, along="time")

    a, b, c = years
    with pytest.raises(hr.InvalidError, match=r"a\.zarr.*and.*a\.zarr.*overlap"):
        concat(a, a)
    with pytest.raises(hr.InvalidError, match=r"c\.zarr.*and.*b\.zarr.*order"):
        concat(a, c, b)
    lat = year(tmp_path / "lat.zarr", 10, 4, lat=np.array([90.0, 45, 0, -45, -89.75]))
    with pytest.raises(
        hr.InvalidError, match=r"coordinate lat differs: at index 4 it is -90 in .*a\.zarr but -89.75 in .*lat\.zarr"
    ):
        concat(a, lat).samples(along="time", x="t2m")
    assert concat(a, lat).samples(along="time", x="rain").ids.size == 14, "which has no lat"
    chunks = year(tmp_path / "chunks.zarr", 10, 4, chunks=(4, 2, 3))
    with pytest.raises(
        hr.UnsupportedError, match=r"chunks are \(4, 5, 3\) in .* but \(4, 2, 3\) in .*along dimension time only"
    ):
        concat(a, chunks).samples(along="time", x="t2m")
    root = zarr.open_group(year(tmp_path / "other.zarr", 10, 3), mode="a")
    for name in ("t2m", "rain", "land"):
        del root[name]
    write(root, "t2m", np.zeros((3, 5, 7), "f8"), (1, 5, 3), ("time", "lat", "lon"))
    write(root, "land", np.zeros((4, 7), "u1"), (4, 7), ("lat", "lon"))
    with pytest.raises(hr.InvalidError, match=r"t2m is of type float32 in .*a\.zarr but float64 in .*other\.zarr"):
        concat(a, str(tmp_path / "other.zarr")).samples(along="time", x="t2m")
    with pytest.raises(hr.NotFoundError, match=r"array rain is in .*a\.zarr but not in .*other\.zarr"):
        concat(a, str(tmp_path / "other.zarr"))["rain"].read()
    with pytest.raises(
        hr.InvalidError, match=r"land has no dimension time .* type or shape differs between .*a\.zarr and .*other"
    ):
        concat(a, str(tmp_path / "other.zarr"))["land"].read()


def test_arguments(years: list[str]) -> None:
    with pytest.raises(hr.InvalidTypeError, match="a list of archives"):
        hr.concat(years[0], along="time")
    with pytest.raises(hr.InvalidError, match="at least one"):
        hr.concat([], along="time")
    with pytest.raises(hr.InvalidError, match="opened already"):
        hr.concat([hr.open(years[0])], "time", {"anonymous": True})
    with pytest.raises(hr.NotFoundError):
        hr.concat([years[0], years[0] + "x"], "time")
    for wrong, meant in {
        "tine": "did you mean time",
        "zzz": "has that dimension$",
        "land": "has that dimension",
    }.items():
        with pytest.raises(hr.InvalidError, match=f"along {wrong}: no array of .*{meant}"):
            hr.concat(years, along=wrong)
    with pytest.raises(hr.InvalidError, match="no name"):
        hr.combine({"a/b": years[0]})


def test_combine(tmp_path: Path, years: list[str], climate: str) -> None:
    both = hr.combine({"era5": hr.concat(years, along="time"), "z": climate})
    assert {"era5/t2m", "era5/time", "z/t2m", "z/z", "z/level"} <= set(both)
    assert "era5" in repr(both)
    want = opened(years)
    samples = both.samples(along="time", x="era5/t2m", rain=hr.view("era5/rain", dtype="f8"))
    assert samples.sel(time=slice("1990-01-03", "1990-01-05")).ids.tolist() == list(range(8, 20))
    np.testing.assert_array_equal(samples.coords["time"], times(29))
    got = every(samples)
    np.testing.assert_array_equal(got["x"], want.t2m.values)
    np.testing.assert_array_equal(got["rain"], want.rain.values)
    other = both.samples(along="time", x=hr.view("z/z", level=850))
    np.testing.assert_array_equal(every(other)["x"], zarr.open_group(climate)["z"][:, 1])
    with pytest.raises(hr.NotFoundError, match="era5, z"):
        both["sst/sst"]
    with pytest.raises(hr.NotFoundError, match="t2m"):
        both["era5/t2n"]


def test_pickling(years: list[str], climate: str) -> None:
    both = hr.combine({"era5": hr.concat(years, along="time"), "z": climate})
    again = pickle.loads(pickle.dumps(both))
    np.testing.assert_array_equal(again["era5/t2m"][...], both["era5/t2m"][...])
    assert again.arrays == both.arrays


def test_errors_name_the_member(years: list[str]) -> None:
    chunk = next(Path(years[1]).glob("t2m/*.0.0"))
    chunk.write_bytes(b"nothing that could be decoded")
    whole = hr.concat(years, along="time")
    with pytest.raises(hr.Error, match=rf"chunk t2m/{chunk.name} of .*b\.zarr"):
        every(whole.samples(along="time", x="t2m"))
    with pytest.raises(hr.Error, match=rf"chunk t2m/{chunk.name} of .*b\.zarr"):
        whole["t2m"][...]
