"""The keyed words and permutations of the order, by their definition (src/base/keyed.c computes the same)."""

M64 = (1 << 64) - 1
GOLD, MIX1, MIX2, MIX3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93


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
