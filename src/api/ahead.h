/* Metadata documents fetched together: those that a reader will ask for next are asked for while the first is waited for,
 * and kept until it does. Only where the store has an asynchronous side; at most AHEAD_MAX at once. */
#ifndef API_AHEAD_H
#define API_AHEAD_H
#include "format/reader.h"
#include "store/store.h"

#define AHEAD_MAX 64

struct document {
    char *data; /* mem_free; NULL: none, or larger than READER_MAX_DOCUMENT */
    uint64_t size;
};
void *document_room(void *document, uint64_t size); /* of a store_sink */

struct ahead;
struct ahead *ahead_new(struct store *s, struct hr_error *e); /* for one round of a reader */
/* Begin what r will need, as far as there is room. */
int ahead_begin(struct ahead *a, const struct reader *r, struct hr_error *e);
/* The document that r needs now, whether or not it was begun. Like store_read. */
int ahead_take(struct ahead *a, const struct need *need, struct document *d,
               struct store_result *result);
void ahead_free(struct ahead *a); /* what was not taken is cancelled */

#endif
