/* Chunks and pieces of random boxes against a walk over every element. */
#include "setup.h"

static uint64_t state = 7;
static uint64_t next(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

struct geometry {
    struct setup s;
    uint64_t edges[PLAN_MAX_DIMS][64];
    int64_t lists[PLAN_MAX_DIMS][64];
    int sample;
};

static void random_array(struct geometry *g, int ragged)
{
    struct plan_array *a = &g->s.arrays[0];
    uint64_t shape[4], chunk[4];
    int ndim = 1 + (int)next(4);
    for (int d = 0; d < ndim; d++) {
        shape[d] = 1 + next(14);
        chunk[d] = 1 + next(next(2) ? 4 : shape[d]);
    }
    array_set(a, ndim, shape, chunk);
    for (int d = 0; d < ndim; d++) {
        if (!ragged || next(2))
            continue;
        uint64_t cells = 0;
        g->edges[d][0] = 0;
        while (g->edges[d][cells] < shape[d]) {
            g->edges[d][cells + 1] = g->edges[d][cells] + 1 + next(5);
            cells++;
        }
        a->edges[d] = g->edges[d];
        a->grid[d] = cells;
        a->chunk[d] = 5;
    }
}

/* Layout of the sample in the tensor: dimensions in a random order. */
static void random_selection(struct geometry *g)
{
    const struct plan_array *a = &g->s.arrays[0];
    struct plan_part *part = &g->s.parts[0];
    *part = (struct plan_part){.to_offset = next(5)};
    g->sample = (int)next((uint64_t)a->ndim);
    for (int d = 0; d < a->ndim; d++) {
        struct plan_dim *dim = &part->dim[d];
        int64_t size = (int64_t)a->shape[d];
        if (d == g->sample) {
            dim->kind = SEL_SAMPLE;
            dim->count = 1 + (int64_t)next((uint64_t)size);
            dim->start = (int64_t)next(5) - 2;
        } else if (next(3)) {
            dim->kind = SEL_SLICE;
            dim->step = 1 + (int64_t)next(next(2) ? 1 : 6);
            dim->start = (int64_t)next((uint64_t)size);
            dim->count = 1 + (int64_t)next((uint64_t)((size - 1 - dim->start) / dim->step + 1));
        } else {
            dim->kind = SEL_LIST;
            dim->count = 1 + (int64_t)next(12);
            dim->list = g->lists[d];
            for (int64_t i = 0; i < dim->count; i++)
                g->lists[d][i] = i && next(2) && g->lists[d][i - 1] + 1 < size
                                     ? g->lists[d][i - 1] + 1
                                     : (int64_t)next((uint64_t)size);
        }
    }
    uint64_t stride = 1;
    for (int i = 0, at = (int)next((uint64_t)a->ndim); i < a->ndim; i++, at = (at + 1) % a->ndim) {
        part->dim[at].to_stride = stride;
        stride *= (uint64_t)part->dim[at].count;
    }
    g->s.views[0] = (struct plan_view){"x", stride + 5, 4};
}

static struct plan *random_plan(struct geometry *g, int ragged)
{
    *g = (struct geometry){0};
    for (;;) {
        random_array(g, ragged);
        random_selection(g);
        const struct plan_dim *dim = &g->s.parts[0].dim[g->sample];
        int64_t size = (int64_t)g->s.arrays[0].shape[g->sample];
        int64_t first = dim->start < 0 ? -dim->start : 0, last = size - dim->start - dim->count + 1;
        last = last < size ? last : size;
        if (first >= last)
            continue;
        g->s.axes[0] = (struct plan_axis){(uint64_t)size, (uint64_t)first, (uint64_t)last, 0};
        g->s.config = (struct plan_config){.arrays = g->s.arrays,
                                           .n_arrays = 1,
                                           .views = g->s.views,
                                           .n_views = 1,
                                           .parts = g->s.parts,
                                           .n_parts = 1,
                                           .axes = g->s.axes,
                                           .n_axes = 1,
                                           .rows = 1};
        return setup_plan(&g->s);
    }
}

static uint64_t index_of(const struct plan_dim *dim, int64_t id, uint64_t i)
{
    if (dim->kind == SEL_LIST)
        return (uint64_t)dim->list[i];
    if (dim->kind == SEL_SAMPLE)
        return (uint64_t)(id + dim->start) + i;
    return (uint64_t)dim->start + i * (uint64_t)(dim->count > 1 ? dim->step : 1);
}

/* Chunk number and place in the decoded chunk of one element. */
static void place_of(const struct plan_array *a, const uint64_t *index, uint64_t *chunk,
                     uint64_t *from)
{
    *chunk = *from = 0;
    for (int d = 0; d < a->ndim; d++) {
        uint64_t cell = index[d] / a->chunk[d], begin = cell * a->chunk[d], length = a->chunk[d];
        if (a->edges[d]) {
            for (cell = 0; a->edges[d][cell + 1] <= index[d];)
                cell++;
            begin = a->edges[d][cell];
            length = a->edges[d][cell + 1] - begin;
        }
        *chunk = *chunk * a->grid[d] + cell;
        *from = *from * length + index[d] - begin;
    }
}

#define MAX_ITEMS 65536
static uint64_t want_chunk[MAX_ITEMS], want_from[MAX_ITEMS];
static uint8_t state_of[MAX_ITEMS]; /* 1: wanted, 2: delivered */

static uint64_t want_all(const struct geometry *g, int64_t id)
{
    const struct plan_array *a = &g->s.arrays[0];
    const struct plan_part *part = &g->s.parts[0];
    uint64_t at[4] = {0}, n = 0;
    memset(state_of, 0, sizeof state_of);
    for (;;) {
        uint64_t to = part->to_offset, index[4];
        for (int d = 0; d < a->ndim; d++) {
            to += at[d] * part->dim[d].to_stride;
            index[d] = index_of(&part->dim[d], id, at[d]);
        }
        check(to < MAX_ITEMS && !state_of[to]);
        state_of[to] = 1;
        place_of(a, index, &want_chunk[to], &want_from[to]);
        n++;
        int d = a->ndim - 1;
        while (d >= 0 && ++at[d] == (uint64_t)part->dim[d].count)
            at[d--] = 0;
        if (d < 0)
            return n;
    }
}

static uint64_t deliver(const struct plan_piece *piece, uint64_t chunk)
{
    uint64_t at[PLAN_MAX_DIMS] = {0}, n = 0;
    for (;;) {
        uint64_t from = piece->from_offset, to = piece->to_offset;
        for (int d = 0; d < piece->ndim; d++) {
            from += at[d] * (uint64_t)piece->from_stride[d];
            to += at[d] * piece->to_stride[d];
        }
        check(to < MAX_ITEMS && state_of[to] == 1 && want_chunk[to] == chunk &&
              want_from[to] == from);
        state_of[to] = 2;
        n++;
        int d = piece->ndim - 1;
        while (d >= 0 && ++at[d] == piece->count[d])
            at[d--] = 0;
        if (d < 0)
            return n;
    }
}

static void check_sample(const struct geometry *g, struct plan *p, int64_t id)
{
    static uint64_t chunks[MAX_ITEMS];
    uint64_t wanted = want_all(g, id), got = 0, n = plan_part_chunks(p, 0, id, chunks, MAX_ITEMS),
             all = 1;
    check(n >= 1 && n <= plan_part_chunks_max(p, 0));
    for (uint64_t i = 0; i < n; i++) {
        check(!i || chunks[i] > chunks[i - 1]);
        uint64_t pieces = plan_part_piece_count(p, 0, id, chunks[i]);
        check(pieces >= 1);
        for (uint64_t j = 0; j < pieces; j++) {
            struct plan_piece piece;
            plan_part_piece(p, 0, id, chunks[i], j, &piece);
            got += deliver(&piece, chunks[i]);
        }
    }
    check_eq(got, wanted);
    for (int d = 0; d < g->s.arrays[0].ndim; d++)
        all *= g->s.arrays[0].grid[d];
    for (uint64_t c = 0, i = 0; c < all; c++) /* no pieces of chunks it does not touch */
        if (i < n && chunks[i] == c)
            i++;
        else
            check_eq(plan_part_piece_count(p, 0, id, c), 0);
    uint64_t few[2] = {~0ull, ~0ull};
    check_eq(plan_part_chunks(p, 0, id, few, 1), n);
    check(few[0] == chunks[0] && few[1] == ~0ull);
}

static void random_boxes(int ragged)
{
    for (int i = 0; i < 1500; i++) {
        struct geometry g;
        struct plan *p = random_plan(&g, ragged);
        for (int64_t id = (int64_t)g.s.axes[0].first; id < (int64_t)g.s.axes[0].last; id++)
            check_sample(&g, p, id);
        plan_unref(p);
    }
}

static void every_element_is_copied_once_from_its_place(void)
{
    random_boxes(0);
}

static void rectilinear_chunks_too(void)
{
    random_boxes(1);
}

static void the_chunk_bound_is_reached(void)
{
    for (int i = 0; i < 300; i++) {
        struct geometry g;
        struct plan *p = random_plan(&g, i % 2);
        const struct plan_dim *dim = &g.s.parts[0].dim[g.sample];
        uint64_t most = 0;
        for (int64_t id = (int64_t)g.s.axes[0].first; id < (int64_t)g.s.axes[0].last; id++) {
            uint64_t n = plan_part_chunks(p, 0, id, NULL, 0);
            most = n > most ? n : most;
        }
        if (dim->count <
            3) /* the box that reaches most chunks exists among few ids only for small boxes */
            check(most * 2 >= plan_part_chunks_max(p, 0));
        plan_unref(p);
    }
}

static void refused(void (*spoil)(struct setup *), const char *part)
{
    struct setup s;
    struct hr_error e = {0};
    struct plan *p;
    setup_rows(&s, 100, 10);
    s.config.rows = 4;
    spoil(&s);
    int rc = plan_open(&s.config, &p, &e);
    check(rc < 0 && rc == e.code && !p);
    check_has(e.text, part);
}
static void list_outside(struct setup *s)
{
    static const int64_t list[] = {1, 8};
    s->parts[0].dim[1] = (struct plan_dim){.kind = SEL_LIST, .count = 2, .list = list};
}
static void slice_outside(struct setup *s)
{
    s->parts[0].dim[1].start = 1;
}
static void slice_backwards(struct setup *s)
{
    s->parts[0].dim[1].step = -1;
}
static void no_sample_axis(struct setup *s)
{
    s->parts[0].dim[0] = (struct plan_dim){.kind = SEL_SLICE, .count = 1, .step = 1};
}
static void both_on_the_axis(struct setup *s)
{
    s->parts[0].dim[1] = (struct plan_dim){.kind = SEL_SAMPLE, .count = 1};
}
static void box_outside(struct setup *s)
{
    s->parts[0].dim[0].count = 2;
}
static void grid_too_small(struct setup *s)
{
    s->arrays[0].grid[0] = 9;
}

static void selections_outside_the_array_are_refused(void)
{
    refused(list_outside, "index 8 is outside its 8 elements");
    refused(slice_outside, "leaves its 8 elements");
    refused(slice_backwards, "step -1");
    refused(no_sample_axis, "no dimension of any view follows a sample axis");
    refused(both_on_the_axis, "take indices 0 … 99 of an array with 8");
    refused(box_outside, "take indices 0 … 100 of an array with 100");
    refused(grid_too_small, "do not cover");
}

int main(void)
{
    RUN(every_element_is_copied_once_from_its_place);
    RUN(rectilinear_chunks_too);
    RUN(the_chunk_bound_is_reached);
    RUN(selections_outside_the_array_are_refused);
    return t_done();
}
