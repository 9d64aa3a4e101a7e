"""What views do to values: CF decoding against xarray, transforms against numpy, moments, functions on batches."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import field, write

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]


def value_of(dtype: np.dtype, draw: Any) -> Any:
    """A value as an attribute would hold it."""
    if dtype.kind == "f":
        return float(dtype.type(draw(st.sampled_from([-999.0, 1e20, 0.0, 3.5]))))
    info = np.iinfo(dtype)
    return draw(st.integers(int(info.min), int(info.max))) if info.bits < 64 else draw(st.integers(-(2**50), 2**50))


# ---- CF


@st.composite
def packed(draw: Any) -> tuple[np.ndarray, dict[str, Any], int]:
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    if dtype.kind == "f":
        data = rng.normal(scale=100, size=(12, 5)).astype(dtype)
        data[rng.random(data.shape) < 0.1] = np.nan
    else:
        info = np.iinfo(dtype)
        low, high = (-(2**50), 2**50) if info.bits == 64 else (info.min, info.max)
        data = rng.integers(low, high, size=(12, 5), endpoint=True).astype(dtype)
    attributes: dict[str, Any] = {}
    for name in ("_FillValue", "missing_value"):
        if draw(st.booleans()):
            attributes[name] = value_of(dtype, draw)
            data[rng.random(data.shape) < 0.2] = np.array(attributes[name]).astype(dtype)
    if draw(st.booleans()):
        attributes["scale_factor"] = draw(st.sampled_from([0.1, 0.01, 2.0, -1.5, 1 / 3]))
    if draw(st.booleans()):
        attributes["add_offset"] = draw(st.sampled_from([0.0, 273.15, -5.0, 1e6]))
    if dtype.kind == "i" and "missing_value" not in attributes and draw(st.booleans()):
        attributes["_Unsigned"] = "true"
    return data, attributes, draw(st.sampled_from([2, 3]))


def xarray_of(path: str, name: str) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = xarray.open_zarr(path, decode_cf=True, decode_times=False, consolidated=False, chunks=None)
        return np.asarray(ds[name].values)


@QUICK
@given(packed())
def test_decoding_gives_the_bits_of_xarray(case: tuple[np.ndarray, dict[str, Any], int]) -> None:
    data, attributes, version = case
    path = tempfile.mkdtemp()
    try:
        ds = xarray.Dataset({"x": (("time", "y"), data, attributes)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ds.to_zarr(path, mode="w", zarr_format=version, consolidated=False, encoding={"x": {"chunks": (5, 5)}})
        want = xarray_of(path, "x")
        wide = want.astype("f8") if want.dtype.kind in "iuf" else want
        archive = hr.open(path)
        if want.dtype == np.float64 or want.dtype.kind in "iu":
            samples = archive.samples(along="time", x=hr.view("x", dtype="float64"))
            for batch in samples.batches(12):
                np.testing.assert_array_equal(batch["x"].numpy(), wide)
                assert np.array_equal(np.signbit(batch["x"].numpy()), np.signbit(wide))
            single = archive.samples(along="time", x=hr.view("x", dtype="float32"))
            for batch in single.batches(12):
                np.testing.assert_array_equal(batch["x"].numpy(), wide.astype("f4"))
        else:  # xarray computes in float32: ours is in double, rounded once
            np.testing.assert_allclose(archive["x"].read(), want, rtol=3e-7, equal_nan=True)
    finally:
        shutil.rmtree(path)


CORPUS = Path(__file__).parents[1] / "golden" / "corpus" / "xarray"


@pytest.mark.parametrize("case", sorted(p.name for p in CORPUS.iterdir()))
def test_the_corpus_decodes_as_xarray_does(case: str) -> None:
    path = str(CORPUS / case / "store.zarr")
    archive = hr.open(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = xarray.open_zarr(path, decode_cf=True, decode_times=False, consolidated=False, chunks=None)
        checked = 0
        for name in ds.variables:
            want = np.asarray(ds[name].values)
            attributes = {**ds[name].attrs, **ds[name].encoding}
            if want.dtype.kind not in "iuf" or name not in archive:
                continue
            if "trap" in case and want.dtype != np.float64:
                continue  # what differs from xarray on purpose is in the golden hashes
            got = archive[str(name)].read(dtype=want.dtype if want.dtype.kind == "f" else None)
            if not np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
                assert "trap" in case, f"{name}: {attributes}"
                continue
            checked += 1
    assert checked


def test_values_outside_the_valid_range_are_missing(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3)
    data = np.arange(-20, 20, dtype="i2").reshape(8, 5)
    write(root, "x", data, (3, 5), ("time", "y"), attributes={"valid_range": [-10, 10], "scale_factor": 0.5})
    write(root, "f", data.astype("f4"), (3, 5), ("time", "y"), attributes={"valid_min": -3.5})
    write(root, "flag", data, (3, 5), ("time", "y"), attributes={"valid_range": [0, 3], "flag_values": [0, 1, 2, 3]})
    archive = hr.open(str(tmp_path))
    inside = (data >= -10) & (data <= 10)
    want = np.where(inside, data * 0.5, np.nan)
    np.testing.assert_array_equal(archive["x"].read(), want)
    np.testing.assert_array_equal(archive["f"].read(), np.where(data >= -3.5, data, np.nan).astype("f4"))
    assert archive["flag"].read().dtype == np.int16
    for batch in archive.samples(along="time", x=hr.view("x", mask=True), f="f").batches(8):
        np.testing.assert_array_equal(batch["x"].numpy(), want)
        np.testing.assert_array_equal(batch["x_mask"].numpy(), inside)


def test_characters_are_texts(tmp_path: Path) -> None:
    names = np.array(["Zürich".encode(), b"Bern", b"Basel"], "S7")
    root = zarr.open_group(tmp_path, mode="w", zarr_format=2)
    write(root, "x", field((5, 3)), (2, 3), ("time", "station"))
    chars = names.view("S1").reshape(3, 7)
    write(root, "station", chars, (3, 7), ("station", "strlen"), attributes={"_Encoding": "utf-8"})
    write(root, "plain", chars, (3, 7), ("station", "strlen"))
    archive = hr.open(str(tmp_path))
    want = xarray_of(str(tmp_path), "station")
    assert archive["station"].read().tolist() == want.tolist() == ["Zürich", "Bern", "Basel"]
    np.testing.assert_array_equal(archive["plain"].read(), xarray_of(str(tmp_path), "plain"))
    assert archive["station"].read((1, slice(None))) == "Bern"
    assert archive["station"][...].shape == (3, 7)
    batch = next(iter(archive.samples(along="time", x=hr.view("x", station="Bern")).batches(5)))
    np.testing.assert_array_equal(batch["x"].numpy(), field((5, 3))[:, 1])


# ---- transforms


def steps(v: np.ndarray, o: dict[str, Any]) -> np.ndarray:
    """The documented order, in double; mean and std already have the shape of the box."""
    with np.errstate(all="ignore"):
        if "affine" in o:
            v = v * o["affine"][0] + o["affine"][1]
        if o.get("log1p"):
            v = np.log1p(v)
        if "clip" in o:
            low, high = o["clip"]
            v = v if low is None else np.where(v < low, low, v)
            v = v if high is None else np.where(v > high, high, v)
        if "mean" in o:
            v = (v - o["mean"]) / o["std"]
        return v


@st.composite
def views(draw: Any) -> dict[str, Any]:
    o: dict[str, Any] = {}
    if draw(st.booleans()):
        o["affine"] = (draw(st.sampled_from([2.0, -0.1, 1 / 3])), draw(st.sampled_from([0.0, 273.15, -7.0])))
    o["log1p"] = draw(st.sampled_from([False, False, True]))
    if draw(st.booleans()):
        o["clip"] = draw(st.sampled_from([(0.5, 3.0), (None, 2.0), (-1.0, None)]))
    o["how"] = draw(st.sampled_from(["none", "one", "array", "grid", "line"]))
    o["nan"] = draw(st.sampled_from(["keep", 0.0, -9.0]))
    o["mask"] = draw(st.booleans())
    o["dtype"] = draw(st.sampled_from(["float64", "float32", "float16"]))
    o["layout"] = draw(st.sampled_from([None, "channels_last", "channels_first", ("y", "channel", "x", "time")]))
    o["missing"] = draw(st.booleans())
    o["seed"] = draw(st.integers(0, 99))
    return o


# step, channel, y, x
ORDERS: dict[Any, tuple[int, ...]] = {
    None: (0, 1, 2, 3),
    "channels_last": (0, 2, 3, 1),
    "channels_first": (1, 0, 2, 3),
    ("y", "channel", "x", "time"): (2, 1, 3, 0),
}


def archive_of(path: str, absent: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays (time 20, y 6, x 8), one packed; decoded, in double."""
    root = zarr.open_group(path, mode="w", zarr_format=3)
    a = field((20, 6, 8), "i2", 1) % 300
    a[3, 2, 1:4] = -999
    b = field((20, 6, 8), "f4", 2) / 3
    b[5, :2] = np.nan
    packing = {"scale_factor": 0.01, "add_offset": 0.25, "_FillValue": -999}
    write(root, "a", a, (4, 6, 5), ("time", "y", "x"), attributes=packing, fill_value=-999)
    write(root, "b", b, (3, 4, 8), ("time", "y", "x"), fill_value=1.5)
    if absent:
        for chunk in ("a/c/1/0/0", "b/c/2/0/0"):
            (Path(path) / chunk).unlink()
        a[4:8, :, :5] = -999
        b[6:9, :4] = 1.5
    return np.where(a == -999, np.nan, a * 0.01 + 0.25), b.astype("f8")


@QUICK
@given(views())
def test_transforms_are_their_steps_in_order(o: dict[str, Any]) -> None:
    path = tempfile.mkdtemp()
    try:
        a, b = archive_of(path, o["missing"])
        rng = np.random.default_rng(o["seed"])
        order = ORDERS[o["layout"]]
        shape = np.array((2, 2, 6, 8))[list(order)]
        mean: Any = None
        if o["how"] == "one":
            mean, std = 1.5, 2.5
            o["mean"], o["std"] = mean, std
        elif o["how"] == "array":
            mean, std = rng.normal(size=2), rng.uniform(0.5, 2, 2)
            where = [1] * 4
            where[order.index(1)] = 2
            o["mean"], o["std"] = mean.reshape(where), std.reshape(where)
        elif o["how"] != "none":
            size = shape if o["how"] == "grid" else (shape[-2], 1)
            mean, std = rng.normal(size=size), rng.uniform(0.5, 2, size)
            o["mean"], o["std"] = mean, std
        named = {"layout": o["layout"]} if isinstance(o["layout"], str) else {"order": o["layout"]}
        given_ = {} if mean is None else {"mean": mean, "std": std}
        view = hr.view(
            "a", "b", stack="channel", time=hr.steps(-1, 0), affine=o.get("affine"), log1p=o["log1p"],
            clip=o.get("clip"), nan=o["nan"], mask=o["mask"], dtype=o["dtype"], **named, **given_,
        )  # fmt: skip
        samples = hr.open(path).samples(along="time", x=view)
        for batch in samples.batches(7, shuffle=True, seed=o["seed"]):
            raw = np.stack([np.stack([v[i - 1 : i + 1] for v in (a, b)], axis=1) for i in batch.index.numpy()])
            want = steps(raw.transpose(0, *(1 + d for d in order)), o)
            got = batch["x"].numpy()
            assert got.shape == want.shape
            if o["mask"]:
                np.testing.assert_array_equal(batch["x_mask"].numpy(), ~np.isnan(want))
            want = want if o["nan"] == "keep" else np.where(np.isnan(want), o["nan"], want)
            if o["dtype"] == "float64":
                slack = 1e-14 if o["log1p"] else 0.0  # numpy has a log1p of its own
                np.testing.assert_allclose(got, want, rtol=slack, atol=slack, equal_nan=True)
            else:
                unit = 2.0 ** (-24 if o["dtype"] == "float32" else -11)
                limit = np.abs(want) * unit * 1.001 + 1e-7 * (o["dtype"] == "float16") + 1e-13
                assert (np.isnan(got) == np.isnan(want)).all()
                finite = np.isfinite(want) & (np.abs(want) < 60000)
                assert (np.abs(got.astype("f8") - want)[finite] <= limit[finite]).all()
    finally:
        shutil.rmtree(path)


def test_types_follow_the_values(climate: str) -> None:
    archive = hr.open(climate)
    root = zarr.open_group(climate, mode="a")
    write(root, "image", np.arange(60 * 4, dtype="u1").reshape(60, 4), (4, 4), ("time", "x"))
    write(root, "wide", np.arange(60 * 4, dtype="i4").reshape(60, 4), (4, 4), ("time", "x"))
    write(root, "moment", np.zeros(60, "M8[ns]"), (4,), ("time",))
    archive = hr.open(climate)
    samples = archive.samples(
        along="time", a=hr.view("image", mean=3), b=hr.view("wide", mean=3), c=hr.view("t2m", mean=3), d="image"
    )
    assert [v["dtype"] for v in samples.info["views"]] == ["float32", "float64", "float32", "uint8"]
    with pytest.raises(hr.InvalidError, match=r"view x: its values are scaled.*int32.*float dtype"):
        archive.samples(along="time", x=hr.view("wide", clip=(0, 1), dtype="int32")).batches(2)
    with pytest.raises(hr.InvalidError, match=r"view m: array moment.*holds no numbers"):
        archive.samples(along="time", m=hr.view("moment", log1p=True)).batches(2)


def test_what_cannot_be_names_the_view(climate: str) -> None:
    archive = hr.open(climate)

    def refused(match: str, **o: Any) -> None:
        with pytest.raises(hr.InvalidError, match=match):
            archive.samples(along="time", x=hr.view("t2m", **o))

    refused(r"view x: mean and std of shape \(3\) do not fit a sample of shape \(lat 6, lon 8\)", mean=[1, 2, 3])
    refused(r"view x: std\[1\] is 0", mean=0, std=np.array([1.0, 0.0] * 4))
    refused(r"view x: mean\[0\] is nan", mean=float("nan"))
    refused(r"view x: clip 3 … 1", clip=(3, 1))
    refused(r"view x: scale 0", affine=(0, 1))
    refused(r"view x: layout: its tensor has no channels", layout="channels_last")
    refused(r"view x: order names lev, which is no dimension", order=("lev", "lat", "lon"))
    refused(r"view x: order names 1 of the tensor's 2 dimensions", order=("lat",))
    for bad in (
        {"affine": 3}, {"affine": (1, 2, 3)}, {"clip": "ab"}, {"nan": "zero"}, {"layout": "last"}, {"order": "lat"},
        {"mask": 3}, {"log1p": 1}, {"normalize": 3}, {"std": "x"}, {"mean": [1, 2], "std": [1, 2, 3]},
        {"layout": "channels_last", "order": ("lat",)},
    ):  # fmt: skip
        with pytest.raises(hr.InvalidError, match=f"view: {'layout' if len(bad) == 2 and 'order' in bad else ''}"):
            hr.view("t2m", **bad)
    with pytest.raises(hr.InvalidError, match="second view named y"):
        archive.samples(along="time", y="t2m", x=hr.view("t2m", mask="y"))
    named = archive.samples(along="time", x=hr.view("t2m", mask="there", nan=0))
    assert [v["name"] for v in named.info["views"]] == ["x", "there"]
    assert repr(hr.view("t2m", affine=(1.8, 32), nan=0)) == "view('t2m', affine=(1.8, 32), nan=0)"


def test_a_state_knows_the_transforms(climate: str) -> None:
    archive = hr.open(climate)
    one, same, other = (
        archive.samples(along="time", x=hr.view("t2m", mean=m)).batches(4, shuffle=True) for m in (1, 1, 2)
    )
    next(iter(one))
    same.load_state_dict(one.state_dict())
    with pytest.raises(hr.StateError, match="views"):
        other.load_state_dict(one.state_dict())


def test_xarray_names_dimensions_of_mean(climate: str) -> None:
    t2m = zarr.open_group(climate)["t2m"][...].astype("f8")
    mean = xarray.DataArray(t2m.mean(axis=(0, 2)), dims="lat")
    std = xarray.DataArray(t2m.std(axis=(0, 2)), dims="lat")
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", mean=mean, std=std, dtype="f8"))
    batch = next(iter(samples.batches(60)))
    np.testing.assert_array_equal(batch["x"].numpy(), (t2m - mean.values[:, None]) / std.values[:, None])


# ---- moments


@pytest.mark.parametrize("by", ["array", "channel", "grid"])
def test_moments_are_those_of_numpy(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    a, b = archive_of(str(tmp_path / "x.zarr"), False)
    view = {"stack": "channel", "time": hr.steps(-2, 0), "affine": (2.0, 1.0), "nan": 0, "dtype": "float64"}
    samples = hr.open(str(tmp_path / "x.zarr")).samples(along="time", x=hr.view("a", "b", **view), y="a")
    train = samples.isel(time=slice(3, 15))
    values = np.stack([a, b], axis=1)[train.ids] * 2 + 1
    axes = 0 if by == "grid" else (0, 2, 3)
    moments = train.moments("x", by)
    assert moments.dims == (("channel", "y", "x") if by == "grid" else ("channel",))
    np.testing.assert_array_equal(moments.count, (~np.isnan(values)).sum(axis=axes))
    for name in ("mean", "std", "min", "max"):
        want = getattr(np, f"nan{name}")(values, axis=axes)
        np.testing.assert_allclose(getattr(moments, name), want, rtol=1e-12, atol=1e-14)
    again = train.moments("x", by, memory="64MiB", cache=False)
    for name in ("count", "mean", "std", "min", "max"):
        np.testing.assert_array_equal(getattr(moments, name), getattr(again, name))
    normal = hr.open(str(tmp_path / "x.zarr")).samples(
        along="time", x=hr.view("a", "b", **{**view, "nan": "keep"}, normalize=moments)
    )
    where = (slice(None), None, None) if by != "grid" else (...,)
    std = np.where(moments.std > 0, moments.std, 1)
    for batch in normal.batches(6):
        raw = np.stack([np.stack([a, b], axis=1)[i - 2 : i + 1] for i in batch.index.numpy()]) * 2 + 1
        want = (raw - np.nan_to_num(moments.mean)[where]) / std[where]
        np.testing.assert_array_equal(batch["x"].numpy(), want)
    assert "Moments of x" in repr(moments)


def test_moments_are_kept_and_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = str(tmp_path / "x.zarr")
    archive_of(path, False)
    samples = hr.open(path).samples(along="time", x=hr.view("a"))
    first = samples.moments(progress=True)
    assert "20 of 20 samples" in capsys.readouterr().err
    assert samples.moments(progress=True).mean == first.mean
    assert capsys.readouterr().err == ""
    kept = list((tmp_path / "cache" / "headrace" / "moments").iterdir())
    assert len(kept) == 1
    kept[0].write_bytes(b"damaged")
    assert samples.moments(progress=True).mean == first.mean
    assert "20 of 20" in capsys.readouterr().err
    assert samples.isel(time=slice(0, 7)).moments().mean != first.mean
    assert hr.open(path).samples(along="time", x=hr.view("a", affine=(2, 0))).moments().max == 2 * first.max
    time.sleep(0.01)
    archive_of(path, True)  # written anew
    assert hr.open(path).samples(along="time", x=hr.view("a")).moments().count != first.count
    with pytest.raises(hr.NotFoundError, match="no view named z"):
        samples.moments("z")
    with pytest.raises(hr.InvalidError, match="view x by channel: it has none"):
        samples.moments(by="channel")
    with pytest.raises(hr.InvalidError, match="moments: by"):
        samples.moments(by="cell")


# ---- functions on batches


def test_functions_run_in_a_pool_and_keep_the_order(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    names = set()

    def double(batch: hr.Batch) -> dict[str, Any]:  # type: ignore[name-defined]
        names.add(threading.current_thread().name)
        time.sleep(0.02 * (batch.step % 3 == 0))
        return {"x": batch["x"].numpy() * 2, "index": batch.index.numpy().copy()}

    with samples.batches(5, shuffle=True, seed=3) as plain:
        want = [(b.index.numpy().copy(), b["x"].numpy() * 2) for b in plain]
    with samples.batches(5, shuffle=True, seed=3, transform=double, transform_workers=3) as loader:
        for _ in range(1):
            got = list(loader)
        assert len(got) == len(loader) == len(want)
        for (index, x), one in zip(want, got):
            np.testing.assert_array_equal(index, one["index"])
            np.testing.assert_array_equal(x, one["x"])
        assert len(names) > 1
        assert "mapped by" in repr(loader)


def test_the_state_is_of_what_was_handed_out(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")

    def ids(batch: Any) -> list[int]:
        return list(batch.index.numpy())

    loader = samples.batches(5, shuffle=True, seed=1).map(ids, workers=3)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    assert state["position"] == 20
    with pytest.raises(hr.StateError, match="live iterator"):
        iter(loader)
    rest = list(iterator)
    other = samples.batches(5, shuffle=True, seed=1).map(ids)
    other.load_state_dict(state)
    assert list(other) == rest
    for _ in loader:  # left early: the next loop is the next epoch
        break
    second = samples.batches(5, shuffle=True, seed=1)
    second.set_epoch(2)
    assert list(loader) == [ids(b) for b in second]


def test_a_function_that_fails_leaves_a_loader_that_closes(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")

    def fails(batch: Any) -> Any:
        if batch.step == 3:
            raise ZeroDivisionError("by nothing")
        return batch

    seen = []
    with samples.batches(5, transform=fails) as loader:
        with pytest.raises(ZeroDivisionError, match="by nothing") as caught:
            for batch in loader:
                seen.append(batch.step)
        assert seen == [0, 1, 2]
        assert "in fails" in "".join(traceback.format_tb(caught.value.__traceback__))
        assert "step 3 of epoch 0" in caught.value.__notes__[0]
    shorter = {"in 'x'": lambda b: {"x": b["x"].numpy()[:2]}, "in its value": lambda b: b["x"].numpy()[1:]}
    for where, fn in shorter.items():
        with pytest.raises(hr.InvalidError, match=f"was given 5 rows and gave . {where}"):
            list(samples.batches(5).map(fn))
    with pytest.raises(hr.InvalidError, match=r"gave 1 in 'a'\['x'\]"):
        list(samples.batches(5).map(lambda b: {"a": {"x": b["x"].numpy()[:1]}}))
    with pytest.raises(RuntimeError, match="raised StopIteration"):  # not a loop that ends early
        list(samples.batches(5).map(lambda _: next(iter(()))))
    with pytest.raises(hr.InvalidError, match="it gave None"):
        list(samples.batches(5).map(lambda _: None))
    with pytest.raises(hr.InvalidTypeError, match="map: fn=3"):
        samples.batches(5).map(3)  # type: ignore[arg-type]


def test_closing_does_not_wait_for_a_function(climate: str) -> None:
    gate = threading.Event()
    loader = hr.open(climate).samples(along="time", x="t2m").batches(5, transform=lambda b: gate.wait(30) and b)
    iterator = iter(loader)
    time.sleep(0.05)
    start = time.monotonic()
    loader.close()
    assert time.monotonic() - start < 5
    assert list(iterator) == []
    gate.set()


HOOK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64,
    ctypes.c_void_p,
)  # fmt: skip
SOURCE = """
#include <stdint.h>
int scale(void *const *data, int64_t rows, const int64_t *index, int64_t epoch, void *arg)
{
    float *x = data[0];
    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < 48; i++)
            x[r * 48 + i] *= (float)(index[r] + 1 + 100 * epoch);
    return 0;
}
"""


def test_native_functions_run_before_batches_are_handed_over(climate: str, tmp_path: Path) -> None:
    (tmp_path / "hook.c").write_text(SOURCE)
    library = str(tmp_path / "hook.so")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, str(tmp_path / "hook.c")], check=True)
    function = ctypes.CDLL(library).scale
    data = zarr.open_group(climate)["t2m"][...]
    samples = hr.open(climate).samples(along="time", x="t2m")
    for native in (function, ctypes.cast(function, ctypes.c_void_p).value):
        loader = samples.batches(7, shuffle=True, seed=5, native=native)
        for epoch in range(3):  # a second driver takes over from the second epoch on
            for batch in loader:
                index = batch.index.numpy()
                factor = (index + 1 + 100 * epoch).astype("f4")[:, None, None]
                np.testing.assert_array_equal(batch["x"].numpy(), data[index] * factor)


def test_native_functions_that_fail_fail_their_batch(climate: str) -> None:
    @HOOK
    def refuses(data: Any, rows: int, index: Any, epoch: int, arg: Any) -> int:
        return 7 if index[0] == 10 else 0

    samples = hr.open(climate).samples(along="time", x="t2m")
    loader = samples.batches(5, native=refuses)
    with pytest.raises(hr.InvalidError, match="returned 7 for step 2 of epoch 0"):
        for batch in loader:
            assert batch.step < 2
    loader.set_epoch(1)
    with pytest.raises(hr.InvalidError, match="step 2 of epoch 1"):
        list(loader)
    loader.close()
    with pytest.raises(hr.InvalidTypeError, match="native="):
        samples.batches(5, native="scale")


def test_positions_may_be_set_while_native_functions_run(climate: str) -> None:
    @HOOK
    def slow(data: Any, rows: int, index: Any, epoch: int, arg: Any) -> int:
        time.sleep(0.002)
        return 0

    samples = hr.open(climate).samples(along="time", x="t2m")
    for round_ in range(12):
        loader = samples.batches(3, shuffle=True, seed=round_, native=slow)
        for step, _ in enumerate(loader):
            if step == round_ % 5:
                break
        loader.set_epoch(4)
        batch = next(iter(loader))
        assert (batch.epoch, batch.step) == (4, 0)
        loader.close()
