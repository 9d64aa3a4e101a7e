"""How each program of the comparison is found, prepared and run: always a fresh process that prints one JSON line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DATA = HERE / "data"
OUT = HERE / "out"
BUILD = ROOT / "build" / "bench"
PYTHON_311 = ROOT / ".venv-bench311" / "bin" / "python"
PYTHON_312 = ROOT / ".venv-bench312" / "bin" / "python"
PYTHON_SCDL = ROOT / ".venv-bench-scdl" / "bin" / "python"

# name: (interpreter, script, reads shards, reads http)
LOADERS: dict[str, tuple[Path, str, bool, bool]] = {
    "headrace": (Path(sys.executable), "headrace_loader.py", True, True),
    "mini": (PYTHON_311, "mini.py", False, True),
    "tensorstore": (PYTHON_311, "peers/tensorstore_loader.py", True, True),
    "zarrs": (PYTHON_311, "peers/zarrs_pipeline.py", True, False),
    "zarr-python": (PYTHON_311, "peers/zarr_python.py", True, False),
    "insitubatch": (PYTHON_312, "peers/insitubatch_loader.py", True, True),
}

Result = dict[str, Any]


class Failed(Exception):
    """A program ended with an error; the text is what it said."""


def run_json(command: list[object], timeout: float = 300) -> Result:
    """The last line that it printed."""
    return run_lines(command, timeout)[-1]


def run_lines(command: list[object], timeout: float = 300) -> list[Result]:
    """Run to the end; the JSON lines it printed, with `spawned`: CLOCK_MONOTONIC just before it was started."""
    spawned = time.monotonic()
    try:
        p = subprocess.run(
            [str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {timeout:.0f} s") from None
    if p.returncode:
        raise Failed((p.stderr.strip().splitlines() or [f"exit status {p.returncode}"])[-1])
    try:
        lines = [{**json.loads(line), "spawned": spawned} for line in p.stdout.splitlines() if line.startswith("{")]
    except ValueError:
        lines = []
    if not lines:
        raise Failed(f"no JSON line in {p.stdout[-200:]!r}")
    return lines


def python_seconds(code: str, *arguments: object) -> tuple[float, list[str]]:
    """Seconds from starting an interpreter on `code` to its end, and the words it printed."""
    start = time.monotonic()
    p = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    seconds = time.monotonic() - start
    if p.returncode:
        raise Failed((p.stderr.strip().splitlines() or [f"exit status {p.returncode}"])[-1])
    return seconds, p.stdout.split()


def floor(archive: str, *options: object) -> Result:
    return run_json([BUILD / "bench" / "floor", *options, DATA / f"{archive}.plan"])


def http_floor(archive: str, url: str, *options: object) -> Result:
    return run_json([BUILD / "bench" / "http_floor", *options, DATA / f"{archive}.plan", f"{url}/{archive}.zarr"])


def list_of(archive: str, url: str | None = None, numbers: Iterable[int] | None = None) -> Path:
    """A file that lists objects of the archive: URLs below `url`, or keys."""
    plan = dict(line.split(maxsplit=1) for line in (DATA / f"{archive}.plan").read_text().splitlines())
    if numbers is None:
        numbers = range(-(-int(plan["samples"]) // int(plan["per_chunk"])))
    before = f"{url}/{archive}.zarr/" if url else ""
    path = OUT / f"{archive}.{'urls' if url else 'keys'}"
    path.write_text("".join(f"{before}{plan['key_before']}{i}{plan['key_after']}\n" for i in numbers))
    return path


def get(*options: object, within: Sequence[str] = ()) -> Result:
    """bench/get.c; its rounds added up."""
    rounds = run_lines([*within, BUILD / "bench" / "get", *options])
    total = {key: sum(r[key] for r in rounds) for key in ("seconds", "cpu", "bytes", "gets")}
    return {"wall": total.pop("seconds"), **total}


def obstore(*options: object, within: Sequence[str] = ()) -> Result:
    return run_json([*within, PYTHON_311, "-W", "ignore", HERE / "peers" / "obstore_get.py", *options])


def bridge(*options: object) -> Result:
    return run_json([sys.executable, "-W", "ignore", HERE / "bridge.py", *options])


def loader(name: str, archive: str, *options: object, url: str | None = None, within: Sequence[str] = ()) -> Result:
    python, script, *_ = LOADERS[name]
    where = f"{url}/{archive}.zarr" if url else DATA / f"{archive}.zarr"
    return run_json([*within, python, "-W", "ignore", HERE / script, "--archive", where, *options])


def able(name: str, archive: str, http: bool = False) -> bool:
    """Whether this loader can run this cell at all."""
    python, _, shards, over_http = LOADERS[name]
    return python.exists() and (shards or archive != "sharded") and (over_http or not http)


def prepare(archives: list[str]) -> None:
    """Environments, archives and the C programs, each only if it is not there yet."""
    OUT.mkdir(exist_ok=True)
    if not PYTHON_311.exists():
        subprocess.run([HERE / "venvs.sh"], check=True)
    if archives:
        subprocess.run([PYTHON_311, "-W", "ignore", HERE / "make_archives.py", *archives], check=True)
    build()


def build() -> None:
    """The C programs."""
    if not (BUILD / "build.ninja").exists():
        tool("meson", "setup", "-Dbench=true", "-Dunit_tests=false", "-Dbuildtype=release", BUILD)
    tool("ninja", "-C", BUILD, *(f"bench/{name}" for name in ("floor", "http_floor", "cells_floor", "get", "sign")))


def tool(name: str, *arguments: object) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [shutil.which(name, path=path) or name, *map(str, arguments)]
    p = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    if p.returncode:
        sys.exit(f"{p.stdout[-3000:]}{p.stderr[-3000:]}\nbench: {name} failed")
