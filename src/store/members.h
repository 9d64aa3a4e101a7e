/* Several stores as one: keys "0/…", "1/…" are those of the first, the second, … (what archives joined into one read
 * from).
 *
 * Nothing passes through it: store.c finds the member a key belongs to and goes on there, so that limits, credentials,
 * retries and errors are the member's own. Only two things are done here. Where some members block and others do not, the
 * whole counts as one that does not, and reads of those that block go to a few threads (readers.h). And counters are
 * added up. */
#ifndef STORE_MEMBERS_H
#define STORE_MEMBERS_H
#include "store/store.h"

#define STORE_MEMBERS_MOST 4095

/* References are taken. `url`: the whole, for people; copied. */
int store_members_open(struct store *const *members, int n, const char *url, struct store **out,
                       struct hr_error *e);
/* "12/": what stands before the keys of member k. */
#define STORE_MEMBER_PREFIX 16
void store_member_prefix(int k, char out[STORE_MEMBER_PREFIX]);

#endif
