"""Random archives × views × batches, against plain zarr-python: byte for byte."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, GzipCodec, TransposeCodec, ZstdCodec

import headrace as hr
from conftest import write

TYPES = ["u1", "i2", ">i2", "u4", "i8", "f2", "f4", ">f4", "f8", "c8", "bool"]


@st.composite
def layouts(draw: Any) -> dict[str, Any]:
    ndim = draw(st.integers(1, 4))
    axis = draw(st.integers(0, ndim - 1))
    shape = [draw(st.integers(1, 9)) for _ in range(ndim)]
    shape[axis] = draw(st.integers(6, 40))
    chunks = [draw(st.integers(1, n + 1)) for n in shape]
    version = draw(st.sampled_from([2, 3]))
    options: dict[str, Any] = {}
    if version == 2:
        options["order"] = draw(st.sampled_from("CF"))
    else:
        options["compressors"] = draw(
            st.sampled_from(
                [
                    None,
                    ZstdCodec(level=1),
                    GzipCodec(),
                    BloscCodec(cname="lz4", shuffle="shuffle"),
                    BloscCodec(cname="zstd", shuffle="bitshuffle"),
                ]
            )
        )
        if draw(st.booleans()):
            options["filters"] = [TransposeCodec(order=tuple(draw(st.permutations(range(ndim)))))]
        if draw(st.booleans()):
            inner = [draw(st.integers(1, 3)) for _ in range(ndim)]
            options["shards"] = tuple(i * draw(st.integers(1, 4)) for i in inner)
            chunks = inner
    return {
        "version": version,
        "shape": tuple(shape),
        "chunks": tuple(chunks),
        "axis": axis,
        "dtype": draw(st.sampled_from(TYPES)),
        "options": options,
    }


@st.composite
def selections(draw: Any, n: int) -> tuple[Any, Any]:
    """For hr's isel, and for numpy."""
    kind = draw(st.sampled_from(["all", "index", "slice", "list"]))
    if kind == "all":
        return None, slice(None)
    if kind == "index":
        i = draw(st.integers(-n, n - 1))
        return i, i
    if kind == "slice":
        start = draw(st.integers(0, n - 1))
        stop = draw(st.integers(start + 1, n))
        step = draw(st.integers(1, 3))
        return slice(start, stop, step), slice(start, stop, step)
    index = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5))
    return index, index


def take(
    array: np.ndarray, axis: int, ids: np.ndarray, first: int, last: int, picks: list[Any], keep: bool
) -> np.ndarray:
    """(sample, steps, other dimensions)."""
    moved = np.moveaxis(array, axis, 0)
    rows = np.stack([moved[ids + s] for s in range(first, last + 1)], 1)
    others = [p for d, p in enumerate(picks) if d != axis]
    for d in range(len(others) - 1, -1, -1):
        rows = rows[(slice(None),) * (2 + d) + (others[d],)]
    return rows if keep else rows[:, 0]


def opened(samples: hr.Samples, n: int, options: dict[str, Any]) -> hr.Loader:
    """With the memory asked for, or where that is too little with the least that the error names."""
    try:
        return samples.batches(n, **options)
    except hr.BudgetError as e:
        least = re.search(r"at least [^(]*\((\d+) bytes\)", str(e))
        assert least, e
        return samples.batches(n, **{**options, "memory": int(least[1])})


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_random_views_are_what_numpy_slices(data: Any) -> None:
    layout = data.draw(layouts())
    folder = Path(tempfile.mkdtemp())
    try:
        shape, axis = layout["shape"], layout["axis"]
        rng = np.random.default_rng(1)
        values = rng.integers(0, 100, shape).astype(layout["dtype"])
        dims = tuple(f"d{i}" for i in range(len(shape)))
        root = zarr.open_group(folder / "a.zarr", mode="w", zarr_format=layout["version"])
        write(root, "a", values, layout["chunks"], dims, **layout["options"])

        first = data.draw(st.integers(-3, 2))
        last = data.draw(st.integers(first, first + 3))
        picks, isel = [], {}
        for d, n in enumerate(shape):
            ours, numpys = (None, slice(None)) if d == axis else data.draw(selections(n))
            picks.append(numpys)
            if ours is not None:
                isel[dims[d]] = ours
        view = hr.view("a", sel={dims[axis]: hr.steps(first, last)}, isel=isel, decode=False)
        samples = hr.open(folder / "a.zarr").samples({"x": view}, along=dims[axis])
        possible = len(samples)
        n = data.draw(st.integers(1, min(possible, 7)))
        options = {
            "shuffle": data.draw(st.sampled_from([False, True, "global"])),
            "seed": data.draw(st.integers(0, 5)),
            "spread": data.draw(st.sampled_from([None, 1, 3])),
            "memory": data.draw(st.sampled_from(["100kB", "1MB", "64MB"])),
            "remainder": data.draw(st.sampled_from(["drop", "pad", "short", "wrap"])),
        }
        seen: list[int] = []
        with opened(samples, n, options) as loader:
            for batch in loader:
                ids = batch.index.numpy()
                want = take(values, axis, ids, first, last, picks, last > first)
                got = batch["x"].numpy()
                assert got.dtype == values.dtype.newbyteorder("=") and got.shape == want.shape
                assert got.tobytes() == np.ascontiguousarray(want, dtype=got.dtype).tobytes()
                seen += ids[batch.valid.numpy()].tolist()
        counts = np.bincount(seen, minlength=shape[axis]) if seen else np.zeros(shape[axis], int)
        if options["remainder"] in ("pad", "short"):
            assert sorted(seen) == samples.ids.tolist()
        elif options["remainder"] == "drop":
            assert counts.max() <= 1 and len(seen) == possible // n * n
    finally:
        shutil.rmtree(folder)
