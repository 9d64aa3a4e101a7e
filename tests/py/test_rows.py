"""Rows of sparse matrices against scipy: whatever the worlds, chunks, codecs, orders, budgets and ranks, byte for byte."""

from __future__ import annotations

import http.server
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from conftest import Quiet
from headrace._cells import CellsView, Table
from headrace._samples import build

VALUES = ("f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")
INTEGERS = ("i4", "i8", "u4", "u8", "u2", "i2")
DEFAULTS: dict[str, Any] = {"form": 0, "columns": 0, "row_chunk": 0, "read_offsets": 0}
CSR, DENSE, PADDED, RANKED = range(4)


@dataclass
class World:
    """A matrix, how it is stored, and how it is read."""

    path: Path
    matrix: scipy.sparse.csr_matrix
    n: int
    columns: int
    dtype: str  # of the values as stored

    def url(self) -> str:
        return str(self.path)


def lengths(r: random.Random, rows: int, columns: int) -> np.ndarray:
    """Items of each row: even, with gaps, one giant, or none at all."""
    kind = r.choice(("even", "gaps", "giant", "empty", "ends", "thin"))
    g = np.random.default_rng(r.randrange(1 << 30))
    most = min(columns, 12)
    n = g.integers(0, most + 1, rows)
    if kind == "gaps":
        n[g.random(rows) < 0.6] = 0
    if kind == "giant":
        n[:] = n % 2
        n[r.randrange(rows)] = columns
    if kind == "empty":
        n[:] = 0
    if kind == "thin":
        n[:] = g.random(rows) < 0.1
    if kind == "ends":
        n[: 1 + rows // 3] = 0
        n[rows - rows // 4 :] = 0
    return n


def matrix_of(r: random.Random, value: str, rows: int, columns: int) -> scipy.sparse.csr_matrix:
    g = np.random.default_rng(r.randrange(1 << 30))
    n = lengths(r, rows, columns)
    indptr = np.concatenate([[0], np.cumsum(n)])
    indices = np.concatenate([np.sort(g.permutation(columns)[:k]) for k in n] or [np.zeros(0)]).astype("i8")
    data = g.integers(1, 100, indptr[-1]).astype("f4" if value == "f2" else value)  # scipy has no half floats
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))


def codec(version: int, name: str) -> Any:
    if version == 2:
        import numcodecs

        return {
            "none": None, "zstd": numcodecs.Zstd(3), "gzip": numcodecs.GZip(1),
            "blosc": numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE),
        }[name]  # fmt: skip
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    return {
        "none": None, "zstd": ZstdCodec(level=3), "gzip": GzipCodec(level=1),
        "blosc": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
    }[name]  # fmt: skip


def store(root: Any, name: str, x: np.ndarray, chunk: int, shard: int, compressor: str) -> None:
    version = root.metadata.zarr_format
    options: dict[str, Any] = {"compressors": codec(version, compressor)}
    if shard and version == 3:
        options["shards"] = (chunk * shard,)
    a = root.create_array(name, shape=x.shape, chunks=(chunk,), dtype=x.dtype, **options)
    a[...] = x


def write(path: Path, m: scipy.sparse.csr_matrix, version: int, r: random.Random, dtype: str = "") -> None:
    root = zarr.open_group(path, mode="w", zarr_format=version)  # type: ignore[arg-type]
    nnz = max(len(m.data), 1)
    sizes = sorted({1, 3, max(nnz // 7, 1), nnz, nnz + 5} if nnz < 400 else {17, nnz // 7, nnz, nnz + 5})
    for name, x, most in (
        ("X/data", m.data.astype(dtype or m.dtype), nnz), ("X/indices", m.indices.astype(r.choice(INTEGERS)), nnz),
        ("X/indptr", m.indptr.astype(r.choice(INTEGERS[:4])), m.shape[0] + 1),
    ):  # fmt: skip
        chunk = min(r.choice(sizes), most + 5)
        store(root, name, x, chunk, r.choice((0, 0, 2, 5)), r.choice(("none", "none", "zstd", "blosc", "gzip")))


def world(path: Path, seed: int) -> tuple[World, random.Random]:
    r = random.Random(seed)
    rows, columns = r.choice((1, 2, 7, 40, 133)), r.choice((1, 5, 60, 700))
    dtype = r.choice(VALUES)
    m = matrix_of(r, dtype, rows, columns)
    write(path, m, r.choice((2, 3)), r, dtype)
    return World(path, m, rows, columns, dtype), r


def view_of(w: World, **options: Any) -> CellsView:
    part = ("X/indptr", "X/indices", "X/data", w.columns, 0)
    return CellsView([part], [None], {**DEFAULTS, "columns": w.columns, **options})


def samples_of(w: World, url: str | None = None, **options: Any) -> Any:
    return build(hr.open(url or w.url()), "obs", {"X": view_of(w, **options)})


def check_csr(w: World, batch: Any) -> list[int]:
    """A batch's rows are those of its ids, as they are stored; the ids that count."""
    ids = np.asarray(batch.index)
    data, indices, indptr = (np.asarray(batch[f"X.{part}"]) for part in ("data", "indices", "indptr"))
    want = w.matrix[ids]
    assert data.dtype == ("u1" if w.dtype == "?" else w.dtype)
    np.testing.assert_array_equal(indptr, want.indptr)
    np.testing.assert_array_equal(indices, want.indices)
    np.testing.assert_array_equal(data, want.data)
    valid = np.asarray(batch.valid, bool)
    return [int(i) for i in ids[valid]]


def loaders(samples: Any, budget: int | None, **options: Any) -> Any:
    """A loader of this budget, or of the smallest one that is accepted from there on."""
    if budget is None:
        return samples.batches(**options)
    while True:
        try:
            return samples.batches(memory=budget, **options)
        except hr.BudgetError:
            budget += max(budget // 8, 1024)
            assert budget < 1 << 28


def draw_options(r: random.Random, w: World) -> dict[str, Any]:
    return {
        "n": r.choice((1, 3, 16, 64)), "shuffle": r.choice((False, "global", True)),
        "seed": r.randrange(100),
    }  # fmt: skip


def draw_view(r: random.Random, w: World) -> dict[str, Any]:
    return {"row_chunk": r.choice((0, 1, 2, 9, w.n, w.n + 3)), "read_offsets": r.choice((0, 0, -1))}


@contextmanager
def served(path: Path) -> Iterator[str]:
    class Handler(Ranged):
        root = path

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Ranged(Quiet):
    """Files with ranges, kept alive."""

    protocol_version = "HTTP/1.1"
    root = Path()

    def do_GET(self) -> None:
        path = self.root / self.path.lstrip("/").partition("?")[0]
        body = path.read_bytes() if path.is_file() else None
        asked = self.headers.get("Range")
        if body is None:
            self.send_response(404)
            body = b""
        elif asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            low = len(body) - int(last) if not first else int(first)
            low = max(low, 0)
            high = int(last) + 1 if first and last else len(body)
            high = min(high, len(body))
            if low >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                body = b""
            else:
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {low}-{high - 1}/{len(body)}")
                body = body[low:high]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
seeds = st.integers(0, 1 << 40)


@SLOW
@given(seed=seeds)
def test_every_row_of_every_world_is_that_of_scipy(tmp_path_factory: Any, seed: int) -> None:
    w, r = world(tmp_path_factory.mktemp("w") / "a.zarr", seed)
    samples = samples_of(w, **draw_view(r, w))
    with loaders(samples, r.choice((None, 1 << 12, 1 << 18)), remainder="short", **draw_options(r, w)) as loader:
        for _ in range(2):
            seen = [i for batch in loader for i in check_csr(w, batch)]
            assert sorted(seen) == list(range(w.n))


@settings(SLOW, max_examples=25)
@given(seed=seeds)
def test_over_a_network_they_are_the_same(tmp_path_factory: Any, seed: int) -> None:
    w, r = world(tmp_path_factory.mktemp("w") / "a.zarr", seed)
    with served(w.path) as url:
        samples = samples_of(w, url, **draw_view(r, w))
        with loaders(samples, r.choice((None, 1 << 18)), remainder="short", **draw_options(r, w)) as loader:
            for _ in range(2):
                seen = [i for batch in loader for i in check_csr(w, batch)]
                assert sorted(seen) == list(range(w.n))


@settings(SLOW, max_examples=25)
@given(seed=seeds)
def test_ranks_share_an_epoch(tmp_path_factory: Any, seed: int) -> None:
    w, r = world(tmp_path_factory.mktemp("w") / "a.zarr", seed)
    size = r.choice([k for k in (1, 2, 4) if k <= w.n])
    options = {**draw_options(r, w), "remainder": r.choice(("pad", "wrap")), "world": size}
    view = draw_view(r, w)
    seen: list[int] = []
    for rank in range(size):
        with samples_of(w, **view).batches(rank=rank, **options) as loader:
            seen += [i for batch in loader for i in check_csr(w, batch)]
    assert sorted(set(seen)) == list(range(w.n))
    if options["remainder"] == "pad":
        assert len(seen) == w.n


@settings(SLOW, max_examples=20)
@given(seed=seeds)
def test_resumed_at_every_step_the_rest_is_the_same(tmp_path_factory: Any, seed: int) -> None:
    w, r = world(tmp_path_factory.mktemp("w") / "a.zarr", seed)
    options = {**draw_options(r, w), "remainder": "short"}
    options["n"] = max(options["n"], w.n // 8)
    samples = samples_of(w, **draw_view(r, w))
    states, batches = [], []
    with samples.batches(**options) as loader:
        states.append(loader.state_dict())
        for batch in loader:
            batches.append(check_csr(w, batch))
            states.append(loader.state_dict())
    for at in range(len(batches)):
        with samples.batches(**options) as loader:
            loader.load_state_dict(states[at])
            assert [check_csr(w, batch) for batch in loader] == batches[at:]


@settings(SLOW, max_examples=30)
@given(seed=seeds)
def test_dense_padded_and_ranked_rows_are_those_of_numpy(tmp_path_factory: Any, seed: int) -> None:
    w, r = world(tmp_path_factory.mktemp("w") / "a.zarr", seed)
    length = r.choice((1, 4, 20))
    common = draw_view(r, w)
    archive = hr.open(w.url())
    samples = build(archive, "obs", {
        "D": view_of(w, form=DENSE, **common), "P": view_of(w, form=PADDED, length=length, pick=1, pad=-1, **common),
        "R": view_of(w, form=RANKED, length=length, pad=-1, **common), "C": view_of(w, **common),
        "label": Table(np.arange(w.n, dtype="i8") * 3), "wide": Table(np.arange(w.n * 2, dtype="f4").reshape(-1, 2)),
    })  # fmt: skip
    with samples.batches(remainder="short", **draw_options(r, w)) as loader:
        for batch in loader:
            ids = np.asarray(batch.index)
            dense = w.matrix[ids].toarray()
            np.testing.assert_array_equal(np.asarray(batch["D"]), dense)
            np.testing.assert_array_equal(np.asarray(batch["label"]), ids * 3)
            np.testing.assert_array_equal(np.asarray(batch["wide"])[:, 1], ids * 2 + 1)
            np.testing.assert_array_equal(np.asarray(batch["C.indptr"]), w.matrix[ids].indptr)
            for k, row in enumerate(dense.astype("f8")):
                best = np.lexsort((np.arange(w.columns), -row))
                best = best[row[best] != 0][:length]
                rest = length - len(best)
                assert list(np.asarray(batch["P.genes"])[k]) == [*best, *[-1] * rest]
                assert list(np.asarray(batch["P.values"])[k]) == [*row[best].astype("f4"), *[0] * rest]
                assert list(np.asarray(batch["R.tokens"])[k]) == [*best, *[-1] * rest]
                assert list(np.asarray(batch["R.mask"])[k]) == [True] * len(best) + [False] * rest


def test_maps_of_columns_leave_out_and_reorder(tmp_path: Path) -> None:
    r = random.Random(4)
    m = matrix_of(r, "f4", 50, 30)
    write(tmp_path / "a.zarr", m, 3, r)
    w = World(tmp_path / "a.zarr", m, 50, 30, "f4")
    to = np.full(30, -1, "i4")
    to[[29, 3, 17, 8]] = [0, 1, 2, 3]
    view = CellsView([("X/indptr", "X/indices", "X/data", 30, 0)], [to], {**DEFAULTS, "columns": 4, "row_chunk": 7})
    samples = build(hr.open(w.url()), "obs", {"X": view})
    want = m[:, [29, 3, 17, 8]]
    with samples.batches(8, shuffle="global", remainder="short") as loader:
        for batch in loader:
            ids = np.asarray(batch.index)
            got = scipy.sparse.csr_matrix(
                tuple(np.asarray(batch[f"X.{p}"]) for p in ("data", "indices", "indptr")), shape=(len(ids), 4)
            )
            np.testing.assert_array_equal(got.toarray(), want[ids].toarray())
            assert got.has_sorted_indices


def test_several_matrices_one_behind_the_other(tmp_path: Path) -> None:
    r = random.Random(5)
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    parts, blocks = [], []
    for k, rows in enumerate((3, 0, 40, 1)):
        m = matrix_of(r, "i4", rows, 20) if rows else scipy.sparse.csr_matrix((0, 20), dtype="i4")
        for name, x in (("data", m.data), ("indices", m.indices), ("indptr", m.indptr)):
            store(root, f"{k}/{name}", x, max(len(x) // 3, 1), 0, ("none", "zstd")[k % 2])
        parts.append((f"{k}/indptr", f"{k}/indices", f"{k}/data", 20, 0))
        blocks.append(m)
    whole = scipy.sparse.vstack(blocks, format="csr")
    w = World(tmp_path / "a.zarr", whole, 44, 20, "i4")
    for offsets in (0, -1):
        view = CellsView(parts, [None], {**DEFAULTS, "columns": 20, "row_chunk": 4, "read_offsets": offsets})
        with build(hr.open(w.url()), "obs", {"X": view}).batches(5, shuffle=True, remainder="short") as loader:
            for _ in range(2):
                assert sorted(i for batch in loader for i in check_csr(w, batch)) == list(range(44))


def test_a_state_of_another_view_is_refused(tmp_path: Path) -> None:
    w, _ = world(tmp_path / "a.zarr", 77)
    with samples_of(w).batches(2, seed=1) as loader:
        state = loader.state_dict()
    with samples_of(w, form=DENSE).batches(2, seed=1) as other, pytest.raises(hr.StateError):
        other.load_state_dict(state)
    with samples_of(w).batches(2, seed=1) as same:
        same.load_state_dict(state)


ATLAS = """
import json, sys, time
from pathlib import Path
import numpy as np
import headrace as hr
from headrace._cells import CellsView
from headrace._samples import build

path, rows, real, each = Path(sys.argv[1]), 100_000_000, 1_000_000, 3000
items = real * each  # beyond 2^31; the last million rows have them all
def array(name, n, dtype):
    (path / name / "c").mkdir(parents=True)
    grid = {"name": "regular", "configuration": {"chunk_shape": [n]}}
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    (path / name / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [n], "data_type": dtype, "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": codecs,
    }))
    f = open(path / name / "c/0", "wb")
    f.truncate(n * np.dtype(dtype).itemsize)
    return f
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
(path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
with array("indptr", rows + 1, "uint64") as f:
    f.seek((rows - real) * 8)
    f.write((np.arange(real + 1, dtype="u8") * each).tobytes())
far = rows - 200_000  # a row that begins beyond item 2^31
at = (far - (rows - real)) * each
assert at > 2**31
for name, dtype in (("indices", "int32"), ("data", "float32")):
    with array(name, items, dtype) as f:
        f.seek(at * 4)
        f.write(np.arange(each, dtype=dtype).tobytes())
before, began = resident(), time.process_time()
options = {"form": 0, "columns": 60000, "row_chunk": 100, "read_offsets": 0}
view = CellsView([("indptr", "indices", "data", 60000, 0)], [None], options)
samples = build(hr.open(str(path)), "obs", {"X": view})
with samples.batches(512, shuffle=True, memory=128 << 20) as loader:
    loader.next()
    first = time.process_time() - began
    for _ in range(50):
        loader.next()
    grown = resident() - before
with samples.isel(obs=slice(far - 3, far + 4)).batches(7, memory=128 << 20) as loader:
    batch = loader.next()
    start, stop = np.asarray(batch["X.indptr"])[3:5]
    good = np.array_equal(np.asarray(batch["X.indices"])[start:stop], np.arange(each))
    good &= np.array_equal(np.asarray(batch["X.data"])[start:stop], np.arange(each))
print(json.dumps({"cpu": first, "grown": grown, "good": bool(good)}))
"""


@pytest.mark.alone
def test_an_atlas_of_a_hundred_million_cells_opens_at_once_in_little_memory(tmp_path: Path) -> None:
    out = subprocess.run([sys.executable, "-c", ATLAS, str(tmp_path)], capture_output=True, text=True, check=True)
    got = json.loads(out.stdout)
    assert got["good"]
    assert got["cpu"] < 2
    assert got["grown"] < (128 + 64) << 20


MEMORY = """
import sys
import headrace as hr
from headrace._cells import CellsView
from headrace._samples import build

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
options = {"form": 0, "columns": 5000, "row_chunk": 0, "read_offsets": int(sys.argv[2])}
view = CellsView([("X/indptr", "X/indices", "X/data", 5000, 0)], [None], options)
samples = build(hr.open(sys.argv[1]), "obs", {"X": view})
before = resident()
most = rows = 0
with samples.batches(256, shuffle="global", memory=48 << 20, remainder="short") as loader:
    for batch in loader:
        rows += len(batch.index)
        most = max(most, resident())
print(rows, most - before)
"""


@pytest.mark.alone
@pytest.mark.parametrize("offsets", [0, -1])
def test_memory_stays_within_the_budget(tmp_path: Path, offsets: int) -> None:
    g = np.random.default_rng(3)
    n = np.where(g.random(40_000) < 0.02, 3000, 200)
    indptr = np.concatenate([[0], np.cumsum(n)])
    indices = np.concatenate([np.arange(k) for k in n]).astype("i4")
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    for name, x in (("indptr", indptr), ("indices", indices), ("data", g.integers(1, 99, len(indices)).astype("f4"))):
        store(root, f"X/{name}", x, min(len(x), 65536), 0, "zstd")
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "a.zarr"), str(offsets)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows, grown = map(int, out.stdout.split())
    assert rows == 40_000
    assert grown < (48 + 64) << 20


@pytest.mark.parametrize("chunk", [1000, 6])
@pytest.mark.parametrize("remote", [False, True])
def test_a_row_that_begins_too_early_is_lost_with_the_one_before(tmp_path: Path, remote: bool, chunk: int) -> None:
    """Row 8 begins a run of rows, and its offset is below that of row 7: without a look at that one it would have the
    values of rows 6 and 7, too."""
    m = scipy.sparse.csr_matrix((np.arange(80.0), np.tile(np.arange(4), 20), np.arange(21) * 4), shape=(20, 4))
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for name, x in (("X/data", m.data), ("X/indices", m.indices), ("X/indptr", m.indptr)):
        store(root, name, x, chunk, 0, "none")
    root["X/indptr"][8] = 24
    w = World(tmp_path / "a.zarr", m, 20, 4, "f8")
    with served(w.path) as url:
        samples = samples_of(w, url if remote else None, row_chunk=4, read_offsets=-1)
        with samples.batches(4, on_error="mask") as loader:
            lost = [i for b in loader for i in np.asarray(b.index)[~np.asarray(b.valid, bool)]]
    assert lost == [4, 5, 6, 7, 8, 9, 10, 11]


def test_zeros_that_are_not_stored_are_no_nan(tmp_path: Path) -> None:
    w, _ = world(tmp_path / "a.zarr", 1)
    with pytest.raises(hr.InvalidError, match=r'missing="nan": view X is of rows of a sparse matrix, .* "fill" takes'):
        samples_of(w).batches(4, missing="nan")


def test_batches_of_heavy_neighbours_are_reserved(tmp_path: Path) -> None:
    n = np.concatenate([np.full(640, 2), np.full(64, 500), np.full(640, 2)])
    ends = np.concatenate([[0], np.cumsum(n)])
    m = scipy.sparse.csr_matrix(
        (np.ones(ends[-1], "f4"), np.concatenate([np.arange(k) for k in n]), ends), (len(n), 500)
    )
    write(tmp_path / "a.zarr", m, 2, random.Random(0))
    w = World(tmp_path / "a.zarr", m, len(n), 500, "f4")
    with samples_of(w, read_offsets=0).batches(64) as loader:
        assert loader.plan()["memory"]["batch"] >= 64 * 500 * 8
