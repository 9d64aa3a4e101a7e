"""Who is which rank; the same sequence in every world, budget and with any threads; and runs that are killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import field, write
from headrace._rank import divisors, find_rank

VARIABLES = [
    "RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PALS_RANKID",
    "PALS_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_JOB_ID",
]  # fmt: skip
ENV = {k: v for k, v in os.environ.items() if k not in VARIABLES}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("torch.distributed", "ray.train", "mpi4py.MPI", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def samples(climate: str) -> hr.Samples:
    return hr.open(climate).samples(along="time", x="t2m")


# ---- who is who --------------------------------------------------------------------------------------------------------


def framework(**calls: Any) -> Any:
    module = types.ModuleType("framework")
    for name, value in calls.items():
        setattr(module, name, value)
    return module


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "2", "WORLD_SIZE": "4"},
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"},
        {"PMI_RANK": "2", "PMI_SIZE": "4"},
        {"MV2_COMM_WORLD_RANK": "2", "MV2_COMM_WORLD_SIZE": "4"},
        {"PALS_RANKID": "2", "PALS_SIZE": "4"},
        {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "9"},
    ],
)
def test_ranks_from_launchers(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_rank(None, None, 1) == (2, 4)
    assert find_rank(None, None, 2) == (1, 2)


def test_inside_an_allocation_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    assert find_rank(None, None, 1) == (0, 1)


def test_ranks_from_frameworks_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def context() -> Any:
        raise RuntimeError("not in a worker")

    cases: list[tuple[str, Any, tuple[int, int]]] = [
        ("torch.distributed", framework(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 3, get_world_size=lambda: 8), (3, 8)),
        ("torch.distributed", framework(is_available=lambda: True, is_initialized=lambda: False), (0, 1)),
        ("ray.train", framework(get_context=lambda: framework(get_world_rank=lambda: 1, get_world_size=lambda: 2)), (1, 2)),
        ("ray.train", framework(get_context=context), (0, 1)),
        ("jax", framework(distributed=framework(is_initialized=lambda: True), process_count=lambda: 4, process_index=lambda: 3), (3, 4)),
        ("jax", framework(distributed=framework(is_initialized=lambda: False)), (0, 1)),
        ("mpi4py.MPI", framework(Is_initialized=lambda: True, Is_finalized=lambda: False, COMM_WORLD=framework(Get_rank=lambda: 5, Get_size=lambda: 6)), (5, 6)),
    ]  # fmt: skip
    for name, module, expected in cases:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, module)
            assert find_rank(None, None, 1) == expected, name
            assert find_rank(1, 2, 1) == (1, 2) if expected[1] in (1, 2) else True


def test_a_world_that_everybody_has_alone_is_loud(monkeypatch: pytest.MonkeyPatch, samples: hr.Samples) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.warns(
        RuntimeWarning, match=r"world=1 was given, but torchrun .* rank 2 of 4: every process reads all of the data"
    ) as seen:
        samples.batches(4, rank=0, world=1)
    assert seen[0].filename == __file__, "where the user called"
    with pytest.warns(RuntimeWarning, match="world=8 was given, but torchrun"):
        samples.batches(4, rank=0, world=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        samples.batches(4, rank=2, world=4)
        loader = samples.batches(4, rank=2, world=4, replicas=4)
        assert (loader.rank, loader.world) == (0, 1), "the same data for all, because it was said so"
        assert samples.batches(4).world == 4
    lonely = framework(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 0, get_world_size=lambda: 1
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", lonely)
    with pytest.warns(RuntimeWarning, match=r"torch\.distributed says that the world is 1, but torchrun"):
        samples.batches(4)


def test_replicas_get_the_same_data(samples: hr.Samples) -> None:
    ranks = [samples.batches(5, shuffle=True, rank=r, world=4, replicas=2) for r in range(4)]
    ids = [[b.index.numpy().tolist() for b in loader] for loader in ranks]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert not set(np.ravel(ids[0])) & set(np.ravel(ids[2]))
    with pytest.raises(hr.InvalidError, match=r"replicas=3: it does not divide the world of 4, as 1, 2 and 4 do"):
        samples.batches(5, rank=0, world=4, replicas=3)


def test_worlds_that_fit_are_named(samples: hr.Samples) -> None:
    words = (
        r"5 ranks cannot be dealt 12 streams evenly: 1, 2, 3, 4, 6 and 12 ranks can; for 5 ranks use streams=10 or 15"
    )
    with pytest.raises(hr.InvalidError, match=words):
        samples.batches(global_batch=12, streams=12, rank=0, world=5)
    state = samples.batches(global_batch=12, streams=12, shuffle=True).state_dict()
    with pytest.raises(
        hr.StateError, match=r"12 streams, which 5 ranks cannot share evenly: resume on 1, 2, 3, 4, 6 and 12"
    ):
        samples.batches(global_batch=60, rank=0, world=5).load_state_dict(state)
    assert divisors(7) == "1 and 7" and divisors(1) == "1" and divisors(720720).endswith("… and 720720")


def test_a_state_of_another_plan_names_the_difference(samples: hr.Samples, climate: str) -> None:
    state = samples.batches(global_batch=12, streams=12, shuffle=True, seed=3).state_dict()
    archive = samples.archive
    for other, words in [
        (archive.samples(along="time", x="u10").batches(12), "archive differs.*views take other arrays"),
        (archive.samples(along="time", y="t2m").batches(12), "views differ"),
        (samples.isel(time=slice(1, None)).batches(12), "split differs"),
        (samples.where(hour=[0, 6, 12]).batches(12), "split differs"),
        (samples.batches(12, seed=4), "seed"),
        (samples.batches(12, streams=6), "streams"),
        (samples.batches(12, spread=7), "spread"),
        (samples.batches(12, block=7), "block"),
        (samples.batches(12, remainder="wrap"), "remainder"),
        (samples.batches(12, shuffle="global"), "shuffle"),
        (samples.batches(24), "global batch"),
    ]:
        with pytest.raises(hr.StateError, match=words):
            other.load_state_dict(state)
    samples.batches(12).load_state_dict(state)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 60), st.sampled_from([1, 2, 3, 4, 6, 12]), st.integers(1, 5),
    st.sampled_from([None, "drop", "pad", "wrap"]), st.booleans(), st.data(),
)  # fmt: skip
def test_every_rank_has_the_same_steps(
    samples: hr.Samples, n: int, world: int, share: int, remainder: str | None, shuffle: bool, data: st.DataObject
) -> None:
    streams = world * data.draw(st.sampled_from([1, 2, 3]))
    batch = streams * share
    part = samples.isel(time=slice(0, n))
    try:
        ranks = [
            part.batches(global_batch=batch, streams=streams, shuffle=shuffle, remainder=remainder, rank=r, world=world)
            for r in range(world)
        ]
    except hr.InvalidError as e:
        assert "larger than" in str(e) or "do not fill" in str(e) or "does not fill" in str(e) or "short" in str(e)
        return
    runs = [[(b.index.numpy(), b.valid.numpy()) for b in loader] for loader in ranks]
    assert {len(run) for run in runs} == {len(ranks[0])}
    assert {len(ids) for run in runs for ids, _ in run} == (
        {batch // world} if ranks[0].plan()["remainder"] != "short" else {len(i) for i, _ in runs[0]}
    )
    seen = np.concatenate([ids[valid] for run in runs for ids, valid in run]) if runs[0] else np.array([], int)
    if ranks[0].plan()["remainder"] in ("pad", "short"):
        assert sorted(seen.tolist()) == list(range(n))
    elif ranks[0].plan()["remainder"] == "drop":
        assert len(set(seen.tolist())) == len(seen) == len(ranks[0]) * batch


# ---- the same sequence everywhere --------------------------------------------------------------------------------------

SEQUENCE = """
import hashlib, json, sys
import headrace as hr
path, workers = sys.argv[1], int(sys.argv[2])
hr.configure(workers=workers)
samples = hr.open(path).samples(along="time", x=hr.view("x", time=hr.steps(-2, 1)), y="y")
for memory in sys.argv[3:]:
    for world in (1, 2, 3, 4, 6, 12):
        loaders = [samples.batches(global_batch=24, streams=12, spread=3, shuffle=True, seed=5, rank=r, world=world, memory=memory) for r in range(world)]
        ids, data = hashlib.sha256(), hashlib.sha256()
        for epoch in range(2):
            for step in zip(*loaders):
                for batch in step:  # streams in order: rank by rank
                    ids.update(bytes(memoryview(batch.index)))
                for name in ("x", "y"):
                    for batch in step:
                        data.update(memoryview(batch[name]))
        for loader in loaders:
            loader.close()
        print(json.dumps([memory, world, ids.hexdigest(), data.hexdigest()]))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ranks") / "a.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    write(root, "x", field((500, 20, 12)), (3, 20, 12), ("time", "v", "w"))
    write(root, "y", field((500, 20), "i2", seed=1), (7, 20), ("time", "v"))
    return str(path)


def test_one_sequence_over_worlds_budgets_and_threads(archive: str) -> None:
    lines = []
    for workers in (1, 2, 7):
        p = subprocess.run(
            [sys.executable, "-c", SEQUENCE, archive, str(workers), "3MB", "64MB"], capture_output=True, text=True, env=ENV, check=False
        )  # fmt: skip
        assert p.returncode == 0, p.stderr
        lines += [json.loads(line) for line in p.stdout.splitlines()]
    assert len(lines) == 3 * 2 * 6
    assert len({(ids, data) for _, _, ids, data in lines}) == 1


# ---- runs that are killed ----------------------------------------------------------------------------------------------

KILLED = """
import json, os, sys
import headrace as hr
path, folder, rank, world, start = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
loader = hr.open(path).samples(along="time", x="x").batches(
    global_batch=12, streams=12, spread=2, shuffle=True, seed=9, remainder="pad", rank=rank, world=world)
if start:
    loader.load_state_dict(json.load(open(f"{folder}/{start}.{os.environ['BEFORE']}"))["state"])
for done, batch in enumerate(loader, start + 1):
    seen = batch.index.numpy()[batch.valid.numpy()].tolist()
    with open(f"{folder}/{rank}.part", "w") as f:  # the step and its state are one, there or not
        json.dump({"seen": seen, "state": loader.state_dict()}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(f"{folder}/{rank}.part", f"{folder}/{done}.{rank}")
    print(done, flush=True)
"""


def test_kills_at_any_step_lose_and_repeat_nothing(archive: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    worlds, steps, start, before, kills = [4, 2, 12, 3, 1, 6], 42, 0, 0, 0
    seen: list[int] = []
    kept = ""
    while start < steps:
        world = worlds[kills % len(worlds)] if start else 4
        arguments = [sys.executable, "-c", KILLED, archive, str(tmp_path)]
        ranks = [
            subprocess.Popen(
                [*arguments, str(r), str(world), str(start)], stdout=subprocess.PIPE, text=True, env={**ENV, "BEFORE": str(before)},
            )
            for r in range(world)
        ]  # fmt: skip
        goal = start + int(rng.integers(3, 12))
        lines = [int(p.stdout.readline()) for p in ranks]  # each has made a step
        victim = int(rng.integers(world))
        while lines[victim] < goal and (line := ranks[victim].stdout.readline()):
            lines[victim] = int(line)
        for p in ranks:
            if goal < steps:
                os.kill(p.pid, signal.SIGKILL)
        codes = {p.wait() for p in ranks}
        assert codes <= {0, -signal.SIGKILL}
        complete = [
            s for s in range(start + 1, steps + 2) if all((tmp_path / f"{s}.{r}").exists() for r in range(world))
        ]
        for s in complete:
            for r in range(world):
                seen += json.loads((tmp_path / f"{s}.{r}").read_text())["seen"]
        kills += goal < steps
        if complete:
            start = complete[-1]
            kept = (tmp_path / f"{start}.0").read_text()
        for f in tmp_path.iterdir():
            f.unlink()
        (tmp_path / f"{start}.0").write_text(kept)
        assert complete, "each rank had made a step"
        before = 0
        for p in ranks:
            p.stdout.close()
    assert kills >= 3
    assert sorted(seen) == list(range(500)), "one epoch exactly"


TORCHRUN = """
import json, os, signal, sys
import torch.distributed as dist
import headrace as hr
path, folder, kill_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
if "RANK" in os.environ:
    dist.init_process_group("gloo")
loader = hr.open(path).samples(along="time", x="x").batches(
    global_batch=20, streams=4, spread=4, shuffle=True, seed=2, remainder="pad")
rank, world = (dist.get_rank(), dist.get_world_size()) if "RANK" in os.environ else (0, 1)
assert (loader.rank, loader.world) == (rank, world)
checkpoint = f"{folder}/checkpoint.json"
done = []
if os.path.exists(checkpoint):
    saved = json.load(open(checkpoint))
    loader.load_state_dict(saved["state"])
    done = saved["done"]
for batch in loader:
    mine = (batch.index.numpy().tolist(), batch.valid.numpy().tolist())
    everybody = [None] * world
    if world > 1:
        dist.all_gather_object(everybody, mine)
    else:
        everybody = [mine]
    done.append([sum((ids for ids, _ in everybody), []), sum((valid for _, valid in everybody), [])])
    if rank == 0:
        with open(checkpoint + ".part", "w") as f:
            json.dump({"state": loader.state_dict(), "done": done}, f)
        os.replace(checkpoint + ".part", checkpoint)
    if world > 1:
        dist.barrier()
    if len(done) == kill_at and rank == world - 1:
        os.kill(os.getpid(), signal.SIGKILL)
if world > 1:
    dist.destroy_process_group()
"""


def test_two_ranks_of_torchrun_are_killed_and_one_goes_on(archive: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(TORCHRUN)

    def run(folder: Path, kill_at: int, ranks: int) -> subprocess.CompletedProcess[str]:
        folder.mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        launcher = [
            "-m",
            "torch.distributed.run",
            f"--nproc-per-node={ranks}",
            "--master-addr=127.0.0.1",
            f"--master-port={port}",
        ]
        return subprocess.run(
            [sys.executable, *(launcher if ranks > 1 else []), str(script), archive, str(folder), str(kill_at)],
            capture_output=True, text=True, env={**ENV, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}, check=False, timeout=300,
        )  # fmt: skip

    killed = run(tmp_path / "killed", 9, 2)
    saved = json.loads((tmp_path / "killed" / "checkpoint.json").read_text())
    assert killed.returncode != 0 and len(saved["done"]) == 9, killed.stderr
    alone = run(tmp_path / "killed", -1, 1)
    assert alone.returncode == 0, alone.stderr
    whole = run(tmp_path / "whole", -1, 1)
    assert whole.returncode == 0, whole.stderr
    got, want = (json.loads((tmp_path / f / "checkpoint.json").read_text())["done"] for f in ("killed", "whole"))
    assert got == want, "the same global batches"
    ids = [i for ids, valid in got for i, v in zip(ids, valid) if v]
    assert sorted(ids) == list(range(500)), "one epoch exactly"
