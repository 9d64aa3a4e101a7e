/* What of a batch's samples lies outside their arrays gets its constant when the batch opens, before
 * any chunk of it is asked for: nothing else ever writes there. */
#include "batch/transform.h"
#include "plan/members.h"
#include "run/job.h"

#include <string.h>

/* n items; `to` of the row. Where the transform differs from place to place, so does the fill value. */
static void run_fill(const struct scatter_part *s, const void *item, char *row, uint64_t to,
                     uint64_t stride, uint64_t n)
{
    const struct transform *t = s->convert.transform;
    uint64_t size = s->convert.to_item;
    if (s->stored_fill && item == s->fill)
        convert_run_at(&s->convert, row + to * size, (int64_t)(stride * size), s->stored_fill, 0, n,
                       false, transform_place(t, to), transform_step(t, stride));
    else
        convert_repeat(&s->convert, row + to * size, (int64_t)(stride * size), item, n);
}

/* Every run of the innermost dimension of a region. */
static void region_fill(const struct scatter_part *s, const void *item, const struct plan_piece *r,
                        char *row)
{
    uint64_t at[PLAN_MAX_DIMS] = {0}, to = r->to_offset;
    int last = r->ndim - 1;
    uint64_t n = r->ndim ? r->count[last] : 1, stride = r->ndim ? r->to_stride[last] : 1;
    for (;;) {
        run_fill(s, item, row, to, stride, n);
        int d = last - 1;
        for (; d >= 0; d--) {
            to += r->to_stride[d];
            if (++at[d] < r->count[d])
                break;
            to -= r->count[d] * r->to_stride[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

void pad_batch(struct driver *d, struct hr_batch *b)
{
    const struct driver_config *c = &d->fixed.c;
    const struct plan_config *g = d->fixed.config;
    struct plan_piece region;
    if (!plan_has_outside(c->plan))
        return;
    for (int64_t row = 0; row < b->rows; row++) {
        int64_t place = plan_place(c->plan, (uint64_t)b->epoch, b->ids[row]);
        for (int p = 0; p < g->n_parts; p++) {
            uint64_t n = plan_part_outside_count(c->plan, p, place);
            const struct scatter_part *s = &c->parts[p];
            for (uint64_t i = 0; i < n; i++) {
                plan_part_outside(c->plan, p, place, i, &region);
                region_fill(s, s->pad ? s->pad : s->fill, &region,
                            batch_row(b, g->parts[p].view, (uint64_t)row));
            }
        }
    }
}

/* Of samples of several rows one after another. */
static void table_members(struct driver *d, struct hr_batch *b, const struct table *t,
                          const int64_t *members)
{
    uint64_t bytes = b->layout->tensors[t->tensor].row_bytes, n = t->members->n,
             all = plan_members(d->fixed.c.plan);
    const int64_t *rows = members + plan_members_first(d->fixed.c.plan, t->members);
    char *to = batch_data(b, t->tensor);
    for (int64_t r = 0; r < b->rows; r++, rows += all)
        for (uint64_t m = 0; m < n; m++, to += bytes)
            memcpy(to, t->data ? t->data + (uint64_t)rows[m] * bytes : (const char *)&rows[m],
                   bytes);
}

void table_batch(struct driver *d, struct hr_batch *b, const int64_t *members)
{
    for (int i = 0; i < d->fixed.c.n_tables; i++) {
        const struct table *t = &d->fixed.c.tables[i];
        if (t->members) {
            table_members(d, b, t, members);
            continue;
        }
        uint64_t bytes = b->layout->tensors[t->tensor].row_bytes;
        char *to = batch_data(b, t->tensor);
        for (int64_t r = 0; r < b->rows; r++)
            memcpy(to + (uint64_t)r * bytes, t->data + (uint64_t)b->ids[r] * bytes, bytes);
    }
}
