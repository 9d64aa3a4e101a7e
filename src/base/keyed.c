/* The permutation splits an index into a row and a column of a grid just larger than n and moves the two in turn by keyed
 * amounts, modulo their side (a Feistel network with addition instead of XOR). The grid has fewer than √n cells too many,
 * so walking on from a cell beyond n is rare; the usual power-of-two grid would walk once for every second index, and
 * costs a mispredicted branch each time. 6 rounds of a two-multiply hash: fewer rounds, or one multiplication, leave
 * keys under which distant indices move together (second differences over 4096 indices tell them from shuffles).
 *
 * On a small grid a network reaches the permutations unevenly (at n = 20 some pairs of places are 30 % too frequent);
 * up to 64 elements an exact Fisher-Yates shuffle is kept instead, in about the room that the round keys take.
 *
 * Constants: splitmix64 (Steele, Lea, Flood 2014), its increment, and the multiplier of Degski's 64-bit mixer. */
#include "base/keyed.h"

#define GOLD 0x9E3779B97F4A7C15ull

static uint64_t splitmix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

uint64_t keyed_word(uint64_t key, uint64_t index)
{
    return splitmix((index + 1) * GOLD + key);
}

/* Unlike keyed_word in its last step, so that a derived key is no word of the key it came from. */
uint64_t keyed_mix(uint64_t key, uint64_t tag)
{
    uint64_t z = splitmix(key + GOLD) ^ splitmix(tag ^ 0xD6E8FEB86659FD93ull);
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93ull;
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93ull;
    return z ^ (z >> 32);
}

static uint64_t root_ceil(uint64_t n)
{
    uint64_t root = 0;
    for (uint64_t bit = 1ull << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= n)
            root |= bit;
    return root + (root * root < n);
}

/* Fisher-Yates; a draw below m is the high part of a word times m, uneven by less than 2^-57. */
static void images_init(struct keyed_perm *p, uint64_t key)
{
    for (uint64_t i = 0; i < p->n; i++)
        p->images[i] = (uint8_t)i;
    for (uint64_t m = p->n; m > 1; m--) {
        uint64_t draw = (uint64_t)((unsigned __int128)keyed_word(key, m) * m >> 64);
        uint8_t image = p->images[draw];
        p->images[draw] = p->images[m - 1];
        p->images[m - 1] = image;
    }
}

void keyed_perm_init(struct keyed_perm *p, uint64_t key, uint64_t n)
{
    *p = (struct keyed_perm){.n = n};
    key = keyed_mix(key, n); /* sizes under one key have nothing in common */
    if (n <= KEYED_SMALL) {
        images_init(p, key);
        return;
    }
    p->right = root_ceil(n);
    p->left = n / p->right + (n % p->right != 0);
    for (int i = 0; i < KEYED_ROUNDS; i++)
        p->keys[i] = keyed_word(key, (uint64_t)i);
}

/* A keyed amount below `side` (≤ 2^32). */
static inline uint64_t amount(uint64_t half, uint64_t key, uint64_t side)
{
    uint64_t x = (half + key) * GOLD;
    x = (x ^ (x >> 32)) * 0xBF58476D1CE4E5B9ull;
    return (x >> 32) * side >> 32;
}

static inline uint64_t add_mod(uint64_t a, uint64_t b, uint64_t m)
{
    uint64_t sum = a + b;
    return sum - (sum >= m ? m : 0);
}

static inline uint64_t sub_mod(uint64_t a, uint64_t b, uint64_t m)
{
    return a - b + (a < b ? m : 0);
}

uint64_t keyed_perm_at(const struct keyed_perm *p, uint64_t i)
{
    if (!p->left)
        return p->images[i % KEYED_SMALL];
    uint64_t cell = i;
    do {
        uint64_t left = cell / p->right, right = cell % p->right;
        for (int r = 0; r < KEYED_ROUNDS; r += 2) {
            left = add_mod(left, amount(right, p->keys[r], p->left), p->left);
            right = add_mod(right, amount(left, p->keys[r + 1], p->right), p->right);
        }
        cell = left * p->right + right;
    } while (cell >= p->n);
    return cell;
}

uint64_t keyed_perm_inverse(const struct keyed_perm *p, uint64_t v)
{
    if (!p->left) {
        uint64_t i = 0;
        while (i < KEYED_SMALL - 1 && p->images[i] != v)
            i++;
        return i;
    }
    uint64_t cell = v;
    do {
        uint64_t left = cell / p->right, right = cell % p->right;
        for (int r = KEYED_ROUNDS - 2; r >= 0; r -= 2) {
            right = sub_mod(right, amount(left, p->keys[r + 1], p->right), p->right);
            left = sub_mod(left, amount(right, p->keys[r], p->left), p->left);
        }
        cell = left * p->right + right;
    } while (cell >= p->n);
    return cell;
}
