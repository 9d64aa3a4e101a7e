/* Walking an epoch on one rank: `share` rows of each of the rank's streams a batch, in step.
 *
 * The three orders differ only in where a stream's next rank comes from: the merged lanes (spread),
 * the next number (sequential), a keyed permutation of it (global). What follows the last row of a
 * stream (pad, wrap) is the same for all. A cursor keeps the epoch's sequence and builds it anew
 * when the epoch changes. */
#include "plan/impl.h"

#include "base/mem.h"
#include "plan/cursor.h"
#include "plan/stream.h"

struct source {          /* one stream of this rank */
    uint64_t from, rows; /* of the epoch, laid end to end */
    uint64_t at;         /* next row; from `rows` on: the tail */
    uint64_t last;       /* rank given out last */
    struct stream spread;
};
struct plan_cursor {
    struct plan *plan;
    bool ready; /* the epoch's order is made */
    uint64_t epoch, step, steps;
    struct repeats_epoch repeats; /* where there are weights */
    struct blocks blocks;
    struct order order;
    struct keyed_perm global;
    uint64_t first_stream, n;
    struct source *sources;
};

int plan_cursor_open(struct plan *p, struct plan_cursor **out, struct hr_error *e)
{
    uint64_t own = p->facts.streams / p->facts.world;
    return cursor_open_streams(p, p->facts.rank * own, own, out, e);
}

int cursor_open_streams(struct plan *p, uint64_t first, uint64_t n, struct plan_cursor **out,
                        struct hr_error *e)
{
    struct plan_cursor *c = mem_zalloc(sizeof *c);
    struct source *sources = mem_array((size_t)n, sizeof *sources);
    if (!c || !sources) {
        mem_free(c);
        mem_free(sources);
        return error_nomem(e, sizeof *c + n * sizeof *sources, "a cursor");
    }
    *c = (struct plan_cursor){
        .plan = plan_ref(p), .first_stream = first, .n = n, .sources = sources};
    *out = c;
    return 0;
}

static void epoch_dispose(struct plan_cursor *c)
{
    for (uint64_t i = 0; i < c->n; i++)
        stream_dispose(&c->sources[i].spread);
    order_dispose(&c->order);
    c->ready = false;
}

void plan_cursor_free(struct plan_cursor *c)
{
    if (!c)
        return;
    epoch_dispose(c);
    plan_unref(c->plan);
    mem_free(c->sources);
    mem_free(c);
}

static int spread_make(struct plan_cursor *c, uint64_t key, struct hr_error *e)
{
    struct plan *p = c->plan;
    TRY(order_init(&c->order, &c->blocks, p->facts.spread, key, order_move(key), e));
    if (p->facts.streams > 1) /* a stream that is the whole sequence begins without */
        TRY(order_sum(&c->order, e));
    uint64_t k = c->order.n, *t = mem_array((size_t)k * 2, sizeof *t);
    if (!t)
        return error_nomem(e, k * 16, "a cursor");
    struct order_cut begin = {.t = t}, end = {.t = t + k};
    int rc = 0;
    for (uint64_t i = 0; i < c->n && !rc; i++) {
        struct source *s = &c->sources[i];
        if (!i || s->from != s[-1].from + s[-1].rows)
            order_cut(&c->order, s->from, &begin);
        order_cut(&c->order, s->from + s->rows, &end);
        rc = stream_init(&s->spread, &c->order, c->first_stream + i, s->from, s->from + s->rows,
                         &begin, &end, e);
        struct order_cut next = end;
        end = begin;
        begin = next;
    }
    mem_free(t);
    return rc;
}

static int epoch_make(struct plan_cursor *c, uint64_t epoch, struct hr_error *e)
{
    uint64_t key = order_epoch_key(c->plan->facts.seed, epoch);
    epoch_dispose(c);
    c->epoch = epoch;
    c->blocks = plan_blocks(c->plan, key, &c->repeats);
    for (uint64_t i = 0; i < c->n; i++) {
        struct source *s = &c->sources[i];
        uint64_t to;
        plan_stream_range(c->plan, c->first_stream + i, &s->from, &to);
        s->rows = to - s->from;
    }
    if (c->plan->facts.shuffle == HR_SHUFFLE_GLOBAL)
        keyed_perm_init(&c->global, keyed_mix(key, ORDER_GLOBAL), c->plan->facts.samples);
    if (c->plan->facts.shuffle == HR_SHUFFLE_SPREAD)
        TRY(spread_make(c, key, e));
    c->ready = true;
    return 0;
}

static int source_enter(struct plan_cursor *c, struct source *s, uint64_t row, struct hr_error *e)
{
    s->at = row;
    if (c->plan->facts.shuffle != HR_SHUFFLE_SPREAD)
        return 0;
    if (row)
        TRY(order_sum(&c->order, e));
    stream_seek(&s->spread, row);
    return 0;
}

static uint64_t source_take(struct plan_cursor *c, struct source *s)
{
    uint64_t row = s->from + s->at++;
    if (c->plan->facts.shuffle == HR_SHUFFLE_SPREAD)
        return s->last = stream_next(&s->spread);
    if (c->plan->facts.shuffle == HR_SHUFFLE_GLOBAL)
        row = keyed_perm_at(&c->global, row);
    return s->last = c->blocks.repeats ? repeats_find(&c->repeats, row, 0, c->repeats.all->n) : row;
}

static int source_seek(struct plan_cursor *c, struct source *s, uint64_t position,
                       struct hr_error *e)
{
    if (position < s->rows || c->plan->facts.remainder == HR_WRAP)
        return source_enter(c, s, position % s->rows, e);
    TRY(source_enter(c, s, s->rows - 1, e));
    source_take(c, s);
    return 0;
}

/* The next rank of a stream, its tail included. */
static uint64_t source_next(struct plan_cursor *c, struct source *s, uint8_t *valid)
{
    *valid = 1;
    if (s->at == s->rows) {
        if (c->plan->facts.remainder != HR_WRAP) {
            *valid = 0;
            return s->last;
        }
        source_enter(c, s, 0, NULL); /* the beginning needs no memory */
    }
    return source_take(c, s);
}

int plan_cursor_seek(struct plan_cursor *c, uint64_t epoch, uint64_t step, struct hr_error *e)
{
    const struct plan_config *config = plan_config(c->plan);
    if (!c->ready || epoch != c->epoch)
        TRY(epoch_make(c, epoch, e));
    c->steps = plan_steps(c->plan, epoch);
    c->step = step < c->steps ? step : c->steps;
    if (c->step == c->steps)
        return 0;
    uint64_t position =
        c->step * c->plan->facts.share + (epoch == config->offset_epoch ? config->offset : 0);
    for (uint64_t i = 0; i < c->n; i++)
        TRY(source_seek(c, &c->sources[i], position, e));
    return 0;
}

int64_t cursor_next_ranks(struct plan_cursor *c, uint64_t *ranks, uint8_t *valid)
{
    uint64_t share = c->plan->facts.share, n = 0;
    if (!c->ready || c->step == c->steps)
        return 0;
    c->step++;
    for (uint64_t i = 0; i < c->n; i++) {
        struct source *s = &c->sources[i];
        uint64_t rows = share;
        if (c->plan->facts.remainder == HR_SHORT && rows > s->rows - s->at)
            rows = s->rows - s->at;
        for (uint64_t r = 0; r < rows; r++, n++)
            ranks[n] = source_next(c, s, &valid[n]);
    }
    return (int64_t)n;
}

int64_t plan_cursor_next(struct plan_cursor *c, int64_t *ids, uint8_t *valid)
{
    int64_t n = cursor_next_ranks(c, (uint64_t *)ids, valid);
    for (int64_t i = 0; i < n; i++)
        ids[i] = plan_id(c->plan, (uint64_t)ids[i]);
    return n;
}
