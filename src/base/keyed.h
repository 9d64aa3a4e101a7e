/* Keyed words and permutations: the only source of randomness in the library.
 *
 * Everything random is a pure function of (key, index), so an order can be entered anywhere. `keyed_word` is splitmix64
 * addressed by index; `keyed_mix` derives a key from a key and a tag; the permutation is a balanced Feistel network over
 * the smallest even number of bits with cycle walking: O(1) a look-up, no table. Released orders depend on these
 * functions bit for bit: they never change within an order version (golden hashes in tests/golden). No state, no I/O. */
#ifndef BASE_KEYED_H
#define BASE_KEYED_H
#include <stdint.h>

uint64_t keyed_mix(uint64_t key, uint64_t tag);
uint64_t keyed_word(uint64_t key, uint64_t index);

struct keyed_perm {
    uint64_t n;
    uint32_t half_bits;
    uint64_t keys[6]; /* one per round */
};
void keyed_perm_init(struct keyed_perm *p, uint64_t key, uint64_t n);
uint64_t keyed_perm_at(const struct keyed_perm *p, uint64_t i);      /* i < n → position */
uint64_t keyed_perm_inverse(const struct keyed_perm *p, uint64_t v); /* the i with at(i) == v */

#endif
