/* 64-bit fingerprints (xxHash3 of libxxhash) of small structured things: archives, views, splits, orders. Integers are
 * fed little-endian and strings with their length, so that no two different sequences of fields collide by joining. */
#ifndef BASE_HASH_H
#define BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t n, uint64_t seed);

struct hash {
    uint64_t state;
};
void hash_init(struct hash *h, uint64_t seed);
void hash_u64(struct hash *h, uint64_t v);
void hash_data(struct hash *h, const void *data, size_t n);
void hash_string(struct hash *h, const char *s);
uint64_t hash_value(const struct hash *h);

#endif
