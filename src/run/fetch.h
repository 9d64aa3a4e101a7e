/* Private to the room: the places that a remote job asks for, and its requests. See fetch.c. */
#ifndef RUN_FETCH_H
#define RUN_FETCH_H
#include "run/rows.h"

struct place {
    uint32_t index;         /* in the job */
    const struct array *of; /* whose chunk … */
    uint64_t chunk;         /* … it is */
    uint64_t covered;       /* bytes of it that the ticket covers */
    bool rows;              /* a piece of a row chunk: */
    struct sparse_piece piece;
    enum rows_part part;
    const void *data; /* … its stored bytes, once they are here */
    uint64_t size, object_size;
    bool missing; /* there is no such chunk */
    bool located; /* or known to be missing or failed: then `length` is 0 and it has no request */
    bool whole;   /* an object, of unknown size */
    bool failed;  /* its index could not be had */
    bool absurd;  /* `length` is that of no chunk: its request fails without being made */
    uint64_t shard, offset, length;
    struct hr_error *why; /* `failed`; NULL where there was no memory for it: then shared.error */
};
struct request {
    struct job *job;
    uint64_t ticket;   /* of the store; under index.mutex */
    uint32_t first, n; /* places */
    uint64_t bytes;    /* 0: whole object */
    void *buffer;
    uint64_t buffer_bytes;
    struct store_result result;
    struct hr_error refusal; /* of the size that was met; in place of the store's error */
    uint32_t refused;        /* how often; under index.mutex */
};
struct fetch {
    uint32_t pending; /* atomic: requests not yet answered, and the one who starts them */
    uint32_t n_requests, n_places;
    uint64_t room, spent; /* stored bytes that the ticket covers; that are asked for */
    bool offsets;         /* first of two rounds: where the rows begin */
    struct {              /* under index.mutex */
        uint32_t waiting; /* places that wait for an index, and the one who asks */
        bool cancelled, larger;
        struct hr_error error; /* of an index */
    } shared;
    struct fetch *before; /* the round before this one */
    struct request *requests;
    struct place places[];
};

/* Covers fetch.shared, requests' tickets and refusals, and the indexes under way. */
static inline void fetch_lock(struct driver *d)
{
    pthread_mutex_lock(&d->index.mutex);
}
static inline void fetch_unlock(struct driver *d)
{
    pthread_mutex_unlock(&d->index.mutex);
}

/* fetch.c: the chunk of a place has failed; `e` outlives the job's requests. */
void fetch_fail_place(struct job *j, const struct place *p, const struct hr_error *e);
void fetch_lose_index(struct fetch *f, struct place *p, const struct hr_error *e);
const struct hr_error *fetch_why_lost(const struct fetch *f, const struct place *p);
void fetch_buffers_free(struct job *j, struct fetch *f);
void fetch_locate_all(struct job *j); /* whoever is handed the last index goes on with the job */
void fetch_offsets_arrived(struct task *t, struct worker *w); /* after the first of two rounds */
/* fetch_index.c: have the index that a place needs fetched; fetch_locate_all follows. */
int fetch_ask_index(struct job *j, uint32_t place, const struct array *x, const struct where *where,
                    struct hr_error *e);
/* fetch_request.c: all places are located: ask for them. Ends in a message, or fetch_offsets_arrived. */
void fetch_requests(struct job *j);
int fetch_check_size(const struct job *j, const struct place *p, uint64_t size, struct hr_error *e);

/* rows_fetch.c: how many places chunk i of a job of rows needs (first round: where the rows begin, if that is not known), and
 * these. */
uint32_t rows_places(struct job *j, uint32_t i, bool offsets);
void rows_place(struct job *j, uint32_t i, bool offsets, struct place *out);
/* After the first round, by a worker: are all offsets here? Chunks whose are not have failed. */
void rows_offsets(struct job *j, struct worker *w);
/* Decode and scatter what has come. */
void rows_decode(struct job *j, struct worker *w, uint32_t i);

#endif
