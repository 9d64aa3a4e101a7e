/* What of a batch's samples lies outside their arrays gets its constant when the batch opens, before
 * any chunk of it is asked for: nothing else ever writes there. */
#include "run/job.h"

/* Every run of the innermost dimension of a region. */
static void region_fill(const struct scatter_part *s, const void *item, const struct plan_piece *r,
                        char *row)
{
    uint64_t at[PLAN_MAX_DIMS] = {0}, size = s->convert.to_item, to = r->to_offset * size;
    int last = r->ndim - 1;
    uint64_t n = r->ndim ? r->count[last] : 1, step = r->ndim ? r->to_stride[last] * size : size;
    for (;;) {
        convert_repeat(&s->convert, row + to, (int64_t)step, item, n);
        int d = last - 1;
        for (; d >= 0; d--) {
            to += r->to_stride[d] * size;
            if (++at[d] < r->count[d])
                break;
            to -= r->count[d] * r->to_stride[d] * size;
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
