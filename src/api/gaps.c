/* See gaps.h. A window is looked at from its sample on: steps 1 … 6 of a sample run over a gap behind it, too. */
#include "api/gaps.h"

#include <string.h>

#include "api/ids.h"
#include "api/spacing.h"
#include "base/mem.h"

/* The gaps of one dimension of a view. */
struct stretch {
    const struct core *core;
    const struct dim_spec *d;
    int64_t n;       /* length of the array */
    int64_t *before; /* spacing_gaps */
    int64_t low, high;
};

static void stretch_dispose(struct stretch *s)
{
    mem_free(s->before);
}

/* What the sample at a position and its steps reach from and to, inside the array; false where nothing is there. */
static bool reach(const struct stretch *s, int64_t position, int64_t *from, int64_t *to)
{
    int64_t at = s->d->table ? s->d->table[position] : position;
    if (at < 0 || at >= s->n)
        return false;
    *from = at + s->low > 0 ? at + s->low : 0;
    *to = at + s->high < s->n ? at + s->high : s->n - 1;
    return *from < *to;
}

static bool runs_over(const struct stretch *s, int64_t position)
{
    int64_t from, to;
    return reach(s, position, &from, &to) && s->before[to] > s->before[from];
}

static void take_reach(struct stretch *s)
{
    int64_t last = s->d->start + (s->d->count - 1) * s->d->step;
    s->low = s->d->start < 0 ? s->d->start : 0;
    s->high = last > 0 ? last : 0;
}

static int stretch_open(struct core *core, const struct view_spec *v, int d, const char *most,
                        struct stretch *out, struct coordinate *c, struct hr_error *e)
{
    const struct array *x = v->arrays[0];
    *out = (struct stretch){.core = core, .d = &v->dim[d], .n = (int64_t)x->shape[d]};
    take_reach(out);
    TRY(coordinate_read(core->archive, x, v->dims[d], out->n, c, e));
    int rc = spacing_gaps(c, most, &out->before, e);
    if (rc < 0)
        coordinate_dispose(c);
    return rc;
}

/* ---- leaving out ------------------------------------------------------------------------------------------------- */

/* Of the core's ids those whose position on an axis is in `positions`. */
static int keep_positions(struct core *c, int axis, const struct bitmap *positions,
                          struct hr_error *e)
{
    struct hr_samples all = {.core = c, .filter = c->joined}, *left;
    memcpy(all.box, c->all, sizeof all.box);
    TRY(ids_at_positions(&all, axis, positions, &left, e));
    memcpy(c->all, left->box, sizeof c->all);
    if (c->joined)
        bitmap_dispose(c->joined);
    c->joined = left->filter ? arena_alloc(&c->arena, sizeof *c->joined) : NULL;
    int rc = left->filter && !c->joined ? error_nomem(e, sizeof *c->joined, "sample filter") : 0;
    if (c->joined) {
        *c->joined = *left->filter;
        mem_free(left->filter);
        left->filter = NULL;
    }
    hr_samples_unref(left);
    return rc;
}

static int drop_of(struct core *c, const struct stretch *s, struct hr_error *e)
{
    const struct axis_spec *a = &c->axes[s->d->axis];
    struct bitmap fine;
    int64_t gone = 0;
    if (bitmap_init(&fine, (uint64_t)a->n) < 0)
        return error_nomem(e, (uint64_t)a->n / 8, "sample filter");
    for (int64_t p = 0; p < a->n; p++) {
        bool over = runs_over(s, p);
        gone += over;
        if (!over)
            bitmap_set(&fine, (uint64_t)p);
    }
    int rc = gone ? keep_positions(c, s->d->axis, &fine, e) : 0;
    bitmap_dispose(&fine);
    return rc;
}

static bool none_left(const struct core *c)
{
    bool none = c->joined && !c->joined->total;
    for (int a = 0; a < c->n_axes; a++)
        none |= c->all[a].last <= c->all[a].first;
    return none;
}

static int drop_in(struct core *c, const struct view_spec *v, int d, struct hr_error *e)
{
    struct stretch s;
    struct coordinate coordinate;
    bool some = !none_left(c);
    int rc = stretch_open(c, v, d, v->dim[d].gaps, &s, &coordinate, e);
    if (rc < 0)
        return error_context(e, rc, "view %s: gaps", v->name);
    rc = drop_of(c, &s, e);
    if (rc >= 0 && some && none_left(c))
        rc = error_set(e, HR_EINVAL,
                       "view %s: no sample is left, because the steps %lld … %lld of each run over "
                       "a gap of %s: take fewer steps, or say with gaps=\"6h\" how far apart "
                       "neighbours may be",
                       v->name, (long long)s.low, (long long)s.high, coordinate.name);
    stretch_dispose(&s);
    coordinate_dispose(&coordinate);
    return rc;
}

int gaps_drop(struct core *c, struct hr_error *e)
{
    for (size_t i = 0; i < c->n_views; i++)
        for (int d = 0; d < c->views[i]->arrays[0]->ndim; d++) {
            const struct dim_spec *x = &c->views[i]->dim[d];
            if (x->gaps && x->axis != NO_AXIS && !x->lag && !c->views[i]->mask_of)
                TRY(drop_in(c, c->views[i], d, e));
        }
    return 0;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static bool taken(const struct hr_samples *s, int axis, int64_t position)
{
    if (position < s->box[axis].first || position >= s->box[axis].last)
        return false;
    return s->core->n_axes > 1 || !s->filter || bitmap_test(s->filter, (uint64_t)position);
}

/* Positions rise, and what they reach with them: a gap counts where it is reached first. */
static void count_over(const struct hr_samples *s, const struct stretch *x,
                       const struct coordinate *c, struct gaps_note *out)
{
    int64_t seen = 0, from, to;
    for (int64_t p = s->box[x->d->axis].first; p < s->box[x->d->axis].last; p++) {
        if (!taken(s, x->d->axis, p) || !reach(x, p, &from, &to) ||
            x->before[to] == x->before[from])
            continue;
        if (!out->samples++) {
            int64_t i = from;
            while (x->before[i] == x->before[from])
                i++;
            coordinate_text(c, i, out->at, sizeof out->at);
        }
        seen = from > seen ? from : seen;
        if (to > seen) {
            out->gaps += x->before[to] - x->before[seen];
            seen = to;
        }
    }
}

static bool to_be_looked_at(const struct core *c, const struct view_spec *v, int d)
{
    const struct dim_spec *x = &v->dim[d];
    return x->axis != NO_AXIS && c->axes[x->axis].kind == AXIS_STEPS && !x->lag && !x->join &&
           !x->gaps && !x->scale && !v->mask_of && (x->count > 1 || x->start);
}

static void look_at(struct hr_samples *s, const struct view_spec *v, int d, struct gaps_note *most)
{
    struct stretch x;
    struct coordinate c;
    const struct array *found;
    struct gaps_note note = {.view = v->name, .dim = v->dims[d]};
    if (coordinate_find(s->core->archive, v->arrays[0], v->dims[d], &found, NULL) < 0 || !found ||
        stretch_open(s->core, v, d, "drop", &x, &c, NULL) < 0)
        return;
    count_over(s, &x, &c, &note);
    if (note.samples > most->samples)
        *most = note;
    stretch_dispose(&x);
    coordinate_dispose(&c);
}

int gaps_look(struct hr_samples *s, struct gaps_note *out, struct hr_error *e)
{
    *out = (struct gaps_note){0};
    TRY(samples_freeze(s, e));
    for (size_t i = 0; i < s->core->n_views; i++)
        for (int d = 0; d < s->core->views[i]->arrays[0]->ndim; d++)
            if (to_be_looked_at(s->core, s->core->views[i], d))
                look_at(s, s->core->views[i], d, out);
    return 0;
}
