/* Private to the room: the places that a remote job asks for, and its requests. See fetch.c. */
#ifndef RUN_FETCH_H
#define RUN_FETCH_H
#include "run/rows.h"

enum rows_part { ROWS_DATA, ROWS_INDICES, ROWS_INDPTR };

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

/* rows_fetch.c: how many places chunk i of a job of rows needs (first round: where the rows begin, if that is not known), and
 * these. */
uint32_t rows_places(struct job *j, uint32_t i, bool offsets);
void rows_place(struct job *j, uint32_t i, bool offsets, struct place *out);
/* After the first round, by a worker: are all offsets here? Chunks whose are not have failed. */
void rows_offsets(struct job *j, struct worker *w);
/* Decode and scatter what has come. */
void rows_decode(struct job *j, struct worker *w, uint32_t i);

#endif
