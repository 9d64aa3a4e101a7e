/* See slots.h. */
#include "run/slots.h"

#include <string.h>

#include "base/mem.h"
#include "run/rows.h"

static int grow_slots(struct driver *d, uint32_t slot, struct hr_error *e)
{
    size_t old = d->turn.slots ? d->turn.slots->n : 0, n = old ? old : 16;
    if (slot < old)
        return 0;
    while (n <= slot)
        n *= 2;
    struct slots *s = mem_zalloc(sizeof *s + n * sizeof s->batches[0]);
    struct finished **nodes = s ? mem_realloc(d->turn.nodes, n * sizeof *nodes) : NULL;
    if (!nodes) {
        mem_free(s);
        return error_nomem(e, n * sizeof *nodes, "the table of batches");
    }
    memset(nodes + old, 0, (n - old) * sizeof *nodes);
    s->n = n;
    s->outgrown = d->turn.slots;
    if (old)
        memcpy(s->batches, d->turn.slots->batches, old * sizeof s->batches[0]);
    d->turn.nodes = nodes;
    d->turn.slots = s;
    return 0;
}

static void place_batch(struct driver *d, struct hr_batch *b)
{
    const struct plan *p = d->fixed.c.plan;
    if (!plan_has_crops(p))
        return;
    int64_t *places = batch_places(b);
    for (int64_t r = 0; r < b->rows; r++)
        places[r] = plan_place(p, (uint64_t)b->epoch, b->ids[r]);
}

/* The rows of samples that have several; NULL: they have not. */
static int members_of(struct driver *d, const struct action *a, int64_t **out, struct hr_error *e)
{
    const struct plan *p = d->fixed.c.plan;
    uint64_t n = plan_members(p);
    *out = n ? mem_array(a->rows * n, sizeof **out) : NULL;
    if (n && !*out)
        return error_nomem(e, a->rows * n * sizeof **out, "a batch");
    for (uint64_t r = 0; n && r < a->rows; r++)
        plan_members_rows(p, a->epoch, a->ids[r], *out + r * n);
    return 0;
}

int slots_open(struct driver *d, const struct action *a, struct hr_error *e)
{
    struct hr_batch *b;
    TRY(grow_slots(d, a->slot, e));
    struct finished *f = mem_zalloc(sizeof *f);
    if (!f)
        return error_nomem(e, sizeof *f, "a batch");
    int64_t *members;
    int rc = members_of(d, a, &members, e);
    if (rc >= 0)
        rc = batch_new(d->fixed.c.layout, d->fixed.pool, &d->owner, a->rows, a->ids, a->valid, &b,
                       e);
    if (rc >= 0 && (rc = rows_open(d, b, members, e)) < 0)
        batch_dispose(b);
    if (rc < 0) {
        mem_free(members);
        mem_free(f);
        return rc;
    }
    driver_ref(d); /* the batch's: news_released */
    b->epoch = (int64_t)a->epoch;
    b->step = (int64_t)a->step;
    place_batch(d, b);
    pad_batch(d, b);
    table_batch(d, b, members);
    mem_free(members);
    *f = (struct finished){.batch = b, .slot = a->slot, .start = d->turn.start};
    d->turn.nodes[a->slot] = f;
    d->turn.slots->batches[a->slot] = b;
    return 0;
}

void slots_abandon(struct driver *d)
{
    for (size_t i = 0; d->turn.slots && i < d->turn.slots->n; i++) {
        struct hr_batch *b = d->turn.slots->batches[i];
        if (!b)
            continue;
        d->turn.slots->batches[i] = NULL;
        mem_free(d->turn.nodes[i]);
        d->turn.nodes[i] = NULL;
        batch_dispose(b);
        driver_unref(d);
    }
}

void slots_free(struct driver *d)
{
    slots_abandon(d);
    mem_free(d->turn.nodes);
    while (d->turn.slots) {
        struct slots *s = d->turn.slots;
        d->turn.slots = s->outgrown;
        mem_free(s);
    }
}
