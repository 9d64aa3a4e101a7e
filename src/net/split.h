/* Large objects in parts, fetched at once. Internal to the room.
 *
 * One connection brings what its window allows, so an object of many MiB takes long however idle
 * the network is. When the head of a reply says that it is large, that its version can be named
 * (a strong ETag) and that ranges are served, and the lane has places left, the reply is read up to the
 * end of its first part and the rest is fetched by transfers of their own: ranges of the same
 * version (If-Match), written to their place in the same memory. Nothing else changes for the
 * caller: one `room`, one `done`. The first error ends all of them; a server that turns out not
 * to serve ranges after all is read in one piece, and not split again. */
#ifndef NET_SPLIT_H
#define NET_SPLIT_H
#include "net/transfer.h"

/* The head of t's reply has come and its room is there; inside a callback of libcurl. */
void split_consider(struct transfer *t);
/* A part has ended and is not in its lane any more: freed here. */
void split_part_ended(struct transfer *part, const struct net_result *r);
void split_end_parts(struct transfer *t); /* the whole ends, or is read anew */
/* All in one piece again, from the start. */
void split_undo(struct transfer *t);

#endif
