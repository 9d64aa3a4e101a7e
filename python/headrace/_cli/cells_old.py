"""h5ad files of anndata before 0.7, whose tables are HDF5 compounds and whose raw is beside X: read as newer ones are.

anndata still reads them, whole. Such a file is written again once a process, as it is written today, into a folder of
its own that is removed at the end.
"""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any


def is_old(file: Any) -> bool:
    """Of an h5py file."""
    return "raw.X" in file or any(hasattr(file.get(name), "dtype") for name in ("obs", "var"))


def opened(path: Path) -> Any:
    """An h5py file as anndata of today would have written it."""
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path}: no HDF5 file that can be opened: {error}") from None
    if not is_old(file):
        return file
    file.close()
    stat = path.stat()
    return h5py.File(_again(path.absolute(), stat.st_size, stat.st_mtime_ns), "r")


@cache
def _again(path: Path, size: int, changed: int) -> Path:
    from anndata import read_h5ad

    folder = tempfile.TemporaryDirectory(prefix="headrace-old-h5ad-")
    _kept.append(folder)
    target = Path(folder.name, "new.h5ad")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is old is no news
            read_h5ad(path).write_h5ad(target)
    except Exception as error:
        line = " ".join(str(error).split())
        raise ValueError(f"{path}: written by anndata before 0.7, and the one here cannot read it: {line}") from None
    return target


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed at exit
