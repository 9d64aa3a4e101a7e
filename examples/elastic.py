"""Two ranks are killed in mid-epoch; one goes on alone. The sequence of global batches does not notice.

    python examples/elastic.py

Starts itself under torchrun with two processes, one of which dies without a word at step 7; then without torchrun, from
the last checkpoint; then once more from the beginning on one process, which nobody kills. Needs torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import zarr

import headrace as hr

DIES_AT = 7


def make(path: str) -> None:
    options = dict(shape=(240, 8), chunks=(5, 8), dtype="f4", dimension_names=("time", "x"))
    zarr.open_group(path, mode="w").create_array("a", **options)[...] = np.arange(1920).reshape(240, 8)


def train(archive: str, checkpoint: str, dies: bool) -> None:
    """One rank. The log stands for a model: it is all that was seen, and is saved with the position."""
    ranks = "RANK" in os.environ  # torchrun
    if ranks:
        import torch.distributed as dist

        dist.init_process_group("gloo")
    loader = hr.open(archive).samples(along="time", x="a").batches(
        global_batch=12, streams=12, spread=2, shuffle=True, seed=0
    )  # fmt: skip
    log = []
    if os.path.exists(checkpoint):
        with open(checkpoint) as f:
            state, log = json.load(f)
        loader.load_state_dict(state)
        print(f"  {loader.world} rank(s) go on at step {len(log)}", flush=True)
    for batch in loader:
        parts = [batch.index.numpy().tolist()]
        if ranks:  # as gradients would be
            parts = [None] * loader.world
            dist.all_gather_object(parts, batch.index.numpy().tolist())
        log.append([i for part in parts for i in part])
        if dies and len(log) == DIES_AT and loader.rank == 1:
            print(f"  rank 1 of {loader.world} dies at step {DIES_AT}, before that is saved", flush=True)
            os._exit(9)
        if loader.rank == 0 and not (dies and len(log) == DIES_AT):
            with open(checkpoint + ".new", "w") as f:
                json.dump([loader.state_dict(), log], f)
            os.replace(checkpoint + ".new", checkpoint)  # at once or not at all


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive, torn, whole = (f"{folder}/{name}" for name in ("a.zarr", "torn.json", "whole.json"))
        make(archive)
        two = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        runs = [("two ranks", [*two, __file__, archive, torn, "dies"]), ("one rank", [__file__, archive, torn]),
                ("one rank, undisturbed", [__file__, archive, whole])]  # fmt: skip
        for what, words in runs:
            print(what, flush=True)
            subprocess.run([sys.executable, *words], stderr=subprocess.DEVNULL, check=False)
        with open(torn) as a, open(whole) as b:
            log, other = json.load(a)[1], json.load(b)[1]
    once = sorted(i for ids in log for i in ids) == list(range(240))
    print(f"{len(log)} steps; the same as undisturbed: {log == other}; every sample once: {once}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        raise SystemExit("usage: python examples/elastic.py [ARCHIVE CHECKPOINT [dies]]")
    train(sys.argv[1], sys.argv[2], len(sys.argv) > 3) if len(sys.argv) > 1 else main()
