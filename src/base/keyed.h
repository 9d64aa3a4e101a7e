/* Keyed words and permutations: the only source of randomness in the library.
 *
 * Everything random is a pure function of (key, index), so an order can be entered anywhere. `keyed_word` is splitmix64
 * addressed by index; `keyed_mix` derives a key from a key and a tag; the permutation is a Feistel network with cycle
 * walking over a grid of left × right ≥ n cells: O(1) a look-up, no table (but 64 bytes for n ≤ 64). Released orders depend on these functions bit
 * for bit: they never change within an order version (golden values in tests/unit/base/keyed.c). No state, no I/O. */
#ifndef BASE_KEYED_H
#define BASE_KEYED_H
#include <stdint.h>

uint64_t keyed_mix(uint64_t key, uint64_t tag);
uint64_t keyed_word(uint64_t key, uint64_t index);

#define KEYED_ROUNDS 6
#define KEYED_SMALL  64

/* Filled by keyed_perm_init, for keyed.c alone; 88 bytes, cheap to make, copied freely. n ≤ 2^63; 0 has no positions. */
struct keyed_perm {
    uint64_t n;
    uint64_t left, right; /* sides of the grid, below 2^32; 0 when n ≤ KEYED_SMALL */
    union {
        uint64_t keys[KEYED_ROUNDS]; /* one per round */
        uint8_t images[KEYED_SMALL];
    };
};
void keyed_perm_init(struct keyed_perm *p, uint64_t key, uint64_t n);
uint64_t keyed_perm_at(const struct keyed_perm *p, uint64_t i);      /* i < n → position */
uint64_t keyed_perm_inverse(const struct keyed_perm *p, uint64_t v); /* the i with at(i) == v */

#endif
