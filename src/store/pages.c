/* See pages.h. */
#include "store/pages.h"

#include "base/hash.h"

bool pages_go_round(struct pages *p, const char *place, size_t n)
{
    uint64_t here = hash_bytes(place, n, 0);
    if (p->next && here == p->kept)
        return true;
    if (p->since++ == p->next) {
        p->kept = here;
        p->next = 2 * p->next + 1;
        p->since = 0;
    }
    return false;
}
