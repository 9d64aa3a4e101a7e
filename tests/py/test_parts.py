"""Little of large blosc chunks: only the blocks that are wanted are read, and what is read is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numcodecs import Blosc, blosc

import headrace as hr

SHAPE = (3, 12, 160, 170)  # a chunk of 1.3 MB and more


@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "zstd", "zlib", "blosclz"])
@pytest.mark.parametrize("shuffle", [Blosc.NOSHUFFLE, Blosc.SHUFFLE, Blosc.BITSHUFFLE])
def test_parts_of_chunks_are_what_zarr_reads(tmp_path: Path, cname: str, shuffle: int) -> None:
    rng = np.random.default_rng(0)
    data = (np.add.outer(np.arange(36), np.arange(160 * 170)) * 3 + rng.integers(0, 50, (36, 160 * 170))).astype("f4")
    data = data.reshape(SHAPE)
    data[1, 4] = 0
    blosc.set_nthreads(4)  # blocks of a frame stand in any order
    try:
        codec = Blosc(cname, 5, shuffle, blocksize=0 if cname == "lz4" else 1 << 15)
        root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
        array = root.create_array("x", shape=SHAPE, chunks=(1, *SHAPE[1:]), dtype="f4", compressors=codec)
        array.attrs["_ARRAY_DIMENSIONS"] = ["t", "level", "y", "x"]
        array[...] = data
    finally:
        blosc.set_nthreads(1)
    archive = hr.open(tmp_path / "a.zarr")
    for level in (0, 4, 11):
        loader = archive.samples(along="t", v=hr.view("x", isel={"level": level}, decode=False)).batches(1)
        got = np.concatenate([b["v"].numpy() for b in loader])
        assert np.array_equal(got, data[:, level])
        cast = archive.samples(along="t", v=hr.view("x", isel={"level": level}, dtype="f8", affine=(2.0, 1.0))).batches(
            2
        )
        got = np.concatenate([b["v"].numpy() for b in cast])
        assert np.array_equal(
            got, np.where(data[:, level] == 0, np.nan, data[:, level].astype("f8") * 2 + 1), equal_nan=True
        )
    few = archive.samples(
        along="t", v=hr.view("x", isel={"level": [2, 3], "y": slice(7, 90, 9), "x": 5}, decode=False)
    ).batches(3)
    assert np.array_equal(next(iter(few))["v"].numpy(), data[:, 2:4, 7:90:9, 5])
    along = {"t": None, "level": None, "y": hr.crop(9), "x": hr.crop(8)}
    for batch in archive.samples(along=along, v=hr.view("x", decode=False)).batches(1, shuffle=True, seed=1):
        t, level, y, x = (int(at[0]) for at in batch.starts.values())
        assert np.array_equal(batch["v"].numpy()[0], data[t, level, y : y + 9, x : x + 8])


def frames(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] != ".")


def test_little_is_read(tmp_path: Path) -> None:
    data: Any = np.random.default_rng(0).normal(size=SHAPE).astype("f4")
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    codec = Blosc("lz4", 5, Blosc.SHUFFLE, blocksize=1 << 15)
    root.create_array("x", shape=SHAPE, chunks=(1, *SHAPE[1:]), dtype="f4", compressors=codec)[...] = data
    stored = sum(p.stat().st_size for p in frames(tmp_path / "a.zarr" / "x"))
    loader = hr.open(tmp_path / "a.zarr").samples(along="dim_0", v=hr.view("x", isel={"dim_1": 3})).batches(1)
    assert len([*loader]) == 3
    assert loader.stats()["bytes"]["read"] < stored / 4


def test_damaged_frames_are_errors(tmp_path: Path) -> None:
    """Whatever the offsets say, nothing but an error or other values comes of it."""
    data: Any = np.random.default_rng(0).normal(size=SHAPE).astype("f4")
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    codec = Blosc("lz4", 5, Blosc.SHUFFLE, blocksize=1 << 15)
    root.create_array("x", shape=SHAPE, chunks=(1, *SHAPE[1:]), dtype="f4", compressors=codec)[...] = data
    frame = frames(tmp_path / "a.zarr" / "x")[0]
    good = frame.read_bytes()
    rng = np.random.default_rng(1)
    for turn in range(60):
        bad = bytearray(good)
        for at in rng.integers(0, 16 + 4 * 40, 1 + turn % 5):
            bad[at] = int(rng.integers(0, 256))
        frame.write_bytes(bytes(bad[: len(bad) if turn % 3 else int(rng.integers(1, len(bad)))]))
        samples = hr.open(tmp_path / "a.zarr").samples(along="dim_0", v=hr.view("x", isel={"dim_1": 3}))
        try:
            first = next(iter(samples.batches(1)))
        except hr.DataError:
            continue
        except hr.UnsupportedError:
            continue
        assert first["v"].shape == (1, 160, 170)
