"""Ray, really: shares of samples read by tasks, and workers of Ray Train as ranks. One Ray for all of it."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
from conftest import field, write

# Before it is imported: it asks no one, tells no one, and keeps nothing in the home of whoever runs the tests.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "ray_train.py"

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two CPUs, no dashboard. Its processes are gone at the end."""
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("ray") / "a.zarr")
    root = zarr.open_group(path, mode="w")
    write(root, "x", field((200, 6, 5)), (8, 6, 5), ("t", "v", "w"))
    return path


def table(rows: Any) -> dict[str, np.ndarray]:
    """All rows, by id."""
    blocks = list(rows.iter_batches(batch_size=None, batch_format="numpy"))
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    order = np.argsort(columns["index"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def test_every_sample_is_read_once(cluster: None, archive: str) -> None:
    samples = hr.open(archive).samples(along="t", x=hr.view("x", t=hr.steps(-1, 0)), y=hr.view("x", isel={"w": 2}))
    part = samples.isel(t=slice(0, 150)) - samples.isel(t=slice(40, 50))
    stored = zarr.open_group(archive, mode="r")["x"][:]
    found = table(ray.data.read_datasource(part.ray(16), override_num_blocks=4))
    assert found["index"].tolist() == part.ids.tolist()
    np.testing.assert_array_equal(found["x"], np.stack([stored[i - 1 : i + 1] for i in part.ids]))
    np.testing.assert_array_equal(found["y"], stored[part.ids, :, 2])


def test_predictions_over_a_cluster(cluster: None, archive: str) -> None:
    samples = hr.open(archive).samples(along="t", x="x")
    rows = ray.data.read_datasource(samples.ray(32, dtype="f8"))
    means = table(rows.map_batches(lambda b: {"index": b["index"], "mean": b["x"].mean((1, 2))}, batch_format="numpy"))
    stored = zarr.open_group(archive, mode="r")["x"][:].astype("f8")
    assert means["index"].tolist() == list(range(200))
    np.testing.assert_allclose(means["mean"], stored.mean((1, 2)), rtol=1e-12)


def test_archives_of_archives(cluster: None, archive: str, tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "b.zarr", mode="w")
    write(root, "x", field((40, 6, 5), seed=5), (8, 6, 5), ("t", "v", "w"))
    both = hr.concat([archive, str(tmp_path / "b.zarr")], along="t")
    found = table(ray.data.read_datasource(both.samples(along="t", x="x").ray(16), override_num_blocks=3))
    stored = [zarr.open_group(path, mode="r")["x"][:] for path in (archive, tmp_path / "b.zarr")]
    np.testing.assert_array_equal(found["x"], np.concatenate(stored))


def test_workers_of_ray_train_share_an_epoch(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script of examples/, on the Ray that runs."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    script = runpy.run_path(str(EXAMPLE))
    found = script["main"](script["make"](str(tmp_path / "a.zarr")), str(tmp_path / "results"))
    assert found["rows"] == [240, 240] and found["different"] == 480, "each sample once, on one of them"
    assert abs(found["weight"] - 2) < 0.05 and abs(found["bias"] - 3) < 0.05
    assert "different ones together: 480 of 480" in capsys.readouterr().out
    kept = max((tmp_path / "results").rglob("state.pt"), key=lambda path: path.stat().st_mtime_ns)
    state = torch.load(kept)["loader"]
    samples = hr.open(tmp_path / "a.zarr").samples(along="run", x="a", y="b")
    loader = samples.batches(global_batch=48, streams=4, shuffle=True, seed=0, rank=0, world=1)
    for _ in range(3):
        list(loader)
    assert loader.state_dict() == state, "what one process says after three epochs"


# ---- what needs no cluster -------------------------------------------------------------------------------------------


def test_shares_begin_where_chunks_do(archive: str, tmp_path: Path) -> None:
    samples = hr.open(archive).samples(along="t", x="x")
    for source, parallelism in [(samples, 3), (samples, 25), (samples, 1000), (samples.isel(t=slice(5, 180, 3)), 4)]:
        tasks = source.ray(8).get_read_tasks(parallelism)
        firsts = [task.read_fn.packed[1] for task in tasks]
        assert all(first % 8 == 0 or source.isel(t=slice(first // 8 * 8, first)).__len__() == 0 for first in firsts)
        assert len(tasks) == min(parallelism, 25) or source is not samples
        assert sum(task.metadata.num_rows for task in tasks) == len(source)
    root = zarr.open_group(tmp_path / "image.zarr", mode="w")
    write(root, "image", field((6, 32, 40)), (2, 16, 16), ("t", "y", "x"))
    patches = hr.open(tmp_path / "image.zarr").samples(along={"t": None, "y": hr.patch(8), "x": hr.patch(8)}, x="image")
    tasks = patches.ray(8).get_read_tasks(10)
    assert [task.read_fn.packed[:2] for task in tasks] == [(40, 0), (40, 40), (40, 80)], "two images a task"


def test_what_is_wrong_is_said(archive: str) -> None:
    samples = hr.open(archive).samples(along="t", x="x")
    with pytest.raises(hr.InvalidError, match="ray: shuffle=True"):
        samples.ray(8, shuffle=True)
    with pytest.raises(hr.InvalidError, match="ray: n"):
        samples.ray(0)
    with pytest.raises(hr.InvalidError, match="hide the column of sample ids"):
        hr.open(archive).samples(along="t", index="x").ray(8)
    assert "200 samples" in repr(samples.ray(8))
