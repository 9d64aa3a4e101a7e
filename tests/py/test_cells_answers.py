"""What users of cells meet besides batches: shapes, data frames, dense copies, and errors that say what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
import scdl_make
from atlases import atlas, write

pd = pytest.importorskip("pandas")
N, GENES = 60, 40
PROGRAM = shutil.which("headrace", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "headrace"


@pytest.fixture(scope="module")
def made() -> Any:
    return atlas(N, GENES)


@pytest.fixture(scope="module")
def path(made: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(made, tmp_path_factory.mktemp("answers") / "a.zarr")


def test_frames_become_those_of_pandas(made: Any, path: str) -> None:
    cells = hr.open(path).cells()
    found = cells.obs.to_pandas()
    assert list(found.columns) == list(made.obs.columns) and found.index.tolist() == made.obs.index.tolist()
    for name in made.obs:
        wanted, column = made.obs[name], found[name]
        assert column.isna().tolist() == wanted.isna().tolist(), name
        there = ~wanted.isna()
        assert column[there].tolist() == wanted[there].tolist(), name
        if wanted.dtype.kind in "biuf" or str(wanted.dtype) in ("category", "Int64", "boolean"):
            assert column.dtype == wanted.dtype or str(wanted.dtype) == "category", name
    assert found["stage"].cat.ordered and found["stage"].cat.categories.tolist() == ["early", "mid", "late"]
    assert list(cells.obs.to_pandas(["score", "donor"])) == ["score", "donor"]
    assert cells.var.to_pandas()["gene_ids"].tolist() == made.var["gene_ids"].tolist()
    with pytest.raises(hr.NotFoundError, match="obs has no column 'scores'; did you mean 'score'"):
        cells.obs.to_pandas(["scores"])


def test_shapes_and_dense_copies(made: Any, path: str) -> None:
    cells = hr.open(path).cells(genes=["g3", "g1"])
    assert cells.shape == (N, 2) and cells.where("is_doublet").shape == (int(made.obs["is_doublet"].sum()), 2)
    for batch in hr.open(path).cells().batches(16):
        dense = batch["X"].toarray()
        assert dense.dtype == np.float32
        np.testing.assert_array_equal(dense, made.X[batch.index.numpy()].toarray())


@pytest.mark.parametrize("genes", [[5, 2, 7], np.array([5, 2, 7], np.uint8), pd.Series([5, 2, 7])])
def test_genes_by_position(made: Any, path: str, genes: Any) -> None:
    cells = hr.open(path).cells("dense", genes=genes)
    assert cells.genes.tolist() == ["g5", "g2", "g7"]
    for batch in cells.batches(16):
        np.testing.assert_array_equal(batch["X"].numpy(), made.X[batch.index.numpy()][:, [5, 2, 7]].toarray())


def test_a_vocabulary_joins(made: Any, path: str, tmp_path: Path) -> None:
    other = write(atlas(30, 50, seed=4), tmp_path / "b.zarr")
    vocabulary = {"g44": 0, "g3": 1, "g17": 2}
    cells = hr.cells([path, other], join=vocabulary)
    assert cells.genes.tolist() == list(vocabulary)
    assert hr.cells([path, other], join=list(vocabulary)).genes.tolist() == list(vocabulary)


WRONG: dict[str, Callable[[Any], Any]] = {
    "genes: 1 of 1 are not in this archive: ENSg1; column 'gene_ids' of var has it: var=\"gene_ids\"":
        lambda a: a.cells(genes=["ENSg1"]),
    "genes: 2 of 3 are not in .*; column 'gene_ids' of var has such names":
        lambda a: a.cells(genes=["g1", "ENSg1", "ENSg2"]),
    "genes=40: positions of genes are from 0 to 39": lambda a: a.cells(genes=[3, 40]),
    "genes=.*a gene is named once": lambda a: a.cells(genes=[3, 3]),
    "genes=1.5: a list of names or positions of genes, or a boolean for each gene, is expected, not float":
        lambda a: a.cells(genes=[1.5]),
    "genes=.*is expected, not set": lambda a: a.cells(genes={"g1"}),
    "join=7: a list of names is expected": lambda a: hr.cells([a, a], join=7),
    "join: 1 of 2 are not in any of the 2 data sets: nope": lambda a: hr.cells([a, a], join=["g1", "nope"]),
    "neighbors=.*as {'connectivities': 8}, is expected": lambda a: a.cells(neighbors=["connectivities"]),
    "no samples to make batches of: none of 60 along obs was chosen": lambda a: a.cells().where("n_genes < 0").batches(4),
    "seed=1: runs in archive order have no seed: blocks=100 deals": lambda a: a.cells().split(0.8, 0.2, seed=1),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_errors_say_what_to_do(path: str, message: str) -> None:
    with pytest.raises(hr.Error, match=message):
        WRONG[message](hr.open(path))


def test_plans_name_the_form_and_where_columns_belong(path: str) -> None:
    cells = hr.open(path).cells(obs=["cell_type"])
    plan = str(cells.batches(8, shuffle=True, stratify="cell_type", weights={"cell_type": "balanced"}).plan())
    assert re.search(r"^batch +X +\(8, 40\) csr float32$", plan, re.M)
    lines = plan.splitlines()
    at = next(i for i, line in enumerate(lines) if "variance by column: cell_type" in line)
    heads = [line.split()[0] for line in lines[: at + 1] if not line.startswith(" ")]
    assert heads[-1] == "shuffle", plan


def test_an_atlas_of_many_chunks_prints_few_of_them(tmp_path: Path) -> None:
    path = scdl_make.write(tmp_path / "chunked", scdl_make.Cells(1205, 20), 100, features=True)
    archive = hr.open(path)
    lines = str(archive).splitlines()
    assert len(lines) == 2 + 2 * 4 + 1 and lines[-1] == "… and 11 more chunks like these"
    assert "and 11 more chunks like these" in archive._repr_html_() and "chunk_00005" not in archive._repr_html_()
    printed = subprocess.run([PROGRAM, "inspect", path], capture_output=True, text=True, check=True,
                             env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.splitlines()  # fmt: skip
    assert printed[1:] == lines[1:]
    few = scdl_make.write(tmp_path / "few", scdl_make.Cells(300, 20), 100, features=True)
    assert "chunk_00002/" in str(hr.open(few)) and "more" not in str(hr.open(few))
    assert "of 13 chunks: 1,205 cells × 20 genes" in str(archive.cells())


def test_a_sparse_matrix_is_no_array(path: str) -> None:
    archive = hr.open(path)
    for wrong in (lambda: archive["X"], lambda: archive.samples(along="obs", X="X")):
        with pytest.raises(hr.NotFoundError, match=r'"X" is a sparse matrix, .*archive\.cells\(\).*"X/data"'):
            wrong()
    with pytest.raises(hr.NotFoundError, match='"obs" is a group, not an array'):
        archive["obs"]


def test_coordinates_print_their_names(path: str) -> None:
    assert repr(hr.open(path).cells().coords).startswith("<coordinates of obs: cell_type, stage, batch, ")


def test_scdl_without_pyarrow(tmp_path: Path) -> None:
    """Its matrix can be read all the same, by who says how many genes there are."""
    where = scdl_make.write(tmp_path / "s", scdl_make.Cells(30, 20), features=True)
    program = f"""
import sys
sys.modules["pyarrow"] = None
import headrace as hr
archive = hr.open({str(where)!r})
cells = archive.cells(genes=20)
assert sum(len(b) for b in cells.batches(8)) == 30 and cells.shape == (30, 20)
for wrong in (lambda: archive.cells(), lambda: cells.obs["n"], lambda: archive.cells(genes=20, obs=["n"])):
    try:
        wrong()
    except hr.UnsupportedError as e:
        print(e)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all("pip install 'headrace[cells]'" in line for line in lines), done.stderr
    assert "cells(genes=20000)" in lines[0] and lines[1].startswith("obs['n']")


def test_whole_numbers_of_a_float_column_stay_floats() -> None:
    from headrace._frame import FrameColumn

    mask = np.array([False, True, False])
    ages = FrameColumn("age", numbers=np.array([34.0, 0.0, 51.0]), mask=mask).to_pandas()
    assert ages.dtype == np.float64 and np.isnan(ages[1]) and ages[2] == 51
    counts = FrameColumn("n", numbers=np.array([34, 0, 51], ">u2"), mask=mask).to_pandas()
    assert str(counts.dtype) == "UInt16" and counts.isna().tolist() == mask.tolist()


def test_a_budget_that_is_too_small_names_the_runs_of_cells(path: str) -> None:
    with pytest.raises(hr.BudgetError, match=r"Runs of fewer cells take less, too: row_chunk=\d+, say"):
        hr.open(path).cells().batches(4, memory=2000)
