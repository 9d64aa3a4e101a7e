"""zarr-python with the zarrs (Rust) codec pipeline behind a block shuffle.

Tuned: it decodes the chunks of one selection in parallel, so where a chunk holds several rows a window is one
selection in archive order. With a row a chunk, and in shards, that falls back to Python indexing, and runs read from
as many threads as cores are faster.
"""

import concurrent.futures

import common
import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype


def batches(archive, batch, threads, seed):
    zarr.config.set(
        {
            "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
            "threading.max_workers": threads,
            "threading.num_workers": threads,
        }
    )
    lay = common.Layout(archive, batch)
    z = zarr.open_array(f"{archive}/field", mode="r")
    buffer = default_buffer_prototype().nd_buffer
    single = lay.per_chunk == 1
    pool = concurrent.futures.ThreadPoolExecutor(threads if single else 1)

    def read(out, where):
        z.get_orthogonal_selection((where,), out=buffer.from_numpy_array(out))

    def fill(out, runs, order):
        if not single:
            return [pool.submit(read, out, np.concatenate([np.arange(*run) for run in sorted(runs)]))]
        jobs, at = [], 0
        for start, stop in runs:
            jobs.append(pool.submit(read, out[at : at + stop - start], slice(start, stop)))
            at += stop - start
        return jobs

    return common.double_buffered(lay, batch, seed, fill)


if __name__ == "__main__":
    common.main(batches, __doc__)
