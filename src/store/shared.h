/* What the stores of a process learn once for all: where a bucket is, and the credential of the
 * machine that they run on. A hundred archives then cost one question to a metadata service, or
 * one wait for a service that is not there.
 *
 * Credentials are kept by key, the address that is asked with all that its answer depends on; one
 * thread asks, others wait for its answer. Any thread; the functions that ask may block as long
 * as an ask does. In a forked child nothing here may be used: its owner makes another
 * (api/runtime.c). */
#ifndef STORE_SHARED_H
#define STORE_SHARED_H
#include "store/cred.h"

struct store_shared;
struct store_shared *shared_new(struct hr_error *e);
struct store_shared *shared_ref(struct store_shared *s);
void shared_unref(struct store_shared *s); /* NULL allowed; wipes */

/* What an ask may answer besides an error. */
enum { SHARED_NONE = 0, SHARED_VALUE = 1, SHARED_SILENT = 2 /* nobody is there */ };

/* A credential from the machine. *seen (at first 0) is the caller's: which one it has had; asking
 * again means that this one is no longer good enough. What others were given is given as long as it
 * need not be renewed; else `ask` is called: as cred_provider.fetch, or SHARED_SILENT. Silence is
 * believed for a minute, unless there was an answer before. 1 and *v, 0 and *why, or an error. */
int shared_ask(struct store_shared *s, const char *key, uint64_t *seen,
               int (*ask)(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e),
               void *arg, struct cred_value *v, struct buf *why, struct hr_error *e);

/* Small facts: `what` (a literal) of a place, such as the region of a bucket. They save requests and are believed only until
 * an answer says otherwise, so one that is lost for want of memory is no error. `s` NULL: nothing
 * is known, nothing kept. */
void shared_note(struct store_shared *s, const char *what, const char *place, const char *value);
bool shared_noted(struct store_shared *s, const char *what, const char *place, char *out,
                  size_t room);

#endif
