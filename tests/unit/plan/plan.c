/* What options come to: ranks, streams, batches, remainders, refusals; and that a plan stands on
 * its own. */
#include "setup.h"
#include "base/error.h"

/* 12 streams over worlds of any size that divides 12: rank after rank, the same global batches. */
static void every_world_sees_the_same_global_batches(void)
{
    static const uint64_t worlds[] = {1, 2, 3, 4, 6, 12};
    for (int shuffle = HR_SHUFFLE_NONE; shuffle <= HR_SHUFFLE_GLOBAL; shuffle++)
        for (int remainder = HR_DROP; remainder <= HR_WRAP; remainder++) {
            if (remainder == HR_SHORT)
                continue;
            struct setup s;
            setup_rows(&s, 1003, 9);
            s.config.shuffle = shuffle;
            s.config.remainder = remainder;
            s.config.streams = 12;
            s.config.global_batch = 36;
            struct plan *whole = setup_plan(&s);
            uint64_t n, steps = plan_facts(whole)->steps;
            int64_t *all = walk_epoch(whole, 2, &n);
            check_eq(n, steps * 36);
            for (int i = 0; i < 6; i++)
                for (uint64_t rank = 0; rank < worlds[i]; rank++) {
                    s.config.world = worlds[i];
                    s.config.rank = rank;
                    struct plan *p = setup_plan(&s);
                    uint64_t own, rows = 36 / worlds[i];
                    int64_t *ids = walk_epoch(p, 2, &own);
                    check_eq(own, steps * rows);
                    check_eq(plan_facts(p)->order_hash, plan_facts(whole)->order_hash);
                    for (uint64_t step = 0; step < steps; step++)
                        check(!memcmp(ids + step * rows, all + step * 36 + rank * rows, rows * 8));
                    free(ids);
                    plan_unref(p);
                }
            free(all);
            plan_unref(whole);
        }
}

static void resume_at_every_step_gives_the_same_suffix(void)
{
    for (int shuffle = HR_SHUFFLE_NONE; shuffle <= HR_SHUFFLE_GLOBAL; shuffle++)
        for (int remainder = HR_DROP; remainder <= HR_WRAP; remainder++) {
            struct setup s;
            setup_rows(&s, 211, 9);
            s.config.shuffle = shuffle;
            s.config.remainder = remainder;
            s.config.streams = remainder == HR_SHORT ? 1 : 4;
            s.config.global_batch = 12;
            struct plan *p = setup_plan(&s);
            uint64_t n, rest;
            uint8_t *valid, *valid_rest;
            int64_t *all = walk_from(p, 1, 0, &n, &valid);
            for (uint64_t step = 0; step <= plan_facts(p)->steps; step++) {
                int64_t *ids = walk_from(p, 1, step, &rest, &valid_rest);
                check_eq(rest, step * 12 < n ? n - step * 12 : 0);
                check(!memcmp(ids, all + n - rest, rest * 8) &&
                      !memcmp(valid_rest, valid + n - rest, rest));
                free(ids);
                free(valid_rest);
            }
            free(all);
            free(valid);
            plan_unref(p);
        }
}

struct outcome {
    uint64_t rows, real, distinct, steps;
};

static struct outcome outcome_of(uint64_t samples, int shuffle, int remainder, uint64_t streams,
                                 uint64_t batch)
{
    struct setup s;
    setup_rows(&s, samples, 5);
    s.config.shuffle = shuffle;
    s.config.remainder = remainder;
    s.config.streams = streams;
    s.config.global_batch = batch;
    struct plan *p = setup_plan(&s);
    struct outcome o = {.steps = plan_facts(p)->steps};
    uint8_t *valid, *seen = calloc(samples, 1);
    int64_t *ids = walk_from(p, 0, 0, &o.rows, &valid);
    check_eq(plan_facts(p)->stream_rows * streams, o.rows);
    for (uint64_t i = 0; i < o.rows; i++) {
        o.real += valid[i];
        o.distinct += valid[i] && !seen[ids[i]];
        seen[ids[i]] |= valid[i];
    }
    free(ids);
    free(valid);
    free(seen);
    plan_unref(p);
    return o;
}

static void remainders_deliver_what_they_say(void)
{
    for (int shuffle = HR_SHUFFLE_NONE; shuffle <= HR_SHUFFLE_GLOBAL; shuffle++)
        for (uint64_t samples = 24; samples < 60; samples++)
            for (uint64_t streams = 1; streams <= 4; streams++) {
                uint64_t batch = streams * 6;
                struct outcome drop = outcome_of(samples, shuffle, HR_DROP, streams, batch);
                check_eq(drop.rows, samples / batch * batch);
                check(drop.distinct == drop.rows && drop.real == drop.rows);
                struct outcome pad = outcome_of(samples, shuffle, HR_PAD, streams, batch);
                check_eq(pad.rows, (samples + batch - 1) / batch * batch);
                check(pad.distinct == samples && pad.real == samples);
                struct outcome wrap = outcome_of(samples, shuffle, HR_WRAP, streams, batch);
                check(wrap.rows == pad.rows && wrap.real == wrap.rows && wrap.distinct == samples);
                if (streams > 1)
                    continue;
                struct outcome shorter = outcome_of(samples, shuffle, HR_SHORT, 1, batch);
                check(shorter.rows == samples && shorter.distinct == samples &&
                      shorter.steps == pad.steps);
            }
}

/* Streams share the rows as evenly as can be, so none is empty however few there are. */
static void few_samples_on_many_streams_reach_each(void)
{
    struct setup s;
    setup_rows(&s, 10, 1);
    s.config.shuffle = HR_SHUFFLE_NONE;
    s.config.world = 8;
    s.config.rows = 1;
    uint64_t real = 0;
    for (uint64_t rank = 0; rank < 8; rank++) {
        s.config.rank = rank;
        struct plan *p = setup_plan(&s);
        uint64_t n;
        uint8_t *valid;
        int64_t *ids = walk_from(p, 0, 0, &n, &valid);
        check_eq(plan_facts(p)->remainder, HR_PAD);
        check(n == 2 && valid[0] && (valid[1] || ids[1] == ids[0]));
        real += valid[0] + valid[1];
        free(ids);
        free(valid);
        plan_unref(p);
    }
    check_eq(real, 10);
}

static void a_tail_longer_than_the_stream_repeats_it(void)
{
    struct setup s;
    setup_rows(&s, 5, 2);
    s.config.shuffle = HR_SHUFFLE_NONE;
    s.config.rows = 13;
    s.config.remainder = HR_WRAP;
    struct plan *p = setup_plan(&s);
    uint64_t n;
    int64_t *ids = walk_epoch(p, 0, &n);
    check_eq(n, 13);
    for (uint64_t i = 0; i < n; i++)
        check_eq(ids[i], i % 5);
    free(ids);
    plan_unref(p);
}

static void sequential_streams_are_contiguous_runs(void)
{
    struct setup s;
    setup_rows(&s, 40, 3);
    s.config.shuffle = HR_SHUFFLE_NONE;
    s.config.streams = 4;
    s.config.global_batch = 8;
    struct plan *p = setup_plan(&s);
    uint64_t n;
    int64_t *ids = walk_epoch(p, 0, &n);
    for (uint64_t i = 0; i < n; i++)
        check_eq(ids[i], i % 8 / 2 * 10 + i / 8 * 2 + i % 2);
    free(ids);
    plan_unref(p);
}

static void defaults_follow_the_shuffle_and_the_world(void)
{
    struct setup s;
    setup_rows(&s, 400, 3);
    s.config.rows = 8;
    struct plan *p = setup_plan(&s);
    check_eq(plan_facts(p)->remainder, HR_DROP);
    check(plan_facts(p)->spread == 16 && plan_facts(p)->streams == 1 && plan_facts(p)->world == 1);
    check(plan_facts(p)->batch_bytes == 8 * 8 * 4 && plan_facts(p)->blocks == 134);
    plan_unref(p);
    s.config.shuffle = HR_SHUFFLE_NONE;
    p = setup_plan(&s);
    check_eq(plan_facts(p)->remainder, HR_SHORT);
    plan_unref(p);
    s.config.world = 4;
    p = setup_plan(&s);
    check_eq(plan_facts(p)->remainder, HR_PAD);
    check(plan_facts(p)->streams == 4 && plan_facts(p)->global_batch == 32 &&
          plan_facts(p)->share == 8);
    plan_unref(p);
}

/* After a change of the batch in mid-epoch: what was not yet given out, in order, in the new
 * batches. */
static void an_offset_continues_where_another_batch_left_off(void)
{
    for (int remainder = HR_DROP; remainder <= HR_WRAP; remainder++) {
        struct setup s;
        setup_rows(&s, 500, 9);
        s.config.streams = remainder == HR_SHORT ? 1 : 2;
        s.config.remainder = remainder;
        s.config.global_batch = 20;
        struct plan *before = setup_plan(&s);
        uint64_t n, m, position = plan_facts(before)->share * 7, streams = s.config.streams;
        int64_t *old = walk_epoch(before, 4, &n);
        s.config.global_batch = 28;
        uint64_t share = 28 / streams, rows = 500 / streams;
        s.config.offset_epoch = 4;
        s.config.offset = position % share;
        struct plan *after = setup_plan(&s);
        int64_t *new = walk_from(after, 4, position / share, &m, NULL);
        check_eq(plan_steps(after, 4), remainder == HR_DROP
                                           ? (rows - s.config.offset) / share
                                           : (rows - s.config.offset - 1) / share + 1);
        check_eq(plan_steps(after, 5), plan_facts(after)->steps);
        for (uint64_t c = 0; c < streams; c++) /* by stream: row r of the epoch, from both walks */
            for (uint64_t r = position; r < rows / 20 * 20 && (r - position) < m / streams; r++) {
                uint64_t at = r - position, a = 20 / streams;
                check_eq(new[at / share * 28 + c * share + at % share],
                         old[r / a * 20 + c * a + r % a]);
            }
        free(old);
        free(new);
        plan_unref(before);
        plan_unref(after);
    }
}

struct refusal {
    uint64_t rows, global, streams, rank, world, samples;
    int remainder;
    const char *text;
};
static const struct refusal refusals[] = {
    {0, 0, 0, 0, 1, 100, 0, "give the batch as n="},
    {4, 8, 0, 0, 1, 100, 0, "not both"},
    {0, 100, 8, 0, 1, 1000, 0, "use 96 or 104"},
    {0, 3, 8, 0, 1, 1000, 0, "use 8"},
    {3, 0, 8, 0, 4, 1000, 0, "use n=2 or 4"},
    {4, 0, 6, 0, 4, 1000, 0, "use streams=4 or 8, or 3 or 6 ranks"},
    {4, 0, 12, 0, 5, 1000, 0, "use streams=10 or 15, or 4 or 6 ranks"},
    {4, 0, 0, 4, 4, 1000, 0, "ranks count from 0 to 3"},
    {64, 0, 0, 0, 1, 50, 0, "use at most 50"},
    {8, 0, 0, 0, 4, 30, 0, "use at most 28"},
    {1, 0, 0, 0, 64, 50, 0, "use at most 50"},
    {4, 0, 0, 0, 2, 50, HR_SHORT, "\"short\" works with one stream"},
    {4, 0, 0, 0, 1, 50, 9, "remainder 9"},
};

static void refusals_name_what_fits(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        struct setup s;
        struct hr_error e = {0};
        struct plan *p;
        setup_rows(&s, r->samples, 3);
        s.config.rows = r->rows;
        s.config.global_batch = r->global;
        s.config.streams = r->streams;
        s.config.rank = r->rank;
        s.config.world = r->world;
        s.config.remainder = r->remainder;
        check_eq(plan_open(&s.config, &p, &e), HR_EINVAL);
        check_has(e.text, r->text);
    }
}

static void empty_splits_are_refused(void)
{
    struct setup s;
    struct hr_error e;
    struct plan *p;
    setup_rows(&s, 100, 3);
    s.config.rows = 4;
    s.axes[0].first = s.axes[0].last = 50;
    check_eq(plan_open(&s.config, &p, &e), HR_EINVAL);
    check(!bitmap_init(&s.filter, 100) && !bitmap_index(&s.filter));
    s.config.filter = &s.filter;
    s.axes[0].last = 100;
    check_eq(plan_open(&s.config, &p, &e), HR_EINVAL);
    check_has(e.text, "no id of [50, 100)");
    setup_dispose(&s);
}

static void warnings_come_with_numbers(void)
{
    struct setup s;
    setup_rows(&s, 100, 10);
    s.config.streams = 2;
    s.config.global_batch = 36;
    struct plan *p = setup_plan(&s);
    check_has(plan_warning(p, 0), "leaves 28 of 100 samples out");
    check_has(plan_warning(p, 1),
              "10 blocks of about 10 samples for 2 streams are 5.0 a stream, fewer than spread=16");
    check_has(plan_warning(p, 1), "fewer streams mix more");
    check(!plan_warning(p, 2));
    plan_unref(p);
    s.config.world = 2;
    p = setup_plan(&s);
    check(!strstr(plan_warning(p, 1), "fewer streams"));
    plan_unref(p);
    setup_rows(&s, 10000, 10);
    s.config.rows = 10;
    p = setup_plan(&s);
    check(!plan_warning(p, 0));
    plan_unref(p);
    s.config.shuffle = HR_SHUFFLE_GLOBAL;
    p = setup_plan(&s);
    check_has(plan_warning(p, 0), "10 of 1000 blocks");
    plan_unref(p);
}

/* Few blocks are nothing to warn of where one stream has all of them open anyway; and words follow their numbers. */
static void one_of_each_is_said_as_one(void)
{
    struct setup s;
    struct plan *p;
    struct hr_error e;
    setup_rows(&s, 50, 10);
    s.config.rows = 5;
    p = setup_plan(&s);
    check(!plan_warning(p, 0));
    plan_unref(p);
    s.config.shuffle = HR_SHUFFLE_GLOBAL;
    setup_rows(&s, 1, 10);
    s.config.rows = 1;
    p = setup_plan(&s);
    check(!plan_warning(p, 0));
    plan_unref(p);
    s.config.rows = 2;
    check_eq(plan_open(&s.config, &p, &e), HR_EINVAL);
    check_has(e.text, "the 1 row that 1 sample gives on 1 stream: use at most 1");
    s.config.world = 2;
    s.config.rows = 1;
    check_eq(plan_open(&s.config, &p, &e), HR_EINVAL);
    check_has(e.text, "1 sample does not fill 2 streams");
}

static void a_plan_outlives_the_tables_it_was_made_from(void)
{
    struct setup *s = malloc(sizeof *s);
    setup_rows(s, 300, 10);
    int64_t list[] = {1, 2, 5};
    char name[] = "x";
    s->views[0].name = name;
    s->parts[0].dim[1] =
        (struct plan_dim){.kind = SEL_LIST, .count = 3, .list = list, .to_stride = 1};
    check(!bitmap_init(&s->filter, 300));
    bitmap_set_range(&s->filter, 3, 40);
    bitmap_set_range(&s->filter, 60, 300);
    check(!bitmap_index(&s->filter));
    s->config.filter = &s->filter;
    s->config.rows = 10;
    struct plan *p = setup_plan(s);
    uint64_t n, m;
    int64_t *a = walk_epoch(p, 0, &n);
    setup_dispose(s);
    memset(list, 0xFF, sizeof list);
    memset(name, 0xFF, 1);
    memset(s, 0xFF, sizeof *s);
    free(s);
    int64_t *b = walk_epoch(p, 0, &m);
    check(n == m && !memcmp(a, b, n * 8));
    check_str(plan_config(p)->views[0].name, "x");
    check(plan_config(p)->parts[0].dim[1].list[2] == 5 && plan_config(p)->filter->total == 277);
    check(plan_config(p)->axes[0].first == 3 && plan_config(p)->axes[0].last == 300);
    free(a);
    free(b);
    plan_unref(plan_ref(p));
    plan_unref(p);
}

static void large_archives_need_no_table(void)
{
    struct setup s;
    setup_rows(&s, 16000000, 8); /* 2 million chunks */
    s.axes[0].first = 5;
    s.axes[0].last = 15999990;
    s.config.rows = 64;
    uint64_t live = mem_live();
    struct plan *p = setup_plan(&s);
    check(plan_facts(p)->table_bytes < 100000 && plan_facts(p)->blocks == 1999999);
    plan_unref(p);
    check(!bitmap_init(&s.filter, 16000000));
    for (uint64_t id = 0; id < 16000000; id += 1 + id % 3)
        bitmap_set(&s.filter, id);
    check(!bitmap_index(&s.filter));
    s.config.filter = &s.filter;
    p = setup_plan(&s);
    check(plan_facts(p)->table_bytes < 24u << 20);
    plan_unref(p);
    setup_dispose(&s);
    check_eq(mem_live(), live);
}

/* The split's fingerprint is of the samples, not of how long the axis has become since. */
static void fingerprints_survive_a_growing_archive(void)
{
    struct setup s;
    setup_rows(&s, 300, 10);
    s.axes[0].last = 250;
    s.config.rows = 10;
    struct plan *p = setup_plan(&s);
    struct plan_facts before = *plan_facts(p);
    plan_unref(p);
    setup_rows(&s, 1000, 10);
    s.axes[0].last = 250;
    s.config.rows = 10;
    p = setup_plan(&s);
    check_eq(plan_facts(p)->split_hash, before.split_hash);
    check_eq(plan_facts(p)->order_hash, before.order_hash);
    plan_unref(p);
    s.axes[0].last = 260;
    p = setup_plan(&s);
    check(plan_facts(p)->split_hash != before.split_hash &&
          plan_facts(p)->order_hash != before.order_hash);
    plan_unref(p);
}

static int everything(struct setup *s)
{
    struct hr_error e;
    struct plan *p;
    struct plan_cursor *c = NULL;
    int rc = plan_open(&s->config, &p, &e);
    if (!rc)
        rc = plan_cursor_open(p, &c, &e);
    if (!rc)
        rc = plan_cursor_seek(c, 0, 0, &e);
    if (!rc)
        rc = plan_cursor_seek(c, 1, 3, &e);
    plan_cursor_free(c);
    plan_unref(p);
    return rc;
}

static void lack_of_memory_is_an_error_that_leaks_nothing(void)
{
    struct setup s;
    setup_rows(&s, 3000, 10);
    static const int64_t list[] = {3, 1};
    s.parts[0].dim[1] =
        (struct plan_dim){.kind = SEL_LIST, .count = 2, .list = list, .to_stride = 1};
    check(!bitmap_init(&s.filter, 3000));
    for (uint64_t id = 0; id < 3000; id += 1 + id % 3)
        bitmap_set(&s.filter, id);
    check(!bitmap_index(&s.filter));
    s.config.filter = &s.filter;
    s.config.streams = 2;
    s.config.global_batch = 20;
    uint64_t live = mem_live();
    mem_fail_at(0, false);
    check_eq(everything(&s), 0);
    uint64_t all = mem_count();
    check(all > 15);
    for (uint64_t n = 1; n <= all; n++) { /* a table that could not be made smaller is no failure */
        mem_fail_at(n, false);
        int rc = everything(&s);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        check_eq(mem_live(), live);
    }
    setup_dispose(&s);
}

int main(void)
{
    RUN(every_world_sees_the_same_global_batches);
    RUN(resume_at_every_step_gives_the_same_suffix);
    RUN(remainders_deliver_what_they_say);
    RUN(few_samples_on_many_streams_reach_each);
    RUN(a_tail_longer_than_the_stream_repeats_it);
    RUN(sequential_streams_are_contiguous_runs);
    RUN(defaults_follow_the_shuffle_and_the_world);
    RUN(an_offset_continues_where_another_batch_left_off);
    RUN(refusals_name_what_fits);
    RUN(empty_splits_are_refused);
    RUN(warnings_come_with_numbers);
    RUN(one_of_each_is_said_as_one);
    RUN(a_plan_outlives_the_tables_it_was_made_from);
    RUN(large_archives_need_no_table);
    RUN(fingerprints_survive_a_growing_archive);
    RUN(lack_of_memory_is_an_error_that_leaks_nothing);
    return t_done();
}
