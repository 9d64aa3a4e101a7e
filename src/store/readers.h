/* Threads that read from stores that block, for callers that must not wait: local members of a mix of stores. Started at the
 * first read; they end with the last reference. */
#ifndef STORE_READERS_H
#define STORE_READERS_H
#include "store/store.h"

struct readers;
struct readers *readers_new(struct hr_error *e);
/* Reads that have not begun end with HR_ECLOSED. Does not wait for those that have. */
void readers_close(struct readers *r);
/* As store_start, of any blocking store (which must live until `done`). */
int readers_start(struct readers *r, struct store *s, const char *key, struct store_range range,
                  const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                  struct hr_error *e);
void readers_cancel(struct readers *r, uint64_t ticket);

#endif
