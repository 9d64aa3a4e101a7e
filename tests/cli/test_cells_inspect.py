"""headrace inspect, cells inspect and cells bench on atlases."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest
from program import climate, good, run

import headrace as hr

pytest.importorskip("anndata")
from atlases_cli import ad, cells, scdl, sp


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "a.zarr"
    before = ad.settings.zarr_write_format
    ad.settings.zarr_write_format = 3
    cells().write_zarr(path)
    ad.settings.zarr_write_format = before
    cells().write_h5ad(path.with_suffix(".h5ad"))
    return path


def summary() -> str:
    return f"900 cells × 300 genes, CSR float32, {cells().X.nnz:,} non-zeros"


def test_inspect_begins_with_what_an_atlas_holds(atlas: Path) -> None:
    lines = good("inspect", atlas).splitlines()
    assert lines[1] == summary() and lines[2].startswith("├─ X")
    assert repr(hr.open(str(atlas))).splitlines()[1:] == lines[1:]
    assert good("inspect", atlas, LC_ALL="C").splitlines()[1] == summary().replace("×", "x")
    assert "cells" not in good("inspect", climate()), "other archives are shown as before"


def test_inspect_knows_all_kinds(tmp_path: Path) -> None:
    made = cells(300)
    del made.raw
    made.layers.clear()
    dense, by_genes = made.copy(), made.copy()
    dense.X, by_genes.X = made.X.toarray(), sp.csc_matrix(made.X)
    dense.write_zarr(tmp_path / "dense.zarr")
    by_genes.write_zarr(tmp_path / "csc.zarr")
    collection = tmp_path / "collection.zarr"
    import zarr

    root = zarr.create_group(collection, zarr_format=3)
    root.attrs.update({"encoding-type": "annbatch-preshuffled", "encoding-version": "0.1.0"})
    for i in range(2):
        ad.io.write_elem(root, f"dataset_{i}", made)
    n = f"{made.X.nnz:,}"
    plain = scdl(tmp_path / "plain", made)
    good("cells", "chunk", plain, tmp_path / "chunked", "--chunk-size", 100)
    for name, line in (
        ("dense.zarr", "300 cells × 300 genes, dense float32"),
        ("csc.zarr", f"300 cells × 300 genes, CSC float32, {n} non-zeros"),
        ("collection.zarr", f"600 cells × 300 genes, CSR float32, {2 * made.X.nnz:,} non-zeros, in 2 data sets"),
        ("plain", f"300 cells, CSR float32, {n} non-zeros"),
        ("chunked", f"300 cells, CSR float32, {n} non-zeros"),
    ):
        lines = good("inspect", tmp_path / name).splitlines()
        assert lines[1] == line and repr(hr.open(str(tmp_path / name))).splitlines()[1] == line
    assert "300 cells × 300 genes" in good("cells", "inspect", tmp_path / "chunked"), "the parquet says how many"
    assert "stored by genes" in good("cells", "inspect", tmp_path / "csc.zarr")


def test_cells_inspect(atlas: Path) -> None:
    text = good("cells", "inspect", atlas)
    for part in (
        summary(),
        "non-zeros on average",
        "categories (3)",
        "n_counts",
        "score",
        "twice",
        "raw",
        "pca",
        "reading",
    ):
        assert part in text, part
    facts = json.loads(good("cells", "inspect", atlas, "--json"))
    assert (facts["cells"], facts["genes"], facts["nnz"]) == (900, 300, cells().X.nnz)
    assert facts["obs"]["cell_type"] == {"kind": "categories", "categories": 3}
    assert facts["layers"] == ["dense", "twice", "raw"] and facts["obsm"] == {"pca": [5]}
    assert facts["reading"]["chunk_reads"] >= facts["reading"]["chunks"]
    other = json.loads(good("cells", "inspect", atlas.with_suffix(".h5ad"), "--json"))
    same = ("cells", "genes", "nnz", "obs", "var", "layers", "obsm", "obsp", "summary")
    assert {k: other[k] for k in same} == {k: facts[k] for k in same}
    assert "chunk" in other["advice"][0]
    done = run("cells", "inspect", climate())
    assert done.returncode == 1 and "no atlas of single cells" in done.stderr


def test_bench_measures_each_from_a_cold_start(atlas: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"b.{kind}" for kind in ("csv", "json", "svg")]
    before = sorted(atlas.parent.iterdir())
    text = good(
        "cells", "bench", atlas, "--against", f"chunked,served,{atlas}", "--seconds", 0.5, "--epochs", 2,
        "--csv", files[0], "--json", files[1], "--picture", files[2],
    )  # fmt: skip
    assert "samples/s" in text and "first batch" in text and sorted(atlas.parent.iterdir()) == before
    rows = list(csv.DictReader(files[0].open()))
    runs = json.loads(files[1].read_text())["runs"]
    assert [r["label"] for r in rows] == [r["label"] for r in runs] == ["source", "chunked", "served", str(atlas)]
    for r in runs:
        assert r["samples"] == sum([r["epochs"]]) * 896 or r["seconds"] >= 0.5
        assert 0 < r["open_seconds"] <= r["first_batch_seconds"] <= r["seconds"]
        assert r["samples_per_second"] == pytest.approx(r["samples"] / r["seconds"])
        assert r["fetched_bytes"] > 0 and r["chunks_again"] == 0 and r["peak_memory"] > 0
        assert r["series"][-1][1] == r["samples"]
    picture = xml.etree.ElementTree.parse(files[2]).getroot()
    assert len(picture.findall("{*}polyline")) == 4
    done = run("cells", "bench", climate(), "--seconds", 0.1)
    assert done.returncode == 1 and done.stderr.startswith("headrace: ")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_bench_goes_on_where_one_fails(atlas: Path, tmp_path: Path) -> None:
    words = ("--epochs", 1, "--form", "ranked", "--layer", "raw", "--csv", tmp_path / "b.csv")
    done = run("cells", "bench", atlas, "--against", f"{climate()},{atlas}", *words)
    assert done.returncode == 1 and done.stderr.startswith(f"headrace: {climate()}: ")
    assert done.stderr.count("\n") == 1 and "samples/s" in done.stdout
    assert [r["label"] for r in csv.DictReader((tmp_path / "b.csv").open())] == ["source", str(atlas)]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['anndata'] = None; from headrace._cli import main; sys.exit(main(['cells', 'chunk']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1 and "pip install 'headrace[cells]'" in done.stderr and "anndata" in done.stderr


def test_pyarrow_is_for_scdl_alone(atlas: Path, tmp_path: Path) -> None:
    """What the demo leaves behind is looked at with what the demo installs."""
    scdl = tmp_path / "scdl"
    good("cells", "chunk", atlas, scdl)
    for words, status in (
        (("inspect", atlas), 0), (("chunk", atlas, tmp_path / "a.zarr"), 0), (("inspect", scdl), 1),
        (("chunk", scdl, tmp_path / "b.zarr"), 1), (("chunk", atlas, tmp_path / "c"), 1),
    ):  # fmt: skip
        program = f"import sys; sys.modules['pyarrow'] = None; from headrace._cli import main; " \
                  f"sys.exit(main({['cells', *map(str, words)]!r}))"  # fmt: skip
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == status, (words, done.stderr)
        assert not status or ("pip install 'headrace[cells]'" in done.stderr and done.stderr.count("\n") == 1), (
            done.stderr
        )


def test_usage() -> None:
    for command in ((), ("chunk",), ("inspect",), ("bench",)):
        done = run("cells", *command, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"usage: headrace cells {' '.join(command)}")
    assert run("cells").returncode == run("cells", "chop").returncode == run("cells", "chunk", "a").returncode == 2
    assert "there are chunk, inspect, bench" in run("cells", "chop").stderr
    for words, said in (
        (("chunk", "a"), "cells chunk: the following arguments are required: DST"),
        (("chunk", "a", "b", "--memory", "abc"), "cells chunk: argument --memory: 'abc' is no size, such as 256MiB"),
        (("bench", "a", "--options", "{"), "cells bench: argument --options: '{' is no JSON object"),
        (("inspect",), "cells inspect: the following arguments are required: ARCHIVE"),
    ):
        done = run("cells", *words)
        assert done.returncode == 2 and done.stderr.startswith(f"headrace: {said}"), done.stderr
        assert done.stderr.endswith(f"; 'headrace cells {words[0]} --help'\n") and done.stderr.count("\n") == 1
    for command in (("cells", "inspect"), ("cells", "bench"), ("verify",)):
        done = run(*command, "nowhere.h5ad")
        assert (done.returncode, done.stderr) == (1, "headrace: nowhere.h5ad: there is no such file or directory\n")


def test_obsm_says_what_a_cell_has_of_it(tmp_path: Path) -> None:
    import pandas as pd

    made = cells()
    made.obsm["table"] = pd.DataFrame({"a": np.arange(made.n_obs)}, index=made.obs_names)
    made.write_h5ad(tmp_path / "a.h5ad")
    assert "pca (5), table (data frame)" in good("cells", "inspect", tmp_path / "a.h5ad")


def test_groups_have_near_names_too(atlas: Path) -> None:
    done = run("inspect", atlas, "obs/celltype")
    assert done.returncode == 1 and done.stderr.endswith("did you mean 'obs/cell_type'?\n"), done.stderr


def test_bench_says_which_path_it_could_not_time() -> None:
    done = run("cells", "bench", climate(), "--seconds", 0.1)
    assert done.returncode == 1 and done.stderr.startswith(f"headrace: {climate()}: "), done.stderr
