/* A store whose bytes somebody else gets: the C side of hr_store_* (headrace.h) and, through it, of
 * any zarr Store of Python.
 *
 * Two sides. The *reading* side is an ordinary asynchronous `struct store`: reads are left in a
 * queue, and its thread goes on. The *serving* side takes tasks out of the queue, many at a time,
 * and answers them in any order. Nothing is called across but `wake`, once for any number of new
 * tasks, so a thread of the engine never runs foreign code and never waits for a lock of a foreign
 * runtime (Python's interpreter lock, above all).
 *
 * What is cancelled ends at once, whether or not the serving side ever hears of it: a store that
 * hangs for ever holds up nobody who closes. Its late answers find nobody and are dropped. */
#ifndef STORE_BRIDGE_H
#define STORE_BRIDGE_H
#include "store/store.h"

/* hr_store_new and the rest of the serving side, as headrace.h has them. */
int bridge_new(const struct hr_store_options *o, struct hr_store **out, struct hr_error *e);
void bridge_unref(struct hr_store *b);
/* The reading side, once: HR_ESTATE the second time. */
int bridge_open(struct hr_store *b, struct store **out, struct hr_error *e);
int bridge_take(struct hr_store *b, struct hr_task *tasks, int n);
void bridge_answer(struct hr_store *b, uint64_t id, const void *data, uint64_t size);
void bridge_missing(struct hr_store *b, uint64_t id);
void bridge_fail(struct hr_store *b, uint64_t id, int code, int retryable, const char *why);
void bridge_close(struct hr_store *b);

#endif
