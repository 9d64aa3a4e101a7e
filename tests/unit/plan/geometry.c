/* Random sample spaces against a walk over every element: products of axes, patches, crops, tables,
 * every edge. */
#include "plan/cost.h"
#include "plan/impl.h"
#include "plan/touch.h"
#include "worlds.h"
#include <math.h>

#define MAX_ITEMS 65536
static uint64_t want_chunk[MAX_ITEMS], want_from[MAX_ITEMS];
static uint8_t state_of[MAX_ITEMS]; /* 1: wanted from a chunk, 2: wanted as outside, 3: delivered */

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

static int64_t index_at(const struct world *w, int part, int d, uint64_t place, int64_t i)
{
    const struct plan_dim *dim = &w->s.parts[part].dim[d];
    if (dim->kind == SEL_LIST)
        return dim->list[i];
    if (dim->kind == SEL_SLICE)
        return dim->start + i * (dim->count > 1 ? dim->step : 1);
    return world_index(w, part, d, world_place(w, dim->axis, place), i);
}

static uint64_t want_all(const struct world *w, int part, uint64_t place)
{
    const struct plan_part *p = &w->s.parts[part];
    const struct plan_array *a = &w->s.arrays[p->array];
    uint64_t at[4] = {0}, n = 0;
    memset(state_of, 0, sizeof state_of);
    for (;;) {
        uint64_t to = p->to_offset, index[4];
        bool outside = false;
        for (int d = 0; d < a->ndim; d++) {
            int64_t x = index_at(w, part, d, place, (int64_t)at[d]);
            to += at[d] * p->dim[d].to_stride;
            check(x != NOTHING);
            outside = outside || x == OUTSIDE;
            index[d] = (uint64_t)x;
        }
        check(to < MAX_ITEMS && !state_of[to]);
        state_of[to] = outside ? 2 : 1;
        if (!outside)
            place_of(a, index, &want_chunk[to], &want_from[to]);
        n++;
        int d = a->ndim - 1;
        while (d >= 0 && ++at[d] == (uint64_t)p->dim[d].count)
            at[d--] = 0;
        if (d < 0)
            return n;
    }
}

static uint64_t deliver(const struct plan_piece *piece, uint64_t chunk, bool outside)
{
    uint64_t at[PLAN_MAX_DIMS] = {0}, n = 0;
    for (;;) {
        uint64_t from = piece->from_offset, to = piece->to_offset;
        for (int d = 0; d < piece->ndim; d++) {
            from += at[d] * (uint64_t)piece->from_stride[d];
            to += at[d] * piece->to_stride[d];
        }
        check(to < MAX_ITEMS && state_of[to] == (outside ? 2 : 1));
        check(outside || (want_chunk[to] == chunk && want_from[to] == from));
        state_of[to] = 3;
        n++;
        int d = piece->ndim - 1;
        while (d >= 0 && ++at[d] == piece->count[d])
            at[d--] = 0;
        if (d < 0)
            return n;
    }
}

static void check_sample(const struct world *w, struct plan *p, int part, int64_t place)
{
    static uint64_t chunks[MAX_ITEMS];
    const struct plan_array *a = &w->s.arrays[w->s.parts[part].array];
    uint64_t wanted = want_all(w, part, (uint64_t)place), got = 0, all = 1,
             n = plan_part_chunks(p, part, place, chunks, MAX_ITEMS);
    struct plan_piece piece;
    check(n <= plan_part_chunks_max(p, part));
    for (uint64_t i = 0; i < n; i++) {
        check(!i || chunks[i] > chunks[i - 1]);
        uint64_t pieces = plan_part_piece_count(p, part, place, chunks[i]);
        check(pieces >= 1);
        for (uint64_t j = 0; j < pieces; j++) {
            plan_part_piece(p, part, place, chunks[i], j, &piece);
            got += deliver(&piece, chunks[i], false);
        }
    }
    uint64_t regions = plan_part_outside_count(p, part, place);
    check(!regions || plan_has_outside(p));
    for (uint64_t i = 0; i < regions; i++) {
        plan_part_outside(p, part, place, i, &piece);
        got += deliver(&piece, 0, true);
    }
    check_eq(got, wanted);
    for (int d = 0; d < a->ndim; d++)
        all *= a->grid[d];
    for (uint64_t c = 0, i = 0; c < all; c++) /* no pieces of chunks it does not touch */
        if (i < n && chunks[i] == c)
            i++;
        else
            check_eq(plan_part_piece_count(p, part, place, c), 0);
}

static struct plan *world_plan(struct world *w)
{
    w->s.config.rows = w->s.config.rows ? w->s.config.rows : 1;
    w->s.config.seed = draw(1000);
    return setup_plan(&w->s);
}

static void every_element_comes_once_from_its_place_or_is_outside(void)
{
    int done = 0, cropped = 0, filled = 0;
    struct world w;
    while (done < 4000) {
        if (!world_draw(&w, 1 + (int)draw(3)))
            continue;
        struct plan *p = world_plan(&w);
        for (int parts = 0; parts < w.s.config.n_parts; parts++)
            for (uint64_t i = 0; i < 6; i++) {
                uint64_t id = draw(w.ids);
                if (world_has(&w, id))
                    check_sample(&w, p, parts, plan_place(p, i, (int64_t)id));
            }
        cropped += plan_has_crops(p);
        filled += plan_has_outside(p);
        done++;
        plan_unref(p);
        setup_dispose(&w.s);
    }
    check(cropped > 200 && filled > 400);
}

static void the_ids_of_a_split_are_those_whose_boxes_exist(void)
{
    struct world w;
    for (int done = 0; done < 3000;) {
        if (!world_draw(&w, 2))
            continue;
        bool filter = w.s.config.filter != NULL;
        uint64_t holes;
        if (filter) { /* only what does not exist is taken out */
            bitmap_set_range(&w.s.filter, 0, w.ids);
            check(!split_holes(w.s.arrays, w.s.parts, 2, w.s.axes, w.s.config.n_axes, &w.s.filter,
                               &holes, NULL));
        }
        for (uint64_t id = 0; id < w.ids; id++)
            check_eq(world_has(&w, id), world_exists(&w, id));
        setup_dispose(&w.s);
        done++;
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void every_order_gives_each_sample_of_the_split_once(void)
{
    struct world w;
    for (int done = 0; done < 2500;) {
        if (!world_draw(&w, 2))
            continue;
        struct plan_config *c = &w.s.config;
        c->shuffle = (int)draw(3);
        c->spread = 1 + draw(5);
        c->block = draw(4);
        c->remainder = HR_PAD;
        c->rows = 1 + draw(3);
        struct plan *p = world_plan(&w);
        uint64_t n, kept = 0;
        uint8_t *valid;
        int64_t *ids = walk_from(p, draw(3), 0, &n, &valid);
        uint64_t m = 0;
        for (uint64_t i = 0; i < n; i++)
            if (valid[i])
                ids[m++] = ids[i];
        for (uint64_t i = 1; i < m && c->shuffle == HR_SHUFFLE_NONE; i++)
            check(ids[i] > ids[i - 1]);
        qsort(ids, m, sizeof *ids, by_value);
        for (uint64_t id = 0; id < w.ids; id++)
            if (world_has(&w, id))
                check(kept < m && ids[kept++] == (int64_t)id);
        check_eq(kept, m);
        check_eq(plan_facts(p)->samples, m);
        free(ids);
        free(valid);
        plan_unref(p);
        setup_dispose(&w.s);
        done++;
    }
}

/* Samples of a block begin in its cells of the anchor, and no block has more than the largest. */
static void blocks_are_tiles_of_the_anchor(void)
{
    struct world w;
    for (int done = 0; done < 2000;) {
        if (!world_draw(&w, 2))
            continue;
        w.s.config.shuffle = HR_SHUFFLE_SPREAD;
        w.s.config.block = draw(5);
        struct plan *p = world_plan(&w);
        const struct blocks *b = &p->blocks;
        uint64_t rows = 0;
        for (uint64_t i = 0; i < b->n; i++) {
            uint64_t size = blocks_size(b, i), low[PLAN_MAX_AXES], high[PLAN_MAX_AXES];
            check(size && size <= b->largest && blocks_first(b, i) == rows);
            for (uint64_t r = 0; r < size; r++) {
                check_eq(blocks_find(b, rows + r), i);
                uint64_t id = (uint64_t)plan_id(p, rows + r);
                for (int a = 0; a < p->space.n; a++) {
                    uint64_t tile =
                        tile_axis_find(&p->tiles.axis[a], space_position(&p->space, a, id));
                    low[a] = r ? low[a] : tile;
                    high[a] = tile;
                    check_eq(low[a], high[a]);
                }
            }
            rows += size;
        }
        check_eq(rows, plan_facts(p)->samples);
        check_eq(blocks_first(b, b->n), rows);
        plan_unref(p);
        setup_dispose(&w.s);
        done++;
    }
}

static void crops_are_drawn_anew_each_epoch_from_their_part(void)
{
    struct setup s;
    setup_rows(&s, 64, 4);
    s.config.n_axes = 2;
    s.axes[0] = (struct plan_axis){50, 0, 50, 0};
    s.axes[1] = (struct plan_axis){4, 0, 4, 61}; /* crops of 4 indices: 61 places in 4 parts */
    s.parts[0].dim[0] =
        (struct plan_dim){.kind = SEL_SAMPLE, .axis = 1, .count = 4, .step = 1, .to_stride = 8};
    s.views[0].items = 32;
    s.config.rows = 8;
    struct plan *p = setup_plan(&s);
    uint64_t hits[61] = {0}, same = 0;
    for (uint64_t epoch = 0; epoch < 40; epoch++)
        for (int64_t id = 0; id < 200; id++) {
            uint64_t place = (uint64_t)plan_place(p, epoch, id), j = (uint64_t)id % 4;
            check_eq(place / 61, (uint64_t)id / 4);
            check(place % 61 >= j * 61 / 4 && place % 61 < (j + 1) * 61 / 4);
            check_eq(plan_place(p, epoch, id), (int64_t)place);
            same += plan_place(p, epoch + 1, id) == (int64_t)place;
            hits[place % 61]++;
        }
    for (int i = 0; i < 61; i++) /* 8000 draws: 131 each */
        check(hits[i] > 70 && hits[i] < 210);
    check(same < 8000 / 8);
    plan_unref(p);
}

/* Eight crops of each image in 2 × 2 chunks: a block has all of its images. */
static void crops_of_one_parent_share_its_reads(void)
{
    struct setup s;
    struct plan_cost cost;
    setup_rows(&s, 64, 4);
    array_set(&s.arrays[0], 3, (uint64_t[]){400, 512, 512}, (uint64_t[]){1, 256, 256});
    s.axes[0] = (struct plan_axis){400, 0, 400, 0};
    s.axes[1] = (struct plan_axis){8, 0, 8, 0};
    s.axes[2] = s.axes[3] = (struct plan_axis){1, 0, 1, 385};
    s.parts[0].dim[0] = (struct plan_dim){.kind = SEL_SAMPLE, .count = 1, .to_stride = 16384};
    for (int d = 1; d < 3; d++)
        s.parts[0].dim[d] = (struct plan_dim){
            .kind = SEL_SAMPLE, .axis = d + 1, .count = 128, .to_stride = d == 1 ? 128 : 1};
    s.views[0].items = 16384;
    s.config.n_axes = 4;
    s.config.block = 0;
    s.config.rows = 16;
    struct plan *p = setup_plan(&s);
    const uint64_t *tile = plan_facts(p)->tile;
    check(tile[0] == 1 && !tile[1] && tile[2] == 2 && tile[3] == 2);
    check(plan_facts(p)->blocks == 400 && plan_facts(p)->block_reread == 1);
    check(!plan_cost(p, 0, &cost, NULL));
    check(cost.amplification > 0.99 && cost.amplification < 1.01);
    check(cost.distinct_chunks > 1500 && cost.distinct_chunks <= 1600);
    plan_unref(p);
}

/* What plan_cost estimates from chunks is what a walk over all samples counts. */
static void costs_are_those_of_a_walk(void)
{
    struct world w;
    double off = 0, all = 0;
    for (int done = 0; done < 1500;) {
        if (!world_draw(&w, 2))
            continue;
        struct plan_config *c = &w.s.config;
        c->shuffle = (int)draw(2);
        c->block = 1 + draw(3);
        c->remainder = HR_PAD;
        bool plain = !c->filter;
        for (int part = 0; part < 2; part++) /* where an interval of positions says it all */
            for (int d = 0; d < 4; d++)
                plain =
                    plain && !(w.s.parts[part].dim[d].step > 1 || w.s.parts[part].dim[d].table ||
                               w.s.parts[part].dim[d].edge == EDGE_REFLECT);
        struct plan *p = world_plan(&w);
        struct plan_cost cost;
        struct touch t;
        check(!plan_cost(p, 0, &cost, NULL) && cost.exact);
        touch_count(p, &t);
        check(t.exact && t.reads + 1e-9 >= t.distinct);
        if (plain && !plan_has_crops(p)) {
            check(fabs(t.distinct - cost.distinct_chunks) < 1e-6 * t.distinct);
            check(fabs(t.reads - cost.chunk_reads) < 1e-6 * t.reads);
        }
        off += t.reads - cost.chunk_reads;
        all += cost.chunk_reads;
        plan_unref(p);
        setup_dispose(&w.s);
        done++;
    }
    printf("# reads estimated %.3f of those counted\n", 1 + off / all);
    check(off / all < 0.15 && off / all > -0.1);
}

/* What memory is sized by is no less than what blocks and splits touch, and not far from it. */
static void extents_cover_what_is_touched(void)
{
    struct world w;
    double counted = 0, said = 0;
    for (int done = 0; done < 1500;) {
        if (!world_draw(&w, 2))
            continue;
        w.s.config.shuffle = HR_SHUFFLE_SPREAD;
        w.s.config.block = 1 + draw(4);
        struct plan *p = world_plan(&w);
        for (int array = 0; array < w.s.config.n_arrays; array++) {
            static uint64_t chunks[MAX_ITEMS];
            static uint8_t in_block[MAX_ITEMS], in_split[MAX_ITEMS];
            struct plan_extent x;
            uint64_t most = 0, split = 0;
            plan_extent(p, array, &x);
            memset(in_split, 0, sizeof in_split);
            for (uint64_t b = 0, rank = 0; b < p->blocks.n; b++) {
                uint64_t end = rank + blocks_size(&p->blocks, b), n = 0;
                memset(in_block, 0, sizeof in_block);
                for (; rank < end; rank++)
                    for (int part = 0; part < 2; part++) {
                        if (w.s.parts[part].array != array)
                            continue;
                        int64_t place = plan_place(p, 0, plan_id(p, rank));
                        uint64_t k = plan_part_chunks(p, part, place, chunks, MAX_ITEMS);
                        for (uint64_t i = 0; i < k; i++) {
                            n += !in_block[chunks[i]];
                            split += !in_split[chunks[i]];
                            in_block[chunks[i]] = in_split[chunks[i]] = 1;
                        }
                    }
                most = n > most ? n : most;
            }
            check(x.block >= most && x.split >= split && x.shared <= x.block);
            counted += (double)most;
            said += (double)x.block;
        }
        plan_unref(p);
        setup_dispose(&w.s);
        done++;
    }
    printf("# blocks are said to touch %.2f of what they do\n", said / counted);
    check(said < 2 * counted);
}

static void patches_of(struct setup *s, uint64_t n, uint64_t chunk, int64_t size, int64_t stride)
{
    uint64_t length = (n - 1) * (uint64_t)stride + (uint64_t)size;
    setup_rows(s, 64, 4);
    array_set(&s->arrays[0], 2, (uint64_t[]){length, length}, (uint64_t[]){chunk, chunk});
    s->config.n_axes = 2;
    for (int a = 0; a < 2; a++) {
        s->axes[a] = (struct plan_axis){n, 0, n, 0};
        s->parts[0].dim[a] = (struct plan_dim){.kind = SEL_SAMPLE,
                                               .axis = a,
                                               .count = size,
                                               .mul = stride,
                                               .to_stride = a ? 1 : (uint64_t)size};
    }
    s->views[0].items = (uint64_t)(size * size);
    s->config.block = 0;
    s->config.rows = 64;
}

/* 10^8 patches: nothing grows with them but the bits of a filter. */
static void large_products_need_no_table(void)
{
    struct setup s;
    patches_of(&s, 10000, 1024, 256, 256);
    struct plan *p = setup_plan(&s);
    check_eq(plan_facts(p)->samples, 100000000);
    check_eq(plan_facts(p)->blocks, 2500 * 2500);
    check(plan_facts(p)->tile[0] == 1 && plan_facts(p)->tile[1] == 1);
    check(plan_facts(p)->table_bytes < 1 << 20);
    plan_unref(p);
    patches_of(&s, 10000, 1024, 256, 128);
    p = setup_plan(&s);
    check(plan_facts(p)->table_bytes < 1 << 20);
    check(plan_facts(p)->block_reread < 1.6 && plan_facts(p)->tile[0] == plan_facts(p)->tile[1]);
    plan_unref(p);
    patches_of(&s, 1000, 64, 256, 256); /* 4 × 4 chunks a patch: blocks of whole patches */
    p = setup_plan(&s);
    check(plan_facts(p)->block_reread == 1 && plan_facts(p)->block == 64);
    plan_unref(p);
    patches_of(&s, 10000, 1024, 256, 128);
    check(!bitmap_init(&s.filter, 100000000));
    for (uint64_t id = 0; id < 100000000; id += 1000)
        bitmap_set_range(&s.filter, id, id + 700);
    check(!bitmap_index(&s.filter));
    s.config.filter = &s.filter;
    p = setup_plan(&s);
    check_eq(plan_facts(p)->samples, 70000000);
    check(plan_facts(p)->table_bytes < 40 << 20);
    uint64_t rank = 0;
    for (uint64_t b = 0; b < 200; b++, rank += blocks_size(&p->blocks, b))
        check(bitmap_test(&s.filter, (uint64_t)plan_id(p, rank)));
    plan_unref(p);
    setup_dispose(&s);
}

int main(void)
{
    RUN(every_element_comes_once_from_its_place_or_is_outside);
    RUN(the_ids_of_a_split_are_those_whose_boxes_exist);
    RUN(every_order_gives_each_sample_of_the_split_once);
    RUN(blocks_are_tiles_of_the_anchor);
    RUN(crops_are_drawn_anew_each_epoch_from_their_part);
    RUN(crops_of_one_parent_share_its_reads);
    RUN(costs_are_those_of_a_walk);
    RUN(extents_cover_what_is_touched);
    RUN(large_products_need_no_table);
    return t_done();
}
