"""The 40-line loader: SCDL by numpy memmaps, a block shuffle and one gather a batch. The local competitor to beat.

Blocks of neighbouring cells in random order, `WINDOW` of them at a time, the cells of a window in random order. A
batch is
its rows' slices, put one behind the other. No threads (the slices are too short to let go of the GIL for), no ranks, no
resume; the system's page cache is all the memory it manages."""

import numpy as np
from measure import arguments, measure

BLOCK, WINDOW = 256, 64


def order(n, rng):
    starts = rng.permutation(np.arange(0, n, BLOCK))
    for i in range(0, len(starts), WINDOW):
        blocks = [np.arange(s, min(s + BLOCK, n)) for s in starts[i : i + WINDOW]]
        yield rng.permutation(np.concatenate(blocks))


def batches(folder, batch, seed):
    offsets = np.fromfile(f"{folder}/row_ptr.npy", "u4").astype("i8")
    values, columns = np.memmap(f"{folder}/data.npy", "f4", "r"), np.memmap(f"{folder}/col_ptr.npy", "u2", "r")
    rest = np.empty(0, "i8")
    for window in order(len(offsets) - 1, np.random.default_rng(seed)):
        ids = np.concatenate([rest, window])
        for i in range(0, len(ids) - batch + 1, batch):
            yield gather(values, columns, offsets, ids[i : i + batch])
        rest = ids[len(ids) // batch * batch :]
    if len(rest):
        yield gather(values, columns, offsets, rest)


def gather(values, columns, offsets, ids):
    begin, end = offsets[ids], offsets[ids + 1]
    spans = [slice(a, b) for a, b in zip(begin.tolist(), end.tolist())]
    own = np.concatenate([[0], np.cumsum(end - begin)])
    return np.concatenate([values[s] for s in spans]), np.concatenate([columns[s] for s in spans]), own, ids


if __name__ == "__main__":
    a = arguments(__doc__).parse_args()
    measure(a, batches(a.atlas, a.batch, a.seed), lambda b: len(b[3]), lambda b: (b[0], b[2], b[3]))
