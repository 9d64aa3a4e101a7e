/* How the budget is divided, and what a refusal says. */
#include "engine/budget.h"

#include "tiny.h"

static const struct tiny archive = {
    .samples = 400, .chunk = 10, .rows = 8, .shuffle = HR_SHUFFLE_SPREAD};

static struct engine_facts facts_of(struct tiny t, struct engine_config c, int *rc,
                                    struct hr_error *e)
{
    struct engine *g = NULL;
    struct plan *p = tiny_plan(t);
    struct engine_facts f = {0};
    *rc = engine_open(p, &c, &g, e);
    if (g)
        f = *engine_facts(g);
    engine_free(g);
    plan_unref(p);
    return f;
}

static struct engine_facts facts_at(uint64_t budget)
{
    int rc;
    struct engine_facts f = facts_of(archive, tiny_config(budget), &rc, NULL);
    check_eq(rc, 0);
    return f;
}

static void the_minimum_is_accepted_and_one_byte_less_is_not(void)
{
    struct hr_error e = {0};
    int rc;
    uint64_t minimum = facts_at(1u << 30).minimum;
    struct engine_facts f = facts_at(minimum);
    check_eq(f.minimum, minimum);
    check_eq(f.max_open, 1);
    check_eq(f.tables + f.lane + 2 * f.batch, minimum);
    facts_of(archive, tiny_config(minimum - 1), &rc, &e);
    check_eq(rc, HR_EBUDGET);
}

static void a_refusal_names_the_numbers_and_the_ways_out(void)
{
    struct hr_error e = {0};
    char need[40];
    int rc;
    snprintf(need, sizeof need, "%llu bytes", (unsigned long long)facts_at(1u << 30).minimum);
    facts_of(archive, tiny_config(1000), &rc, &e);
    check_has(e.text, "1000 bytes");
    check_has(e.text, need);
    check_has(e.text, "2 batches of");
    check_has(e.text, "raise memory=");
}

static void nothing_is_read_again_from_comfortable_on(void)
{
    uint64_t comfortable = facts_at(1u << 30).comfortable;
    check(facts_at(comfortable).window > 1);
    for (uint64_t budget = comfortable; budget < 4 * comfortable; budget += comfortable / 7) {
        struct engine_config c = tiny_config(budget);
        struct engine *g = tiny_engine(archive, &c);
        check_eq(tiny_run(g, ACTION_FINISH), 50);
        check_eq(engine_stats(g)->chunks_read, 40);
        engine_free(g);
    }
}

/* Where the blocks are open from the first batch to the last, all batches are planned before a chunk is read for some. */
static void short_epochs_begin_with_all_that_is_needed(void)
{
    const struct tiny all_open = {
        .samples = 160, .chunk = 40, .rows = 4, .shuffle = HR_SHUFFLE_SPREAD};
    int rc;
    for (uint32_t ahead = 1; ahead < 6; ahead++) {
        struct engine_config c = tiny_config(1u << 30);
        c.ahead = ahead;
        uint64_t comfortable = facts_of(all_open, c, &rc, NULL).comfortable;
        for (int i = 0; i < 12; i++) {
            c.budget = i == 11 ? 1u << 30 : comfortable + (uint64_t)i * comfortable / 10;
            struct engine *g = tiny_engine(all_open, &c);
            check_eq(tiny_run(g, ACTION_FINISH), 40);
            check_eq(engine_stats(g)->chunks_read, 4);
            check(engine_stats(g)->peak <= c.budget);
            engine_free(g);
        }
    }
}

static void plenty_pushes_and_keeps_only_when_asked(void)
{
    int rc;
    struct engine_config c = tiny_config(1u << 30);
    struct engine_facts f = facts_of(archive, c, &rc, NULL);
    check(f.push && !f.keeps);
    c.keep = true;
    f = facts_of(archive, c, &rc, NULL);
    check(!f.push && f.keeps);
    c.budget = 300000; /* the archive alone is 400,000 */
    check(!facts_of(archive, c, &rc, NULL).keeps);
}

static const struct tiny windows = {
    .samples = 80, .chunk = 20, .rows = 8, .steps = 12, .shuffle = HR_SHUFFLE_SPREAD};

/* All four blocks are open from the first batch to the last, so holding their chunks is holding the archive. */
static void what_is_held_at_once_anyhow_is_kept_unasked(void)
{
    int rc;
    uint64_t comfortable = facts_of(windows, tiny_config(1u << 30), &rc, NULL).comfortable;
    unsigned kept = 0;
    for (uint64_t budget = comfortable; budget < 2 * comfortable; budget += comfortable / 50) {
        struct engine_config c = tiny_config(budget);
        struct engine *g = tiny_engine(windows, &c);
        const struct engine_facts *f = engine_facts(g);
        check(f->push || f->keeps || budget < comfortable * 11 / 10);
        kept += f->keeps;
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            check_eq(engine_start(g, epoch, 0, NULL), 0);
            check_eq(tiny_run(g, ACTION_FINISH), 8);
        }
        check_eq(engine_stats(g)->chunks_read, f->keeps ? 4 : 8);
        check(engine_stats(g)->peak <= budget);
        engine_free(g);
    }
    check(kept > 5);
}

static void more_blocks_than_are_open_are_not_kept_unasked(void)
{
    uint64_t comfortable = facts_at(1u << 30).comfortable;
    for (uint64_t budget = comfortable; budget < 4 * comfortable; budget += comfortable / 7)
        check(!facts_at(budget).keeps);
}

static void read_ahead_follows_what_is_in_flight(void)
{
    int rc;
    struct engine_config c = tiny_config(1u << 30);
    uint32_t local = facts_of(archive, c, &rc, NULL).ahead;
    c.remote = true;
    c.fetches = 32;
    check(facts_of(archive, c, &rc, NULL).ahead > local);
    c.ahead = 3;
    check_eq(facts_of(archive, c, &rc, NULL).ahead, 3);
}

static void tables_take_an_eighth_at_most(void)
{
    for (uint64_t budget = 100000; budget < 10000000; budget *= 2) {
        struct engine_facts f = facts_at(budget);
        check(f.window == 1 || f.tables <= budget / 8);
        check(f.window >= f.max_open);
    }
}

static void more_memory_never_opens_fewer_batches_below_comfort(void)
{
    uint64_t comfortable = facts_at(1u << 30).comfortable;
    uint32_t before = 0;
    for (uint64_t budget = facts_at(1u << 30).minimum; budget < comfortable; budget += 2000) {
        struct engine_facts f = facts_at(budget);
        check(f.max_open >= before || f.max_open > 1);
        before = f.max_open;
    }
}

int main(void)
{
    RUN(the_minimum_is_accepted_and_one_byte_less_is_not);
    RUN(a_refusal_names_the_numbers_and_the_ways_out);
    RUN(nothing_is_read_again_from_comfortable_on);
    RUN(plenty_pushes_and_keeps_only_when_asked);
    RUN(short_epochs_begin_with_all_that_is_needed);
    RUN(what_is_held_at_once_anyhow_is_kept_unasked);
    RUN(more_blocks_than_are_open_are_not_kept_unasked);
    RUN(read_ahead_follows_what_is_in_flight);
    RUN(tables_take_an_eighth_at_most);
    RUN(more_memory_never_opens_fewer_batches_below_comfort);
    return t_done();
}
