"""Every example of README.md and docs/*.md runs, every table of members is complete, every link leads somewhere."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from doctest import ELLIPSIS, OPTIONFLAGS_BY_NAME, DocTestFinder, DocTestRunner, Example
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import headrace as hr
import scdl_make

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "examples").glob("*.md"),
    ]
)
DESIGN = ROOT / "docs" / "design.md"  # its example shows what later releases are to read, too
PROGRAM = shutil.which("headrace", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "headrace"


def put(root: zarr.Group, name: str, values: Any, chunks: tuple[int, ...], *dims: str, **attributes: Any) -> None:
    array = root.create_array(
        name, shape=values.shape, chunks=chunks, dtype=values.dtype, dimension_names=dims, attributes=attributes
    )
    array[...] = values


def ensemble(path: Path) -> None:
    root, rng = zarr.create_group(path, zarr_format=3), np.random.default_rng(0)
    dims = ("time", "member", "lat", "lon")
    put(root, "t2m", rng.normal(280, 9, (60, 4, 9, 12)).astype("f4"), (6, 2, 9, 12), *dims)
    put(root, "orography", rng.random((9, 12)).astype("f4"), (9, 12), "lat", "lon")
    put(root, "time", np.arange(60), (60,), "time", units="days since 2001-01-01")
    put(root, "member", np.arange(4), (4,), "member")


def cells(path: Path) -> None:
    """An image and its label at two levels each."""
    root, rng = zarr.create_group(path, zarr_format=3), np.random.default_rng(0)
    image = rng.integers(0, 4000, (8, 96, 96)).astype("u2")
    label = np.kron(rng.random((8, 12, 12)) < 0.3, np.ones((1, 8, 8))).astype("u1")
    for level in (0, 1):
        step = 2**level
        put(root, f"{level}", image[:, ::step, ::step], (2, 48, 48), "z", "y", "x")
        put(root, f"labels/nuclei/{level}", label[:, ::step, ::step], (2, 48, 48), "z", "y", "x")


def atlas(path: Path, genes: list[str]) -> None:
    """300 cells of AnnData: cell_type, donor, n_genes; X and the layer counts; X_pca."""
    rng, n, text = np.random.default_rng(0), 300, np.dtypes.StringDType()
    root = zarr.create_group(path, zarr_format=3, attributes={"encoding-type": "anndata", "encoding-version": "0.1.0"})
    dense = rng.integers(1, 50, (n, len(genes))) * (rng.random((n, len(genes))) < 0.2)
    cell, gene = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum((dense != 0).sum(1))])
    for name in ("X", "layers/counts"):
        attributes = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n, len(genes)]}
        root.create_group(name, attributes=attributes)
        put(root, f"{name}/data", dense[cell, gene].astype("f4"), (500,), "item")
        put(root, f"{name}/indices", gene.astype("i4"), (500,), "item")
        put(root, f"{name}/indptr", indptr.astype("i8"), (n + 1,), "row")
    frame = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
    root.create_group("obs", attributes={**frame, "column-order": ["cell_type", "donor", "n_genes"]})
    root.create_group("var", attributes={**frame, "column-order": []})
    put(root, "var/_index", np.array(genes, text), (len(genes),), "gene")
    put(root, "obs/_index", np.array([f"cell{i}" for i in range(n)], text), (n,), "cell")
    for name, known in (("cell_type", ["B cell", "NK cell", "T cell"]), ("donor", ["a", "b", "c", "d"])):
        kind = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
        root.create_group(f"obs/{name}", attributes=kind)
        put(root, f"obs/{name}/categories", np.array(known, text), (len(known),), "category")
        put(root, f"obs/{name}/codes", rng.integers(0, len(known), n).astype("i1"), (n,), "cell")
    put(root, "obs/n_genes", (dense != 0).sum(1), (n,), "cell")
    root.create_group("obsm")
    put(root, "obsm/X_pca", rng.random((n, 8)).astype("f4"), (n, 8), "cell", "component")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the archives of the examples. era5.zarr: t2m, u10, v10 (96 × 181 × 360), z (96 × 2 × 13 × 24)."""
    folder = tmp_path_factory.mktemp("docs")
    ensemble(folder / "ensemble.zarr")
    cells(folder / "cells.zarr")
    atlas(folder / "atlas.zarr", [f"GENE{i}" for i in range(60)])
    scdl_make.write(folder / "chunked_scdl", scdl_make.Cells(700, 90), 100, features=True)
    atlas(folder / "liver.zarr", [f"GENE{i}" for i in range(20, 80)])
    noons = zarr.create_group(folder / "sst.zarr", zarr_format=3)
    put(noons, "sst", np.arange(20, dtype="f4").reshape(20, 1), (5, 1), "time", "x")
    put(noons, "time", np.arange(20), (20,), "time", units="days since 1990-01-01 12:00")
    root = zarr.create_group(folder / "era5.zarr", zarr_format=3)
    sizes = {"time": 96, "level": 2, "latitude": 181, "longitude": 360, "lat": 13, "lon": 24}
    shapes: dict[str, tuple[str, ...]] = {n: ("time", "latitude", "longitude") for n in ("t2m", "u10", "v10")}
    shapes["z"] = ("time", "level", "lat", "lon")
    for name, dims in shapes.items():
        shape = tuple(sizes[d] for d in dims)
        array = root.create_array(name, shape=shape, chunks=(4, *shape[1:]), dtype="f4", dimension_names=dims)
        array[...] = np.arange(shape[0], dtype="f4").reshape(-1, *[1] * (len(shape) - 1))
    values = {
        "time": np.arange(96) * 6, "level": np.array([500, 850]),
        "lat": np.linspace(90, -90, 13), "lon": np.arange(24) * 15.0,
    }  # fmt: skip
    for name, axis in values.items():
        attributes = {"units": "hours since 1990-01-01"} if name == "time" else {}
        array = root.create_array(
            name, shape=axis.shape, chunks=axis.shape, dtype=axis.dtype, dimension_names=(name,), attributes=attributes
        )
        array[...] = axis
    return folder


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """(language, text, line) of the fenced blocks."""
    text = page.read_text()
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [(m[1], m[2], text[: m.start()].count("\n") + 2) for m in found]


def pages_with(language: str) -> list[Path]:
    return [p for p in PAGES if p != DESIGN and any(kind == language for kind, _, _ in blocks(p))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_python_examples_run(page: Path, place: Path) -> None:
    """The blocks of a page, one after another, as one program in a process of its own."""
    program = "".join("\n" * 3 + text for kind, text, _ in blocks(page) if kind == "python")
    done = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for expected in re.findall(r"print\(error\)\s+# (.+)", program):
        for part in expected.split("… "):
            assert part in done.stdout


@pytest.mark.parametrize("page", pages_with("sh"), ids=name_of)
def test_commands_run(page: Path, place: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for kind, text, line in blocks(page):
        for command in text.splitlines() if kind == "sh" else []:
            if match := re.match(r"make (\w+)", command):
                assert match[1] in targets, f"{page}:{line}: {command}"
                continue
            assert command.startswith("headrace "), f"{page}:{line}: {command}"
            words = command.replace("headrace", PROGRAM, 1)
            done = subprocess.run(["sh", "-c", words], cwd=place, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), f"{page}:{line}: {command}"


def library() -> list[str]:
    """What the C compiler needs to link with the library as `make install` built it."""
    build = ROOT / "build" / "package"
    static = build / "src" / "libheadrace.a"
    shared = sorted(ROOT.glob("build*/**/src/libheadrace.so"), key=lambda p: -p.stat().st_mtime)
    if static.exists():
        names = ["libzstd", "liblz4", "libdeflate", "liblzma", "libxxhash"]
        found = subprocess.run(["pkg-config", "--libs", *names], capture_output=True, text=True, check=True)
        return [str(static), *found.stdout.split(), "-lbz2", "-ldl", "-lm", "-pthread"]
    return [str(shared[0]), f"-Wl,-rpath,{shared[0].parent}"]


@pytest.mark.parametrize("page", pages_with("c"), ids=name_of)
def test_c_examples_compile_and_run(page: Path, place: Path) -> None:
    for kind, text, line in blocks(page):
        if kind != "c":
            continue
        source, program = place / "example.c", place / "example"
        source.write_text(text)
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{ROOT / 'include'}", str(source)]
        subprocess.run([*command, "-o", str(program), *library()], check=True)
        done = subprocess.run([program], cwd=place, check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"{page}:{line}: {done.stderr}"


def prepare(example: Example) -> None:
    """Docstrings skip examples that need an archive; here there is one. What they print is not looked at."""
    if example.options.pop(OPTIONFLAGS_BY_NAME["SKIP"], None):
        try:
            compile(example.source, "example", "eval")
            example.want = "...\n"
        except SyntaxError:
            example.want = ""


def test_docstrings(place: Path) -> None:
    """Examples in docstrings of the public names."""
    archive = hr.open(place / "era5.zarr")
    train = archive.samples(along="time", x="t2m")
    names = {"hr": hr, "archive": archive, "train": train, "train_step": lambda x: None}
    runner, said = DocTestRunner(optionflags=ELLIPSIS), io.StringIO()
    for name in hr.__all__:
        for test in DocTestFinder().find(getattr(hr, name), name, module=False, globs=dict(names)):
            for example in test.examples:
                prepare(example)
            with contextlib.redirect_stdout(said):
                runner.run(test)
    assert runner.failures == 0, said.getvalue()
    assert runner.tries > 3


def test_every_public_name_is_explained() -> None:
    for name in hr.__all__:
        thing = getattr(hr, name)
        assert (thing.__doc__ or "").strip(), name
        for member, value in vars(thing).items() if isinstance(thing, type) else []:
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert (value.__doc__ or "").strip(), f"{name}.{member}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "examples").glob("*.md")]:
        assert page.name == "index.md" or f"({page.relative_to(ROOT / 'docs')})" in index, page.name


# ---- the members of reports ----------------------------------------------------------------------------------------


def documented(section: str) -> set[str]:
    text = (ROOT / "docs" / "reports.md").read_text()
    part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return {n for row in re.findall(r"^\| (`.*?) \|", part, re.M) for n in re.findall(r"`([^`]+)`", row)}


def members(value: Any, opaque: set[str], prefix: str = "") -> set[str]:
    """Dotted names of all that is in a report; what is below an opaque member is its own affair."""
    out = set()
    for key, item in value.items():
        name = prefix + key
        if isinstance(item, dict) and name not in opaque:
            out |= members(item, opaque, name + ".")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            for one in item:
                out |= members(one, opaque | {f"{name}[].attributes"}, f"{name}[].")
        else:
            out.add(name)
    return out


def test_reports_have_the_documented_members(place: Path) -> None:
    archive = hr.open(place / "era5.zarr")
    samples = archive.samples(along="time", x="t2m")
    boxes = archive.samples(along={"lat": hr.patch(2, edge="clip"), "lon": hr.crop(2)}, x="z")
    cells = hr.open(place / "atlas.zarr").cells(obs=["cell_type"])
    loader = samples.batches(32, shuffle=True)
    next(iter(loader))
    words = ["bench", str(place / "era5.zarr"), "--along", "time", "--view", "x=t2m", "--batch", "32", "--json"]
    bench = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout
    found = {
        "Plan": members(loader.plan(), set()),
        "Archive": members(archive.info, {"attributes"}),
        "Samples": members(samples.info, set())
        | members(boxes.info, set())
        | members(cells.info, set())
        | members(cells.sentences(4, by="cell_type").info, set()),
        "State": members(loader.state_dict(), set()),
        "Measurement": members(json.loads(bench), {"stats"}),
    }
    for section, names in found.items():
        assert names == documented(section), section
    statistics = documented("Statistics")
    assert members(loader.stats(), {"store"}) | REMOTE == statistics


REMOTE = {
    "requests", "bytes", "completed", "missing", "failed", "canceled", "retries", "throttles", "connections",
    "ignored_ranges", "limit", "in_flight", "waiting", "hedges", "hedges_won", "parts", "addresses", "rests",
    "first_byte_us", "throughput_kib_s", "summary", "opened_ahead", "used_ahead",
}  # fmt: skip


def test_remote_statistics_have_the_documented_members(place: Path) -> None:
    from headrace._cli.serve import Server

    with Server(place / "era5.zarr", nginx=False) as server:
        loader = hr.open(server.url).samples(along="time", x="t2m").batches(32)
        next(iter(loader))
        store = loader.stats()["store"]
        loader.close()
    assert set(store) == REMOTE
    assert set(store["first_byte_us"]) == {"count", "p5", "p50", "p95", "p99"}
    assert set(store["throughput_kib_s"]) == {"count", "p5", "p50", "p95", "p99"}
    text = (ROOT / "docs" / "reports.md").read_text()
    assert all(f"`{cause}`" in text for cause in store["retries"])


def test_errors_are_all_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    for name in hr.__all__:
        thing = getattr(hr, name)
        if isinstance(thing, type) and issubclass(thing, hr.Error):
            row = next(r for r in text.splitlines() if r.startswith(f"| `{name}` |"))
            for base in thing.__bases__:
                if base not in (hr.Error, Exception):
                    assert f"`{base.__name__}`" in row.split("|")[2]
    codes = re.findall(r"\b(HR_E[A-Z]+) = -\d+", (ROOT / "include" / "headrace.h").read_text())
    assert codes and all(f"`{code}`" in text for code in codes)
