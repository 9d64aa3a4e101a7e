/* Freezing: arrays become plan_arrays, views become parts, and the ids whose boxes leave an array are excluded. */
#include "api/core.h"
#include "base/mem.h"
#include "plan/split.h"
#include <string.h>

static int source_number(struct core *c, const struct array *x, struct hr_error *e)
{
    for (int i = 0; i < c->n_arrays; i++)
        if (c->sources[i].array == x)
            return i;
    struct samples_source *source = &c->sources[c->n_arrays];
    struct plan_array *a = &c->arrays[c->n_arrays];
    source->array = x;
    TRY(cf_of_array(x, &source->cf, e));
    uint64_t items = 1;
    a->ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) {
        a->shape[d] = x->shape[d];
        a->chunk[d] = x->chunk[d];
        a->grid[d] = x->grid[d];
        a->edges[d] = x->edges ? x->edges[d] : NULL;
        if (!mul_u64(items, x->chunk[d], &items))
            return error_set(e, HR_EFORMAT, "array %s: a chunk has more than 2^64 elements",
                             x->path);
    }
    a->item = x->type.item_size;
    if (!mul_u64(items, x->field_stride ? x->field_stride : a->item, &a->decoded))
        return error_set(e, HR_EFORMAT, "array %s: a chunk has more than 2^64 bytes", x->path);
    a->direct = codec_chain_is_raw(x->chain);
    a->bound = codec_chain_bound(x->chain);
    a->scratch = codec_chain_scratch(x->chain);
    return c->n_arrays++;
}

/* The tensor of a view: which of its dimensions each dimension of the array becomes, with strides in items. */
int core_view_layout(const struct core *c, const struct view_spec *v, struct samples_tensor *t,
                     uint64_t *items, uint64_t *stack_stride, uint64_t *strides, struct hr_error *e)
{
    const struct array *x = v->arrays[0];
    int place[HR_MAX_DIMS], stack = -1;
    t->name = v->name;
    t->decode = v->decode;
    t->mask = v->mask_of != NULL;
    t->view = v;
    t->ndim = 1;
    t->dims[0] = c->along;
    t->shape[0] = 0;
    place[v->axis] = -1;
    if (v->dim[v->axis].keep) {
        place[v->axis] = t->ndim;
        t->dims[t->ndim] = "step";
        t->shape[t->ndim++] = v->dim[v->axis].count;
    }
    if (v->stack) {
        stack = t->ndim;
        t->dims[t->ndim] = v->stack;
        t->shape[t->ndim++] = v->n_arrays;
    }
    for (int d = 0; d < x->ndim; d++) {
        if (d == v->axis)
            continue;
        bool whole = !v->dim[d].set;
        place[d] = -1;
        if (whole || v->dim[d].keep) {
            place[d] = t->ndim;
            t->dims[t->ndim] = v->dims[d];
            t->shape[t->ndim++] = whole ? (int64_t)x->shape[d] : v->dim[d].count;
        }
    }
    int moved[HR_MAX_DIMS];
    TRY(transform_order(v, t, moved, e));
    stack = stack < 0 ? -1 : moved[stack];
    for (int d = 0; d < x->ndim; d++)
        place[d] = place[d] < 0 ? -1 : moved[place[d]];
    uint64_t stride[HR_MAX_DIMS] = {0};
    *items = 1;
    for (int d = t->ndim - 1; d > 0; d--) {
        stride[d] = *items;
        if (!mul_u64(*items, (uint64_t)t->shape[d], items) || *items > (UINT64_C(1) << 48))
            return error_set(e, HR_EINVAL,
                             "view %s: one sample has more than 2^48 elements; select a part of it",
                             v->name);
    }
    if (!*items)
        return error_set(e, HR_EINVAL,
                         "view %s: a sample has no elements (a dimension of length 0)", v->name);
    for (int d = 0; d < x->ndim; d++)
        strides[d] = place[d] < 0 ? 0 : stride[place[d]];
    *stack_stride = stack < 0 ? 0 : stride[stack];
    return 0;
}

static int freeze_view(struct core *c, int number, struct hr_error *e)
{
    struct view_spec *v = c->views[number];
    struct samples_tensor t;
    uint64_t items, stack_stride, strides[HR_MAX_DIMS];
    int place[HR_MAX_DIMS];
    TRY(core_view_layout(c, v, &t, &items, &stack_stride, strides, e));
    TRY(transform_match(v, &t, place, e));
    for (int i = 0; i < v->n_arrays; i++) {
        const struct array *x = v->arrays[i];
        struct plan_part *p = &c->parts[c->n_parts++];
        p->array = source_number(c, x, e);
        TRY(p->array);
        p->view = number;
        p->to_offset = (uint64_t)i * stack_stride;
        for (int d = 0; d < x->ndim; d++) {
            const struct dim_spec *spec = &v->dim[d];
            p->dim[d] = (struct plan_dim){.kind = spec->kind,
                                          .start = spec->start,
                                          .count = spec->count,
                                          .step = spec->step,
                                          .list = spec->list,
                                          .to_stride = strides[d]};
            if (d != v->axis && !spec->set)
                p->dim[d] = (struct plan_dim){.kind = SEL_SLICE,
                                              .count = (int64_t)x->shape[d],
                                              .step = 1,
                                              .to_stride = strides[d]};
        }
    }
    return 0;
}

/* A window that no sample can have, said by the view's name. */
static int check_window(const struct core *c, const struct view_spec *v, struct hr_error *e)
{
    const struct dim_spec *steps = &v->dim[v->axis];
    if (steps->count <= c->axis)
        return 0;
    return error_set(e, HR_EINVAL,
                     "view %s takes %lld steps, but %s is only %lld long: no sample has them all",
                     v->name, (long long)steps->count, c->along, (long long)c->axis);
}

static int freeze_locked(struct core *c, struct hr_error *e)
{
    if (c->frozen)
        return 0;
    if (!c->n_views)
        return error_set(e, HR_EINVAL,
                         "no view given: say what a sample takes, such as x=hr.view(\"t2m\")");
    size_t parts = 0;
    transform_masks(c);
    for (size_t i = 0; i < c->n_views; i++) {
        TRY(check_window(c, c->views[i], e));
        parts += (size_t)c->views[i]->n_arrays;
    }
    c->n_arrays = c->n_parts = 0;
    c->sources = arena_array(&c->arena, parts, sizeof *c->sources);
    c->arrays = arena_array(&c->arena, parts, sizeof *c->arrays);
    c->parts = arena_array(&c->arena, parts, sizeof *c->parts);
    if (!c->sources || !c->arrays || !c->parts)
        return error_nomem(e, parts * sizeof *c->parts, "views");
    for (size_t i = 0; i < c->n_views; i++)
        TRY(freeze_view(c, (int)i, e));
    struct plan_axis axis = {.n = (uint64_t)c->axis, .last = (uint64_t)c->axis};
    TRY(split_valid_ids(c->arrays, c->parts, c->n_parts, &axis, 1, e));
    c->first = (int64_t)axis.first;
    c->last = (int64_t)axis.last;
    c->frozen = true;
    return 0;
}

int samples_freeze(struct hr_samples *s, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = freeze_locked(c, e);
    if (!rc && s->whole) {
        s->first = c->first;
        s->last = c->last;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}
