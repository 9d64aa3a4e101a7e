"""Metadata of atlases with something else in one place: what comes of it is an error in one line, or batches."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from atlases import atlas, write

JUNK: tuple[Any, ...] = (
    None, 5, -1, 0, "x", "", [], [1], ["a", "b"], {}, {"a": 1}, True, 1.5, 1e30, [None], [20, "x"], [20, -5], [20, 2.5],
    [20, 1e30], [20, 0], [20, None], [20, 6, 3], ["20", "6"], 10**30, "..", "a/b", "csc_matrix", "dataframe", "categorical",
    "\0", ["_index", "_index"], [["x"]], [{}], [20, 10**12], [20, 3], "DELETE",
)  # fmt: skip
DOCUMENTS = (".zattrs", ".zarray", ".zgroup", "zarr.json")


def places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = document.items() if isinstance(document, dict) else ()
    for key, value in inside:
        yield (*above, key)
        yield from places(value, (*above, key))


def changed(document: Any, place: tuple[Any, ...], value: Any) -> str:
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    if value == "DELETE":
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return json.dumps(document)


def read(path: Path, r: random.Random) -> None:
    archive = hr.open(path)
    repr(archive)
    form = r.choice(("csr", "dense", hr.padded(3), hr.ranked(3)))
    cells = archive.cells(form, obs=["cell_type", "n_genes", "age", "donor"], obsm=["X_pca"])
    repr(cells), repr(cells.obs), cells.genes, cells.obs.index, cells.var.columns
    for batch in cells.batches(16):
        batch.obs("cell_type")


@pytest.mark.parametrize("version", [2, 3])
def test_whatever_stands_in_metadata_is_read_or_refused(tmp_path: Path, version: int) -> None:
    path = Path(write(atlas(20, 6), tmp_path / "a.zarr", version))
    (path / ".zmetadata").unlink(missing_ok=True)
    if version == 3:
        whole = json.loads((path / "zarr.json").read_text())
        whole.pop("consolidated_metadata", None)
        (path / "zarr.json").write_text(json.dumps(whole))
    r = random.Random(version)
    documents = [
        f for name in DOCUMENTS for f in sorted(path.rglob(name)) if f.parent.parts[-1] not in ("layers", "uns")
    ]
    for _ in range(150):
        document = r.choice(documents)
        before = document.read_text()
        known = list(places(json.loads(before)))
        attributes = [p for p in known if "attributes" in p] or known
        place = r.choice(r.choice((known, attributes))) if known else ("new",)
        value = r.choice(JUNK) if known else 5
        document.write_text(changed(json.loads(before), place, value))
        try:
            read(path, r)
        except hr.Error as e:
            assert "\n" not in str(e) and len(str(e)) < 700
        except Exception as e:
            pytest.fail(f"{document.relative_to(path)} {place} = {value!r}: {type(e).__name__}: {e}")
        document.write_text(before)


@pytest.mark.parametrize(
    ("document", "place", "value", "says"),
    [
        ("X/.zattrs", ("shape",), [20, "6"], r"its attribute shape is \[20, '6'\]: two numbers"),
        ("X/.zattrs", ("shape",), [20, 2.5], r"its attribute shape is \[20, 2.5\]: two numbers"),
        ("X/indptr/.zarray", ("zarr_format",), 10**30, r"X/indptr/.zarray: zarr_format is a number, 2 is expected"),
        ("X/indptr/.zarray", ("shape",), [3, 7], r"X/indptr has 2 dimensions; indptr of a sparse matrix has 1|chunks"),
        (
            "obs/.zattrs",
            ("column-order",),
            1e30,
            r"obs: its attributes column-order and _index are 1e\+30 and '_index'",
        ),
        (
            "obs/.zattrs",
            ("column-order",),
            "abc",
            r"obs: its attributes column-order and _index are 'abc' and '_index'",
        ),
        ("obsm/X_pca/.zarray", ("dtype",), [20, 10**12], r"obsm/X_pca: values of type raw are no numbers|dtype"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, document: str, place: Any, value: Any, says: str) -> None:
    path = Path(write(atlas(20, 6), tmp_path / "a.zarr", 2))
    (path / ".zmetadata").unlink()
    (path / document).write_text(changed(json.loads((path / document).read_text()), place, value))
    with pytest.raises(hr.Error, match=says):
        hr.open(path).cells(obs=["cell_type"], obsm=["X_pca"])
