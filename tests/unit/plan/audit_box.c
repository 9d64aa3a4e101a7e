/* Samples whose boxes meet, against a walk over every element of every box. */
#include "base/keyed.h"
#include "base/mem.h"
#include "plan/audit.h"
#include "t.h"

#define MOST 40 /* the longest dimension */

static uint64_t words;
static int64_t draw(uint64_t n)
{
    return (int64_t)(keyed_word(11, words++) % n);
}

struct world {
    struct plan_array array[2];
    struct plan_part part[2];
    struct plan_axis axis[3];
    int64_t table[3][MOST];
    int n_axes, n_parts;
    uint64_t ids;
    bool exact; /* no box has gaps, may be anywhere or is outside: else more may be found */
};

static void axis_draw(struct world *w, int a)
{
    w->axis[a] = (struct plan_axis){.n = 1 + (uint64_t)draw(7)};
    if (draw(4) == 0) {
        w->axis[a].places = w->axis[a].n + (uint64_t)draw(6);
        w->exact = false;
    }
    w->axis[a].last = w->axis[a].n;
    int64_t at = draw(3);
    for (int p = 0; p < MOST; p++, at += draw(3))
        w->table[a][p] = draw(6) ? at : -1;
}

static void dim_draw(struct world *w, struct plan_array *x, struct plan_dim *dim, int d)
{
    static const enum plan_edge edges[] = {EDGE_VALID, EDGE_PAD, EDGE_REFLECT, EDGE_CLIP};
    *dim = (struct plan_dim){.kind = SEL_SAMPLE,
                             .axis = d,
                             .start = draw(5) - 2,
                             .count = 1 + draw(5),
                             .step = 1 + (draw(4) == 0),
                             .mul = 1 + draw(4),
                             .div = draw(3) ? 1 : 1 + draw(3),
                             .edge = edges[draw(4)]};
    if (!w->axis[d].places && draw(5) == 0)
        dim->table = w->table[d];
    w->exact = w->exact && dim->step == 1;
    int64_t span = (dim->count - 1) * dim->step + 1;
    int64_t last = dim->start + (int64_t)(w->axis[d].n - 1) * dim->mul / dim->div + span;
    x->shape[d] = (uint64_t)(draw(2) && last > span && last < MOST ? last : span + draw(20));
    x->chunk[d] = 4;
    x->grid[d] = (x->shape[d] + 3) / 4;
    w->exact = w->exact && dim->edge != EDGE_REFLECT && !dim->table &&
               (dim->edge == EDGE_CLIP || (dim->start >= 0 && last <= (int64_t)x->shape[d]));
}

static void world_draw(struct world *w)
{
    *w = (struct world){.n_axes = 1 + (int)draw(3), .n_parts = 1 + (int)draw(2), .exact = true};
    w->ids = 1;
    for (int a = 0; a < w->n_axes; a++) {
        axis_draw(w, a);
        w->ids *= w->axis[a].n;
    }
    for (int i = 0; i < w->n_parts; i++) {
        w->part[i].array = i;
        w->array[i].ndim = i ? 1 + (int)draw((uint64_t)w->n_axes) : w->n_axes;
        for (int d = 0; d < w->array[i].ndim; d++)
            dim_draw(w, &w->array[i], &w->part[i].dim[d], d);
    }
}

/* Marks what step i of the box at a place takes. */
static void mark(const struct plan_dim *x, int64_t size, int64_t place, bool *out)
{
    int64_t start = x->start + (x->table ? x->table[place] : place * x->mul / x->div),
            most = size - (x->count - 1) * x->step - 1;
    if (x->table && x->table[place] < 0)
        return;
    if (x->edge == EDGE_CLIP)
        start = start < 0 ? 0 : start > most ? most : start;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = start + i * x->step;
        if (x->edge == EDGE_REFLECT)
            at = at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
        if (at >= 0 && at < size)
            out[at] = true;
    }
}

static bool dims_meet(const struct world *w, int part, int d, uint64_t p, uint64_t q)
{
    const struct plan_dim *x = &w->part[part].dim[d];
    const struct plan_axis *a = &w->axis[d];
    bool seen[2][MOST] = {{false}};
    uint64_t at[] = {p, q};
    for (int k = 0; k < 2; k++) {
        uint64_t first = a->places ? at[k] * a->places / a->n : at[k],
                 end = a->places ? (at[k] + 1) * a->places / a->n : at[k] + 1;
        for (uint64_t place = first; place < end; place++)
            mark(x, (int64_t)w->array[part].shape[d], (int64_t)place, seen[k]);
    }
    for (int i = 0; i < MOST; i++)
        if (seen[0][i] && seen[1][i])
            return true;
    return false;
}

static bool samples_meet(const struct world *w, uint64_t p, uint64_t q)
{
    for (int i = 0; i < w->n_parts; i++) {
        bool met = true;
        uint64_t x = p, y = q;
        for (int a = w->n_axes - 1; a >= 0; a--) {
            uint64_t n = w->axis[a].n, j = x % n, k = y % n;
            met = met && (a < w->array[i].ndim ? dims_meet(w, i, a, j, k) : j == k);
            x /= n;
            y /= n;
        }
        if (met)
            return true;
    }
    return false;
}

static void check_world(const struct world *w)
{
    struct bitmap other, met;
    struct hr_error e;
    int wrong = 0;
    check(!bitmap_init(&other, w->ids) && !bitmap_init(&met, w->ids));
    for (int64_t k = 1 + draw(2); k > 0; k--)
        bitmap_set(&other, (uint64_t)draw(w->ids));
    struct id_set set = {0, (int64_t)w->ids, &other};
    check_eq(audit_meeting(w->array, w->part, w->n_parts, w->axis, w->n_axes, &set, -1, &met, &e),
             0);
    for (uint64_t id = 0; id < w->ids; id++) {
        bool wanted = bitmap_test(&other, id);
        for (uint64_t q = 0; q < w->ids && !wanted; q++)
            wanted = bitmap_test(&other, q) && samples_meet(w, id, q);
        bool got = bitmap_test(&met, id);
        wrong += w->exact ? got != wanted : wanted && !got;
    }
    check_eq(wrong, 0);
    bitmap_dispose(&other);
    bitmap_dispose(&met);
}

static void what_meets_is_found_and_nothing_else(void)
{
    struct world w;
    int exact = 0;
    for (int i = 0; i < 4000; i++) {
        world_draw(&w);
        check_world(&w);
        exact += w.exact;
    }
    check(exact > 200);
}

static void a_gap_counts_along_every_axis(void)
{
    struct world w = {.n_axes = 2, .axis = {{5, 0, 5, 0}, {6, 0, 6, 0}}};
    struct bitmap other, met;
    struct hr_error e;
    check(!bitmap_init(&other, 30) && !bitmap_init(&met, 30));
    bitmap_set(&other, 2 * 6 + 5);
    struct id_set set = {0, 30, &other};
    check_eq(audit_meeting(NULL, NULL, 0, w.axis, 2, &set, 1, &met, &e), 0);
    for (uint64_t id = 0; id < 30; id++)
        check(bitmap_test(&met, id) == (id / 6 >= 1 && id / 6 <= 3 && id % 6 >= 4));
    bitmap_dispose(&other);
    bitmap_dispose(&met);
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    struct world w;
    do
        world_draw(&w);
    while (w.n_axes < 3 || w.exact || w.ids < 8);
    struct bitmap other, met;
    struct hr_error e;
    check(!bitmap_init(&other, w.ids) && !bitmap_init(&met, w.ids));
    bitmap_set(&other, 3);
    struct id_set set = {0, (int64_t)w.ids, &other};
    uint64_t before = mem_live();
    int rc = HR_ENOMEM;
    for (uint64_t at = 1; rc && at < 200; at++) {
        mem_fail_at(at, false);
        rc = audit_meeting(w.array, w.part, w.n_parts, w.axis, 3, &set, -1, &met, &e);
        mem_fail_at(0, false);
        check(!rc || rc == HR_ENOMEM);
        check_eq(mem_live(), before);
    }
    check_eq(rc, 0);
    bitmap_dispose(&other);
    bitmap_dispose(&met);
}

int main(void)
{
    RUN(what_meets_is_found_and_nothing_else);
    RUN(a_gap_counts_along_every_axis);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    return t_done();
}
