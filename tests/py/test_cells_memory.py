"""What a cell costs: many cells that were written as a few chunks, in a process of their own, whose peak is looked at.

Chunks that do not exist are fill values, so an atlas of any size is a few files."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import headrace as hr

N, PIECE, GENES = 4_000_000, 1 << 16, 50
TYPES, DONORS = 40, 500

_PROBE = """
import sys
import numpy as np, headrace as hr

def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) << 10

hr.open(sys.argv[2]).cells(obs=["cell_type"]).sentences(4, by="cell_type").where("cell_type == 'type 1'")  # imports
before = status("VmRSS")
archive = hr.open(sys.argv[1])
cells = archive.cells(obs=sys.argv[3].split(",") if sys.argv[3] else [])
{work}
print(status("VmHWM") - before)
"""


def _put(path: pathlib.Path, name: str, document: Any) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(json.dumps(document))


def _group(path: pathlib.Path, **attributes: Any) -> None:
    _put(path, ".zgroup", {"zarr_format": 2})
    _put(path, ".zattrs", attributes)


def _array(path: pathlib.Path, n: int, dtype: str, chunks: Any = (), **attributes: Any) -> None:
    """`chunks`: the stored ones, again and again; none: all of it is 0."""
    meta = {"zarr_format": 2, "shape": [n], "chunks": [PIECE], "dtype": dtype, "compressor": None, "fill_value": 0}
    _put(path, ".zarray", {**meta, "order": "C", "filters": None})
    _put(path, ".zattrs", attributes)
    for i in range(-(-n // PIECE) if len(chunks) else 0):
        if i < len(chunks):
            (path / str(i)).write_bytes(chunks[i].astype(dtype).tobytes())
        else:
            (path / str(i)).hardlink_to(path / str(i % len(chunks)))


def atlas_of(path: pathlib.Path, n: int) -> str:
    rng = np.random.default_rng(0)
    _group(path, **{"encoding-type": "anndata", "encoding-version": "0.1.0"})
    _group(path / "X", **{"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n, GENES]})
    for name, dtype in (("data", "<f4"), ("indices", "<i4")):
        _array(path / "X" / name, 4 * n, dtype)
    _array(path / "X/indptr", n + 1, "<i8", [4 * np.arange(k, k + PIECE) for k in range(0, n + 1, PIECE)])
    for frame, columns in (("obs", ["cell_type", "donor", "score"]), ("var", ["number"])):
        _group(path / frame, **{"encoding-type": "dataframe", "encoding-version": "0.2.0", "column-order": columns})
    _array(path / "var/number", GENES, "<i4")
    _array(path / "obs/score", n, "<f8", [rng.random(PIECE)])
    for name, dtype, count in (("cell_type", "|i1", TYPES), ("donor", "<i2", DONORS)):
        _group(path / "obs" / name, **{"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False})
        _array(path / "obs" / name / "codes", n, dtype, [rng.integers(-1, count, PIECE) for _ in range(3)])
        words = np.array([f"{name.split('_')[-1]} {i}" for i in range(count)], "<U12")
        _array(path / "obs" / name / "categories", count, "<U12")
        padded = np.zeros(PIECE, "<U12")
        padded[:count] = words
        (path / "obs" / name / "categories" / "0").write_bytes(padded.tobytes())
    return str(path)


@pytest.fixture(scope="module")
def atlases(tmp_path_factory: Any) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("many")
    return atlas_of(folder / "many", N), atlas_of(folder / "few", 1000)


MASK, BITS = 1, 0.5  # bytes a cell: a boolean; bits and their counts, twice
CASES = {
    "opened": ("", "", 1),
    "columns, held once": ("cell_type,donor,score", "", 1 + 2 + 8 + 1),
    "a condition": ("", "made = cells.where(\"cell_type == 'type 3' and score < 0.5\")", 1 + 8 + MASK + BITS),
    "a split": ("", 'made = cells.split(0.8, 0.2, by="donor", seed=0)', 2 + 2 * BITS),
    "balanced": ("", 'made = cells.batches(8, shuffle=True, weights={"cell_type": "balanced"})', 1 + 2 + 1 + 1),
    "sentences": ("", 'made = cells.sentences(32, by="cell_type")', 1 + 4 + 1),
    "sentences by two": ("", 'made = cells.sentences(32, by=["cell_type", "donor"])', 1 + 2 + 4 + 2 + 1),
    "controls": (
        "",
        'made = cells.sentences(32, by=["cell_type"], controls={"where": "donor == \'donor 7\'"})',
        1 + 2 + 4 + 1 + MASK + BITS,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_peak_is_some_bytes_a_cell(atlases: tuple[str, str], case: str) -> None:
    columns, work, bytes_a_cell = CASES[case]
    done = subprocess.run(
        [sys.executable, "-c", _PROBE.replace("{work}", work), *atlases, columns],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fixed = 32 << 20  # pieces of a million cells, the library's own
    assert int(done.stdout) < bytes_a_cell * N + fixed, f"{int(done.stdout) / N:.1f} bytes a cell"


def test_columns_of_obs_are_the_memory_that_batches_are_filled_from(atlases: tuple[str, str]) -> None:
    cells = hr.open(atlases[1]).cells(obs=["cell_type", "score"])
    column = cells.obs["score"].values
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 5
    loader = cells.batches(10)
    expected = column[:10].copy()
    del cells, column  # the loader holds what it needs
    assert sum(len(batch["cell_type"].numpy()) for batch in loader) == 1000
    np.testing.assert_array_equal(next(iter(loader))["score"].numpy(), expected)


@pytest.mark.parametrize("n", [5, 1 << 20, (1 << 20) + 7])
def test_a_condition_in_pieces_is_that_of_the_whole(n: int) -> None:
    from headrace._expression import evaluate
    from headrace._frame import FrameColumn

    rng = np.random.default_rng(n)
    numbers, codes = rng.integers(0, 9, n), rng.integers(-1, 3, n).astype("i1")
    columns = {
        "n": FrameColumn("n", numbers=numbers, mask=rng.random(n) < 0.2),
        "kind": FrameColumn("kind", codes=codes, categories=np.array(["a", "b", "c"], object)),
    }
    missing = columns["n"].missing
    found = evaluate("n > 4 and kind in ('a', 'c') or not kind == 'b' and n.isna()", columns.__getitem__)
    np.testing.assert_array_equal(
        found, (numbers > 4) & ~missing & ((codes == 0) | (codes == 2)) | (codes != 1) & missing
    )


def test_groups_of_columns_are_numbered_in_pieces_as_in_one() -> None:
    from headrace._codes import group_codes
    from headrace._frame import FrameColumn

    n = (1 << 20) + 99
    rng = np.random.default_rng(1)
    for most in (3, 70_000):  # looked up; searched for
        a = FrameColumn("a", codes=rng.integers(-1, most, n).astype("i4"), categories=np.arange(most))
        b = FrameColumn("b", numbers=rng.integers(0, most, n) * 7 - 5, mask=rng.random(n) < 0.1)
        c = FrameColumn("c", numbers=np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 3, n) / 3))
        codes, count = group_codes([a, b, c], n)
        there = (a.codes >= 0) & ~b.missing & ~c.missing
        assert ((codes >= 0) == there).all() and codes.max() == count - 1
        keys = np.stack([a.codes[there], b.numbers[there], np.rint(c.numbers[there] * 3)], 1).astype(np.int64)
        different, number = np.unique(keys, axis=0, return_inverse=True)
        assert count == len(different)
        np.testing.assert_array_equal(codes[there], number.reshape(-1))
