"""A training run that is killed and goes on: the proof of the demo's third part.

``python -m headrace._cli.resume ARCHIVE LOG RANK WORLD SECONDS`` streams one epoch and writes one line to LOG after
each step: the sample ids it received and the loader's state, as JSON. It takes up the last complete line of the log's
``.before`` file, where there is one. SECONDS is how long a pretended training step takes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace as hr

GLOBAL_BATCH, STREAMS, SEED = 16, 2, 2024
RANKS_AFTER = 2


def loader_of(archive: str, rank: int, world: int) -> hr.Loader:
    samples = hr.open(archive).samples(along="time", x="t2m")
    return samples.batches(
        global_batch=GLOBAL_BATCH, shuffle=True, seed=SEED, streams=STREAMS, spread=8, remainder="pad", memory="256MiB",
        rank=rank, world=world,
    )  # fmt: skip


def read_log(path: Path) -> list[dict[str, Any]]:
    """Complete lines; a kill may have cut the last one."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def train(archive: str, log: Path, rank: int, world: int, seconds: float) -> None:
    loader = loader_of(archive, rank, world)
    before = read_log(log.with_suffix(".before"))
    if before:
        loader.load_state_dict(before[-1]["state"])
    with log.open("w") as out:
        for batch in loader:
            time.sleep(seconds)
            ids = [i for i, valid in zip(batch.index.numpy().tolist(), batch.valid.numpy().tolist()) if valid]
            out.write(json.dumps({"ids": ids, "state": loader.state_dict()}) + "\n")
            out.flush()


class Proof:
    """What the kill and the resume came to."""

    def __init__(self, folder: Path, archive: Path, quick: bool) -> None:
        self.folder, self.archive = folder, str(archive)
        self.whole = [sorted(self._ids(b)) for b in loader_of(self.archive, 0, 1)]
        self.steps = len(self.whole)
        self.samples = sum(map(len, self.whole))
        self.killed_at = self.steps * 2 // 5
        self.seconds = (1.6 if quick else 3.0) / self.steps  # a step: long enough for the kill to fall in mid-epoch
        self.state: dict[str, Any] = {}
        self.before: list[list[int]] = []
        self.after: list[list[int]] = []

    @staticmethod
    def _ids(batch: Any) -> list[int]:
        return batch.index.numpy()[batch.valid.numpy()].tolist()  # type: ignore[no-any-return]

    def _child(self, log: Path, rank: int, world: int) -> subprocess.Popen[bytes]:
        log.unlink(missing_ok=True)
        words = [self.archive, str(log), str(rank), str(world), str(self.seconds)]
        return subprocess.Popen([sys.executable, "-m", "headrace._cli.resume", *words])

    def kill(self, progress: Callable[[int], None]) -> None:
        """Start one process, and kill it (SIGKILL) in mid-epoch."""
        log = self.folder / "killed.log"
        log.with_suffix(".before").unlink(missing_ok=True)
        child = self._child(log, 0, 1)
        try:
            while len(lines := read_log(log)) < self.killed_at:
                progress(len(lines))
                if child.poll() is not None:
                    raise RuntimeError(f"the training process ended with {child.returncode} before it could be killed")
                time.sleep(0.02)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        lines = read_log(log)
        self.before = [sorted(line["ids"]) for line in lines]
        self.state = lines[-1]["state"]
        progress(len(lines))

    def resume(self, progress: Callable[[int], None]) -> None:
        """Go on from the last state, on RANKS_AFTER processes."""
        logs = [self.folder / f"resumed-{rank}.log" for rank in range(RANKS_AFTER)]
        for log in logs:
            log.with_suffix(".before").write_text((self.folder / "killed.log").read_text())
        children = [self._child(log, rank, RANKS_AFTER) for rank, log in enumerate(logs)]
        try:
            while any(child.poll() is None for child in children):
                progress(len(self.before) + min(len(read_log(log)) for log in logs))
                time.sleep(0.02)
        finally:
            for child in children:
                child.kill()
                child.wait()
        if any(child.returncode for child in children):
            raise RuntimeError("a resumed training process failed; its message stands above")
        ranks = [[line["ids"] for line in read_log(log)] for log in logs]
        self.after = [sorted(i for ids in step for i in ids) for step in zip(*ranks)]
        progress(len(self.before) + len(self.after))

    def check(self) -> dict[str, Any]:
        """The facts; `exact` says whether both runs together are one epoch, batch by batch."""
        delivered = [i for step in self.before + self.after for i in step]
        return {
            "steps": self.steps,
            "before": len(self.before),
            "after": len(self.after),
            "ranks_after": RANKS_AFTER,
            "samples": self.samples,
            "delivered": len(delivered),
            "distinct": len(set(delivered)),
            "same_batches": self.before + self.after == self.whole,
            "state_bytes": len(json.dumps(self.state, separators=(",", ":"))),
            "state": self.state,
        }


def is_exact(facts: dict[str, Any]) -> bool:
    return bool(facts["samples"] == facts["delivered"] == facts["distinct"] and facts["same_batches"])


if __name__ == "__main__":
    _archive, _log, _rank, _world, _seconds = sys.argv[1:]
    train(_archive, Path(_log), int(_rank), int(_world), float(_seconds))
