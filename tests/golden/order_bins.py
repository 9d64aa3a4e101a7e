"""Batches that hold bins in the shares of the split (docs/internals/order.md, Bins): blocks by bins, lanes of bins, and
the rows of a block dealt by bins."""

from order_keyed import mix, permutation, word

MOST_LANES = 4096

# The bin of sample i, by the number that golden hashes name; tests/unit/plan/golden.c has the same.
BINS = {
    1: lambda i: i // 122 % 12,
    2: lambda i: i % 24,
    3: lambda i: int(word(1, i) % 50 == 0),
    4: lambda i: word(2, i // 7) % 5,
    5: lambda i: 3,
    6: lambda i: word(3, i) % 1000,
    7: lambda i: min(i // 300, 4),
}


def largest_bin(block):
    """(bin, what others have in 64ths) of a block's [(bin, units)]."""
    sums = {}
    for code, units in block:
        sums[code] = sums.get(code, 0) + units
    most = min(sums, key=lambda code: (-sums[code], code))
    total = sum(sums.values())
    return most, (total - sums[most]) * 64 // max(total, 1)


def join_segments(runs, least):
    """Runs of blocks [(bin, rows)], of one bin each, joined until they have `least` rows; as (blocks, rows)."""
    out = []
    blocks = rows = 0
    for count, size in runs:
        blocks, rows = blocks + count, rows + size
        if rows >= least:
            out.append((blocks, rows))
            blocks = rows = 0
    if blocks:
        if out:
            out[-1] = (out[-1][0] + blocks, out[-1][1] + rows)
        else:
            out.append((blocks, rows))
    return out


def segments_of(bins, rows, lanes):
    """(blocks, rows, lanes) of each segment of the sorted blocks, which have these largest bins and rows."""
    runs = []
    for i, code in enumerate(bins):
        if i and bins[i - 1] == code:
            runs[-1][0] += 1
            runs[-1][1] += rows[i]
        else:
            runs.append([1, rows[i]])
    total, least = sum(rows), sum(rows) // (2 * lanes)
    if lanes > MOST_LANES:
        return [(len(bins), total, lanes)]
    while len(found := join_segments(runs, least)) > lanes:
        least += least // 2 + 1
    dealt = [1] * len(found)
    for _ in range(lanes - len(found)):
        roomy = [j for j, (blocks, _) in enumerate(found) if dealt[j] < blocks]
        best = roomy[0]
        for j in roomy:
            if found[j][1] * dealt[best] > found[best][1] * dealt[j]:
                best = j
        dealt[best] += 1
    return [(blocks, rows, n) for (blocks, rows), n in zip(found, dealt, strict=True)]


def segment_cuts(rows, lanes, cut_place, move):
    """Where each lane of a segment begins, in its blocks of so many rows."""
    total, cuts = sum(rows), [0]
    for i in range(1, lanes):
        at = total * cut_place(i, lanes, 1 << 62, move if len(rows) >= 2 * lanes else 0) >> 62
        place, before = 0, 0
        while place < len(rows) and before + rows[place] // 2 < at:
            before += rows[place]
            place += 1
        cuts.append(min(max(place, i), len(rows) - (lanes - i)))
    return cuts


def sorted_blocks(blocks, lanes, cut_place, move):
    """The sequence of blocks by bins, and where each lane begins in it. blocks: [(bin, units) of each sample]."""
    look = [largest_bin(block) for block in blocks]
    sequence = sorted(range(len(blocks)), key=lambda b: (*look[b], b))
    rows = [sum(units for _, units in blocks[b]) for b in sequence]
    cuts, begin = [], 0
    for count, _, n in segments_of([look[b][0] for b in sequence], rows, lanes):
        cuts += [begin + c for c in segment_cuts(rows[begin : begin + count], n, cut_place, move)]
        begin += count
    return sequence, [*cuts, len(blocks)]


def deal(bins, key, turn, lanes):
    """The rows of a block, whose bins are these, as they go out."""
    c, before, placed = len(bins), 0, []
    for code in sorted(set(bins)):
        rows = [row for row, b in enumerate(bins) if b == code]
        n = len(rows)
        a = (2 * turn - (2 * turn + 1 - lanes) * n) % (2 * lanes)
        phase = ((before << 32) // c + (a << 32) // (2 * lanes)) % (1 << 32)
        for r, row in zip(permutation(mix(key, code), n), rows, strict=True):
            placed.append((((r << 32) + phase) // n, row))
        before += n
    return [row for _, row in sorted(placed)]
