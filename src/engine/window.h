/* The window: batches planned in order, and which chunks each of them needs.
 *
 *     front ───────── open_end ───────────────────── end
 *       open batches (memory)   planned only (needs known)
 *
 * A *need* is (batch, row, part) of a chunk. Needs of a batch lie together and are given back together when the batch is
 * finished, which happens in order; through them run the lists of each chunk's needs, ascending by batch. A chunk with
 * needs is always in exactly one place: in a job, or in one list of the batch of its first need:
 *   ready  not here, every known need lies in an open batch: may be pushed
 *   late   not here, some need lies beyond the open batches
 *   copy   held decoded
 * A held chunk without needs (kept over epochs) is in the list `idle`.
 * So the engine finds work "first-needed first" by walking batches, and opening a batch costs one pass over its needs. */
#ifndef ENGINE_WINDOW_H
#define ENGINE_WINDOW_H
#include "engine/table.h"
#include "plan/plan.h"

struct need {
    uint32_t entry, next; /* next need of the same chunk, or NONE */
    uint32_t row;         /* of the tensor: of a sample of several rows each counts */
    uint16_t part, batch; /* batch: place in window.batches */
};
struct planned {
    int64_t *ids, *places; /* the same, unless there are crops */
    int64_t *members;      /* of each sample its rows, where it has several (plan_members) */
    uint8_t *valid;
    uint32_t step, rows, needs; /* counts */
    uint32_t pending;           /* needs not yet served */
    uint32_t slot;              /* while open */
    bool failed;
    struct list ready, late, copy;
};
struct window {
    struct plan *plan;
    struct plan_cursor *cursor;
    struct table table;
    struct planned *batches; /* cap of them; `at` is the place of front */
    struct need *needs;      /* cap × per_batch */
    int64_t *ids;            /* cap × rows; twice that, if there are crops */
    int64_t *members;        /* cap × rows × plan_members */
    uint8_t *valid;
    uint64_t *chunks; /* scratch for one (row, part) */
    uint64_t chunks_cap;
    uint32_t cap, per_batch, at;
    uint64_t epoch;
    uint32_t front, open_end, end;  /* steps */
    uint32_t steps;                 /* of the epoch */
    bool exhausted;                 /* it ends at `end` */
    uint32_t ready_from, copy_from; /* no batch before these has ready / copy entries */
    uint32_t copy_far;              /* no batch after this has copy entries */
    struct list idle;               /* held chunks without a known need, oldest first */
    uint32_t idle_count;
    uint64_t kept_hits; /* idle held chunks that were needed again */
};

/* Sizes: batches, needs of a batch at most, entries of the table. */
int window_init(struct window *w, struct plan *p, uint32_t cap, uint32_t per_batch,
                uint32_t entries, struct hr_error *e);
void window_dispose(struct window *w);
uint64_t window_bytes(const struct plan *p, uint32_t cap, uint32_t per_batch, uint32_t entries);

int window_seek(struct window *w, uint64_t epoch, uint64_t step,
                struct hr_error *e); /* after window_clear */
void window_clear(struct window *w); /* forget all batches; entries lose their needs and lists */
bool window_plan(
    struct window *w); /* one batch more: false when full or the epoch is planned to its end */
void window_open(struct window *w, uint32_t slot); /* the batch at open_end opens */
void window_advance(struct window *w);             /* the front batch is finished: forget it */

static inline struct planned *window_batch(const struct window *w, uint32_t step)
{
    uint32_t i = w->at + (step - w->front);
    return &w->batches[i >= w->cap ? i - w->cap : i];
}
static inline const struct planned *window_need_batch(const struct window *w, uint32_t need)
{
    return &w->batches[w->needs[need].batch];
}
/* Where the row of a need lies: the place that its part's look-ups go by. */
int64_t window_place_of(const struct window *w, const struct planned *b, const struct need *n);
/* A chunk that is in no job goes into its list: by its first need, or, held without needs, idle. And out of it. */
void window_place(struct window *w, uint32_t entry);
void window_unlist(struct window *w, uint32_t entry);
/* The chunk's first need has changed: needs before `head` are in a job's pieces. */
void window_set_head(struct window *w, struct entry *n, uint32_t head, uint32_t count);

#endif
