/* The naive reader: what every element of a chunk is, and what every element of a row of tensors must be. */
#include "sentences.h"

static uint64_t item_number(const struct world *w, uint32_t array, const uint64_t *index)
{
    const struct plan_array *a = &w->arrays[array];
    uint64_t at = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (index[d] >= a->shape[d])
            return 0;
        at = at * a->shape[d] + index[d];
    }
    return ((uint64_t)array + 1) << 48 | at;
}

uint64_t world_chunk_item(const struct world *w, uint32_t array, uint64_t chunk, uint64_t offset)
{
    const struct plan_array *a = &w->arrays[array];
    uint64_t index[PLAN_MAX_DIMS] = {0};
    for (int d = a->ndim - 1; d >= 0; d--) {
        uint64_t cell = chunk % a->grid[d], from = cell * a->chunk[d], length = a->chunk[d];
        chunk /= a->grid[d];
        if (a->edges[d]) {
            from = a->edges[d][cell];
            length = a->edges[d][cell + 1] - from;
        }
        index[d] = from + offset % length;
        offset /= length;
    }
    return offset || chunk ? 0 : item_number(w, array, index);
}

/* Index of step k along a dimension that follows an axis; -1: outside. */
static int64_t follow_index(const struct plan_array *a, int d, const struct plan_dim *dim,
                            uint64_t place, int64_t k)
{
    int64_t size = (int64_t)a->shape[d], start = dim->start,
            span = (dim->count - 1) * dim->step + 1;
    if (dim->table && dim->table[place] < 0)
        return -1;
    if (dim->table)
        start += dim->table[place];
    else
        start += (int64_t)place * (dim->mul ? dim->mul : 1) / (dim->div ? dim->div : 1);
    if (dim->edge == EDGE_CLIP)
        start = start < 0 ? 0 : start > size - span ? size - span : start;
    int64_t index = start + k * dim->step;
    if (dim->edge == EDGE_REFLECT)
        index = index < 0 ? -index : index >= size ? 2 * (size - 1) - index : index;
    return index < 0 || index >= size ? -1 : index;
}

static uint64_t place_on(const struct world *w, int axis, uint64_t place)
{
    for (int a = w->config.n_axes - 1; a > axis; a--)
        place /= world_places(&w->axes[a]);
    return place % world_places(&w->axes[axis]);
}

uint64_t world_members(const struct world *w, int part)
{
    const struct members *m = w->parts[part].members;
    return m ? m->n : 1;
}

uint64_t world_member_at(const struct world *w, int part, uint64_t member)
{
    int view = w->parts[part].view;
    return w->view_at[view] + w->views[view].items / world_members(w, part) * member;
}

int64_t world_place(const struct world *w, int part, uint64_t epoch, int64_t id, uint64_t member)
{
    const struct members *m = w->parts[part].members;
    return m ? sentences_row(m, epoch, (uint64_t)id, member) : plan_place(w->plan, epoch, id);
}

/* Where step k of a dimension lies; -1: outside. */
static int64_t index_of(const struct world *w, const struct plan_part *p, int d, uint64_t place,
                        int64_t k)
{
    const struct plan_dim *dim = &p->dim[d];
    if (dim->kind == SEL_LIST)
        return dim->list[k];
    if (dim->kind == SEL_SLICE)
        return dim->start + k * dim->step;
    if (p->members)
        return (int64_t)place;
    return follow_index(&w->arrays[p->array], d, dim, place_on(w, dim->axis, place), k);
}

/* `row`: where the part's member begins. */
static int part_check(const struct world *w, int part, uint64_t place, const uint64_t *row,
                      struct hr_error *e)
{
    const struct plan_part *p = &w->parts[part];
    const struct plan_array *a = &w->arrays[p->array];
    int64_t k[PLAN_MAX_DIMS] = {0};
    for (int d = 0; d >= 0;) {
        uint64_t index[PLAN_MAX_DIMS] = {0}, to = p->to_offset, wanted;
        bool outside = false;
        for (int i = 0; i < a->ndim; i++) {
            int64_t at = index_of(w, p, i, place, k[i]);
            index[i] = (uint64_t)at;
            outside = outside || at < 0;
            to += (uint64_t)k[i] * p->dim[i].to_stride;
        }
        wanted = outside ? WORLD_OUTSIDE : item_number(w, (uint32_t)p->array, index);
        if (row[to] != wanted)
            return error_set(e, HR_EDATA,
                             "part %d of what lies at %llu: item %llu is %llx, should be %llx",
                             part, (unsigned long long)place, (unsigned long long)to,
                             (unsigned long long)row[to], (unsigned long long)wanted);
        for (d = a->ndim - 1; d >= 0 && ++k[d] == p->dim[d].count; d--)
            k[d] = 0;
    }
    return 0;
}

int world_row_check(const struct world *w, uint64_t epoch, int64_t id, const uint64_t *row,
                    struct hr_error *e)
{
    for (int i = 0; i < w->config.n_parts; i++)
        for (uint64_t k = 0; k < world_members(w, i); k++)
            TRY(part_check(w, i, (uint64_t)world_place(w, i, epoch, id, k),
                           row + world_member_at(w, i, k), e));
    return 0;
}
