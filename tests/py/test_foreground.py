"""Patches chosen by how much of a label they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr

SHAPE = (3, 97, 130)
PATCHES = {"y": (20, 15), "x": (32, 32)}  # size, stride


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[hr.Archive, Any]:
    folder = tmp_path_factory.mktemp("foreground")
    rng = np.random.default_rng(0)
    label = (rng.random(SHAPE) < 0.01).astype("u2") * rng.integers(1, 4, SHAPE, dtype="u2")
    root = zarr.open_group(folder / "images.zarr", mode="w")
    values = {"image": rng.integers(0, 9, SHAPE, dtype="u1"), "label": label, "coarse": label[:, ::4, ::4]}
    for name, data in values.items():
        array = root.create_array(
            name, shape=data.shape, chunks=(1, 50, 50), dtype=data.dtype, dimension_names=["t", "y", "x"]
        )
        array[...] = data
    return hr.open(folder / "images.zarr"), label


def begin(name: str, at: int, edge: str) -> int:
    size, stride = PATCHES[name]
    start = at * stride
    return min(start, SHAPE[1 if name == "y" else 2] - size) if edge == "clip" else start


@pytest.mark.parametrize("edges", [("clip", "pad"), ("valid", "reflect"), ("pad", "clip")])
@pytest.mark.parametrize("values", [None, 2, [1, 3]])
def test_a_patch_stays_when_its_share_is_large_enough(
    images: tuple[hr.Archive, Any], edges: tuple[str, str], values: Any
) -> None:
    archive, label = images
    along = {"t": None, "y": hr.patch(20, 15, edge=edges[0]), "x": hr.patch(32, edge=edges[1])}
    samples = archive.samples(along=along, x="image")
    wanted = []
    for i, t, y, x in zip(samples.ids, *samples.positions().values()):
        y, x = begin("y", int(y), edges[0]), begin("x", int(x), edges[1])
        part = label[t, y : y + 20, x : x + 32]
        mask = part != 0 if values is None else np.isin(part, values)
        if mask.mean() >= 0.012:
            wanted.append(i)
    assert samples.foreground("label", 0.012, values).ids.tolist() == wanted


def test_a_coarse_level_is_counted_on_its_own_grid(images: tuple[hr.Archive, Any]) -> None:
    archive, label = images
    samples = archive.samples(
        along={"t": None, "y": hr.patch(16, edge="clip"), "x": hr.patch(16, edge="clip")}, x="image"
    )
    wanted = []
    for i, (t, y, x) in enumerate(np.ndindex(*[axis["n"] for axis in samples.axes.values()])):
        y, x = min(16 * y, 97 - 16), min(16 * x, 130 - 16)
        part = label[t, ::4, ::4][y // 4 : -(-(y + 16) // 4), x // 4 : -(-(x + 16) // 4)]
        if (part != 0).mean() >= 0.05:
            wanted.append(i)
    assert samples.foreground("coarse", 0.05).ids.tolist() == wanted
    assert samples.isel(t=1).foreground("coarse", 0.05).ids.tolist() == [i for i in wanted if i // 63 == 1]


def test_what_cannot_be_counted_is_said(images: tuple[hr.Archive, Any]) -> None:
    archive, _ = images
    patches = archive.samples(along={"y": hr.patch(16, edge="clip")}, x="image")
    with pytest.raises(hr.InvalidError, match="its dimension t is no sample axis"):
        patches.foreground("label")
    tiles = archive.samples(
        along={"t": None, "y": hr.patch(16, edge="clip"), "x": hr.patch(16, edge="clip")}, x="image"
    )
    with pytest.raises(hr.InvalidError, match="above 0 and at most 1"):
        tiles.foreground("label", 0)
    with pytest.raises(hr.NotFoundError):
        tiles.foreground("labels")
    crops = archive.samples(along={"t": None, "y": hr.crop(16), "x": hr.patch(16, edge="clip")}, x="image")
    with pytest.raises(hr.InvalidError, match="take patches"):
        crops.foreground("label")
    with pytest.raises(hr.InvalidError, match="patches are taken of"):
        archive.samples(along="t", x="image").foreground("label")
