"""The demo's real cells: 700 of human blood (10x Genomics' PBMC 68k, reduced), a file that the package scanpy brings.

Only that file is read: scanpy is never imported, so that ``pip install --no-deps scanpy`` is enough.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr

FILE = "10x_pbmc68k_reduced.h5ad"
TYPES, PICTURE = "bulk_labels", "X_umap"
ROWS, SEED, EPOCHS, LEARNING = 64, 1, 20, 30
PROGRAM = """import headrace as hr

cells = hr.open("cells.zarr").cells(layer="raw", obs=["bulk_labels"], obsm=["X_umap"])
train, held_out = cells.split(0.8, 0.2, blocks=70, seed=1)
for batch in train.batches(64, shuffle=True, weights={"bulk_labels": "balanced"}):
    x = batch["X"].torch()             # sparse, (64, 765) float32, no copy
    y = batch["bulk_labels"].torch()   # (64,) int8: codes of 10 types"""


@dataclass
class Told:
    """What streaming the cells came to."""

    path: Path
    types: list[str] = field(default_factory=list)
    speeds: dict[str, float] = field(default_factory=dict)  # cells a second, by form
    shapes: dict[str, str] = field(default_factory=dict)
    equal: int = 0  # cells whose row is the file's, to the bit
    total: int = 0
    at: Any = None  # where each cell lies in the picture, and its type
    codes: Any = None
    batch: Any = None  # ids of the first balanced batch
    drawn: Any = None  # how often each type came in the balanced epochs
    right: int = 0
    held_out: int = 0


def source() -> Path | None:
    """The file, where scanpy is installed; or without any of what it requires."""
    found = importlib.util.find_spec("scanpy")
    places = list(found.submodule_search_locations or ()) if found else []
    return next((p for place in places if (p := Path(place, "datasets", FILE)).exists()), None)


def missing() -> str:
    """What is to be done before cells can be shown; "" where nothing is."""
    needed = [] if importlib.util.find_spec("anndata") else ["pip install anndata"]
    return " && ".join(needed + ([] if source() else ["pip install --no-deps scanpy"]))


def atlas(folder: Path) -> Path:
    """cells.zarr: made by `headrace cells chunk`, and kept."""
    from headrace._cli.cells_chunk import arguments, convert

    path = folder / "cells.zarr"
    if not path.exists():
        convert(arguments([str(source()), str(path), "--format", "anndata"]))
    return path


def stream(path: Path) -> Told:
    told = Told(path)
    archive = hr.open(path)
    forms: dict[str, Any] = {"csr": "csr", "padded": hr.padded(256, pick="random"), "ranked": hr.ranked(256)}
    for name, form in forms.items():
        _time(told, name, archive.cells(form, layer="raw"))
    cells = archive.cells(layer="raw", obs=[TYPES], obsm=[PICTURE])
    told.types = [str(t) for t in cells.obs[TYPES].categories]
    told.total = len(cells)
    _compare(told, cells)
    _learn(told, archive)
    return told


def _time(told: Told, name: str, cells: Any) -> None:
    """Whole epochs, shuffled, from a loader that has been asked for nothing yet."""
    with cells.batches(ROWS, shuffle=True, seed=SEED, memory="64MiB") as loader:
        start, rows = time.perf_counter(), 0
        for _ in range(EPOCHS):
            for batch in loader:
                rows += len(batch)
        told.speeds[name] = rows / (time.perf_counter() - start)
        tensors = [(n, t) for n, t in batch.items()]
    told.shapes[name] = ", ".join(f"{n} {'×'.join(map(str, t.shape))} {t.dtype}" for n, t in tensors)


def _compare(told: Told, cells: Any) -> None:
    """Every cell of a shuffled epoch against the row of the file that scanpy brings, read with h5py alone."""
    import h5py

    with h5py.File(source(), "r") as file:
        indptr, indices, data = (file["raw.X"][n][...] for n in ("indptr", "indices", "data"))
    told.at, told.codes = np.zeros((told.total, 2)), np.full(told.total, -1)
    with cells.batches(ROWS, shuffle=True, seed=SEED, remainder="short", memory="64MiB") as loader:
        for batch in loader:
            x, ids = batch["X"].numpy(), batch.index.numpy()
            told.at[ids], told.codes[ids] = batch[PICTURE].numpy(), batch[TYPES].numpy()
            for row, i in enumerate(ids):
                here, there = slice(*x["indptr"][row : row + 2]), slice(*indptr[i : i + 2])
                order = np.argsort(indices[there])  # genes of a row ascend in a batch
                same = np.array_equal(x["indices"][here], indices[there][order])
                told.equal += int(same and np.array_equal(x["data"][here], data[there][order]))


def _learn(told: Told, archive: Any) -> None:
    """A linear model of the types, by gradient descent on batches in which each comes as often."""
    cells = archive.cells("dense", layer="raw", obs=[TYPES])
    train, held_out = cells.split(0.8, 0.2, blocks=70, seed=SEED)
    n = len(told.types)
    weights: Any = np.zeros((len(cells.genes), n), "f4")
    told.drawn = np.zeros(n, int)
    with train.batches(ROWS, shuffle=True, seed=SEED, weights={TYPES: "balanced"}, memory="64MiB") as loader:
        for _ in range(LEARNING):
            for batch in loader:
                x, y = batch["X"].numpy(), batch[TYPES].numpy()
                if told.batch is None:
                    told.batch = batch.index.numpy().copy()
                told.drawn += np.bincount(y, minlength=n)
                weights -= x.T @ (_softmax(x @ weights) - np.eye(n, dtype="f4")[y]) * (0.05 / len(y))
    with held_out.batches(ROWS, memory="64MiB") as loader:
        for batch in loader:
            told.right += int((np.argmax(batch["X"].numpy() @ weights, 1) == batch[TYPES].numpy()).sum())
            told.held_out += len(batch)


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def lines(told: Told, disk: Callable[[Path], str]) -> list[str]:
    """For a terminal, in rich's markup."""
    from headrace._cli.cells_page import WORDS

    said = [f"{told.path.name:<16} {f'real: {told.total} cells of human blood, from scanpy':<50} {disk(told.path):>7}"]
    said += [f"{WORDS[n]:<36} {told.speeds[n]:>9,.0f} cells/s" for n in told.speeds]
    mark = "[green]✔[/green]" if told.equal == told.total else "[red]✘[/red]"
    said.append(f"{mark} {told.equal} of {told.total} rows of a shuffled epoch are the file's, to the bit")
    mark = "[green]✔[/green]" if 2 * told.right > told.held_out else "[red]✘[/red]"
    said.append(f"{mark} a linear model, fed each of {len(told.types)} types as often, names {told.right} of "
                f"{told.held_out} held-out cells right")  # fmt: skip
    return said
