"""Stores that others have written, over real data: every byte as by path, and closed at once in the middle of an epoch."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import obstore.store
import pytest
import zarr
from zarr.storage import FsspecStore, ObjectStore

import headrace as hr
from conftest import field, write

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "wire"))
import nginx

DATA = field((64, 20, 30))

pytestmark = pytest.mark.alone  # closing is timed


def fill(root: Any) -> Any:
    return write(root, "x", DATA, (1, 20, 30), ("time", "lat", "lon"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(zarr.create_group(store=tmp_path / "a.zarr"))
    return tmp_path / "a.zarr"


def read_and_close(store: Any) -> None:
    got, loader = np.zeros_like(DATA), hr.open(store).samples(along="time", x="x").batches(8, shuffle=True)
    for batch in loader:
        assert batch.filled == 0
        got[batch.index.numpy()] = batch["x"].numpy()
    np.testing.assert_array_equal(got, DATA)
    next(iter(loader))
    start = time.perf_counter()
    loader.close()
    assert time.perf_counter() - start < 0.1


def test_the_session_store_of_icechunk(tmp_path: Path) -> None:
    icechunk = pytest.importorskip("icechunk")
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    fill(zarr.create_group(store=session.store))
    session.commit("data")
    read_and_close(repository.readonly_session("main").store)


def test_the_manifest_store_of_virtualizarr(path: Path) -> None:
    pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore

    files = {i: path / "x" / "c" / str(i) / "0" / "0" for i in range(len(DATA))}
    chunks = {f"{i}.0.0": {"path": f"file://{f}", "offset": 0, "length": f.stat().st_size} for i, f in files.items()}
    array = ManifestArray(metadata=zarr.open_group(path)["x"].metadata, chunkmanifest=ChunkManifest(chunks))
    registry = ObjectStoreRegistry({"file://": obstore.store.LocalStore()})
    read_and_close(ManifestStore(ManifestGroup(arrays={"x": array}), registry=registry))


@pytest.mark.parametrize("kind", ["obstore", "fsspec", "mapper"])
def test_stores_that_read_from_a_web_server(path: Path, tmp_path: Path, kind: str) -> None:
    if reason := nginx.missing():
        pytest.skip(reason)
    if kind != "obstore":
        pytest.importorskip("aiohttp")
    with nginx.Nginx(path.parent, tmp_path / "nginx") as server:
        url = f"{server.url}/a.zarr"
        if kind == "obstore":
            http = obstore.store.HTTPStore.from_url(url, client_options={"allow_http": True})
            read_and_close(ObjectStore(http, read_only=True))
        elif kind == "fsspec":
            read_and_close(FsspecStore.from_url(url, read_only=True))
        else:
            read_and_close(fsspec.get_mapper(url))
