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
TRAIN = ROOT / "examples" / "train.py"

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
