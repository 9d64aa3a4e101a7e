"""The scripts of examples/ run, and do what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


def said_by(name: str) -> str:
    """What a script prints, which ends well."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def share(line: str) -> float:
    """The percentage that a line ends with, or has before words."""
    return float(re.findall(r"([\d.]+)%", line)[-1])


def test_forecast() -> None:
    pytest.importorskip("torch")
    said = said_by("forecast.py")
    assert re.search(r"train, val +0 +0 +0 +apart", said)
    skill = [share(line) for line in said.splitlines() if line.startswith("epoch")]
    assert len(skill) == 3 and skill[-1] > 50


def test_inference() -> None:
    pytest.importorskip("xarray")
    said = said_by("infer.py")
    assert "395 forecasts" in said and "(time: 400, lat: 24, lon: 48)" in said
    assert "that stay NaN: [0, 1, 2, 3, 4]" in said
    assert "1990" not in said and "2001-01-01" in said, "with the archive's own times"


def test_two_ranks_die_and_one_goes_on() -> None:
    pytest.importorskip("torch")
    said = said_by("elastic.py")
    assert "rank 1 of 2 dies at step 7" in said and "1 rank(s) go on at step 6" in said
    assert "20 steps; the same as undisturbed: True; every sample once: True" in said


def test_jax_on_two_processes() -> None:
    pytest.importorskip("jax")
    said = said_by("jax_multi.py")
    assert len(re.findall(r"\(64, 8, 16\), 32 rows of it here", said)) == 8
    losses = {rank: re.findall(rf"process {rank} of 2.* loss ([\d.]+)", said) for rank in (0, 1)}
    assert losses[0] == losses[1] and float(losses[0][-1]) < 0.001, "one model, on whole batches"


def test_segmentation() -> None:
    pytest.importorskip("torch")
    said = said_by("segment.py").splitlines()
    assert (
        share(said[-2]) > 85 and said[-1].startswith("18 overlapping boxes of [4, 256, 256]") and share(said[-1]) > 85
    )


def test_lightning() -> None:
    pytest.importorskip("lightning")
    said = said_by("lightning_data.py").splitlines()
    assert said[-1] == "57 steps; 28 and 29 around a stop: the same batches: True"
    assert said[0] == said[2], "the same validation loss, too"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_examples_are_short_and_have_a_page(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 80
    page = ROOT / "docs" / "examples" / f"{script.stem}.md"
    assert script.name == "train.py" or f"(../../examples/{script.name})" in page.read_text()
