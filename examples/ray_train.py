"""Two workers of Ray Train that share an epoch, and average their gradients.

    python examples/ray_train.py [ARCHIVE]

Samples are described once, by the driver, and travel as a description. Each worker is a rank: it reads its own streams;
its rows and its fellow's are together the global batch. Needs ray[train] and torch.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")

import numpy as np
import ray
import ray.train
import torch
import zarr
from ray.train.torch import TorchTrainer, prepare_model

import headrace as hr


def make(path: str) -> str:
    """b is twice a plus 3, and a little noise."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(480, 16, 16)).astype("f4")
    root = zarr.open_group(path, mode="w")
    options = dict(shape=a.shape, chunks=(10, 16, 16), dtype="f4", dimension_names=("run", "y", "x"))
    root.create_array("a", **options)[...] = a
    root.create_array("b", **options)[...] = 2 * a + 3 + rng.normal(scale=0.1, size=a.shape)
    return path


def work(config: dict[str, Any]) -> None:
    """What each worker does."""
    loader = config["samples"].batches(global_batch=48, streams=4, shuffle=True, seed=0)
    model = prepare_model(torch.nn.Conv2d(1, 1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    for _ in range(3):
        ids = []
        for batch in loader:
            x, y = batch["x"].torch()[:, None], batch["y"].torch()[:, None]
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ids += batch.index.numpy().tolist()
        everybody: list[Any] = [None] * loader.world
        torch.distributed.all_gather_object(everybody, ids)
        metrics: dict[str, Any] = dict(zip(("weight", "bias"), (p.item() for p in model.parameters())))
        metrics.update(rows=[len(part) for part in everybody], different=len(set().union(*everybody)))
        with tempfile.TemporaryDirectory() as folder:
            if loader.rank == 0:  # one state is for all ranks, and for any number of them that divides the streams
                torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, f"{folder}/state.pt")
            checkpoint = ray.train.Checkpoint.from_directory(folder) if loader.rank == 0 else None
            ray.train.report(metrics, checkpoint=checkpoint)


def main(url: str, folder: str) -> dict[str, Any]:
    samples = hr.open(url).samples(along="run", x="a", y="b")
    two, place = ray.train.ScalingConfig(num_workers=2), ray.train.RunConfig(name="example", storage_path=folder)
    result = TorchTrainer(work, train_loop_config={"samples": samples}, scaling_config=two, run_config=place).fit()
    found: dict[str, Any] = result.metrics
    with result.checkpoint.as_directory() as kept:
        print("the checkpoint goes on at", torch.load(f"{kept}/state.pt")["loader"])
    print(f"rows of each worker: {found['rows']}; different ones together: {found['different']} of {len(samples)}")
    print(f"found y = {found['weight']:.2f} x + {found['bias']:.2f}; made as y = 2 x + 3")
    return found


if __name__ == "__main__":
    ray.init(include_dashboard=False, configure_logging=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as place:
        main(sys.argv[1] if len(sys.argv) > 1 else make(f"{place}/archive.zarr"), f"{place}/results")
    ray.shutdown()
