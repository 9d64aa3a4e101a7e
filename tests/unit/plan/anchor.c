/* How large blocks are chosen: what they read of all arrays, and that whoever asks for as many cells gets the same tile. */
#include "plan/touch.h"
#include "setup.h"

static uint64_t state = 5;
static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Another array of `axis` × `width`, of `rows` a chunk, in a view that begins `start` later and takes `count`. */
static void view_add(struct setup *s, uint64_t axis, uint64_t rows, uint64_t width, int64_t start,
                     int64_t count)
{
    int i = s->config.n_arrays++;
    rows = rows < axis ? rows : axis;
    array_set(&s->arrays[i], 2, (uint64_t[]){axis, width}, (uint64_t[]){rows, width});
    s->views[i] = (struct plan_view){"v", width, 4};
    s->parts[i] = (struct plan_part){.array = i, .view = i};
    s->parts[i].dim[0] =
        (struct plan_dim){.kind = SEL_SAMPLE, .start = start, .count = count, .step = 1};
    s->parts[i].dim[1] =
        (struct plan_dim){.kind = SEL_SLICE, .count = (int64_t)width, .step = 1, .to_stride = 1};
    s->config.n_views = s->config.n_parts = s->config.n_arrays;
    uint64_t end = (uint64_t)(start + count - 1);
    s->axes[0].last = axis - end < s->axes[0].last ? axis - end : s->axes[0].last;
}

static void setup_views(struct setup *s, uint64_t axis)
{
    setup_rows(s, axis, 1);
    s->config.n_arrays = 0;
    s->config.block = 0;
    s->config.rows = 1;
}

static uint64_t block_of(const struct setup *s)
{
    struct plan *p = setup_plan(s);
    uint64_t block = plan_facts(p)->block;
    plan_unref(p);
    return block;
}

#define MIB 262144 /* items of 4 bytes */

static void other_arrays_count_by_their_bytes(void)
{
    struct setup s;
    setup_views(&s, 8000);
    view_add(&s, 8000, 8, MIB / 8, 0, 1);
    check_eq(block_of(&s), 1);
    view_add(&s, 8000, 8, MIB / 8, 0, 1); /* alike */
    check_eq(block_of(&s), 1);
    view_add(&s, 8000, 8, MIB / 800, 6, 1); /* read twice, but little */
    check_eq(block_of(&s), 1);
    setup_views(&s, 8000);
    view_add(&s, 8000, 8, MIB / 8, 0, 1);
    view_add(&s, 8000, 8, MIB / 8, 6,
             1); /* (g + (g + 1)) ÷ 2 g, a little less for what is still open */
    check_eq(block_of(&s), 5);
    setup_views(&s, 8000);
    view_add(&s, 8000, 1, MIB, 0, 1);
    view_add(&s, 8000, 24, MIB / 4, 0, 1); /* 24 of 1.25 MiB: there chunks of both begin */
    check_eq(block_of(&s), 24);
}

/* Few chunks along the axis: some open block needs each of them all the time. Large blocks do not grow. */
static void other_arrays_do_not_count(void)
{
    struct setup s;
    setup_views(&s, 8000);
    view_add(&s, 8000, 1, MIB, 0, 1);
    view_add(&s, 8000, 1000, MIB / 2, 0, 1);
    check_eq(block_of(&s), 1);
    setup_views(&s, 8000);
    view_add(&s, 8000, 1, 100 * MIB, 0, 1);
    view_add(&s, 8000, 24, MIB, 0, 1);
    check_eq(block_of(&s), 1);
}

/* Of random pairs of arrays: bytes read ÷ bytes that there are, counted chunk by chunk. */
static void automatic_blocks_read_little_twice(void)
{
    static const uint64_t cells[] = {1, 2, 3, 8, 24, 32, 100};
    int looked = 0;
    for (int round = 0; round < 400; round++) {
        struct setup s;
        struct touch t;
        uint64_t axis = 4000 + draw(4000);
        setup_views(&s, axis);
        for (int i = 0; i < 2; i++)
            view_add(&s, axis, cells[draw(7)], 1 + draw(20000), (int64_t)draw(40),
                     draw(2) ? 1 : 1 + (int64_t)draw(12));
        struct plan *p = setup_plan(&s);
        touch_count(p, &t);
        double each = t.distinct_bytes / (double)plan_facts(p)->blocks;
        bool few = s.arrays[0].grid[0] < 160 || s.arrays[1].grid[0] < 160;
        if (each < 60e6 && plan_facts(p)->blocks > 40 && !few) {
            check(t.bytes / t.distinct_bytes < 1.13); /* 1.1, and what is taken to be open */
            looked++;
        }
        plan_unref(p);
    }
    check(looked > 100);
}

/* Two axes, one or two arrays: the block of a state is asked for by its size. */
static void the_same_size_is_the_same_tile(void)
{
    static const uint64_t cells[] = {1, 2, 3, 8, 24, 32, 100};
    for (int round = 0; round < 300; round++) {
        struct setup s;
        setup_rows(&s, 10, 1);
        uint64_t shape[2] = {60 + draw(400), 60 + draw(300)};
        s.config.n_arrays = s.config.n_views = s.config.n_parts = 1 + (int)draw(2);
        s.config.n_axes = 2;
        for (int i = 0; i < s.config.n_arrays; i++) {
            uint64_t chunk[2] = {cells[draw(7)], cells[draw(7)]};
            for (int a = 0; a < 2; a++)
                chunk[a] = chunk[a] < shape[a] ? chunk[a] : shape[a];
            array_set(&s.arrays[i], 2, shape, chunk);
            s.arrays[i].decoded *= 1 + draw(3000);
            s.views[i] = (struct plan_view){"v", 1, 4};
            s.parts[i] = (struct plan_part){.array = i, .view = i};
            for (int a = 0; a < 2; a++)
                s.parts[i].dim[a] = (struct plan_dim){.kind = SEL_SAMPLE,
                                                      .axis = a,
                                                      .start = (int64_t)draw(10),
                                                      .count = 1 + (int64_t)draw(20),
                                                      .step = 1};
        }
        for (int a = 0; a < 2; a++)
            s.axes[a] = (struct plan_axis){shape[a], 0, shape[a] - 32, 0};
        s.config.rows = 1;
        s.config.block = draw(2) ? 0 : 1 + draw(40);
        struct plan *p = setup_plan(&s);
        s.config.block = plan_facts(p)->block;
        struct plan *q = setup_plan(&s);
        check_eq(plan_facts(p)->block, plan_facts(q)->block);
        check_eq(plan_facts(p)->order_hash, plan_facts(q)->order_hash);
        plan_unref(p);
        plan_unref(q);
    }
}

int main(void)
{
    RUN(other_arrays_count_by_their_bytes);
    RUN(other_arrays_do_not_count);
    RUN(automatic_blocks_read_little_twice);
    RUN(the_same_size_is_the_same_tile);
    return t_done();
}
