/* Costs against counting. */
#include "plan/cost.h"
#include "plan/touch.h"
#include "setup.h"
#include <math.h>

#define MAX_CHUNKS 4096
static uint8_t read_by[512][2][MAX_CHUNKS]; /* group, array, chunk */

/* Steps -window + 1 … 0 of array 0 and step `lead` of array 1, whose chunks are of another length. */
static void two_arrays(struct setup *s, uint64_t axis, int64_t window, int64_t lead)
{
    setup_rows(s, axis, 10);
    array_set(&s->arrays[0], 2, (uint64_t[]){axis, 8}, (uint64_t[]){10, 4});
    array_set(&s->arrays[1], 2, (uint64_t[]){axis, 8}, (uint64_t[]){7, 8});
    s->parts[0].dim[0].start = 1 - window;
    s->parts[0].dim[0].count = window;
    s->parts[0].dim[1].count = 6;
    s->views[0].items = 6 * (uint64_t)window;
    s->parts[1] = s->parts[0];
    s->parts[1].array = s->parts[1].view = 1;
    s->parts[1].dim[0] = (struct plan_dim){.kind = SEL_SAMPLE, .start = lead, .count = 1};
    s->views[1] = (struct plan_view){"y", 6, 4};
    s->config.n_arrays = s->config.n_views = s->config.n_parts = 2;
    s->axes[0].first = (uint64_t)window - 1;
    s->axes[0].last = axis - (uint64_t)lead;
}

static void mark(struct plan *p, uint64_t group, int64_t id)
{
    for (int part = 0; part < plan_config(p)->n_parts; part++) {
        uint64_t chunks[64], n = plan_part_chunks(p, part, id, chunks, 64);
        for (uint64_t i = 0; i < n; i++)
            read_by[group][part][chunks[i]] = 1;
    }
}

static void count(struct plan *p, struct plan_cost *c)
{
    for (int array = 0; array < 2; array++)
        for (int chunk = 0; chunk < MAX_CHUNKS; chunk++) {
            double reads = 0;
            for (int group = 0; group < 512; group++)
                reads += read_by[group][array][chunk];
            c->chunk_reads += reads;
            c->read_bytes += reads * (double)plan_config(p)->arrays[array].decoded;
            c->distinct_chunks += reads > 0;
        }
}

/* One rank after another, each row under the block (spread), stream (sequential) or step (global)
 * that reads for it. */
static struct plan_cost counted(const struct setup *s, uint64_t epoch)
{
    struct setup one = *s;
    struct plan_cost c = {0};
    struct plan *p = NULL;
    memset(read_by, 0, sizeof read_by);
    uint64_t streams = s->config.streams;
    for (uint64_t rank = 0; rank < streams; rank++) {
        one.config.world = streams;
        one.config.rank = rank;
        plan_unref(p);
        p = setup_plan(&one);
        const struct plan_facts *f = plan_facts(p);
        uint64_t n;
        uint8_t *valid;
        int64_t *ids = walk_from(p, epoch, 0, &n, &valid);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t block =
                (uint64_t)(ids[i] + plan_config(p)->parts[f->anchor].dim[0].start) / 10;
            uint64_t group = f->shuffle == HR_SHUFFLE_NONE     ? rank
                             : f->shuffle == HR_SHUFFLE_GLOBAL ? i / f->rows
                                                               : block * streams + rank;
            if (valid[i])
                mark(p, group, ids[i]);
        }
        free(ids);
        free(valid);
    }
    count(p, &c);
    plan_unref(p);
    return c;
}

static void reads_of_small_epochs_are_counted_exactly(void)
{
    for (int shuffle = HR_SHUFFLE_NONE; shuffle <= HR_SHUFFLE_GLOBAL; shuffle++)
        for (int64_t window = 1; window < 16; window += 7)
            for (uint64_t streams = 1; streams <= 3; streams += 2) {
                struct setup s;
                two_arrays(&s, 1000, window, 3);
                s.config.shuffle = shuffle;
                s.config.streams = streams;
                s.config.global_batch = 30;
                struct plan *p = setup_plan(&s);
                struct plan_cost c, want = counted(&s, 1);
                check(!plan_cost(p, 1, &c, NULL) && c.exact);
                check(c.chunk_reads == want.chunk_reads);
                check(c.read_bytes == want.read_bytes);
                check(c.distinct_chunks == want.distinct_chunks);
                check(c.amplification == want.chunk_reads / want.distinct_chunks);
                check(c.amplification >= 1);
                plan_unref(p);
            }
}

static void useful_bytes_are_those_of_the_samples(void)
{
    struct setup s;
    two_arrays(&s, 1000, 8, 3);
    s.config.rows = 10;
    struct plan *p = setup_plan(&s);
    struct plan_cost c;
    check(!plan_cost(p, 0, &c, NULL));
    check(c.useful_bytes == 990.0 * (6 * 8 * 4 + 6 * 4));
    plan_unref(p);
}

static void the_first_batch_is_this_ranks(void)
{
    struct setup s;
    two_arrays(&s, 1000, 3, 2);
    s.config.world = 2;
    s.config.rows = 12;
    for (uint64_t rank = 0; rank < 2; rank++) {
        s.config.rank = rank;
        struct plan *p = setup_plan(&s);
        struct plan_cost c, want = {0};
        uint64_t n;
        int64_t *ids = walk_epoch(p, 0, &n);
        memset(read_by, 0, sizeof read_by);
        for (int i = 0; i < 12; i++)
            mark(p, 0, ids[i]);
        count(p, &want);
        check(!plan_cost(p, 0, &c, NULL));
        check(c.first_batch_chunks == want.chunk_reads && c.first_batch_bytes == want.read_bytes);
        free(ids);
        plan_unref(p);
    }
}

/* Long epochs: estimates within a few per cent of the exact count of the same geometry, had it been
 * walked. */
static void large_epochs_are_estimated(void)
{
    for (int filtered = 0; filtered < 2; filtered++)
        for (int64_t window = 1; window < 12; window += 5) {
            struct setup s;
            two_arrays(&s, 3000000, window, 3);
            s.config.rows = 60;
            s.config.block = 4;
            if (filtered) {
                check(!bitmap_init(&s.filter, 3000000));
                for (uint64_t id = s.axes[0].first; id < s.axes[0].last;
                     id += id / 1000 % 3 ? 1 : 40)
                    bitmap_set(&s.filter, id);
                check(!bitmap_index(&s.filter));
                s.config.filter = &s.filter;
            }
            struct plan *p = setup_plan(&s);
            struct plan_cost c;
            check(!plan_cost(p, 0, &c, NULL) && !c.exact);
            double blocks = (double)plan_facts(p)->blocks, all = 2 * 300000 + 3000000.0 / 7;
            if (!filtered) { /* blocks of 40: 4 or 5 of 10 (twice), and of 7 on average 1 + 39 ÷ 7 */
                double reads = blocks * (2 * (window > 1 ? 5 : 4) + 1 + 39 / 7.0);
                check(fabs(c.distinct_chunks / all - 1) < 0.02);
                check(fabs(c.chunk_reads / reads - 1) < 0.03);
            } else {
                check(c.distinct_chunks < all && c.distinct_chunks > 0.6 * all);
            }
            check(c.amplification >= 1 && c.amplification < 1.4);
            plan_unref(p);
            setup_dispose(&s);
        }
}

/* By weights: chunks of samples that seldom come, and of those that never do, against epochs that are walked. */
static void weights_count_in_estimates(void)
{
    static const double rare[] = {1, 0.02, 0.2, 3};
    for (int kind = 0; kind < 4; kind++)
        for (int filtered = 0; filtered < 2; filtered++) {
            struct setup s;
            struct touch t;
            double values[4000], chunks = 0, reads = 0;
            two_arrays(&s, 4000, 1, 3);
            for (int i = 0; i < 4000; i++)
                values[i] = i < 1000 ? 0 : i % 7 ? rare[kind] : rare[kind] / 2;
            check(!weights_new(values, 4000, &s.config.weights, NULL));
            if (filtered) {
                check(!bitmap_init(&s.filter, 4000));
                for (uint64_t id = s.axes[0].first; id < s.axes[0].last; id += 1 + id / 600 % 3)
                    bitmap_set(&s.filter, id);
                check(!bitmap_index(&s.filter));
                s.config.filter = &s.filter;
            }
            s.config.rows = 4;
            struct plan *p = setup_plan(&s);
            touch_count(p, &t);
            for (uint64_t epoch = 0; epoch < 8; epoch++) {
                struct plan_cost c;
                check(!plan_cost(p, epoch, &c, NULL) && c.exact);
                chunks += c.distinct_chunks / 8;
                reads += c.chunk_reads / 8;
            }
            if (!check(fabs(t.distinct / chunks - 1) < 0.08 && fabs(t.reads / reads - 1) < 0.08))
                printf("# weight %g: %g chunks for %g, %g reads for %g\n", rare[kind], t.distinct,
                       chunks, t.reads, reads);
            plan_unref(p);
            weights_unref(s.config.weights);
            setup_dispose(&s);
        }
}

/* All blocks are looked at where there are few, and the first one has nothing before it. */
static void few_large_blocks_are_counted(void)
{
    struct setup s;
    setup_rows(&s, 400000, 10);
    s.axes[0].first = 7; /* the rows of its chunk before it belong to no sample of the split */
    s.config.rows = 60;
    s.config.block = 10000;
    struct plan *p = setup_plan(&s);
    struct plan_cost c;
    check(!plan_cost(p, 0, &c, NULL) && !c.exact);
    check_eq(plan_facts(p)->blocks, 4);
    check_eq(c.distinct_chunks, 40000);
    check_eq(c.chunk_reads, 40000);
    plan_unref(p);
}

static void the_shuffle_is_judged_as_the_definition_does(void)
{
    struct setup s;
    setup_rows(&s, 65536, 32);
    s.config.rows = 64;
    struct plan_cost c;
    struct plan *p = setup_plan(&s);
    check(!plan_cost(p, 0, &c, NULL));
    check(c.variance > 0.03 && c.variance < 0.2 && c.worst < 1.8 && fabs(c.lag1) < 0.7);
    check(c.distinct_blocks >= 16 && c.distinct_blocks < 30);
    plan_unref(p);
    s.config.shuffle = HR_SHUFFLE_GLOBAL; /* independent draws, nearly */
    p = setup_plan(&s);
    check(!plan_cost(p, 0, &c, NULL));
    check(c.variance > 0.8 && c.variance < 1.2 && c.worst > 2 && fabs(c.lag1) < 0.15);
    plan_unref(p);
    s.config.shuffle = HR_SHUFFLE_NONE; /* 64 rows of two blocks */
    p = setup_plan(&s);
    check(!plan_cost(p, 0, &c, NULL));
    check(c.variance > 60 && c.variance < 68 && c.lag1 > 0.9 && c.distinct_blocks == 2);
    plan_unref(p);
    s.axes[0].last = 64;
    p = setup_plan(&s);
    check(!plan_cost(p, 0, &c, NULL));
    check(isnan(c.variance) && c.distinct_blocks == 2);
    plan_unref(p);
}

static void lack_of_memory_is_an_error_that_leaks_nothing(void)
{
    struct setup s;
    two_arrays(&s, 300, 4, 3);
    s.config.rows = 60;
    struct plan *p = setup_plan(&s);
    uint64_t live = mem_live();
    struct plan_cost c;
    mem_fail_at(0, false);
    check_eq(plan_cost(p, 0, &c, NULL), 0);
    uint64_t all = mem_count();
    check(all > 5);
    for (uint64_t n = 1; n <= all; n++) {
        mem_fail_at(n, false);
        check_eq(plan_cost(p, 0, &c, NULL), HR_ENOMEM);
        mem_fail_at(0, false);
        check_eq(mem_live(), live);
    }
    plan_unref(p);
}

int main(void)
{
    RUN(reads_of_small_epochs_are_counted_exactly);
    RUN(useful_bytes_are_those_of_the_samples);
    RUN(the_first_batch_is_this_ranks);
    RUN(large_epochs_are_estimated);
    RUN(weights_count_in_estimates);
    RUN(few_large_blocks_are_counted);
    RUN(the_shuffle_is_judged_as_the_definition_does);
    RUN(lack_of_memory_is_an_error_that_leaks_nothing);
    return t_done();
}
