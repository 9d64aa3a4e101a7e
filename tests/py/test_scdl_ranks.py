"""The drop-in under torch.distributed: two processes, one cache. Neither is told its rank by anyone but torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from scdl_make import Cells, Server
from scdl_use import ROWS

pytest_plugins = ["scdl_use"]

# What each rank does. Whatever it says is gathered by rank 0 and written down; no variable of a launcher is left.
_TRAIN = """
import json, sys, warnings
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset
warnings.simplefilter("ignore")
url, cache, store, rank, out = sys.argv[1:]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
ds = SingleCellMemMapDataset.from_remote(url, cache, n_cols=300, max_cached_chunks=40)
sampler = ChunkAwareSampler(ds, chunks_per_window=2, seed=3)
said = {"rank": [sampler.rank, sampler.world], "epochs": [], "sums": []}
for epoch in range(2):
    sampler.set_epoch(epoch)
    follow, sampler._follow = sampler._follow, lambda *_: None
    said["epochs"].append(list(sampler))
    sampler._follow = follow
    sampler.set_epoch(epoch)
    sums = []
    for batch in DataLoader(ds, 64, sampler=sampler, num_workers=2 * epoch):
        sums += batch.to_dense().sum(1).tolist()
    said["sums"].append(sums)
    step = torch.tensor([float(len(sums))])
    dist.all_reduce(step)  # as a training step would: with another number of rows on a rank it would wait for ever
    said["together"] = step.item()
    dist.barrier()
said["downloads"] = ds.stats()["download_count"]
everybody = [None, None]
dist.all_gather_object(everybody, said)
if rank == "0":
    json.dump(everybody, open(out, "w"))
dist.destroy_process_group()
"""


def train(server: Server, folder: Path) -> list[dict[str, Any]]:
    """What the two ranks said."""
    launched = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID", "SLURM_NTASKS")
    environment = {k: v for k, v in os.environ.items() if k not in launched}
    environment.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    out = folder / "said.json"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _TRAIN, server.url, str(folder / "cache"), str(folder / "meet"), str(rank),
             str(out)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        errors = [p.communicate(timeout=240)[1] for p in ranks]
    finally:
        for p in ranks:
            p.kill()
    assert [p.returncode for p in ranks] == [0, 0], "\n".join(errors)
    said: list[dict[str, Any]] = json.loads(out.read_text())
    return said


def test_two_ranks_share_an_epoch_and_one_cache(server: Server, cells: Cells, tmp_path: Path) -> None:
    """The second epoch with workers, which read what the ranks have fetched."""
    said = train(server, tmp_path)
    assert [s["rank"] for s in said] == [[0, 2], [1, 2]]
    for epoch in range(2):
        rows = [s["epochs"][epoch] for s in said]
        assert sorted(rows[0] + rows[1]) == list(range(ROWS)), "all rows, and none with both"
        assert len(rows[0]) == len(rows[1]) == ROWS // 2
        for s in said:
            np.testing.assert_array_equal(s["sums"][epoch], cells.dense(s["epochs"][epoch]).sum(1))
    assert said[0]["epochs"][0] != said[0]["epochs"][1]
    assert said[0]["together"] == ROWS
    assert sum(s["downloads"] for s in said) == 20, "each chunk once, for both ranks and epochs"
    assert server.bytes < 1.3 * sum(f.stat().st_size for f in server.root.rglob("*.npy"))
