"""headrace.scdl as BioNeMo users use it: the published usage, arguments, messages, how things print."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import headrace as hr
from headrace.scdl import ChunkAwareSampler, SingleCellMemMapDataset, collate_sparse_matrix_batch
from scdl_make import Cells, Server, write
from scdl_use import GENES, ROWS, order

pytest_plugins = ["scdl_use"]
warnings.filterwarnings("ignore", "Sparse")


def usage(
    remote_path: str, storage_options: dict[str, Any] | None, cache_dir: Path, cells: Cells, collate: Any
) -> None:
    ds = SingleCellMemMapDataset.from_remote(
        remote_path, cache_dir=str(cache_dir), max_cached_chunks=4, storage_options=storage_options or None
    )
    assert len(ds) == ROWS
    assert ds.header is not None
    assert ds.header.chunked_info is not None
    assert (ds.header.chunked_info.num_chunks, ds.header.chunked_info.chunk_size) == (20, 100)
    sampler = ChunkAwareSampler(ds, shuffle_chunks=True, shuffle_within_window=True, chunks_per_window=2, seed=42)
    rows = order(ds, seed=42, chunks_per_window=2)
    loader = DataLoader(ds, sampler=sampler, batch_size=64, collate_fn=collate)
    at = 0
    for batch in loader:
        n = batch.shape[0]
        np.testing.assert_array_equal(batch.to_dense().numpy(), cells.dense(rows[at : at + n])[:, : batch.shape[1]])
        at += n
    assert at == ROWS
    if ds._chunk_loader:
        assert ds._chunk_loader.stats.summary()["download_count"] == 20
        ds._chunk_loader.cleanup()


def collates() -> list[Any]:
    own = [None, collate_sparse_matrix_batch]
    try:
        from bionemo.scdl.util.torch_dataloader_utils import collate_sparse_matrix_batch as theirs
    except ImportError:
        return own
    return [*own, theirs]


@pytest.fixture(scope="module")
def featured(tmp_path_factory: pytest.TempPathFactory, cells: Cells) -> Path:
    pytest.importorskip("pyarrow")
    return write(tmp_path_factory.mktemp("scdl") / "chunked_scdl", cells, 100, features=True)


def test_the_published_usage_over_http(featured: Path, cells: Cells, tmp_path: Path) -> None:
    for i, collate in enumerate(collates()):
        with Server(featured) as server:
            usage(server.url, None, tmp_path / str(i), cells, collate)


@pytest.mark.parametrize("kind", ["moto", "rgw"])
def test_the_published_usage_over_s3(featured: Path, cells: Cells, tmp_path: Path, kind: str) -> None:
    from test_s3 import Bucket

    bucket = Bucket(kind)
    try:
        bucket.upload(featured, "atlas/chunked scdl/")
        options = {
            "key": bucket.options["key"],
            "secret": bucket.options["secret"],
            "client_kwargs": {"endpoint_url": bucket.options["endpoint_url"]},
        }
        for i, collate in enumerate(collates()):
            usage("s3://bkt/atlas/chunked scdl", options, tmp_path / str(i), cells, collate)
        with pytest.raises(hr.Error, match="no SCDL dataset"):
            SingleCellMemMapDataset.from_remote("s3://bkt/atlas/absent", storage_options=options)
    finally:
        bucket.close()


def test_the_published_usage_on_a_path(featured: Path, cells: Cells, tmp_path: Path) -> None:
    usage(str(featured), None, tmp_path / "a", cells, None)
    usage(f"file://{featured}", None, tmp_path / "b", cells, None)


def test_arguments_are_checked(folder: Path, tmp_path: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    plain = SingleCellMemMapDataset(str(write(tmp_path / "p", Cells(10, 10))), n_cols=10)
    with pytest.raises(ValueError, match="requires a chunked dataset"):
        ChunkAwareSampler(plain)
    with pytest.raises(ValueError, match=r"open a URL by .*from_remote"):
        SingleCellMemMapDataset("s3://bucket/x")
    with pytest.raises(KeyError, match="no such directory"):
        SingleCellMemMapDataset(str(tmp_path / "absent"))
    with pytest.raises(hr.UnsupportedError, match="datasets are read here, not made"):
        SingleCellMemMapDataset(str(tmp_path / "new"), h5ad_path="x.h5ad")
    with pytest.raises(ValueError, match="max_cached_chunks=0"):
        SingleCellMemMapDataset.from_remote(str(folder), max_cached_chunks=0)
    with pytest.warns(UserWarning, match="at least 6"):
        ChunkAwareSampler(SingleCellMemMapDataset.from_remote(str(folder)), chunks_per_window=3)
    assert ds.stats() == {}


def test_errors_say_where_else_it_is_done(folder: Path, tmp_path: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    plain = SingleCellMemMapDataset(str(write(tmp_path / "p", Cells(10, 10))), n_cols=10)
    with pytest.raises(ValueError, match="`headrace cells chunk SRC DST` makes one"):
        ChunkAwareSampler(plain)
    for h5ad in ({"h5ad_path": "x.h5ad"}, {}):
        with pytest.raises(hr.Error, match=r"and so does, chunked, `headrace cells chunk atlas\.h5ad DIRECTORY`"):
            SingleCellMemMapDataset(str(tmp_path / "new"), **h5ad)
    with pytest.raises(hr.UnsupportedError, match="mode='w': datasets are read here"):
        SingleCellMemMapDataset(str(folder), mode="w")
    assert len(SingleCellMemMapDataset(str(folder), mode="r+")) == ROWS
    with pytest.raises(hr.InvalidTypeError, match=r"slice\(3, 6, None\)\]: the number of a row is expected"):
        ds[3:6]  # type: ignore[index]
    with pytest.raises(hr.InvalidTypeError, match="the number of a row is expected"):
        ds[np.array([3, 5, 8])]  # type: ignore[index]
    for name, words in (("to_chunked", "headrace cells chunk"), ("concat", "hr.cells"), ("save", "nothing is changed")):
        assert not hasattr(ds, name)
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': .*{words}"):
            getattr(ds, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        ds.nonsense  # noqa: B018
    (tmp_path / "zarr").mkdir()
    (tmp_path / "zarr" / "zarr.json").write_text("{}")
    with pytest.raises(hr.NotFoundError, match=r"there is a Zarr archive: headrace\.open"):
        SingleCellMemMapDataset(str(tmp_path / "zarr"))


def test_all_print_as_what_they_are(folder: Path, tmp_path: Path) -> None:
    ds = SingleCellMemMapDataset(str(folder), n_cols=GENES)
    assert repr(ds) == f"<SingleCellMemMapDataset {folder}: 2,000 cells × 300 genes in 20 chunks of 100>"
    sampler = ChunkAwareSampler(ds, seed=7, chunks_per_window=2, rank=0, world=2)
    words = "1,000 rows in windows of 2 of 20 chunks, seed 7, rank 0 of 2; next epoch 0"
    assert repr(sampler) == f"<ChunkAwareSampler: {words}>"
    featured = SingleCellMemMapDataset(str(write(tmp_path / "f", Cells(10, 8), features=True)))
    assert repr(featured).endswith("/f: 10 cells × 8 genes>")
    assert len(featured.var_features()) == 1
    assert repr(featured.var_features()) == "<VariableFeatureIndex var_features: 10 rows in 1 block>"
    assert repr(ds.var_features()) == "<VariableFeatureIndex of nothing: 0 rows in 0 blocks>"
