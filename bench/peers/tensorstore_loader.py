"""TensorStore behind a block shuffle.

Tuned: as many copy threads as cores, no chunk cache (each chunk is read once), no revalidation; results are written
into recycled memory, since fresh pages per read halved the speed. Where a chunk is one row (or an inner chunk of a
shard) a window is one indexed read in final order; with more rows a chunk, index arrays cost more than reading runs
and gathering.
"""

import common
import numpy as np
import tensorstore as ts


def batches(archive, batch, threads, seed):
    lay = common.Layout(archive, batch)
    kvstore = {"driver": "file", "path": f"{archive}/field/"}
    if archive.startswith("http"):
        kvstore = {"driver": "http", "base_url": f"{archive}/field/"}
    t = ts.open(
        {
            "driver": "zarr3",
            "kvstore": kvstore,
            "recheck_cached_data": False,
            "recheck_cached_metadata": False,
            "context": {
                "data_copy_concurrency": {"limit": threads},
                "file_io_concurrency": {"limit": max(4, threads)},
                "cache_pool": {"total_bytes_limit": 0},
            },
        },
        open=True,
        read=True,
    ).result()
    single = lay.per_chunk == 1

    def fill(out, runs, order):
        to = ts.array(out)
        if single:
            rows = np.concatenate([np.arange(*run) for run in runs])
            return [to.write(t.oindex[rows[order]])]
        writes, at = [], 0
        for start, stop in runs:
            writes.append(to[at : at + stop - start].write(t[start:stop]))
            at += stop - start
        return writes

    return common.double_buffered(lay, batch, seed, fill, in_order=single)


if __name__ == "__main__":
    common.main(batches, __doc__)
