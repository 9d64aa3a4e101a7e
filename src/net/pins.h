/* Which version of an object was read: so that ranges of two versions are never mixed.
 *
 * Objects read by range (shards) are pinned by key: a fingerprint of the ETag and the size. A
 * later reply that differs is an error that names the object. Whole objects are complete in
 * themselves and are not pinned, so the table stays small; it is bounded (1.5 MiB), and when
 * full the oldest neighbour is forgotten: a change may then go unseen, never the reverse. Not
 * thread-safe: the owner locks. */
#ifndef NET_PINS_H
#define NET_PINS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pin {
    uint64_t key, etag; /* fingerprints; etag 0: the server sends none */
    uint64_t size;      /* of the object; 0: unknown */
};
struct pins {
    struct pin *slots; /* key 0: free */
    size_t count, cap, victim;
};
void pins_dispose(struct pins *p);
const struct pin *pins_find(const struct pins *p, uint64_t key);
/* Remember; out of memory is no error (the change would go unseen). */
void pins_add(struct pins *p, const struct pin *pin);
/* Same version, as far as both sides know. */
bool pin_matches(const struct pin *pin, uint64_t etag, uint64_t size);

#endif
