/* What a refused request is told where it went out without credentials. */
#ifndef STORE_ANONYMOUS_H
#define STORE_ANONYMOUS_H
#include "store/cred.h"

struct anonymous {
    _Atomic(const char *) text; /* made once */
};
/* `cred`: NULL where anonymous requests were asked for. `closed`: what the refusal may mean ("the bucket is not public").
 * Made once and kept in *made (anonymous_dispose at the end of the store); NULL when there were credentials, or no memory. Any
 * thread. */
const char *anonymous_text(struct anonymous *made, struct cred *cred, const char *closed);
void anonymous_dispose(struct anonymous *made);

#endif
