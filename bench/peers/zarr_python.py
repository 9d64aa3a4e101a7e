"""zarr-python behind a block shuffle, with its own codec pipeline.

Tuned: runs of neighbouring chunks are read by basic selection straight into recycled memory, from as many threads as
pay (its event loop is the bottleneck); orthogonal selection of a whole window was slower everywhere and 5x slower on
shards.
"""

import concurrent.futures

import common
import numcodecs.blosc
import zarr
from zarr.core.buffer import default_buffer_prototype


def batches(archive, batch, threads, seed):
    zarr.config.set({"threading.max_workers": threads})
    numcodecs.blosc.use_threads = False
    lay = common.Layout(archive, batch)
    z = zarr.open_array(f"{archive}/field", mode="r")
    buffer = default_buffer_prototype().nd_buffer
    pool = concurrent.futures.ThreadPoolExecutor(threads if lay.per_chunk == 1 else 2 * threads)

    def read(out, start, stop):
        z.get_basic_selection((slice(start, stop),), out=buffer.from_numpy_array(out))

    def fill(out, runs, order):
        jobs, at = [], 0
        for start, stop in runs:
            jobs.append(pool.submit(read, out[at : at + stop - start], start, stop))
            at += stop - start
        return jobs

    return common.double_buffered(lay, batch, seed, fill)


if __name__ == "__main__":
    common.main(batches, __doc__)
