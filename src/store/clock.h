/* The server's time, for signatures: this machine's clock, plus what an answer that refused it has shown to be wrong with it.
 * Any thread. */
#ifndef STORE_CLOCK_H
#define STORE_CLOCK_H
#include <stdatomic.h>
#include <stdbool.h>

#include "net/net.h"

struct server_clock { /* zero: they agree */
    _Atomic uint32_t corrections;
    _Atomic int64_t off; /* seconds the server is ahead of this machine */
};
int64_t clock_of_server(const struct server_clock *c); /* seconds since 1970 */
uint8_t clock_mark(const struct server_clock *c); /* notes which correction a request was made by */
/* How far the server that answered is ahead of this machine; false: it does not say. */
bool clock_ahead(const struct reply *answer, int64_t *off);
/* The time of a request made by `mark` was refused: true when it is known better now, which the log says once. */
bool clock_learns(struct server_clock *c, const struct reply *answer, uint8_t mark,
                  const char *shown, struct net *net);

#endif
