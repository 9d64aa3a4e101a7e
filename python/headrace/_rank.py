"""Which of how many processes this one is: arguments, then frameworks that are running, then the environment.

Everybody who says something is asked, not only the first: where the world is one and somebody else says that there are
more, all of them would read the same data, which nobody notices for days. That is warned of.
"""

from __future__ import annotations

import os
import sys

from headrace._arguments import integer, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VARIABLES = (
    ("RANK", "WORLD_SIZE", "torchrun"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI"),
    ("PMI_RANK", "PMI_SIZE", "MPI"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH"),
    ("PALS_RANKID", "PALS_SIZE", "PALS"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM"),
)


class Claim:
    """What somebody says."""

    __slots__ = ("rank", "who", "world")

    def __init__(self, who: str, rank: int, world: int) -> None:
        self.who = who
        self.rank = rank
        self.world = world


def find_rank(rank: int | None, world: int | None, replicas: int) -> tuple[int, int]:
    """(rank, world) of the data: `replicas` neighbouring processes count as one."""
    if (rank is None) != (world is None):
        missing = "world" if world is None else "rank"
        refuse(missing, None, "give both rank and world, or neither")
    claims = [*_running(), *_environment(strict=rank is None)]
    given = rank is not None
    if rank is None or world is None:
        rank, world = (claims[0].rank, claims[0].world) if claims else (0, 1)
    world = integer("world", world, 1)
    rank = integer("rank", rank)
    if not 0 <= rank < world:
        refuse("rank", rank, f"the ranks of a world of {world} count from 0 to {world - 1}")
    replicas = integer("replicas", replicas, 1)
    if world % replicas:
        refuse("replicas", replicas, f"it does not divide the world of {world}, as {divisors(world)} do")
    _compare(world, given, claims)
    return rank // replicas, world // replicas


def divisors(n: int) -> str:
    """ "1, 2, 3, 4, 6 and 12"; of what has very many, the least."""
    found = [i for i in range(1, min(n, 65536) + 1) if n % i == 0]
    if len(found) > 16:
        return ", ".join(map(str, found[:15])) + f", … and {n}"
    return f"{', '.join(map(str, found[:-1]))} and {n}" if len(found) > 1 else str(n)


def check_streams(streams: int, world: int, what: str) -> None:
    """Every rank reads the same number of whole streams."""
    if streams % world == 0:
        return
    below = streams // world * world
    fit = f"{below} or {below + world}" if below else str(world)
    refuse(what, streams, f"{world} ranks cannot be dealt {streams} streams evenly: {divisors(streams)} ranks can; for "
           f"{world} ranks use streams={fit}")  # fmt: skip


def _compare(world: int, given: bool, claims: list[Claim]) -> None:
    others = [c for c in claims if c.world != world and (world == 1 or c.world > 1)]
    if not others:
        return
    import warnings

    says = f"{others[0].who} says that this is rank {others[0].rank} of {others[0].world}"
    taken = f"world={world} was given" if given else f"{claims[0].who} says that the world is {world}"
    if world == 1:
        meant = f"if that is meant, say so with rank=…, world={others[0].world}, replicas={others[0].world}"
        words = f"{taken}, but {says}: every process reads all of the data; {meant}"
    else:
        words = f"{taken}, but {says}: give rank= and world= that count the processes that share the data"
    warnings.warn(words, RuntimeWarning, stacklevel=5)


def _running() -> list[Claim]:
    """Frameworks that have been started in this process."""
    modules: Any = sys.modules
    claims = []
    distributed = modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        claims.append(Claim("torch.distributed", distributed.get_rank(), distributed.get_world_size()))
    ray = modules.get("ray.train")
    if ray is not None:
        try:
            context = ray.get_context()
            claims.append(Claim("Ray Train", context.get_world_rank(), context.get_world_size()))
        except Exception:
            pass  # not inside a Ray Train worker
    jax = modules.get("jax")
    if jax is not None and jax.distributed.is_initialized() and jax.process_count() > 1:
        claims.append(Claim("JAX", jax.process_index(), jax.process_count()))
    mpi = modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.Get_size() > 1:
        claims.append(Claim("mpi4py", mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()))
    return claims


def _environment(strict: bool) -> list[Claim]:
    """Launchers, by their variables."""
    env = os.environ
    claims = []
    for rank, world, who in _VARIABLES:
        if rank not in env or world not in env:
            continue
        if who == "SLURM" and not ("SLURM_STEP_ID" in env and "SLURM_JOB_ID" in env):
            continue  # merely inside an allocation: srun started something else
        try:
            claims.append(Claim(f"{who} ({rank}, {world})", int(env[rank]), int(env[world])))
        except ValueError:
            if not strict or claims:
                continue
            from headrace._errors import InvalidError

            raise InvalidError(
                f"environment: {rank}={env[rank]!r} and {world}={env[world]!r} are not both integers"
            ) from None
    return claims
