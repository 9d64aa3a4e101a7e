"""Archives and samples travel: what they were opened and described by is opened and described again."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write


def ids(samples: hr.Samples) -> list[int]:
    return [int(i) for i in samples.ids]


def test_samples_travel(climate: str) -> None:
    whole = hr.open(climate).samples(
        along="time",
        x=hr.view("t2m", "u10", time=hr.steps(-2, 0), lat=slice(80, -40), stack="channel", mean=[1.0, 2.0], std=3.0),
        y=hr.view("z", time=hr.lag("-6h"), isel={"level": [0, 2]}, dtype="f8", nan=0.0, mask=True),
    )
    cases = [
        whole, whole.isel(time=slice(7, 40)), whole.isel(time=slice(3, 50, 3)), whole.where(hour=[0, 12]),
        whole.isel(time=[9]), whole.isel(time=slice(10, 20)) | whole.isel(time=slice(30, 33)), whole.split(0.7, 0.3)[1],
    ]  # fmt: skip
    for samples in cases:
        other = pickle.loads(pickle.dumps(samples))
        assert ids(other) == ids(samples)
        for a, b in zip(
            samples.batches(5, shuffle=True, seed=1, remainder="pad"),
            other.batches(5, shuffle=True, seed=1, remainder="pad"),
        ):
            assert bytes(memoryview(a.index)) == bytes(memoryview(b.index))
            for name, tensor in a.items():
                np.testing.assert_array_equal(tensor.numpy(), b[name].numpy())
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(cases[3]))))
    assert ids(again) == ids(cases[3]), "what has travelled travels on"


def test_a_state_goes_on_elsewhere(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m").where(hour=[0, 6])
    loader = samples.batches(4, shuffle=True, seed=2)
    batches = iter(loader)
    next(batches), next(batches)
    other = pickle.loads(pickle.dumps(samples)).batches(4)
    other.load_state_dict(loader.state_dict())
    assert [b.index.numpy().tolist() for b in other] == [b.index.numpy().tolist() for b in batches]


def test_pickles_are_small(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    write(root, "a", np.zeros((1_000_000, 1), "u1"), (100_000, 1), ("t", "x"))
    samples = hr.open(tmp_path / "a.zarr").samples(along="t", x="a")
    assert len(pickle.dumps(samples.isel(t=slice(5, 900_000)))) < 1000
    assert len(pickle.dumps(samples.isel(t=slice(0, None, 3)))) < 130_000, "a bit for each position"


def test_options_and_stores_travel(tmp_path: Path, served: str) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    write(root, "a", field((20, 3)), (4, 3), ("t", "x"))
    store = zarr.storage.LocalStore(tmp_path / "a.zarr")
    for archive, name in [(hr.open(store), "a"), (hr.open(served, {"concurrency": 3}), "t2m")]:
        other = pickle.loads(pickle.dumps(archive))
        assert other.url == archive.url and other._origin[1] == archive._origin[1]
        np.testing.assert_array_equal(other[name][:], archive[name][:])


def test_what_cannot_travel_says_so(climate: str) -> None:
    class Local(dict[str, Any]):
        def __reduce__(self) -> Any:
            raise TypeError("cannot pickle Local")

    files = {str(p.relative_to(climate)): p.read_bytes() for p in Path(climate).rglob("*") if p.is_file()}
    with pytest.raises(TypeError, match="cannot pickle Local"):
        pickle.dumps(hr.open(Local(files)))
    loader = hr.open(climate).samples(along="time", x="t2m").batches(4)
    with pytest.raises(TypeError, match=r"cannot pickle|pickle"):
        pickle.dumps(loader)


def test_samples_of_several_axes_travel(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    write(root, "image", field((6, 32, 40)), (2, 16, 16), ("t", "y", "x"))
    whole = hr.open(tmp_path / "a.zarr").samples(
        along={"t": None, "y": hr.patch(8, stride=4), "x": hr.crop(8)}, x="image"
    )
    for samples in (whole, whole.isel(t=slice(2, 4)), whole.split(0.5, 0.5)[1]):
        other = pickle.loads(pickle.dumps(samples))
        assert ids(other) == ids(samples)
        for a, b in zip(samples.batches(4, seed=3), other.batches(4, seed=3)):
            np.testing.assert_array_equal(a["x"].numpy(), b["x"].numpy())
