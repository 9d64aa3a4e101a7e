/* A loader's state as text, and what it is held against. */
#include "plan/state.h"
#include "setup.h"

static struct plan_state state_of(const struct plan *p, uint64_t epoch, uint64_t position)
{
    const struct plan_facts *f = plan_facts(p);
    return (struct plan_state){
        f->order_version, f->archive_hash, f->views_hash, f->split_hash, f->order_hash,
        f->weights_hash,  f->strata_hash,  f->seed,       epoch,         position,
        f->global_batch,  f->streams,      f->spread,     f->block,      f->remainder,
        f->shuffle};
}

static struct plan *some_plan(struct setup *s)
{
    setup_rows(s, 1000, 10);
    s->config.archive_hash = 0xFEDCBA9876543210u;
    s->config.views_hash = 1;
    s->config.seed = UINT64_MAX;
    s->config.streams = 4;
    s->config.global_batch = 40;
    return setup_plan(s);
}

static void a_round_trip_keeps_every_bit(void)
{
    struct setup s;
    struct plan *p = some_plan(&s);
    struct plan_state a = state_of(p, 3, 120), b;
    char *text = state_write(&a);
    check(text && strlen(text) < 300);
    check(!state_parse(text, strlen(text), &b, NULL));
    check(b.order_version == a.order_version && b.archive_hash == a.archive_hash &&
          b.views_hash == a.views_hash && b.split_hash == a.split_hash &&
          b.order_hash == a.order_hash && b.seed == a.seed && b.epoch == 3 && b.position == 120 &&
          b.global_batch == 40 && b.streams == 4 && b.spread == 16 && b.block == 1 &&
          b.remainder == HR_DROP && b.shuffle == HR_SHUFFLE_SPREAD);
    check(!state_check(&b, p, false, NULL));
    mem_free(text);
    plan_unref(p);
}

static void damaged(const char *text, const char *part)
{
    struct plan_state s;
    struct hr_error e = {0};
    check_eq(state_parse(text, strlen(text), &s, &e), HR_ESTATE);
    check_has(e.text, part);
}

#define HASHES "0000000000000001-0000000000000002-0000000000000003-0000000000000004"
#define REST                                                                                       \
    "\"seed\":1,\"epoch\":0,\"position\":0,\"global_batch\":8,\"streams\":1,\"spread\":16,"        \
    "\"block\":1,"
#define NAMES "\"remainder\":\"drop\",\"shuffle\":\"spread\"}"

static void damaged_text_is_refused(void)
{
    struct plan_state s;
    const char *good = "{\"order\":1,\"hashes\":\"" HASHES "\"," REST "\"later\":[1]," NAMES;
    check(!state_parse(good, strlen(good), &s, NULL));
    check(s.archive_hash == 1 && s.order_hash == 4);
    damaged("", "not a state");
    damaged("[]", "an array");
    damaged("{\"order\":2}", "order version 2");
    damaged("{\"order\":\"1\"}", "a string for \"order\"");
    damaged("{\"order\":1,\"hashes\":\"" HASHES "0\"," REST NAMES, "fingerprints are damaged");
    damaged("{\"order\":1,\"hashes\":\"00-1\"," REST NAMES, "fingerprints are damaged");
    damaged("{\"order\":1,\"hashes\":7," REST NAMES, "fingerprints are damaged");
    damaged("{\"order\":1,\"hashes\":\"" HASHES "\",\"seed\":-1}", "\"seed\"");
    damaged("{\"order\":1,\"hashes\":\"" HASHES "\"," REST "\"remainder\":\"keep\"}",
            "keep for \"remainder\"");
}

static void mismatch(const struct plan_state *s, const struct plan *p, const char *part)
{
    struct hr_error e = {0};
    check_eq(state_check(s, p, false, &e), HR_ESTATE);
    check_has(e.text, part);
}

static void a_mismatch_is_named(void)
{
    struct setup s;
    struct plan *p = some_plan(&s);
    const struct plan_state good = state_of(p, 0, 0);
    struct plan_state x;
#define DIFFERS(field, value, text) (x = good, x.field = value, mismatch(&x, p, text))
    DIFFERS(archive_hash, 7, "the archive differs");
    DIFFERS(views_hash, 7, "the views differ");
    DIFFERS(split_hash, 7, "the split differs");
    DIFFERS(order_hash, 7, "the order differs");
    DIFFERS(seed, 7,
            "seed differs: the state was taken with 7, the loader has 18446744073709551615");
    DIFFERS(streams, 2, "streams differs");
    DIFFERS(spread, 8, "spread differs");
    DIFFERS(block, 8, "block differs");
    DIFFERS(remainder, HR_PAD, "taken with \"pad\", the loader has \"drop\"");
    DIFFERS(shuffle, HR_SHUFFLE_GLOBAL, "taken with \"global\", the loader has \"spread\"");
    DIFFERS(global_batch, 80, "allow=\"batch\"");
    DIFFERS(position, 1000, "position 1000");
    x = good;
    x.global_batch = 80;
    check(!state_check(&x, p, true, NULL));
    plan_unref(p);
}

static void a_sequential_state_fits_whatever_the_shuffle_would_be(void)
{
    struct setup s;
    struct plan *p;
    setup_rows(&s, 1000, 10);
    s.config.shuffle = HR_SHUFFLE_NONE;
    s.config.rows = 10;
    p = setup_plan(&s);
    struct plan_state x = state_of(p, 0, 0);
    plan_unref(p);
    s.config.spread = 5;
    s.config.seed = 3;
    s.config.block = 7;
    p = setup_plan(&s);
    check(!state_check(&x, p, false, NULL));
    plan_unref(p);
}

/* Without fingerprints being equal by chance: every option that changes the order changes its
 * fingerprint. */
static void the_order_fingerprint_sees_every_option(void)
{
    struct setup s;
    struct plan *p = some_plan(&s);
    uint64_t seen[8] = {plan_facts(p)->order_hash};
    plan_unref(p);
    for (int i = 1; i < 8; i++) {
        plan_unref(some_plan(&s));
        s.config.seed = i == 1 ? 5 : s.config.seed;
        s.config.spread = i == 2 ? 5 : 16;
        s.config.block = i == 3 ? 5 : 1;
        s.config.streams = i == 4 ? 5 : 4;
        s.config.remainder = i == 5 ? HR_PAD : HR_DROP;
        s.config.shuffle = i == 6 ? HR_SHUFFLE_GLOBAL : HR_SHUFFLE_SPREAD;
        s.axes[0].last = i == 7 ? 990 : 1000;
        p = setup_plan(&s);
        seen[i] = plan_facts(p)->order_hash;
        plan_unref(p);
        for (int j = 0; j < i; j++)
            check(seen[i] != seen[j]);
    }
}

/* Weights that are missing, that there should be none of, and other ones. */
static void weights_that_differ_are_named(void)
{
    struct setup s;
    double values[1000];
    struct plan *p[3];
    char words[2][64];
    for (int i = 0; i < 3; i++) {
        p[i] = some_plan(&s);
        plan_unref(p[i]);
        for (int j = 0; j < 1000; j++)
            values[j] = 1 + i * (j % 2);
        if (i)
            check(!weights_new(values, 1000, &s.config.weights, NULL));
        p[i] = setup_plan(&s);
        weights_unref(s.config.weights);
    }
    snprintf(words[0], sizeof words[0], "now %016" PRIx64, plan_facts(p[1])->weights_hash);
    snprintf(words[1], sizeof words[1], "now %016" PRIx64, plan_facts(p[2])->weights_hash);
    const char *expected[3][3] = {{NULL, "taken without weights", "taken without weights"},
                                  {"the loader has none", NULL, words[1]},
                                  {"the loader has none", words[0], NULL}};
    for (int i = 0; i < 3; i++) {
        struct plan_state a = state_of(p[i], 1, 20), b;
        char *text = state_write(&a);
        check(!state_parse(text, strlen(text), &b, NULL));
        check_eq(b.weights_hash, a.weights_hash);
        for (int j = 0; j < 3; j++) {
            struct hr_error e = {0};
            int rc = state_check(&b, p[j], false, &e);
            check(i == j ? !rc : rc == HR_ESTATE && strstr(e.text, "weights differ"));
            if (i != j)
                check(strstr(e.text, expected[i][j]) != NULL);
        }
        mem_free(text);
    }
    for (int i = 0; i < 3; i++)
        plan_unref(p[i]);
}

int main(void)
{
    RUN(a_round_trip_keeps_every_bit);
    RUN(damaged_text_is_refused);
    RUN(a_mismatch_is_named);
    RUN(a_sequential_state_fits_whatever_the_shuffle_would_be);
    RUN(the_order_fingerprint_sees_every_option);
    RUN(weights_that_differ_are_named);
    return t_done();
}
