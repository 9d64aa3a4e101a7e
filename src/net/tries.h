/* One try of a transfer: begun when its lane has a place for it, and what becomes of its handle.
 * Loop thread only. Internal to the room. */
#ifndef NET_TRIES_H
#define NET_TRIES_H
#include "net/transfer.h"

/* Begin tries of what waits, up to the limit. */
void lane_pump(struct lane *lane);
/* The request of h goes out. How long its connection took to be made, if it is new: the quickest
 * tells how far the server is. From within libcurl. */
void try_connected(struct easy *h);
/* It took so much longer that its first packets must have been dropped: the server has more
 * connections than it accepts. */
bool try_connected_late(const struct easy *h);
/* The request of h is over: counted, and h given back. `t` when it was t's try, not a second
 * request that was not needed. */
void try_retire(struct easy *h, const struct transfer *t);
/* Second requests that have come too late; between libcurl's turns. */
void tries_drop_losers(struct loop *l);

#endif
