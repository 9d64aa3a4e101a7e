"""headrace cells chunk: atlases of every kind as chunked SCDL and as AnnData-Zarr in shards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from program import PROGRAM, good, run

import headrace as hr
from headrace._cli.serve import Server

pytest.importorskip("anndata")
pytest.importorskip("pyarrow")
from atlases_cli import ad, cells, contents, old_h5ad, reference_chunks, same, scdl, sp


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The same cells as h5ad, as Zarr v2 and v3."""
    folder = tmp_path_factory.mktemp("cells")
    made = cells()
    found = {"h5ad": folder / "a.h5ad", "v2": folder / "v2.zarr", "v3": folder / "v3.zarr"}
    made.write_h5ad(found["h5ad"])
    before = ad.settings.zarr_write_format
    for version in (2, 3):
        ad.settings.zarr_write_format = version
        made.write_zarr(found[f"v{version}"])
    ad.settings.zarr_write_format = before
    yield found


def test_chunked_scdl_has_the_bytes_of_the_reference(tmp_path: Path) -> None:
    for i, options in enumerate(({}, {"data_dtype": "uint16"})):
        plain = scdl(tmp_path / f"plain{i}", cells(), **options)
        for size in (1, 250, 900, 100_000) if not i else (250,):
            target = tmp_path / f"chunked{i}-{size}"
            before = contents(plain)
            said = good("cells", "chunk", plain, target, "--chunk-size", size)
            assert "all 900 rows compared" in said
            assert contents(target) == reference_chunks(plain, size)
            assert contents(plain) == before, "the source is only read"


def test_anndata_becomes_what_bionemo_makes_of_it(tmp_path: Path, sources: dict[str, Path]) -> None:
    wanted = reference_chunks(scdl(tmp_path / "plain", cells()), 250)
    for name, source in sources.items():
        target = tmp_path / f"of-{name}"
        good("cells", "chunk", source, target, "--chunk-size", 250)
        found = contents(target)
        differ = {k for k in found.keys() | wanted.keys() if found.get(k) != wanted.get(k)}
        assert {Path(k).name for k in differ} == {"labels.npy", "labels.json"}, "which name the source"
        labels = json.loads(found["obs_features/labels.json"])
        assert labels == [str(source)] == np.load(target / "var_features/labels.npy").tolist()


def test_every_row_of_chunked_scdl_is_read_back(tmp_path: Path, sources: dict[str, Path]) -> None:
    target = tmp_path / "chunked"
    good("cells", "chunk", sources["h5ad"], target, "--chunk-size", 77, "--layer", "twice")
    wanted = cells().layers["twice"]
    for k in range(12):
        part = hr.open(str(target))
        arrays = [part[f"chunk_{k:05d}/{n}"][...] for n in ("data", "indices", "indptr")]
        rows = wanted[k * 77 : (k + 1) * 77]
        assert (sp.csr_matrix(tuple(arrays), shape=rows.shape) != rows).nnz == 0


@pytest.mark.parametrize("source", ["h5ad", "v2", "v3"])
def test_anndata_in_shards_is_read_back_equal(tmp_path: Path, sources: dict[str, Path], source: str) -> None:
    target = tmp_path / "sharded.zarr"
    said = good("cells", "chunk", sources[source], target, "--format", "anndata", "--shard-bytes", "20kB")
    assert "all 900 rows compared" in said
    same(ad.read_zarr(target), cells())
    x = zarr.open_group(target)["X"]
    mean = round(cells().X.nnz / 900)
    assert x["data"].chunks == x["indices"].chunks == (64 * mean,)
    assert x["indices"].dtype == "uint16" and x["indptr"].dtype == "int32"
    assert x["data"].shards[0] * 4 <= 20_000 and x["data"].shards[0] % x["data"].chunks[0] == 0
    (codec,) = [c for c in x["data"].compressors]
    assert (
        codec.to_dict()["configuration"] | {"cname": "lz4", "clevel": 3, "shuffle": "shuffle"}
        == codec.to_dict()["configuration"]
    )
    batches = hr.open(str(target)).cells(X="csr", obs=["cell_type"]).batches(64)
    rows = sp.vstack([_rows(b) for b in batches])
    assert (rows != cells().X[: rows.shape[0]]).nnz == 0


def _rows(batch: Any) -> Any:
    parts = [batch[f"X.{n}"].numpy().copy() for n in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=(len(batch), 300))


def test_scdl_becomes_anndata(tmp_path: Path) -> None:
    plain = scdl(tmp_path / "plain", cells())
    good("cells", "chunk", plain, tmp_path / "chunked", "--chunk-size", 250)
    for i, source in enumerate((plain, tmp_path / "chunked")):
        good("cells", "chunk", source, tmp_path / f"{i}.zarr", "--format", "anndata")
        found = ad.read_zarr(tmp_path / f"{i}.zarr")
        assert (found.X != cells().X).nnz == 0
        assert found.obs["cell_type"].tolist() == cells().obs["cell_type"].tolist()
        assert found.var["symbol"].tolist() == cells().var["symbol"].tolist()


def test_the_name_of_the_target_says_its_format(tmp_path: Path, sources: dict[str, Path]) -> None:
    for name, words, format_of in (
        ("a.zarr", (), "AnnData-Zarr in shards"), ("a", (), "chunked SCDL"), ("a.scdl", (), "chunked SCDL"),
        ("b.zarr", ("--format", "scdl"), "chunked SCDL"), ("b", ("--format", "anndata"), "AnnData-Zarr in shards"),
    ):  # fmt: skip
        said = good("cells", "chunk", sources["v3"], tmp_path / name, "--no-verify", *words)
        assert said.startswith(f"{tmp_path / name}: {format_of}, 900 cells × 300 genes, ")
        assert (tmp_path / name / "header.sch").exists() == (format_of == "chunked SCDL")
    kinds = json.loads(good("cells", "inspect", tmp_path / "a", "--json"))["obs"]
    assert {n: k["kind"] for n, k in kinds.items()} == {"cell_type": "texts", "n_counts": "int64", "score": "float32"}


def test_what_anndata_cannot_copy_is_named(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    cells().write_zarr(source)
    group = zarr.open_group(source, mode="r+", use_consolidated=False)["obs/cell_type"]
    attributes = dict(group.attrs)
    del attributes["ordered"]
    group.attrs.put(attributes)
    for consolidated in (source / "zarr.json", source / ".zmetadata"):
        if consolidated.name == ".zmetadata" and consolidated.exists():
            consolidated.unlink()
    zarr.consolidate_metadata(source)
    done = run("cells", "chunk", source, tmp_path / "b.zarr")
    said = f"headrace: {source}: obs is something that anndata cannot read or write: KeyError: 'ordered'"
    assert done.returncode == 1 and done.stderr.startswith(said) and done.stderr.count("\n") == 1, done.stderr


def test_h5ad_of_old_anndata(tmp_path: Path) -> None:
    """What anndata wrote before 0.7 is converted, inspected and verified as newer files are."""
    made = cells()
    source = old_h5ad(tmp_path / "old.h5ad", made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = ad.read_h5ad(source)
    assert (wanted.raw.X != made.raw.X).nnz == 0 and wanted.obs["cell_type"].tolist() == made.obs["cell_type"].tolist()
    before = source.read_bytes()
    good("cells", "chunk", source, tmp_path / "new.zarr", "--format", "anndata")
    found = ad.read_zarr(tmp_path / "new.zarr")
    for a, b in ((found.X, made.X), (found.raw.X, made.raw.X)):
        assert (sp.csr_matrix(a) != b).nnz == 0
    assert found.obs["cell_type"].tolist() == made.obs["cell_type"].tolist()
    assert (
        found.obs_names.tolist() == made.obs_names.tolist()
        and found.var["symbol"].tolist() == made.var["symbol"].tolist()
    )
    np.testing.assert_array_equal(found.obsm["pca"], made.obsm["pca"])
    samples = hr.open(tmp_path / "new.zarr").cells(layer="raw", obs=["cell_type"])
    batch = next(iter(samples.batches(64)))
    assert (batch["X"].scipy() != made.raw.X[:64]).nnz == 0
    good("cells", "chunk", source, tmp_path / "scdl", "--layer", "raw")
    assert hr.open(tmp_path / "scdl").cells().genes.shape == (300,)
    said = good("cells", "inspect", source)
    assert "cell_type                categories (3)" in said and "layers   raw" in said and "obsm     pca (5)" in said
    assert "all is well" in good("verify", source)
    assert source.read_bytes() == before
    broken = tmp_path / "broken.h5ad"
    with h5py.File(source, "r") as file, h5py.File(broken, "w") as to:
        for name in ("X", "var"):
            file.copy(name, to)
        to["obs"] = file["obs"][:5]
    done = run("cells", "chunk", broken, tmp_path / "x.zarr", "--format", "anndata")
    assert done.returncode == 1 and "written by anndata before 0.7" in done.stderr and done.stderr.count("\n") == 1


def test_dense_matrices(tmp_path: Path) -> None:
    made = cells(200)
    del made.raw
    made.X = made.X.toarray()
    made.write_h5ad(tmp_path / "dense.h5ad")
    good("cells", "chunk", tmp_path / "dense.h5ad", tmp_path / "dense.zarr", "--format", "anndata")
    np.testing.assert_array_equal(ad.read_zarr(tmp_path / "dense.zarr").X, made.X)
    good("cells", "chunk", tmp_path / "dense.h5ad", tmp_path / "scdl", "--chunk-size", 60, "--memory", "100kB")
    wanted = reference_chunks(scdl(tmp_path / "plain", _sparse(made)), 60)
    found = contents(tmp_path / "scdl")
    assert all(found[k] == wanted[k] for k in wanted if k.startswith("chunk_") or k == "header.sch")


def _sparse(made: Any) -> Any:
    copy = made.copy()
    copy.X = sp.csr_matrix(made.X)
    return copy


@pytest.mark.parametrize("kind", ["scdl", "anndata"])
def test_work_that_was_killed_goes_on_to_the_same_bytes(tmp_path: Path, sources: dict[str, Path], kind: str) -> None:
    options = ["--format", kind, "--chunk-size", "7", "--shard-bytes", "8kB", "--memory", "1MB"]
    good("cells", "chunk", sources["v3"], tmp_path / "whole", *options)
    target, part = tmp_path / "target", tmp_path / "target.part"
    finished, kills = False, 0
    while not finished:
        child = subprocess.Popen(
            [PROGRAM, "cells", "chunk", sources["v3"], target, *options], stdout=subprocess.DEVNULL
        )
        started = time.monotonic()
        before = _files(part)
        while child.poll() is None and kills < 4:
            now = _files(part)
            if now > before + 40 or time.monotonic() - started > 60:
                child.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.002)
        finished = child.wait() == 0
        assert target.exists() == finished
    assert kills, "it was not killed once"
    assert contents(target) == contents(tmp_path / "whole")
    assert not part.exists()


def _files(folder: Path) -> int:
    """While they come and go."""
    return sum(len(names) for _, _, names in os.walk(folder))


def test_sources_at_urls(tmp_path: Path, sources: dict[str, Path]) -> None:
    plain = scdl(tmp_path / "web" / "plain", cells())
    good("cells", "chunk", plain, tmp_path / "web" / "chunked", "--chunk-size", 250)
    shutil.copytree(sources["v3"], tmp_path / "web" / "v3.zarr")
    with Server(tmp_path / "web") as server:
        good("cells", "chunk", f"{server.url}/plain", tmp_path / "a", "--chunk-size", 250)
        assert contents(tmp_path / "a") == reference_chunks(plain, 250)
        for i, name in enumerate(("chunked", "v3.zarr")):
            good("cells", "chunk", f"{server.url}/{name}", tmp_path / f"{i}.zarr", "--format", "anndata")
        assert (ad.read_zarr(tmp_path / "0.zarr").X != cells().X).nnz == 0
        same(ad.read_zarr(tmp_path / "1.zarr"), cells())
        for name in ("plain", "chunked", "v3.zarr"):
            assert good("verify", f"{server.url}/{name}").endswith("all is well\n")
        assert (
            "are read where they lie on a disk" in run("cells", "chunk", f"{server.url}/a.h5ad", tmp_path / "x").stderr
        )


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["scdl", "anndata"])
def test_memory_is_bounded(tmp_path: Path, kind: str) -> None:
    """72 MB of values, of which 16 MB are held: above what the same work takes for almost none."""
    peaks = []
    for rows in (10, 12_000):
        made = cells(200)
        made.X = made.X[:200]
        plain = scdl(tmp_path / f"plain{rows}", made)
        _enlarge(plain, rows)
        code = (
            "import resource, sys; from headrace._cli import main; code = main(sys.argv[1:]);"
            "print([int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')][0]); sys.exit(code)"
        )
        words = ["cells", "chunk", plain, tmp_path / f"{rows}", "--format", kind, "--memory", "16MB"]
        command = [sys.executable, "-W", "ignore", "-c", code, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.splitlines()[-1]) * 1024)
    assert peaks[1] - peaks[0] < 40e6, peaks


def _enlarge(plain: Path, rows: int) -> None:
    """Of as many rows, a thousand values each, without a header."""
    (plain / "header.sch").unlink()
    shutil.rmtree(plain / "obs_features")
    (np.arange(rows + 1, dtype="u8") * 1000).tofile(plain / "row_ptr.npy")
    np.tile(np.arange(1000, dtype="u4") % 300, rows).tofile(plain / "col_ptr.npy")
    np.arange(rows * 1000, dtype="f4").tofile(plain / "data.npy")


def test_what_is_not_its_own_is_left_alone(tmp_path: Path, sources: dict[str, Path]) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("mine")
    done = run("cells", "chunk", sources["h5ad"], target)
    assert done.returncode == 1 and "is there already" in done.stderr and contents(target) == {"mine": b"mine"}
    plain = scdl(tmp_path / "plain", cells(50))
    done = run("cells", "chunk", plain, plain / "chunked")
    assert done.returncode == 1 and "is only read" in done.stderr and not (plain / "chunked.part").exists()
    other = tmp_path / "other.part"
    other.mkdir()
    done = run("cells", "chunk", sources["h5ad"], tmp_path / "other")
    assert done.returncode == 1 and "no unfinished work" in done.stderr and not list(other.iterdir())


def test_unfinished_work_of_another_source_is_refused(tmp_path: Path, sources: dict[str, Path]) -> None:
    made = cells(100, dtype="f8")
    made.X.data[5] = 0.1  # what float32 does not hold: it stops there
    made.write_h5ad(tmp_path / "a.h5ad")
    done = run("cells", "chunk", tmp_path / "a.h5ad", tmp_path / "target")
    assert done.returncode == 1 and "--dtype float64" in done.stderr and not (tmp_path / "target").exists()
    for words, part in (
        ([sources["h5ad"], "--chunk-size", "9"], "another source"),
        ([tmp_path / "a.h5ad", "--dtype", "float64"], "another dtype"),
    ):
        done = run("cells", "chunk", words[0], tmp_path / "target", *words[1:])
        assert done.returncode == 1 and part in done.stderr, done.stderr
    os.utime(tmp_path / "a.h5ad", (0, 0))
    assert "its source has changed" in run("cells", "chunk", tmp_path / "a.h5ad", tmp_path / "target").stderr
    good("cells", "chunk", tmp_path / "a.h5ad", tmp_path / "again", "--dtype", "float64")


def test_broken_sources_are_refused_by_name(tmp_path: Path) -> None:
    def broken(name: str, change: Any) -> str:
        folder = scdl(tmp_path / name, cells(200))
        change(folder)
        done = run("cells", "chunk", folder, tmp_path / f"{name}.out", "--chunk-size", 50)
        assert done.returncode == 1 and not (tmp_path / f"{name}.out").exists()
        return done.stderr

    def cut(folder: Path) -> None:
        os.truncate(folder / "data.npy", 400)

    def swap(folder: Path) -> None:
        rows = np.memmap(folder / "row_ptr.npy", "uint16", "r+")
        rows[30] = rows[40]

    def outside(folder: Path) -> None:
        np.memmap(folder / "col_ptr.npy", "uint16", "r+")[77] = 300

    assert "data.npy: it holds 100 numbers" in broken("cut", cut)
    assert "row 30 ends before it begins" in broken("swap", swap)
    assert "value 77 is in column 300, and there are 300 genes" in broken("outside", outside)
    made = cells(50)
    del made.raw
    made.X = made.X.tocsc()
    made.write_h5ad(tmp_path / "csc.h5ad")
    done = run("cells", "chunk", tmp_path / "csc.h5ad", tmp_path / "csc")
    assert done.returncode == 1 and "by genes (CSC)" in done.stderr
    assert "there is no such file" in run("cells", "chunk", tmp_path / "nothing", tmp_path / "x").stderr
    assert (
        "there are X, layers/dense, layers/twice"
        in run("cells", "chunk", tmp_path / "csc.h5ad", tmp_path / "csc", "--layer", "thrice").stderr
    )


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    cells().write_h5ad(tmp_path / "a.h5ad")
    for words, says in (
        (("d.zarr", "--dtype", "float32"), "--layer and --dtype are for --format scdl"),
        (("d", "--memory", "1kB"), "at least 64kB is expected"),
    ):
        done = run("cells", "chunk", tmp_path / "a.h5ad", tmp_path / words[0], *words[1:])
        assert done.returncode and says in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert ".part" not in done.stderr and "Errno" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5ad"]


def test_a_place_where_nothing_can_be_made(tmp_path: Path) -> None:
    cells().write_h5ad(tmp_path / "a.h5ad")
    done = run("cells", "chunk", tmp_path / "a.h5ad", "/proc/x")
    assert done.returncode == 1 and done.stderr.startswith("headrace: /proc/x cannot be made in /proc: "), done.stderr
