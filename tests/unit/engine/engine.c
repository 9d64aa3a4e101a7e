/* Behaviours of the state machine that a schedule of tests/sim would show only by luck. */
#include "engine/engine.h"

#include "tiny.h"

/* 40 samples in chunks of 4, in order, batches of 4: batch i is chunk i. */
static const struct tiny one_to_one = {.samples = 40, .chunk = 4, .rows = 4};

static struct action job_of_kind(struct engine *g, enum action_kind kind)
{
    struct action a = {0};
    check(tiny_next(g, &a, kind));
    return a;
}

static void small_chunks_travel_together(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.job_bytes = 3 * 4 * TINY_ITEM;
    c.ahead = 6;
    struct engine *g = tiny_engine(one_to_one, &c);
    struct action a = job_of_kind(g, ACTION_DECODE);
    check_eq(a.n_chunks, 3);
    for (uint32_t i = 0; i < a.n_chunks; i++) {
        check_eq(a.chunks[i].chunk, i);
        check_eq(a.chunks[i].n_pieces, 4);
        check_eq(a.chunks[i].hold, ENGINE_NO_HOLD);
    }
    check_eq(a.ticket,
             4 * TINY_ITEM + 2 * TINY_ITEM); /* a worker has one chunk in hand at a time */
    engine_free(g);
}

static void a_fetch_reserves_all_its_chunks_at_once(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.job_bytes = 3 * 4 * TINY_ITEM;
    c.join_bytes = 1u << 20;
    c.ahead = 6;
    c.remote = true;
    c.fetches = 1;
    struct engine *g = tiny_engine(one_to_one, &c);
    struct action a = job_of_kind(g, ACTION_FETCH);
    check_eq(a.n_chunks, 1); /* others would delay the first batch */
    check_eq(tiny_feed(g, EVENT_FETCHED, a.job), 0);
    a = job_of_kind(g, ACTION_DECODE);
    check_eq(tiny_feed(g, EVENT_DONE, a.job), 0);
    a = job_of_kind(g, ACTION_FETCH);
    check(a.n_chunks >= 3);
    check_eq(a.chunks[0].n_pieces, 0);
    check_eq(a.ticket, a.n_chunks * 2 * TINY_ITEM + 4 * TINY_ITEM);
    check_eq(tiny_feed(g, EVENT_FETCHED, a.job), 0);
    uint32_t job = a.job;
    a = job_of_kind(g, ACTION_DECODE);
    check_eq(a.job, job);
    check_eq(a.chunks[0].n_pieces, 4);
    engine_free(g);
}

/* Global shuffle of single chunks, all batches open: everything may be read. */
static const struct tiny scattered = {
    .samples = 40, .chunk = 1, .rows = 8, .shuffle = HR_SHUFFLE_GLOBAL};

static void nothing_delays_the_first_batch(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.join_bytes = 1u << 20;
    c.ahead = 5;
    struct engine *g = tiny_engine(scattered, &c);
    uint32_t read = 0, first = 0;
    for (struct action a; read < 8; read += a.n_chunks, first++) {
        a = job_of_kind(g, ACTION_DECODE);
        for (uint32_t i = 0; i < a.n_chunks; i++) {
            check_eq(a.chunks[i].pieces[0].slot, 0);
            check(!i || a.chunks[i].chunk == a.chunks[i - 1].chunk + 1);
        }
        tiny_feed(g, EVENT_DONE, a.job);
    }
    check_eq(read, 8);
    check(tiny_next(g, &(struct action){0}, ACTION_FINISH));
    engine_free(g);
}

static void pending_neighbours_join_in_ascending_order(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.join_bytes = 1u << 20;
    c.ahead = 5;
    struct engine *g = tiny_engine(scattered, &c);
    struct action a = {0};
    for (uint32_t read = 0; read < 8; read += a.n_chunks) {
        a = job_of_kind(g, ACTION_DECODE);
        tiny_feed(g, EVENT_DONE, a.job);
    }
    a = job_of_kind(g, ACTION_DECODE); /* no longer for the first batch */
    check(a.n_chunks > 1);
    for (uint32_t i = 1; i < a.n_chunks; i++)
        check_eq(a.chunks[i].chunk, a.chunks[i - 1].chunk + 1);
    engine_free(g);
    c.join_bytes = 0;
    g = tiny_engine(scattered, &c);
    check_eq(job_of_kind(g, ACTION_DECODE).n_chunks, 1);
    engine_free(g);
}

static void batches_finish_in_order_whatever_is_done_first(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.ahead = 3;
    struct engine *g = tiny_engine(one_to_one, &c);
    struct action first = job_of_kind(g, ACTION_DECODE), second = job_of_kind(g, ACTION_DECODE), a;
    check_eq(first.chunks[0].chunk, 0);
    check_eq(second.chunks[0].chunk, 1);
    tiny_feed(g, EVENT_DONE, second.job);
    check(!tiny_next(g, &a, ACTION_FINISH));
    tiny_feed(g, EVENT_DONE, first.job);
    check(tiny_next(g, &a, ACTION_FINISH) && a.step == 0);
    check(tiny_next(g, &a, ACTION_FINISH) && a.step == 1);
    engine_free(g);
}

static void a_larger_chunk_is_asked_for_anew_with_its_exact_size(void)
{
    struct engine_config c = tiny_config(1u << 30); /* the lane has room for twice the usual job */
    struct engine *g = tiny_engine(one_to_one, &c);
    struct action a = job_of_kind(g, ACTION_DECODE), again;
    uint64_t chunk = a.chunks[0].chunk;
    check_eq(a.chunks[0].stored, 2 * TINY_ITEM);
    struct event v = {.kind = EVENT_LARGER, .job = a.job, .bytes = 2 * TINY_ITEM + 77};
    check_eq(engine_feed(g, &v, NULL), 0);
    check(tiny_next(g, &again, ACTION_DECODE));
    while (again.chunks[0].chunk != chunk && tiny_next(g, &again, ACTION_DECODE))
        ;
    check_eq(again.chunks[0].chunk, chunk);
    check_eq(again.chunks[0].stored, 2 * TINY_ITEM + 77);
    check_eq(again.ticket, 6 * TINY_ITEM + 77);
    check_eq(again.chunks[0].n_pieces, 4);
    engine_free(g);
}

static void a_chunk_larger_than_the_lane_fails_its_batch_alone(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.ahead = 2;
    struct engine *g = tiny_engine(one_to_one, &c);
    struct hr_error e = {0};
    struct action a = job_of_kind(g, ACTION_DECODE), next = job_of_kind(g, ACTION_DECODE);
    struct event v = {.kind = EVENT_LARGER, .job = a.job, .bytes = 1u << 20};
    check_eq(engine_feed(g, &v, &e), HR_EBUDGET);
    check_has(e.text, "1048576 stored bytes");
    check_has(e.text, "raise memory=");
    check_eq(engine_check(g, NULL), 0);
    check(tiny_next(g, &a, ACTION_FINISH) && a.step == 0 && a.failed);
    tiny_feed(g, EVENT_DONE, next.job);
    check(tiny_next(g, &a, ACTION_FINISH) && a.step == 1 && !a.failed);
    engine_free(g);
}

static void a_failed_chunk_fails_the_batches_that_want_it(void)
{
    struct tiny t = {.samples = 40, .chunk = 8, .rows = 4};
    struct engine_config c = tiny_config(1u << 30);
    struct engine *g = tiny_engine(t, &c);
    uint8_t results[8] = {CHUNK_FAILED};
    struct action a = job_of_kind(g, ACTION_DECODE), next = job_of_kind(g, ACTION_DECODE);
    struct event v = {.kind = EVENT_DONE, .job = a.job, .results = results};
    check_eq(engine_feed(g, &v, NULL), 0);
    tiny_feed(g, EVENT_DONE, next.job);
    for (uint64_t step = 0; step < 4; step++)
        check(tiny_next(g, &a, ACTION_FINISH) && a.step == step && a.failed == (step < 2));
    engine_free(g);
}

static void events_out_of_place_are_refused_and_change_nothing(void)
{
    struct engine_config c = tiny_config(1u << 30);
    struct engine *g = tiny_engine(one_to_one, &c);
    struct action a = job_of_kind(g, ACTION_DECODE);
    uint64_t reserved = engine_stats(g)->reserved;
    check_eq(tiny_feed(g, EVENT_DONE, a.job + 1), HR_EINVAL);
    check_eq(tiny_feed(g, EVENT_DONE, 1000000), HR_EINVAL);
    check_eq(tiny_feed(g, EVENT_FETCHED, a.job), HR_EINVAL);
    check_eq(tiny_feed(g, EVENT_TAKEN, 0), HR_EINVAL);
    check_eq(tiny_feed(g, EVENT_TAKEN, 1000000), HR_EINVAL);
    check_eq(tiny_feed(g, EVENT_RELEASED, 0), HR_EINVAL);
    check_eq(tiny_feed(g, (enum event_kind)99, 0), HR_EINVAL);
    struct event v = {.kind = EVENT_LARGER, .job = a.job, .bytes = 5};
    check_eq(engine_feed(g, &v, NULL), HR_EINVAL);
    v = (struct event){.kind = EVENT_LARGER, .job = a.job, .index = 7, .bytes = 5000};
    check_eq(engine_feed(g, &v, NULL), HR_EINVAL);
    check_eq(engine_stats(g)->reserved, reserved);
    check_eq(tiny_feed(g, EVENT_DONE, a.job), 0);
    check_eq(tiny_feed(g, EVENT_DONE, a.job), HR_EINVAL);
    engine_free(g);
}

static void after_a_stop_only_letting_go_is_left(void)
{
    struct engine_config c = tiny_config(1u << 30);
    struct engine *g = tiny_engine(one_to_one, &c);
    struct hr_error e = {0};
    struct action a = job_of_kind(g, ACTION_DECODE), other;
    engine_stop(g);
    check_eq(engine_check(g, NULL), 0);
    check(!engine_idle(g));
    check_eq(engine_next(g, &other), 0);
    check_eq(engine_start(g, 0, 0, &e), HR_ESTATE);
    tiny_feed(g, EVENT_DONE, a.job);
    check(engine_idle(g));
    check_eq(engine_stats(g)->reserved, engine_facts(g)->tables);
    check_eq(engine_start(g, 3, 5, &e), 0);
    check(tiny_next(g, &a, ACTION_OPEN) && a.step == 5 && a.epoch == 3);
    check_eq(engine_start(g, 0, 11, &e), HR_EINVAL); /* of 10 */
    check_eq(engine_start(g, 0, 10, &e), 0);
    check_eq(engine_next(g, &a), 0);
    engine_free(g);
}

static void what_opens_is_bounded_while_the_consumer_takes_nothing(void)
{
    struct engine_config c = tiny_config(1u << 30);
    c.ahead = 1;
    struct engine *g = tiny_engine(one_to_one, &c);
    struct action a;
    uint64_t opened = 0, finished = 0;
    while (engine_next(g, &a)) {
        opened += a.kind == ACTION_OPEN;
        finished += a.kind == ACTION_FINISH;
        if (a.kind == ACTION_DECODE)
            tiny_feed(g, EVENT_DONE, a.job);
    }
    check_eq(opened, finished);
    check(opened < 10);
    tiny_feed(g, EVENT_TAKEN, 0);
    check_eq(engine_next(g, &a), 1);
    check_eq(a.kind, ACTION_OPEN);
    check_eq(a.step, opened);
    engine_free(g);
}

/* Samples of 4 steps, one sample a batch, hold mode: every chunk is needed by four batches in turn. */
static void a_held_chunk_is_read_once_copied_and_dropped(void)
{
    struct tiny t = {.samples = 23, .chunk = 1, .rows = 1, .steps = 4};
    struct engine_config c = tiny_config(1u << 30);
    c.ahead = 1;
    struct engine *g = tiny_engine(t, &c);
    uint64_t comfortable = engine_facts(g)->comfortable;
    engine_free(g);
    c.budget = comfortable;
    g = tiny_engine(t, &c);
    check_eq(tiny_run(g, ACTION_FINISH), 20);
    const struct engine_stats *s = engine_stats(g);
    check_eq(s->chunks_read, 23);
    check(s->chunks_held > 0);
    check_eq(s->drops, s->chunks_held);
    check_eq(s->reserved, engine_facts(g)->tables);
    engine_free(g);
}

/* Samples of 16 steps in random order, one a batch, chunks of 4 steps: which batches want each chunk. */
#define CHUNKS 34
#define STEPS  120
static const struct tiny windows = {
    .samples = STEPS + 15, .chunk = 4, .rows = 1, .steps = 16, .shuffle = HR_SHUFFLE_GLOBAL};
static bool wants[CHUNKS][STEPS], held[CHUNKS];
static uint64_t front, open_end, known;

static void wants_find(void)
{
    struct plan *p = tiny_plan(windows);
    struct plan_cursor *c;
    int64_t id;
    uint8_t valid;
    check_eq(plan_cursor_open(p, &c, NULL), 0);
    check_eq(plan_cursor_seek(c, 0, 0, NULL), 0);
    for (uint64_t step = 0; plan_cursor_next(c, &id, &valid) > 0; step++)
        for (int64_t at = id; at < id + 16; at++)
            wants[at / 4][step] = true;
    plan_cursor_free(c);
    plan_unref(p);
}

/* First batch from `from` on that wants the chunk and that the engine knows of, or NO_NEED. */
#define NO_NEED UINT64_MAX
static uint64_t need_from(uint64_t chunk, uint64_t from)
{
    for (; from < STEPS && from < known; from++)
        if (wants[chunk][from])
            return from;
    return NO_NEED;
}

/* Dropped although needed again: then no other held chunk, whose copy is not due, is needed later. */
static uint64_t eviction_check(uint64_t chunk)
{
    uint64_t next = need_from(chunk, open_end);
    held[chunk] = false;
    for (uint64_t other = 0; other < CHUNKS && next != NO_NEED; other++)
        if (held[other] && need_from(other, front) >= open_end &&
            need_from(other, open_end) != NO_NEED)
            check(need_from(other, open_end) <= next);
    return next != NO_NEED;
}

static void what_is_needed_last_is_evicted_first(void)
{
    struct engine_config c = tiny_config(160000);
    struct engine *g = tiny_engine(windows, &c);
    wants_find();
    front = open_end = 0;
    uint64_t chunk_of[CHUNKS], evicted = 0;
    for (struct action a; engine_next(g, &a);) {
        front += a.kind == ACTION_FINISH;
        open_end += a.kind == ACTION_OPEN;
        known = front + engine_facts(g)->window;
        if (a.kind == ACTION_DROP)
            evicted += eviction_check(chunk_of[a.hold]);
        for (uint32_t i = 0; a.kind == ACTION_DECODE && i < a.n_chunks; i++)
            if (a.chunks[i].hold != ENGINE_NO_HOLD) {
                chunk_of[a.chunks[i].hold] = a.chunks[i].chunk;
                held[a.chunks[i].chunk] = true;
            }
        if (a.kind == ACTION_DECODE || a.kind == ACTION_COPY)
            tiny_feed(g, EVENT_DONE, a.job);
        if (a.kind == ACTION_FINISH)
            tiny_feed(g, EVENT_TAKEN, a.slot), tiny_feed(g, EVENT_RELEASED, 0);
    }
    check_eq(engine_stats(g)->batches_finished, STEPS);
    check(evicted > 5);
    engine_free(g);
}

static void what_fits_is_read_once_over_epochs(void)
{
    struct engine_config c = tiny_config(1u << 30);
    struct hr_error e = {0};
    c.keep = true;
    struct engine *g = tiny_engine(one_to_one, &c);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        check_eq(engine_start(g, epoch, 0, &e), 0);
        check_eq(tiny_run(g, ACTION_DECODE), epoch ? 0 : 10);
        check_eq(engine_stats(g)->batches_finished, 10 * (epoch + 1));
    }
    check_eq(engine_stats(g)->chunks_read, 10);
    check_eq(engine_stats(g)->chunks_kept_hits, 20);
    check_eq(engine_stats(g)->drops, 0);
    engine_free(g);
}

/* Memory that no batch was in before is not written to while the open ones keep all workers busy. */
static void fresh_memory_waits_for_idle_workers(void)
{
    const struct tiny four_a_batch = {.samples = 80, .chunk = 2, .rows = 8};
    struct hr_error e = {0};
    for (int keep = 0; keep < 2; keep++) {
        struct engine_config c = tiny_config(1u << 30);
        c.keep = keep;
        struct engine *g = tiny_engine(four_a_batch, &c);
        struct action a;
        uint32_t jobs[4], opened = 0, n = 0;
        while (engine_next(g, &a)) {
            opened += a.kind == ACTION_OPEN;
            if (a.kind == ACTION_DECODE && n < 4)
                jobs[n++] = a.job;
        }
        check_eq(n, 4); /* two for each worker */
        check(keep ? opened == 1 : opened > 1);
        for (uint32_t i = 0; i < n; i++)
            tiny_feed(g, EVENT_DONE, jobs[i]);
        engine_stop(g);
        while (engine_next(g, &a))
            ;
        check_eq(engine_start(g, 0, 0, &e), 0);
        check_eq(tiny_run(g, ACTION_FINISH), 10);
        engine_free(g);
    }
}

static void it_says_what_the_oldest_batch_waits_for(void)
{
    struct engine_config c = tiny_config(1u << 30);
    struct engine *g = tiny_engine(one_to_one, &c);
    char text[300];
    struct action a = job_of_kind(g, ACTION_DECODE);
    engine_explain(g, text, sizeof text);
    check_has(text, "batch 0 of epoch 0 waits for 4 of 4 pieces");
    check_has(text, "chunk 0 of array 0");
    tiny_feed(g, EVENT_DONE, a.job);
    engine_stop(g);
    engine_explain(g, text, sizeof text);
    check_has(text, "stopped");
    engine_free(g);
}

static void limits_that_make_no_sense_are_refused(void)
{
    struct plan *p = tiny_plan(one_to_one);
    struct engine_config good = tiny_config(1u << 30), c = good;
    struct engine *g;
    c.workers = 0;
    check_eq(engine_open(p, &c, &g, NULL), HR_EINVAL);
    c = good;
    c.job_chunks = 0;
    check_eq(engine_open(p, &c, &g, NULL), HR_EINVAL);
    c = good;
    c.remote = true;
    c.fetches = 0;
    check_eq(engine_open(p, &c, &g, NULL), HR_EINVAL);
    check(!g);
    plan_unref(p);
}

static void out_of_memory_at_open_is_an_ordinary_error(void)
{
    struct engine_config c = tiny_config(1u << 30);
    struct plan *p = tiny_plan(one_to_one);
    struct hr_error e;
    uint64_t before = mem_live(), failures = 0;
    for (uint64_t n = 1;; n++) {
        struct engine *g;
        mem_fail_at(n, false);
        int rc = engine_open(p, &c, &g, &e);
        mem_fail_at(0, false);
        if (!rc) {
            engine_free(g);
            break;
        }
        failures++;
        check_eq(rc, HR_ENOMEM);
        check(!g);
        check_eq(mem_live(), before);
    }
    check(failures > 8);
    check_eq(mem_live(), before);
    plan_unref(p);
}

int main(void)
{
    RUN(small_chunks_travel_together);
    RUN(a_fetch_reserves_all_its_chunks_at_once);
    RUN(nothing_delays_the_first_batch);
    RUN(pending_neighbours_join_in_ascending_order);
    RUN(batches_finish_in_order_whatever_is_done_first);
    RUN(a_larger_chunk_is_asked_for_anew_with_its_exact_size);
    RUN(a_chunk_larger_than_the_lane_fails_its_batch_alone);
    RUN(a_failed_chunk_fails_the_batches_that_want_it);
    RUN(events_out_of_place_are_refused_and_change_nothing);
    RUN(after_a_stop_only_letting_go_is_left);
    RUN(what_opens_is_bounded_while_the_consumer_takes_nothing);
    RUN(a_held_chunk_is_read_once_copied_and_dropped);
    RUN(what_is_needed_last_is_evicted_first);
    RUN(what_fits_is_read_once_over_epochs);
    RUN(fresh_memory_waits_for_idle_workers);
    RUN(it_says_what_the_oldest_batch_waits_for);
    RUN(limits_that_make_no_sense_are_refused);
    RUN(out_of_memory_at_open_is_an_ordinary_error);
    return t_done();
}
