"""Two processes of JAX that compute as one: every batch is a global array, of which each process has read its rows.

    python examples/jax_multi.py

Starts itself twice, on the CPU; on a cluster each process is started by the scheduler instead. Needs jax.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile

import numpy as np
import zarr

import headrace as hr


def make(path: str) -> None:
    """y is the mean of x over space, and a little noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(512, 8, 16)).astype("f4")
    root = zarr.open_group(path, mode="w")
    options = dict(chunks=(8, 8, 16), dtype="f4", dimension_names=("time", "lat", "lon"))
    root.create_array("x", shape=x.shape, **options)[...] = x
    y = x.mean((1, 2)) + rng.normal(scale=0.01, size=512).astype("f4")
    root.create_array("y", shape=y.shape, chunks=(64,), dtype="f4", dimension_names=("time",))[...] = y


def train(archive: str, address: str, process: int) -> None:
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.distributed.initialize(address, num_processes=2, process_id=process)
    rows = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    loader = hr.open(archive).samples(along="time", x="x", y="y").batches(global_batch=64, shuffle=True, seed=0)

    def loss(weights: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
        return jnp.square(jnp.einsum("nij,ij->n", batch["x"], weights) - batch["y"]).mean()

    step = jax.jit(jax.value_and_grad(loss))
    weights = jnp.zeros((8, 16))
    for epoch in range(4):
        losses = []
        for batch in loader.jax(rows):  # 64 rows over both processes, of which 32 lie here
            value, gradient = step(weights, batch)
            weights -= 0.2 * gradient
            losses.append(float(value))
        here = sum(len(shard.data) for shard in batch["x"].addressable_shards)
        print(
            f"process {loader.rank} of {loader.world}, epoch {epoch}: loss {np.mean(losses):.5f}; the last batch is "
            f"{batch['x'].shape}, {here} rows of it here", flush=True,
        )  # fmt: skip
    print(f"process {loader.rank}: weights {float(weights.mean()):.4f} ± {float(weights.std()):.4f}; 1/128 is 0.0078")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket() as s:
        make(f"{folder}/a.zarr")
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
        s.close()
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
        words = [sys.executable, __file__, f"{folder}/a.zarr", address]
        both = [subprocess.Popen([*words, str(process)], env=env) for process in range(2)]
        if any([one.wait() for one in both]):
            raise SystemExit("a process failed")


if __name__ == "__main__":
    if len(sys.argv) in (2, 3):
        raise SystemExit("usage: python examples/jax_multi.py [ARCHIVE ADDRESS PROCESS]")
    train(sys.argv[1], sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 1 else main()
