"""How each program of single cells is found and run, and the atlas that they read. `cells.py` has what is compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from programs import BUILD, DATA, HERE, PYTHON_311, PYTHON_312, PYTHON_SCDL, Failed, Result, run_json

ATLAS = DATA / "cells"
ATLAS_LAYOUTS = ("scdl", "scdl_10k", "scdl_100k", "lz4_u2", "lz4_i4", "zstd", "raw_zarr")
ATLAS_BYTES = 8 << 30
FLOOR = BUILD / "bench" / "cells_floor"
GET = FLOOR.with_name("get")


class Absent(Failed):
    """What a program needs is not on this machine; the text says what, and how to have it."""


def run(*command: object, within: Sequence[str] = ()) -> Result:
    return run_json([*within, *command], timeout=1800)


@dataclass
class Pythons:
    """The interpreters of the other loaders: the newest zarr with annbatch, and bionemo-scdl."""

    python312: Path = PYTHON_312
    python_scdl: Path = PYTHON_SCDL

    def need(self, python: Path, module: str) -> Path:
        if not has(python, module):
            raise Absent(f"{module} is not in {python.parent.parent.name}: run bench/venvs.sh cells")
        return python

    def plain(self) -> Path:
        """One that has numpy, for programs that need no more."""
        return next((p for p in (self.python312, PYTHON_311) if has(p, "numpy")), Path(sys.executable))


def has(python: Path, *modules: str) -> bool:
    look = "import sys, importlib.util as u; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))"
    return python.exists() and not subprocess.run([python, "-c", look, *modules], check=False).returncode


def atlas(folder: Path, pythons: Pythons) -> None:
    """Make what of the atlas is not there; Absent if it cannot be made."""
    missing = [name for name in ATLAS_LAYOUTS if not (folder / name).exists()]
    if not missing:
        return
    wanted = ("numpy", "pandas", "pyarrow", "zarr")
    python = next((p for p in (pythons.python312, pythons.python_scdl) if has(p, *wanted)), None)
    if python is None:
        raise Absent(f"no atlas in {folder}, and nothing to make it with: run bench/venvs.sh cells")
    room = next(p for p in (folder, *folder.resolve().parents) if p.exists())
    free, needed = shutil.disk_usage(room).free, ATLAS_BYTES * len(missing) // len(ATLAS_LAYOUTS)
    if free < needed:
        raise Absent(f"the atlas takes {needed >> 30} GiB more, but {free >> 30} GiB are free in {room}")
    print(f"single cells: making {', '.join(missing)} in {folder}, once", flush=True)
    subprocess.run([python, "-W", "ignore", HERE / "cells" / "make.py", folder], check=True)


class Programs:
    """How each loader is started."""

    def __init__(self, folder: Path, floor: Path, get: Path, pythons: Pythons) -> None:
        self.folder, self.floor, self.get, self.pythons = folder, floor, get, pythons

    def where(self, layout: str, url: str | None) -> str:
        return f"{url}/{layout}" if url else str(self.folder / layout)

    def gather(self) -> Result:
        return run(self.floor, "gather", self.folder / "scdl")

    def decode(self, layout: str) -> Result:
        return run(self.floor, "decode", self.folder / f"{layout}.chunks", self.folder / "scdl" / "row_ptr.npy")

    def script(
        self, python: Path, name: str, layout: str, url: str | None, within: Sequence[str], *more: object
    ) -> Result:
        return run(
            python, "-W", "ignore", HERE / "cells" / name, "--atlas", self.where(layout, url), *more, within=within
        )

    def bionemo_python(self) -> Path:
        return self.pythons.need(self.pythons.python_scdl, "bionemo")

    def memmap(self, *more: object) -> Result:
        return self.script(self.pythons.plain(), "memmap.py", "scdl", None, (), *more)

    def bionemo(self, *more: object) -> Result:
        return self.script(self.bionemo_python(), "bionemo_loader.py", "scdl", None, (), *more)

    def annbatch(self, layout: str, *more: object, url: str | None = None, within: Sequence[str] = ()) -> Result:
        python = self.pythons.need(self.pythons.python312, "annbatch")
        return self.script(python, "annbatch_loader.py", layout, url, within, *more)

    def proposal(self, layout: str, url: str, *more: object, within: Sequence[str] = ()) -> Result:
        rows = int(layout[5:-1]) * 1000
        return self.script(self.bionemo_python(), "scdl_remote.py", layout, url, within, "--chunk-rows", rows, *more)

    def headrace(self, layout: str, *more: object, url: str | None = None, within: Sequence[str] = ()) -> Result:
        return self.script(Path(sys.executable), "headrace_cells.py", layout, url, within, *more)
