"""The published proposal for remote SCDL, as it behaves: chunks downloaded whole into a folder, a window of chunks
at a time,
the next window prefetched by one thread, rows looked up one by one in the cache's memmaps, torch's DataLoader with
bionemo's collate function. Written anew from what it does; the defects stay (a chunk that was evicted too early is
downloaded again), files that race are asked for anew, where the proposal would end the run.

The download is a plain GET of each file, which is faster than what the proposal takes for it."""

import collections
import random
import shutil
import tempfile
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from bionemo.scdl.util.torch_dataloader_utils import collate_sparse_matrix_batch
from measure import arguments, measure
from torch.utils.data import DataLoader, Dataset, Sampler

FILES = (("data.npy", "f4"), ("row_ptr.npy", "u4"), ("col_ptr.npy", "u2"))


class Cache:
    """The latest chunks, those of windows that are over going first."""

    def __init__(self, url, most):
        self.url, self.most = url, most
        self.folder = Path(tempfile.mkdtemp(prefix="scdl_cache_"))
        self.chunks, self.done, self.loading = collections.OrderedDict(), set(), set()
        self.changed = threading.Condition()
        self.ahead, self.pool, self.coming = ThreadPoolExecutor(1), ThreadPoolExecutor(3), None
        self.downloads = self.bytes = 0

    def file(self, name):
        with urllib.request.urlopen(f"{self.url}/{name}") as answer:
            return answer.read()

    def download(self, chunk):
        to = self.folder / f"chunk_{chunk:05}.{self.downloads}"
        to.mkdir()
        contents = list(self.pool.map(lambda f: self.file(f"chunk_{chunk:05}/{f[0]}"), FILES))
        for (name, _), content in zip(FILES, contents):
            (to / name).write_bytes(content)
            self.bytes += len(content)
        self.downloads += 1
        return to, [np.memmap(to / name, kind, "r") for name, kind in FILES]

    def evict(self):
        while len(self.chunks) >= self.most:
            over = next((c for c in self.chunks if c in self.done), next(iter(self.chunks)))
            self.done.discard(over)
            folder, _ = self.chunks.pop(over)
            shutil.rmtree(folder, ignore_errors=True)

    def get(self, chunk):
        with self.changed:
            while chunk in self.loading:
                self.changed.wait()
            if chunk in self.chunks:
                self.chunks.move_to_end(chunk)
                return self.chunks[chunk][1]
            self.evict()
            self.loading.add(chunk)
        got = self.download(chunk)
        with self.changed:
            self.chunks[chunk] = got
            self.loading.discard(chunk)
            self.changed.notify_all()
        return got[1]

    def prefetch(self, chunks):
        for c in chunks:
            self.get(c)


class Rows(Dataset):
    def __init__(self, cache, chunk_rows, n):
        self.cache, self.chunk_rows, self.n = cache, chunk_rows, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        values, offsets, columns = self.cache.get(i // self.chunk_rows)
        row = i % self.chunk_rows
        own = slice(offsets[row], offsets[row + 1])
        return torch.from_numpy(np.stack((values[own], columns[own])))


class Windows(Sampler):
    def __init__(self, rows, per_window, seed):
        self.rows, self.per_window, self.random, self.order = rows, per_window, random.Random(seed), []

    def __iter__(self):
        rows, cache = self.rows, self.rows.cache
        chunks = list(range(-(-rows.n // rows.chunk_rows)))
        self.random.shuffle(chunks)
        windows = [chunks[i : i + self.per_window] for i in range(0, len(chunks), self.per_window)]
        for k, window in enumerate(windows):
            if k == 0:
                cache.prefetch(window)
            elif cache.coming:
                cache.coming.result()
            if k + 1 < len(windows) and cache.most >= 2 * self.per_window:
                cache.coming = cache.ahead.submit(cache.prefetch, windows[k + 1])
            ids = [i for c in window for i in range(c * rows.chunk_rows, min((c + 1) * rows.chunk_rows, rows.n))]
            self.random.shuffle(ids)
            self.order += ids
            yield from ids
            cache.done.update(window)


def main():
    p = arguments(__doc__)
    p.add_argument("--chunk-rows", type=int, required=True)
    p.add_argument("--all-cells", type=int, default=200000)
    p.add_argument("--cached", type=int, default=2)
    p.add_argument("--window", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(1)
    kept, given = {}, [0]

    def batches():
        cache = kept["cache"] = Cache(a.atlas, a.cached)
        for name in ("header.sch", "obs_features/dataframe_0.parquet", "var_features/dataframe_0.parquet"):
            cache.file(name)
        data = Rows(cache, a.chunk_rows, a.all_cells)
        kept["sampler"] = Windows(data, a.window, a.seed)
        yield from DataLoader(data, batch_size=a.batch, sampler=kept["sampler"], collate_fn=collate_sparse_matrix_batch)

    def rows(b):
        at = given[0]
        given[0] += b.shape[0]
        return b.values(), b.crow_indices(), kept["sampler"].order[at : at + b.shape[0]]

    def more():
        cache = kept["cache"]
        shutil.rmtree(cache.folder, ignore_errors=True)
        return {"downloads": cache.downloads, "fetched": cache.bytes}

    measure(a, batches(), lambda b: b.shape[0], rows, more)


if __name__ == "__main__":
    main()
