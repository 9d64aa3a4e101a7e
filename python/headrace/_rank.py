"""Which of how many processes this one is: arguments, then frameworks that are running, then the environment."""

from __future__ import annotations

import os
import sys

from headrace._arguments import integer, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def find_rank(rank: int | None, world: int | None, replicas: int) -> tuple[int, int]:
    """(rank, world) of the data: `replicas` neighbouring processes count as one."""
    if (rank is None) != (world is None):
        missing = "world" if world is None else "rank"
        refuse(missing, None, "give both rank and world, or neither")
    if rank is None or world is None:
        rank, world = _running() or _environment() or (0, 1)
    world = integer("world", world, 1)
    rank = integer("rank", rank)
    if not 0 <= rank < world:
        refuse("rank", rank, f"the ranks of a world of {world} count from 0 to {world - 1}")
    replicas = integer("replicas", replicas, 1)
    if world % replicas:
        refuse("replicas", replicas, f"it does not divide the world of {world}")
    return rank // replicas, world // replicas


def _running() -> tuple[int, int] | None:
    modules: Any = sys.modules
    distributed = modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    ray = modules.get("ray.train")
    if ray is not None:
        try:
            context = ray.get_context()
            return context.get_world_rank(), context.get_world_size()
        except Exception:
            pass  # not inside a Ray Train worker
    jax = modules.get("jax")
    if jax is not None and jax.distributed.is_initialized() and jax.process_count() > 1:
        return jax.process_index(), jax.process_count()
    return None


def _environment() -> tuple[int, int] | None:
    env = os.environ
    pairs = [("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")]
    if "SLURM_STEP_ID" in env and "SLURM_JOB_ID" in env:  # started by srun, not merely inside an allocation
        pairs.append(("SLURM_PROCID", "SLURM_NTASKS"))
    for rank, world in pairs:
        if rank in env and world in env:
            try:
                return int(env[rank]), int(env[world])
            except ValueError:
                from headrace._errors import InvalidError

                raise InvalidError(
                    f"environment: {rank}={env[rank]!r} and {world}={env[world]!r} are not both integers"
                ) from None
    return None
