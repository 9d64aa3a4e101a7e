"""How often samples appear in an epoch, by their weights (docs/internals/order.md, Weights), summed sample by sample."""

import struct

from order_keyed import mix, permutation, word

CELL, ONE = 32, 1 << 31
WEIGHTS_TAG = 10


def draw(i, n):
    return word(5, i) % n


# What sample i weighs, by the number that golden hashes name; tests/unit/plan/golden.c has the same.
WEIGHTS = {
    1: lambda i: draw(i, 4),
    2: lambda i: draw(i, 1000) / 1000,
    3: lambda i: 0.51 if i % 50 else 25.0,
    4: lambda i: 1 + draw(i, 100) / 50 if draw(i, 10) == 0 else 0,
    5: lambda i: 0.25,
    6: lambda i: draw(i, 1 << 20) / (1 << 18),
    7: lambda i: 2.0 if i % 97 < 40 else 0,
}


def parts(weight):
    """The whole part of a weight, and its fraction in 2^-31."""
    single = struct.unpack("f", struct.pack("f", weight))[0]
    return int(single), int((single - int(single)) * ONE)


def units(weight):
    whole, part = parts(weight)
    return whole * ONE + part


def fraction_rows(fractions):
    """How many rows the fractions of all samples give."""
    total = sum(fractions)
    rows = total // ONE
    more = (total + (total >> 20)) // ONE
    return more if more > rows and max(fractions) * more < total else rows


def appearances(weights, key):
    """How often each sample of the split, by rank, appears in the epoch of that key."""
    split = [parts(w) for w in weights]
    fractions = [part for _, part in split]
    total, rows, key = sum(fractions), fraction_rows(fractions), mix(key, WEIGHTS_TAG)
    counts = [whole for whole, _ in split]
    if not rows:
        return counts
    carried = word(key, 0) * total >> 64
    for begin in range(0, len(weights), CELL):
        size = min(CELL, len(weights) - begin)
        for i in permutation(mix(key, begin // CELL), size):
            carried += fractions[begin + i] * rows
            if carried >= total:
                carried -= total
                counts[begin + i] += 1
    return counts
