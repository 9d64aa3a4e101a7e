#!/usr/bin/env python3
"""Order version 1 by its definition (docs/internals/order.md), without the library.

Every row, block, lane and key is laid out and sorted; nothing is bisected or inverted. Holds each line of order_v1.inc and
order_v1_sampled.inc (weights and bins) against it.

    order_model.py [FILE …]            # exits 1 if a hash differs
    order_model.py --write FILE        # before a version is released: put the hashes in
    order_model.py --draw N SEED       # rows of N random worlds with weights or bins, for such a file
"""

import itertools
import pathlib
import random
import re
import sys

from order_bins import BINS, deal, sorted_blocks
from order_keyed import M64, mix, permutation, word
from order_weights import WEIGHTS, appearances, units

ONE = 1 << 62
MOVE, TURN, STRATUM, SHIFT, JITTER, ROWS, GLOBAL = 1, 2, 4, 5, 6, 7, 8
SPREAD_ORDER, GLOBAL_ORDER = 1, 2
DROP, PAD, SHORT, WRAP = 1, 2, 3, 4


def cut_place(i, k, blocks, move):
    """Cut i of k in so many blocks."""
    shifted = (i << 25) + move * min(2, i, k - i)
    return (shifted * blocks + (k << 24)) // (k << 25)


class Epoch:
    """Blocks of rows: each knows its ranks, one for each row, and the bins of those, where there are bins."""

    def __init__(self, case, key):
        self.key, self.ids = key, [i for i in range(case["first"], case["last"]) if kept(i, case["keep"])]
        weigh, code = WEIGHTS.get(case["weights"]), BINS.get(case["bins"])
        counts = appearances([weigh(i) for i in self.ids], key) if weigh else [1] * len(self.ids)
        self.blocks, self.bins, samples = [], [], []
        ranks = range(len(self.ids))
        for _, block in itertools.groupby(ranks, lambda r: (self.ids[r] + case["start"]) // case["cell"]):
            block = list(block)
            mean = [units(weigh(self.ids[r])) if weigh else 1 << 31 for r in block]
            if sum(mean):
                self.blocks.append([r for r in block for _ in range(counts[r])])
                self.bins.append([code(self.ids[r]) for r in self.blocks[-1]] if code else None)
                samples.append([(code(self.ids[r]), n) for r, n in zip(block, mean, strict=True)] if code else None)
        self.ranks = [r for block in self.blocks for r in block]
        self.sequence = block_sequence(len(self.blocks), case["spread"], key, samples if code else None)

    def dealt(self, b, whole, turn, lanes):
        """The ranks of a block as its rows go out. whole: no cut of the streams goes through it."""
        key, block = mix(self.key, ROWS, b), self.blocks[b]
        if self.bins[b] and len(set(self.bins[b])) > 1:
            rows = deal(self.bins[b], key, turn if whole else 0, lanes if whole else 1)
        else:
            rows = permutation(key, len(block))
        return [block[row] for row in rows]


def kept(i, keep):
    return not keep or ((i * 2654435761 & M64) >> 7) % 3 < keep


def block_sequence(count, spread, key, bins):
    """(block, stratum) as they are opened. bins: (bin, units) of each sample of each block, or None."""
    k = min(spread, count)
    move = (word(mix(key, MOVE), 0) >> 40) - (1 << 23) if count >= 2 * k else 0
    if bins:
        blocks, cuts = sorted_blocks(bins, k, cut_place, move)
    else:
        blocks, cuts = range(count), [0, *(cut_place(i, k, count, move) for i in range(1, k)), count]
    turn = permutation(mix(key, TURN), k)
    entries = []
    for g in range(k):
        n = cuts[g + 1] - cuts[g]
        for t, b in enumerate(permutation(mix(key, STRATUM, g), n)):
            entries.append((((2 * k * t + 2 * turn[g] + 1) << 61) // (k * n), g, blocks[cuts[g] + b]))
    return [(b, g) for _, g, b in sorted(entries)]


def lane_keys(rows, blocks, jitter, shift):
    ramp = (1 << 63) // blocks if blocks > 4 else ONE // 2
    for q in range(rows):
        x = (((q << 24) + (word(jitter, q) >> 40)) << 38) // rows
        edge = min(x, ONE - x)
        bump = ONE if edge >= ramp else (edge << 62) // ramp
        yield x + (shift * bump >> 62)


def stream_lanes(epoch, low, high):
    """[(block, rows of it)] of each lane that has rows. An empty block goes with the row before it."""
    lanes, begin = {}, 0
    for b, g in epoch.sequence:
        size = len(epoch.blocks[b])
        inside = slice(max(low - begin, 0), min(high - begin, size))
        if inside.start < inside.stop or (not size and (low < begin or not low) and begin <= high):
            lanes.setdefault(g, []).append((b, inside))
        begin += size
    return [lane for _, lane in sorted(lanes.items()) if any(epoch.blocks[b] for b, _ in lane)]


def spread_stream(epoch, number, low, high):
    """Ranks of rows [low, high) of the sequence, as they go out."""
    lanes = stream_lanes(epoch, low, high)
    turn = permutation(mix(epoch.key, SHIFT, number), len(lanes))
    keyed = []
    for i, lane in enumerate(lanes):
        shift = 0
        if len(lane) > 1:
            shift = (2 * turn[i] + 1 - len(lanes)) * (ONE // 2) // (len(lanes) * len(lane))
        ranks = []
        for b, inside in lane:
            whole = inside == slice(0, len(epoch.blocks[b]))
            ranks += epoch.dealt(b, whole, turn[i], len(lanes))[inside] if epoch.blocks[b] else []
        keys = lane_keys(len(ranks), len(lane), mix(epoch.key, JITTER, number, i), shift)
        keyed += [(x, i, q, rank) for q, (x, rank) in enumerate(zip(keys, ranks, strict=True))]
    return [rank for _, _, _, rank in sorted(keyed)]


def stream_range(n, streams, remainder, c):
    rows, longer = divmod(n, streams)
    longer = 0 if remainder == DROP else longer
    low = c * rows + min(c, longer)
    return low, low + rows + (c < longer)


def epoch_rows(case):
    """(id, valid) of an epoch, global batch after global batch."""
    key = mix(case["seed"], 1, case["epoch"])
    epoch = Epoch(case, key)
    streams, n, remainder = case["streams"], len(epoch.ranks), case["remainder"]
    share = case["batch"] // streams
    queues = []
    for c in range(streams):
        low, high = stream_range(n, streams, remainder, c)
        if case["shuffle"] == SPREAD_ORDER:
            ranks = spread_stream(epoch, c, low, high)
        elif case["shuffle"] == GLOBAL_ORDER:
            ranks = [epoch.ranks[row] for row in permutation(mix(key, GLOBAL), n)[low:high]]
        else:
            ranks = epoch.ranks[low:high]
        queue = [(epoch.ids[r], 1) for r in ranks]
        rows = n // streams if remainder == DROP else -(-n // streams)
        steps = rows // share if remainder == DROP else -(-rows // share)
        tail = steps * share - len(queue)
        if remainder == PAD:
            queue += [(queue[-1][0], 0)] * tail
        elif remainder == WRAP:
            queue += (queue * (tail // len(queue) + 1))[:tail]
        queues.append(queue)
    return [row for i in range(steps) for queue in queues for row in queue[i * share : (i + 1) * share]]


def fnv(rows):
    h = 0xCBF29CE484222325
    for i, valid in rows:
        for byte in i.to_bytes(8, "little") + bytes([valid]):
            h = (h ^ byte) * 0x100000001B3 & M64
    return h


NAMES = [
    "axis",
    "cell",
    "start",
    "first",
    "last",
    "keep",
    "shuffle",
    "remainder",
    "spread",
    "streams",
    "batch",
    "seed",
    "epoch",
]
ROW = re.compile(r"(ORDER|SAMPLED)\((.*), *(\w+)\)")


def case_of(kind, numbers):
    names = NAMES if kind == "ORDER" else ["weights", "bins", *NAMES]
    return {"weights": 0, "bins": 0, **dict(zip(names, (int(x) for x in numbers.split(",")), strict=True))}


def check(path, write):
    """How many of a file's hashes differ; they are put in if `write`."""
    wrong, lines = 0, []
    for line in path.read_text().splitlines():
        row = ROW.fullmatch(line)
        if row:
            expected = f"0x{fnv(epoch_rows(case_of(row[1], row[2]))):016x}"
            if row[3] != expected:
                wrong += 1
                if not write:
                    print(f"{path.name} has {row[3]}, the definition gives {expected}: {row[2]}")
            line = f"{row[1]}({row[2]}, {expected})"
        lines.append(line)
    if write:
        path.write_text("\n".join(lines) + "\n")
    return 0 if write else wrong


def drawn(random):
    """A row of a random world, with weights, bins or both."""
    weights, bins = random.choice([(1, 0), (0, 1), (1, 1)])
    axis = random.randint(60, 1500)
    first = random.choice([0, random.randrange(20)])
    streams = random.choice([1, 1, 2, 3, 4])
    remainder = random.choice([DROP, PAD, WRAP, *[SHORT] * (streams == 1)])
    shuffle = SPREAD_ORDER if bins else random.choice([SPREAD_ORDER] * 4 + [GLOBAL_ORDER, 0])
    numbers = [
        weights and random.randint(1, len(WEIGHTS)), bins and random.randint(1, len(BINS)),
        axis, random.choice([1, 3, 8, 32, 50, 90]), random.choice([0, 0, 5]), first, axis - 5 - random.randrange(20),
        random.choice([0, 0, 1, 2]), shuffle, remainder,
        random.choice([1, 4, 8, 16, 16, 33]), streams, streams * random.randint(1, 3), random.randrange(1000), random.randrange(4),
    ]  # fmt: skip
    return "SAMPLED(" + ", ".join(f"{n:4}" for n in numbers) + ", 0)"


def main():
    if "--draw" in sys.argv:
        at = sys.argv.index("--draw")
        world = random.Random(int(sys.argv[at + 2]))
        print("\n".join(drawn(world) for _ in range(int(sys.argv[at + 1]))))
        return 0
    here = pathlib.Path(__file__).parent
    paths = [pathlib.Path(a) for a in sys.argv[1:] if not a.startswith("--")]
    wrong = sum(check(path, "--write" in sys.argv) for path in paths or sorted(here.glob("order_v*.inc")))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
