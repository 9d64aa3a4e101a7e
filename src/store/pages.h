/* Whether the pages of a listing go round: each says where the next begins, and a server that names a place twice would be asked
 * for ever. Brent's way: the place met after 0, 1, 3, 7, … pages is kept, and the others are held against it. */
#ifndef STORE_PAGES_H
#define STORE_PAGES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pages { /* zero: none yet */
    uint64_t kept, since, next;
};
bool pages_go_round(struct pages *p, const char *place, size_t n);

#endif
