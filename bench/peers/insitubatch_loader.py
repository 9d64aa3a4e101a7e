"""insitubatch, whose own shuffle this is (needs Python 3.12).

Tuned: as many decode threads as cores (its default of cores + 4 was 10-20 % slower) and zarr's local store for files
(faster than obstore's here); its defaults otherwise: 8 to 64 chunks a block and 8 to 64 reads in flight made no
difference beyond noise, or lost.
"""

import os

import common
import insitubatch
import zarr.storage
from insitubatch.scheduler import decode_pool


def batches(archive, batch, threads, seed):
    decode_pool(threads)
    if archive.startswith("http"):
        store = insitubatch.obstore_store(archive, client_options={"allow_http": True})
    else:
        store = zarr.storage.LocalStore(os.path.abspath(archive), read_only=True)
    geometries = insitubatch.open_geometries(store, ["field"])
    everything = insitubatch.split_by_chunk(geometries["field"], fractions=(1.0, 0.0, 0.0))
    ds = insitubatch.InSituDataset(store, everything, geometries=geometries, batch_size=batch, seed=seed)
    for b in ds.train:
        yield b.arrays["field"]


if __name__ == "__main__":
    common.main(batches, __doc__)
