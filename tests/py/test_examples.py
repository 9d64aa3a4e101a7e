"""The scripts of examples/ run, and do what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import zarr

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
TRAIN = EXAMPLES / "train.py"

STEP = re.compile(r"epoch (\d+) step (\d+) loss (\S+)")
WHOLE = [(epoch, step) for epoch in range(2) for step in range(25)]
CHECKPOINTS = (20, 25, 45, 50)  # after so many of those steps


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """t2m of 512 steps: 25 batches of 16 in the training split."""
    path = tmp_path_factory.mktemp("examples") / "a.zarr"
    root = zarr.create_group(path, zarr_format=3)
    array = root.create_array(
        "t2m", shape=(512, 6, 8), chunks=(8, 6, 8), dtype="f4", dimension_names=("time", "lat", "lon")
    )
    array[...] = np.random.default_rng(0).normal(280, 20, array.shape)
    return path


def train(archive: Path, checkpoint: Path, kill_after: int | None = None) -> list[tuple[int, int]]:
    """The steps that two epochs of training say they took; killed after so many, or few more, where that is given."""
    command = [sys.executable, TRAIN, archive, checkpoint, "2"]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}  # torch's threads wait by spinning
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet) as child:
        assert child.stdout
        said = "".join(child.stdout.readline() for _ in range(kill_after or 0))
        if kill_after:
            child.kill()
        said += child.stdout.read()
    assert child.returncode == (-9 if kill_after else 0)
    return [(int(epoch), int(step)) for epoch, step, _ in STEP.findall(said)]


def test_training_goes_on_where_it_was_killed(archive: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c.pt"
    killed = train(archive, checkpoint, kill_after=23)
    assert killed == WHOLE[: len(killed)]
    resumed = train(archive, checkpoint)
    start = len(WHOLE) - len(resumed)
    assert resumed == WHOLE[start:]
    assert start in CHECKPOINTS and len(killed) - 20 <= start <= len(killed), "from the last checkpoint on"
    assert train(archive, checkpoint) == [], "trained to the end: nothing is left to do"


# ---- the others, each on data that it makes itself -------------------------------------------------------------------


def share(line: str) -> float:
    """The last percentage of a line."""
    return float(re.findall(r"([\d.]+)%", line)[-1])


def forecast(said: str) -> None:
    assert re.search(r"train, val +0 +0 +0 +apart", said)
    skill = [share(line.partition(" better")[0]) for line in said.splitlines() if line.startswith("epoch")]
    assert len(skill) == 3 and skill[-1] > 50


def inference(said: str) -> None:
    assert "395 forecasts" in said and "(time: 400, lat: 24, lon: 48)" in said
    assert "that stay NaN: [0, 1, 2, 3, 4]" in said
    assert "2001-01-01" in said, "with the archive's own times"


def two_ranks_die_and_one_goes_on(said: str) -> None:
    assert "rank 1 of 2 dies at step 7" in said and "1 rank(s) go on at step 6" in said
    assert "20 steps; the same as undisturbed: True; every sample once: True" in said


def two_processes_of_jax(said: str) -> None:
    assert len(re.findall(r"\(64, 8, 16\), 32 rows of it here", said)) == 8
    losses = {rank: re.findall(rf"process {rank} of 2.* loss ([\d.]+)", said) for rank in (0, 1)}
    assert losses[0] == losses[1] and float(losses[0][-1]) < 0.001, "one model, on whole batches"


def segmentation(said: str) -> None:
    *_, last, boxes = said.splitlines()
    assert boxes.startswith("18 overlapping boxes of [4, 256, 256]")
    assert share(last) > 85 and share(boxes) > 85


def lightning(said: str) -> None:
    first, _, resumed, last = said.splitlines()
    assert last == "57 steps; 28 and 29 around a stop: the same batches: True"
    assert first == resumed, "the same validation loss, too"


SCRIPTS: dict[str, tuple[Callable[[str], None], list[str]]] = {
    "forecast.py": (forecast, ["torch"]),
    "segment.py": (segmentation, ["torch"]),
    "lightning_data.py": (lightning, ["lightning"]),
    "elastic.py": (two_ranks_die_and_one_goes_on, ["torch"]),
    "jax_multi.py": (two_processes_of_jax, ["jax"]),
    "infer.py": (inference, ["xarray"]),
}


def run(name: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, env=env, check=False)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[subprocess.CompletedProcess[str]]]]:
    """The scripts that are tested in this session, two at a time."""
    tests = [item for item in request.session.items if getattr(item, "originalname", "") == "test_scripts"]
    names = [item.callspec.params["name"] for item in tests]  # type: ignore[attr-defined]
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(run, name) for name in names if not lacking(name)}


def lacking(name: str) -> list[str]:
    return [package for package in SCRIPTS[name][1] if find_spec(package) is None]


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name: str, runs: dict[str, Future[subprocess.CompletedProcess[str]]]) -> None:
    if lacking(name):
        pytest.skip(f"could not import {', '.join(lacking(name))!r}")
    done = runs[name].result()
    assert done.returncode == 0, done.stderr
    SCRIPTS[name][0](done.stdout)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_examples_are_short_and_have_a_page(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 80
    page = ROOT / "docs" / "examples" / f"{script.stem}.md"
    assert script.name == "train.py" or f"(../../examples/{script.name})" in page.read_text()


@pytest.mark.parametrize(
    "name, words", [("train", []), ("train", ["a"]), ("elastic", ["a"]), ("jax_multi", ["a", "b"])]
)
def test_examples_say_how_they_are_called(name: str, words: list[str]) -> None:
    pytest.importorskip("jax" if name == "jax_multi" else "torch")
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), *words], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith(f"usage: python examples/{name}.py ")
