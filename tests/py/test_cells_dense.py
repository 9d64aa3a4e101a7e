"""Cells whose matrix is a dense array: every form of it is that of the same matrix in CSR, however it is stored."""

from __future__ import annotations

import functools
import http.server
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from atlases import ad, atlas, pd, same, sp, write

TYPES = ("f4", "f8", "u2", "i8", "u1", "bool", "f2")


def values(n: int, m: int, dtype: str, seed: int) -> Any:
    """Rows of every density: none at all, some, all."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 60, (n, m)) * (
        rng.random((n, m)) < rng.choice([0, 0.1, 0.3, 1], (n, 1), p=[0.1, 0.5, 0.3, 0.1])
    )
    x = x.astype(dtype)
    if x.dtype.kind == "f" and x.dtype.itemsize > 2:
        x = x * x.dtype.type(1 / 7)  # sums that are no integers: their order shows
    return x


def place(folder: Path, name: str, x: Any, genes: list[str], version: int, **array: Any) -> str:
    """An atlas whose X is a dense array, made with these options of zarr."""
    made = ad.AnnData(
        obs=pd.DataFrame({"batch": np.arange(len(x)) % 3}, index=[f"c{i}" for i in range(len(x))]),
        var=pd.DataFrame(index=genes),
    )
    path = write(made, folder / f"{name}.zarr", version)
    root = zarr.open_group(path, mode="a", use_consolidated=False)
    stored = root.create_array("X", shape=x.shape, dtype=x.dtype, fill_value=array.pop("fill_value", 0), **array)
    stored.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    stored[...] = x
    zarr.consolidate_metadata(path)
    return path


def sparse(folder: Path, name: str, x: Any, genes: list[str]) -> str:
    obs = pd.DataFrame({"batch": np.arange(len(x)) % 3}, index=[f"c{i}" for i in range(len(x))])
    made = ad.AnnData(sp.csr_matrix(x), obs=obs, var=pd.DataFrame(index=genes))
    return write(made, folder / f"{name}.zarr")


def rows(samples: Any, n: int = 7, **options: Any) -> list[dict[str, Any]]:
    """What every cell comes to, by id; a row of CSR as two arrays."""
    found: list[Any] = [None] * len(samples)
    for batch in samples.batches(n, shuffle=True, seed=3, remainder="short", **options):
        parts = {name: batch[name].numpy() for name in batch if name.startswith("X")}
        if isinstance(parts.get("X"), dict):
            parts = parts["X"]
        ends = parts.pop("indptr", None)
        for i, id_ in enumerate(batch.index.numpy()):
            cut = slice(i, i + 1) if ends is None else slice(int(ends[i]), int(ends[i + 1]))
            assert found[id_] is None
            found[id_] = {name: part[cut].copy() for name, part in parts.items()}
    assert all(row is not None for row in found)
    return found


def alike(one: Any, other: Any, **options: Any) -> None:
    a, b = rows(one, **options), rows(other)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.keys() == y.keys()
        for name in x:
            assert x[name].dtype == y[name].dtype
            np.testing.assert_array_equal(x[name], y[name])


@st.composite
def forms(draw: Any, genes: list[str]) -> dict[str, Any]:
    """Arguments of `cells`."""
    form = draw(st.sampled_from(["csr", "dense", "padded", "ranked"]))
    out: dict[str, Any] = {"X": form}
    if form == "padded":
        pick = draw(st.sampled_from(["random", "weighted", "top", "first"]))
        out["X"] = hr.padded(draw(st.integers(1, 9)), pick=pick, bins=draw(st.sampled_from([None, 5])))
    if form == "ranked":
        out["X"] = hr.ranked(draw(st.integers(1, 9)), factors={g: 1 + i % 4 for i, g in enumerate(genes)})
    if draw(st.booleans()):
        out |= {"normalize": 1e4, "normalize_over": draw(st.sampled_from(["all", "genes"]))}
    out["log1p"] = draw(st.booleans())
    if draw(st.booleans()):
        out["genes"] = draw(st.lists(st.sampled_from([*genes, "nowhere"]), min_size=1, unique=True))
        out["missing"] = "ignore"
        if not set(out["genes"]) & set(genes):
            del out["genes"], out["missing"]
    return out


@st.composite
def arrays(draw: Any, n: int, m: int) -> dict[str, Any]:
    """How an array is stored."""
    version = draw(st.sampled_from([2, 3]))
    chunks = (draw(st.integers(1, n + 3)), draw(st.integers(1, m + 3)))
    out: dict[str, Any] = {"version": version, "chunks": chunks}
    compressors: list[Any] = [None, "auto"]
    if version == 3:
        compressors += [zarr.codecs.BloscCodec(shuffle=kind, typesize=4) for kind in ("shuffle", "noshuffle")]
        if draw(st.booleans()):
            out["shards"] = (chunks[0] * draw(st.integers(1, 3)), chunks[1] * draw(st.integers(1, 3)))
    else:
        out["order"] = draw(st.sampled_from("CF"))
    out["compressors"] = draw(st.sampled_from(compressors))
    return out


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_dense_matrix_is_as_if_it_were_sparse(data: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("dense")
    n, m = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 25))
    x = values(n, m, data.draw(st.sampled_from(TYPES)), data.draw(st.integers(0, 99)))
    genes = [f"g{i}" for i in range(m)]
    one = place(folder, "dense", x, genes, **data.draw(arrays(n, m)))
    options = data.draw(forms(genes))
    if x.dtype == bool:  # anndata writes no sparse ones
        x, options["dtype"] = x.astype("u1"), "float32"
    if x.dtype == np.float16:  # scipy has none
        x, options["dtype"] = x.astype("f4"), "float32"
    row_chunk = data.draw(st.sampled_from([None, 1, 5]))
    alike(
        hr.open(one).cells(**options, row_chunk=row_chunk),
        hr.open(sparse(folder, "sparse", x, genes)).cells(**options),
        memory=data.draw(st.sampled_from(["64MB", None])),
    )


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_unions_of_dense_and_sparse_data_sets(data: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("union")
    pool = [f"g{i}" for i in range(9)]
    lists = data.draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, unique=True), min_size=2, max_size=4))
    common = [g for g in lists[0] if all(g in genes for genes in lists)]
    mixed, all_sparse = [], []
    for i, genes in enumerate(lists):
        n = data.draw(st.integers(1, 20))
        x = values(n, len(genes), data.draw(st.sampled_from(["f4", "u2", "i8"])), i)
        all_sparse.append(sparse(folder, f"s{i}", x, genes))
        dense = i == 0 or data.draw(st.booleans())
        stored = data.draw(arrays(n, len(genes)))
        mixed.append(place(folder, f"d{i}", x, genes, **stored) if dense else all_sparse[-1])
    options = data.draw(forms(pool))
    for name in ("genes", "missing"):
        options.pop(name, None)
    if not isinstance(options["X"], str) and "ranked" in repr(options["X"]):
        options["X"] = hr.ranked(6)
    join = data.draw(st.sampled_from(["inner", "outer"])) if common else "outer"
    one, other = hr.cells(mixed, join=join, **options), hr.cells(all_sparse, join=join, **options)
    assert list(one.genes) == list(other.genes)
    alike(one, other)


def test_unions_have_the_obs_of_all(tmp_path: Path) -> None:
    made = [atlas(30, seed=1), atlas(50, seed=2)]
    made[0].X = made[0].X.toarray()
    paths = {name: write(a, tmp_path / f"{name}.zarr") for name, a in zip(("lung", "liver"), made)}
    samples = hr.cells(paths, obs=["cell_type", "n_genes"])
    want = sp.vstack([sp.csr_matrix(a.X) for a in made]).tocsr()
    n_genes = np.concatenate([a.obs.n_genes for a in made])
    again = pickle.loads(pickle.dumps(samples))
    for each in (samples, again):
        for batch in each.batches(16, shuffle=True, weights={"cell_type": "balanced"}):
            ids = batch.index.numpy()
            same(batch["X"].scipy(), want[ids])
            np.testing.assert_array_equal(batch["n_genes"].numpy(), n_genes[ids])
    assert samples.where("dataset == 'lung'").ids.tolist() == list(range(30))


def test_truths_are_numbers_however_they_are_read(tmp_path: Path) -> None:
    x = values(20, 6, "bool", 5)
    path = place(tmp_path, "truths", x, [f"g{i}" for i in range(6)], 3)
    for more in ({}, {"row_chunk": 4}):
        (batch, *_) = hr.open(path).cells("dense", **more).batches(20)
        got = batch["X"].numpy()
        assert got.dtype == np.uint8 and np.array_equal(got, x)


def test_chunks_that_are_not_there_are_fill_values(tmp_path: Path) -> None:
    """Zeros are not stored; and what else a fill value may be."""
    for fill in (0.0, 3.0):
        x = np.full((40, 12), fill, "f4")
        x[3:9, 2:5] = np.arange(18).reshape(6, 3)
        genes = [f"g{i}" for i in range(12)]
        path = place(tmp_path, f"f{fill}", x, genes, 3, chunks=(4, 5), fill_value=fill)
        for row, want in zip(rows(hr.open(path).cells()), x):
            assert row["indices"].tolist() == np.flatnonzero(want).tolist()
            assert row["data"].tolist() == want[want != 0].tolist()
    with pytest.raises(hr.DataError, match=r"chunk 0 of X is missing"):
        rows(
            hr.open(place(tmp_path, "m", np.zeros((9, 4), "f4"), list("abcd"), 2, chunks=(3, 2))).cells(),
            missing="error",
        )


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    x = values(30, 8, "f4", 1)
    path = place(tmp_path, "d", x, [f"g{i}" for i in range(8)], 3, chunks=(5, 4))
    (Path(path) / "X" / "c" / "2" / "1").write_bytes(b"nonsense")
    with pytest.raises(hr.DataError, match=r"chunk 5 of X"):
        rows(hr.open(path).cells())
    samples = hr.open(path).cells("dense", log1p=True)
    lost: set[int] = set()
    for batch in samples.batches(6, on_error="mask"):
        lost |= set(batch.index.numpy()[~batch.valid.numpy()].tolist())
    assert set(range(10, 15)) <= lost


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("stored", [{"chunks": (16, 9)}, {"chunks": (8, 5), "shards": (32, 20)}])
def test_dense_cells_behind_a_web_server(tmp_path: Path, stored: Any) -> None:
    x = values(100, 33, "f4", 4)
    genes = [f"g{i}" for i in range(33)]
    place(tmp_path, "d", x, genes, 3, **stored)
    other = hr.open(sparse(tmp_path, "s", x, genes)).cells(normalize=1e4, log1p=True)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            samples = hr.open(f"http://127.0.0.1:{server.server_port}/d.zarr").cells(normalize=1e4, log1p=True)
            alike(samples, other)
        finally:
            server.shutdown()


def test_rows_are_put_together_of_whole_chunks(tmp_path: Path) -> None:
    """A stored chunk is read once an epoch, and as often as plan() says."""
    x = values(400, 60, "f4", 5)
    path = place(tmp_path, "d", x, [f"g{i}" for i in range(60)], 3, chunks=(20, 16))
    samples = hr.open(path).cells(row_chunk=30)
    view = samples.info["views"][0]
    assert view["row_chunk"] == 40 and view["chunk_reads"] == view["chunks"] == 20 * 4
    with samples.batches(16, shuffle=True) as loader:
        for _ in loader:
            pass
        assert loader.stats()["bytes"]["read"] == sum(
            f.stat().st_size for f in (Path(path) / "X" / "c").rglob("*") if f.is_file()
        )


def test_neighbours_of_a_dense_matrix(tmp_path: Path) -> None:
    a = atlas(30)
    weights = values(30, 30, "f4", 6)
    np.fill_diagonal(weights, 0)
    a.obsp["near"] = weights
    a.obsp["thin"] = sp.csr_matrix(weights)
    samples = hr.open(write(a, tmp_path / "a.zarr")).cells(neighbors={"near": 4, "thin": 4})
    for batch in samples.batches(8, shuffle=True):
        for part in ("cells", "weights", "mask"):
            np.testing.assert_array_equal(batch[f"near.{part}"].numpy(), batch[f"thin.{part}"].numpy())
