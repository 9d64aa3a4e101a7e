"""``tf.data``: types, shapes, epochs; and torch, JAX and TensorFlow in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")


def test_a_dataset_of_every_batch(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", time=hr.steps(-2, 0)), y=hr.view("z", dtype="f2"))
    loader = samples.batches(8)
    dataset = loader.tensorflow()
    assert dataset.element_spec == {
        "x": tf.TensorSpec((None, 3, 6, 8), tf.float32), "y": tf.TensorSpec((None, 3, 6, 8), tf.float16),
    }  # fmt: skip
    root = zarr.open_group(climate, mode="r")
    t2m, z = root["t2m"][:], root["z"][:].astype("f2")
    for _ in range(2):  # epochs are finite, and there are more of them
        batches = list(dataset)  # held, all of them
        assert [len(b["x"]) for b in batches] == [8] * 7 + [2]
        x, y = (np.concatenate([b[name].numpy() for b in batches]) for name in "xy")
        np.testing.assert_array_equal(x, np.stack([t2m[i - 2 : i + 1] for i in range(2, 60)]))
        np.testing.assert_array_equal(y, z[2:])
    assert loader.state_dict()["epoch"] == 2


def test_whole_batches_have_static_shapes(climate: str) -> None:
    dataset = hr.open(climate).samples(along="time", x="t2m").batches(8, shuffle=True).tensorflow()
    assert dataset.element_spec["x"].shape == (8, 6, 8)
    first = [b["x"].numpy() for b in dataset.take(2)]  # left early: the next pass is the next epoch
    assert len(first) == 2
    assert len(list(dataset)) == 7


def test_it_feeds_a_model(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", lat=18, mean=0.0, std=100.0), y="u10")
    pairs = samples.batches(10, shuffle=True).tensorflow().map(lambda b: (b["x"], tf.reduce_mean(b["y"], (1, 2))))
    seen = 0
    for x, y in pairs.prefetch(2):
        assert x.shape == (10, 8) and y.shape == (10,)
        seen += len(x)
    assert seen == 60


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "M8[h]"]
)
def test_types(tmp_path: Path, dtype: str) -> None:
    data = (np.arange(24).reshape(6, 4) % 2).astype(dtype)
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    write(root, "a", data, (2, 4), ("t", "x"))
    (batch,) = hr.open(tmp_path / "a.zarr").samples(along="t", x=hr.view("a", decode=False)).batches(6).tensorflow()
    np.testing.assert_array_equal(batch["x"].numpy(), data.view("i8") if dtype[0] == "M" else data)


def test_bfloat16_and_masks(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x=hr.view("t2m", dtype="bfloat16"))
    batch = next(iter(samples.batches(8).tensorflow()))
    assert batch["x"].dtype == tf.bfloat16
    want = tf.cast(tf.constant(zarr.open_group(climate, mode="r")["t2m"][:8]), tf.bfloat16)
    assert bool(tf.reduce_all(batch["x"] == want))


TOGETHER = """
import sys
order, path = sys.argv[1].split(","), sys.argv[2]
import numpy as np
import headrace as hr
samples = hr.open(path).samples(along="time", x="t2m", y="u10")
early = samples.batches(4, shuffle=True)                      # its threads run before any framework is there
held = [next(iter(early))]
modules = {name: __import__(name) for name in order}
torch, jax, tf = (modules[name] for name in ("torch", "jax", "tensorflow"))
sums = {}
for epoch in range(3):
    for batch in early:
        want = batch["x"].numpy()
        a, b, c = batch["x"].torch(), batch["x"].jax(), tf.convert_to_tensor(batch["x"].numpy())
        for name, value in ("torch", (a @ a.mT).sum()), ("jax", (b @ b.mT).sum()), ("tf", tf.reduce_sum(tf.matmul(c, c, transpose_b=True))):
            sums[name] = sums.get(name, 0.0) + float(value)
        assert np.array_equal(a.numpy(), want) and np.array_equal(np.asarray(b), want) and np.array_equal(c.numpy(), want)
        held.append((a, b, c))
several = [samples.batches(5).torch(), samples.batches(5).jax(), samples.batches(5).tensorflow(), samples.batches(5).numpy()]
for parts in zip(*several):                                   # four loaders at once
    arrays = [np.asarray(part["y"]) for part in parts]
    assert all(np.array_equal(one, arrays[3]) for one in arrays)
assert np.ptp(list(sums.values())) < 1e-3 * abs(sums["torch"]), sums
far = hr.open(sys.argv[3]).samples(along="time", x="t2m")     # libcurl comes where TensorFlow shows its own to all
for a, b in zip(far.batches(8), samples.batches(8), strict=True):
    assert np.array_equal(a["x"].numpy(), b["x"].numpy())
print("went well", len(held))
"""


def test_three_frameworks_in_one_process(climate: str, served: str) -> None:
    """Each is handed the same batches; the process ends well with batches held. Here torch is often there first."""
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    env: dict[str, Any] = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, "tensorflow,jax,torch", climate, served],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "went well 46\n"), done.stderr


def test_what_has_no_type_is_named(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "a.zarr", mode="w")
    write(root, "a", field((6, 4)).astype("c16"), (2, 4), ("t", "x"))
    assert (
        hr.open(tmp_path / "a.zarr").samples(along="t", x="a").batches(6).tensorflow().element_spec["x"].dtype
        == tf.complex128
    )
