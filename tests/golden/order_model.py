#!/usr/bin/env python3
"""Order version 1 by its definition (docs/internals/order.md), without the library.

Every block, lane and key is laid out and sorted; nothing is bisected or inverted. Holds each line of order_v1.inc
against it.

    order_model.py [order_v1.inc]            # exits 1 if a hash differs
    order_model.py --write order_v1.inc      # before a version is released: put the hashes in
"""

import pathlib
import re
import sys

M64 = (1 << 64) - 1
ONE = 1 << 62
GOLD, MIX1, MIX2, MIX3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93
MOVE, TURN, STRATUM, SHIFT, JITTER, ROWS, GLOBAL = 1, 2, 4, 5, 6, 7, 8
SPREAD_ORDER, GLOBAL_ORDER = 1, 2
DROP, PAD, SHORT, WRAP = 1, 2, 3, 4


def splitmix(z):
    z = (z ^ z >> 30) * MIX1 & M64
    z = (z ^ z >> 27) * MIX2 & M64
    return z ^ z >> 31


def word(key, index):
    return splitmix((index + 1) * GOLD + key & M64)


def mix(key, *tags):
    for tag in tags:
        z = splitmix(key + GOLD & M64) ^ splitmix(tag ^ MIX3)
        z = (z ^ z >> 32) * MIX3 & M64
        z = (z ^ z >> 32) * MIX3 & M64
        key = z ^ z >> 32
    return key


def permutation(key, n):
    """The images of 0 … n-1: a shuffle up to 64, else six rounds on a grid, walking on from cells beyond n."""
    key = mix(key, n)
    if n <= 64:
        images = list(range(n))
        for m in range(n, 1, -1):
            draw = word(key, m) * m >> 64
            images[draw], images[m - 1] = images[m - 1], images[draw]
        return images
    right = next(r for r in range(1, n + 1) if r * r >= n)
    left = -(-n // right)
    keys = [word(key, i) for i in range(6)]

    def amount(half, k, side):
        x = (half + k) * GOLD & M64
        x = (x ^ x >> 32) * MIX1 & M64
        return (x >> 32) * side >> 32

    def image(cell):
        while True:
            a, b = divmod(cell, right)
            for i in range(0, 6, 2):
                a = (a + amount(b, keys[i], left)) % left
                b = (b + amount(a, keys[i + 1], right)) % right
            cell = a * right + b
            if cell < n:
                return cell

    return [image(i) for i in range(n)]


def block_sequence(sizes, spread, key):
    """(block, stratum) as they are opened."""
    count = len(sizes)
    k = min(spread, count)
    move = (word(mix(key, MOVE), 0) >> 40) - (1 << 23) if count >= 2 * k else 0
    cuts = [0]
    for i in range(1, k):
        shifted = (i << 25) + move * min(2, i, k - i)
        cuts.append((shifted * count + (k << 24)) // (k << 25))
    cuts.append(count)
    turn = permutation(mix(key, TURN), k)
    entries = []
    for g in range(k):
        n = cuts[g + 1] - cuts[g]
        for t, b in enumerate(permutation(mix(key, STRATUM, g), n)):
            entries.append((((2 * k * t + 2 * turn[g] + 1) << 61) // (k * n), g, cuts[g] + b))
    return [(b, g) for _, g, b in sorted(entries)]


def lane_keys(rows, blocks, jitter, shift):
    ramp = (1 << 63) // blocks if blocks > 4 else ONE // 2
    for q in range(rows):
        x = (((q << 24) + (word(jitter, q) >> 40)) << 38) // rows
        edge = min(x, ONE - x)
        bump = ONE if edge >= ramp else (edge << 62) // ramp
        yield x + (shift * bump >> 62)


def spread_stream(sizes, spread, key, number, low, high):
    """Ranks of rows [low, high) of the sequence, as they go out."""
    first = [0]
    for size in sizes:
        first.append(first[-1] + size)
    lanes, begin = {}, 0
    for b, g in block_sequence(sizes, spread, key):
        inside = range(max(low - begin, 0), min(high - begin, sizes[b]))
        if inside:
            rows = permutation(mix(key, ROWS, b), sizes[b])
            lanes.setdefault(g, []).append([first[b] + rows[r] for r in inside])
        begin += sizes[b]
    turn = permutation(mix(key, SHIFT, number), len(lanes))
    keyed = []
    for i, (_, lane) in enumerate(sorted(lanes.items())):
        shift = 0
        if len(lane) > 1:
            shift = (2 * turn[i] + 1 - len(lanes)) * (ONE // 2) // (len(lanes) * len(lane))
        ranks = [rank for block in lane for rank in block]
        keys = lane_keys(len(ranks), len(lane), mix(key, JITTER, number, i), shift)
        keyed += [(x, i, q, rank) for q, (x, rank) in enumerate(zip(keys, ranks, strict=True))]
    return [rank for _, _, _, rank in sorted(keyed)]


def stream_range(n, streams, remainder, c):
    rows, longer = divmod(n, streams)
    longer = 0 if remainder == DROP else longer
    low = c * rows + min(c, longer)
    return low, low + rows + (c < longer)


def epoch_rows(case):
    """(id, valid) of an epoch, global batch after global batch."""
    ids = [
        i
        for i in range(case["first"], case["last"])
        if not case["keep"] or ((i * 2654435761 & M64) >> 7) % 3 < case["keep"]
    ]
    sizes = {}
    for i in ids:
        block = (i + case["start"]) // case["cell"]
        sizes[block] = sizes.get(block, 0) + 1
    key = mix(case["seed"], 1, case["epoch"])
    streams, n, remainder = case["streams"], len(ids), case["remainder"]
    share = case["batch"] // streams
    queues = []
    for c in range(streams):
        low, high = stream_range(n, streams, remainder, c)
        if case["shuffle"] == SPREAD_ORDER:
            ranks = spread_stream([sizes[b] for b in sorted(sizes)], case["spread"], key, c, low, high)
        elif case["shuffle"] == GLOBAL_ORDER:
            ranks = permutation(mix(key, GLOBAL), n)[low:high]
        else:
            ranks = list(range(low, high))
        queue = [(ids[r], 1) for r in ranks]
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


def main():
    write = "--write" in sys.argv
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    path = pathlib.Path(paths[0]) if paths else pathlib.Path(__file__).with_name("order_v1.inc")
    wrong, lines = 0, []
    for line in path.read_text().splitlines():
        row = re.fullmatch(r"ORDER\((.*), *(\w+)\)", line)
        if row:
            case = dict(zip(NAMES, (int(x) for x in row[1].split(",")), strict=True))
            expected = f"0x{fnv(epoch_rows(case)):016x}"
            if row[2] != expected:
                wrong += 1
                if not write:
                    print(f"order_v1.inc has {row[2]}, the definition gives {expected}: {row[1]}")
            line = f"ORDER({row[1]}, {expected})"
        lines.append(line)
    if write:
        path.write_text("\n".join(lines) + "\n")
    return 1 if wrong and not write else 0


if __name__ == "__main__":
    sys.exit(main())
