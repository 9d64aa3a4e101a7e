"""How each program of the comparison is found, prepared and run: always a fresh process that prints one JSON line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DATA = HERE / "data"
OUT = HERE / "out"
BUILD = ROOT / "build" / "bench"
PYTHON_311 = ROOT / ".venv-bench311" / "bin" / "python"
PYTHON_312 = ROOT / ".venv-bench312" / "bin" / "python"

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
    """Run to the end; the JSON line it printed, with `spawned`: CLOCK_MONOTONIC just before it was started."""
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
        return {**json.loads(p.stdout.strip().splitlines()[-1]), "spawned": spawned}
    except (ValueError, IndexError):
        raise Failed(f"no JSON line in {p.stdout[-200:]!r}") from None


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


def loader(name: str, archive: str, *options: object, url: str | None = None) -> Result:
    python, script, *_ = LOADERS[name]
    where = f"{url}/{archive}.zarr" if url else DATA / f"{archive}.zarr"
    return run_json([python, "-W", "ignore", HERE / script, "--archive", where, *options])


def able(name: str, archive: str, http: bool = False) -> bool:
    """Whether this loader can run this cell at all."""
    python, _, shards, over_http = LOADERS[name]
    return python.exists() and (shards or archive != "sharded") and (over_http or not http)


def prepare(archives: list[str]) -> None:
    """Environments, archives and the C programs, each only if it is not there yet."""
    OUT.mkdir(exist_ok=True)
    if not PYTHON_311.exists():
        subprocess.run([HERE / "venvs.sh"], check=True)
    subprocess.run([PYTHON_311, "-W", "ignore", HERE / "make_archives.py", *archives], check=True)
    if not (BUILD / "build.ninja").exists():
        build("meson", "setup", "-Dbench=true", "-Dunit_tests=false", "-Dbuildtype=release", BUILD)
    build("ninja", "-C", BUILD, "bench/floor", "bench/http_floor")


def build(tool: str, *arguments: object) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [shutil.which(tool, path=path) or tool, *map(str, arguments)]
    p = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    if p.returncode:
        sys.exit(f"{p.stdout[-3000:]}{p.stderr[-3000:]}\nbench: {tool} failed")
