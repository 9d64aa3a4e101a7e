"""Neighbours of cells: rows of obsp, drawn by weight and keyed."""

import pathlib

import numpy as np
import pytest

import headrace as hr

ad = pytest.importorskip("anndata")
sp = pytest.importorskip("scipy.sparse")

N = 90


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, "sp.csr_matrix"]:
    rng = np.random.default_rng(5)
    near = sp.random(N, N, density=0.1, format="csr", random_state=2, dtype=np.float64)
    near.data = rng.random(near.nnz) + 0.01
    near.data[near.indptr[7] : near.indptr[8]] = 0  # a cell without
    near.eliminate_zeros()
    x = sp.random(N, 30, density=0.3, format="csr", random_state=1, dtype=np.float32)
    path = tmp_path_factory.mktemp("neighbors") / "atlas.zarr"
    ad.AnnData(x, obsp={"connectivities": near}).write_zarr(path)
    return path, near


def _epoch(loader: hr.Loader) -> dict[int, tuple[list[int], list[float], list[bool]]]:
    found = {}
    for batch in loader:
        t = [batch[f"connectivities.{part}"].numpy() for part in ("cells", "weights", "mask")]
        for row, cell in enumerate(batch.index.numpy()):
            found[int(cell)] = tuple(part[row].tolist() for part in t)
    return found


def test_neighbours_are_rows_of_obsp(atlas: tuple[pathlib.Path, "sp.csr_matrix"]) -> None:
    path, near = atlas
    samples = hr.open(path).cells(neighbors={"connectivities": 4})
    with samples.batches(8, shuffle=True, seed=3, remainder="pad") as loader:
        first, second = _epoch(loader), _epoch(loader)
    assert set(first) == set(range(N)) and first != second
    for cell, (cells, weights, mask) in first.items():
        row = near[cell]
        known = dict(zip(row.indices.tolist(), row.data.astype(np.float32).tolist()))
        n = sum(mask)
        assert n == min(4, len(known)) and len(set(cells[:n])) == n
        assert [known[c] for c in cells[:n]] == weights[:n]
        assert cells[n:] == [-1] * (4 - n) and mask == [True] * n + [False] * (4 - n)
    with samples.batches(8, shuffle=True, seed=3, remainder="pad") as again:
        assert _epoch(again) == first


def test_heavier_neighbours_are_drawn_more_often(atlas: tuple[pathlib.Path, "sp.csr_matrix"]) -> None:
    path, near = atlas
    seen: dict[tuple[int, int], int] = {}
    with hr.open(path).cells(neighbors={"connectivities": 1}).batches(N) as loader:
        for _ in range(300):
            for cell, (cells, _, mask) in _epoch(loader).items():
                if mask[0]:
                    seen[cell, cells[0]] = seen.get((cell, cells[0]), 0) + 1
    drawn = near.tocoo()
    share = np.array([seen.get((r, c), 0) / 300 for r, c in zip(drawn.row.tolist(), drawn.col.tolist())])
    expected = drawn.data / np.asarray(near.sum(axis=1)).ravel()[drawn.row]
    assert np.abs(share - expected).max() < 0.17 and np.abs(share - expected).mean() < 0.03


def test_neighbours_in_a_union_are_of_the_own_data_set(
    atlas: tuple[pathlib.Path, "sp.csr_matrix"], tmp_path: pathlib.Path
) -> None:
    path, near = atlas
    other = sp.random(40, 40, density=0.2, format="csr", random_state=9, dtype=np.float64)
    x = sp.random(40, 30, density=0.3, format="csr", random_state=3, dtype=np.float32)
    ad.AnnData(x, obsp={"connectivities": other}).write_zarr(tmp_path / "other.zarr")
    samples = hr.cells({"a": path, "b": tmp_path / "other.zarr"}, neighbors={"connectivities": 4})
    whole = sp.block_diag([near, other], format="csr")
    with samples.batches(8, shuffle=True, seed=3, remainder="short") as loader:
        found = _epoch(loader)
    assert set(found) == set(range(N + 40))
    for cell, (cells, weights, mask) in found.items():
        row = whole[cell]
        known = dict(zip(row.indices.tolist(), row.data.astype(np.float32).tolist()))
        n = sum(mask)
        assert n == min(4, len(known)) and len(set(cells[:n])) == n
        assert [known[c] for c in cells[:n]] == weights[:n] and cells[n:] == [-1] * (4 - n)
    bare = tmp_path / "bare.zarr"
    ad.AnnData(x).write_zarr(bare)
    with pytest.raises(KeyError, match="neighbors: b has no 'connectivities'; in obsp it has none"):
        hr.cells({"a": path, "b": bare}, neighbors={"connectivities": 4})


def test_what_is_not_there_is_refused(atlas: tuple[pathlib.Path, "sp.csr_matrix"]) -> None:
    archive = hr.open(atlas[0])
    with pytest.raises(KeyError, match="did you mean 'connectivities'"):
        archive.cells(neighbors={"connectivity": 4})
    with pytest.raises(ValueError, match="neighbors: connectivities"):
        archive.cells(neighbors={"connectivities": 0})
    with pytest.raises(TypeError, match="neighbors"):
        archive.cells(neighbors=["connectivities"])  # type: ignore[arg-type]
