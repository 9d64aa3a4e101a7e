/* Fingerprints chain XXH3: each field is hashed with the state so far as its seed, so a fingerprint is one word, needs no
 * streaming context and no heap. Fields are told apart by kind and length: a byte string starts with a tag and its size.
 * XXH3's output is the same on every machine and in every version of libxxhash from 0.8.0 on; saved loader states
 * depend on that. */
#include "base/hash.h"

#include <string.h>
#include <xxhash.h>

#define DATA_TAG 0x64617461u /* keeps a string of 8 bytes from looking like two integers */

uint64_t hash_bytes(const void *data, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(n ? data : "", n, seed);
}

void hash_init(struct hash *h, uint64_t seed)
{
    h->state = seed;
}

void hash_u64(struct hash *h, uint64_t v)
{
    unsigned char le[8];
    for (int i = 0; i < 8; i++)
        le[i] = (unsigned char)(v >> (8 * i));
    h->state = hash_bytes(le, sizeof(le), h->state);
}

void hash_data(struct hash *h, const void *data, size_t n)
{
    unsigned char head[12];
    for (int i = 0; i < 4; i++)
        head[i] = (unsigned char)(DATA_TAG >> (8 * i));
    for (int i = 0; i < 8; i++)
        head[4 + i] = (unsigned char)((uint64_t)n >> (8 * i));
    h->state = hash_bytes(head, sizeof(head), h->state);
    h->state = hash_bytes(data, n, h->state);
}

void hash_string(struct hash *h, const char *s)
{
    hash_data(h, s, strlen(s));
}

uint64_t hash_value(const struct hash *h)
{
    return h->state;
}
