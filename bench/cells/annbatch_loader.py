"""annbatch on the same atlas: blocks of 512 cells (its default), 32 of them at once, decoded by zarrs or
zarr-python."""

import anndata
import numpy as np
import zarr
from annbatch import Loader
from measure import arguments, measure


def batches(a):
    if a.pipeline == "zarrs":
        import zarrs  # noqa: F401

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": a.threads})
    if a.atlas.startswith("http"):
        from obstore.store import HTTPStore
        from zarr.storage import ObjectStore

        store = ObjectStore(HTTPStore.from_url(a.atlas, client_options={"allow_http": True}), read_only=True)
    else:
        store = a.atlas
    group = zarr.open_group(store, mode="r")
    loader = Loader(
        batch_size=a.batch, chunk_size=a.block, preload_nchunks=a.blocks, shuffle=True, preload_to_gpu=False,
        rng=np.random.default_rng(a.seed), return_index=bool(a.check),
    )  # fmt: skip
    loader.add_dataset(anndata.io.sparse_dataset(group["X"]))
    yield from loader


if __name__ == "__main__":
    p = arguments(__doc__)
    p.add_argument("--pipeline", choices=("zarrs", "zarr"), default="zarrs")
    p.add_argument("--block", type=int, default=512)
    p.add_argument("--blocks", type=int, default=32)
    a = p.parse_args()
    measure(a, batches(a), lambda b: b["X"].shape[0], lambda b: (b["X"].data, b["X"].indptr, b["index"]))
