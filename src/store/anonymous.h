/* What a refused request is told where it went out without credentials. */
#ifndef STORE_ANONYMOUS_H
#define STORE_ANONYMOUS_H
#include "store/cred.h"

/* `cred`: NULL where anonymous requests were asked for. `closed`: what the refusal may mean ("the bucket is not public").
 * Made once and kept in *made (mem_free at the end of the store); NULL when there were credentials, or no memory. Any
 * thread. */
const char *anonymous_text(_Atomic(const char *) *made, struct cred *cred, const char *closed);

#endif
