/* Saving where the consumer is, and going on from there.
 *
 * A loader that restores takes from the state what it was not given; an explicit option that
 * differs is refused by name. Where that changes the order, or the batch is another one, plan and
 * driver are built anew; the fingerprints are compared with the new plan, so they see what was
 * taken over. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/loader.h"
#include "base/mem.h"

static uint64_t position_of(const struct hr_loader *l)
{
    const struct plan_config *c = plan_config(l->engine.plan);
    uint64_t offset = l->consumer.epoch == c->offset_epoch ? c->offset : 0;
    return offset + l->consumer.step * plan_facts(l->engine.plan)->share;
}

/* After the last batch of an epoch the next one is begun: whoever reads the epoch in a state sees
 * how many are over. */
int hr_loader_state(struct hr_loader *l, char **state, struct hr_error *e)
{
    TRY(loader_check(l, e));
    const struct plan_facts *f = plan_facts(l->engine.plan);
    bool over = l->consumer.step >= plan_steps(l->engine.plan, l->consumer.epoch);
    struct plan_state s = {.order_version = f->order_version,
                           .archive_hash = f->archive_hash,
                           .views_hash = f->views_hash,
                           .split_hash = f->split_hash,
                           .order_hash = f->order_hash,
                           .weights_hash = f->weights_hash,
                           .strata_hash = f->strata_hash,
                           .seed = f->seed,
                           .epoch = l->consumer.epoch + over,
                           .position = over ? 0 : position_of(l),
                           .global_batch = f->global_batch,
                           .streams = f->streams,
                           .spread = f->spread,
                           .block = f->block,
                           .remainder = f->remainder,
                           .shuffle = f->shuffle};
    *state = state_write(&s);
    return *state ? 0 : error_nomem(e, 512, "a state");
}

/* Take over what was not given. */
static void adopt(const struct plan_state *s, struct hr_loader_options *o)
{
    uint64_t given = o->explicit_set;
    if (!(given & HR_SET_SEED))
        o->seed = s->seed;
    if (!(given & HR_SET_SPREAD))
        o->spread = (int64_t)s->spread;
    if (!(given & HR_SET_BLOCK))
        o->block = (int64_t)s->block;
    if (!(given & HR_SET_STREAMS))
        o->streams = (int64_t)s->streams;
    if (!(given & HR_SET_REMAINDER))
        o->remainder = s->remainder;
    if (!(given & HR_SET_SHUFFLE))
        o->shuffle = s->shuffle;
}

static const char *value_text(uint64_t value, const char *const *words, char out[24])
{
    if (words)
        return words[value];
    snprintf(out, 24, "%" PRIu64, value);
    return out;
}

static int check_given(const struct plan_state *s, const struct plan_facts *f, uint64_t given,
                       struct hr_error *e)
{
    static const char *const remainders[] = {"\"default\"", "\"drop\"", "\"pad\"", "\"short\"",
                                             "\"wrap\""};
    static const char *const shuffles[] = {"False", "True", "\"global\""};
    const struct {
        uint64_t bit, ours, theirs;
        const char *name;
        const char *const *words; /* of the values, where they are words */
    } options[] = {
        {HR_SET_SEED, f->seed, s->seed, "seed", NULL},
        {HR_SET_SPREAD, f->spread, s->spread, "spread", NULL},
        {HR_SET_BLOCK, f->block, s->block, "block", NULL},
        {HR_SET_STREAMS, f->streams, s->streams, "streams", NULL},
        {HR_SET_REMAINDER, (uint64_t)f->remainder, (uint64_t)s->remainder, "remainder", remainders},
        {HR_SET_SHUFFLE, (uint64_t)f->shuffle, (uint64_t)s->shuffle, "shuffle", shuffles},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char ours[24], theirs[24];
        if (!(given & options[i].bit) || options[i].ours == options[i].theirs)
            continue;
        return error_set(
            e, HR_ESTATE,
            "%s=%s was given, but the state was taken with %s; leave it out to take it "
            "from the state",
            options[i].name, value_text(options[i].ours, options[i].words, ours),
            value_text(options[i].theirs, options[i].words, theirs));
    }
    return 0;
}

static bool same_order(const struct plan_state *s, const struct plan *p)
{
    const struct plan_facts *f = plan_facts(p);
    return f->seed == s->seed && f->spread == s->spread && f->block == s->block &&
           f->streams == s->streams && f->remainder == s->remainder && f->shuffle == s->shuffle &&
           f->global_batch == s->global_batch && s->position % f->share == 0 &&
           !plan_config(p)->offset;
}

/* Where the state stands in the epochs of the (new) plan. */
static void enter(struct hr_loader *l, const struct plan_state *s)
{
    const struct plan_facts *f = plan_facts(l->engine.plan);
    uint64_t step = s->position / f->share;
    if (s->position >= f->stream_rows || step >= plan_steps(l->engine.plan, s->epoch))
        loader_move(l, s->epoch + 1, 0); /* the epoch was over */
    else
        loader_move(l, s->epoch, step);
}

int hr_loader_load_state(struct hr_loader *l, const char *state, int allow_batch,
                         struct hr_error *e)
{
    struct plan_state s;
    struct plan *plan;
    struct driver *driver;
    TRY(loader_check(l, e));
    TRY(state_parse(state, strlen(state), &s, e));
    const struct plan_facts *f = plan_facts(l->engine.plan);
    TRY(check_given(&s, f, l->options.explicit_set, e));
    if (s.global_batch != f->global_batch && !allow_batch)
        return error_set(e, HR_ESTATE,
                         "the global batch is %" PRIu64 ", but the state was taken with %" PRIu64
                         "; allow it to differ (allow=\"batch\") or use the same",
                         f->global_batch, s.global_batch);
    if (same_order(&s, l->engine.plan)) {
        TRY(state_check(&s, l->engine.plan, allow_batch, e));
    } else {
        struct hr_loader_options o = l->options;
        adopt(&s, &o);
        TRY(loader_build(l->samples, &o, &l->sampling, &s, &plan, &driver, e));
        l->options = o;
        loader_replace(l, plan, driver);
    }
    enter(l, &s);
    return 0;
}
