/* The table of blocks and spreads to choose from. */
#include "engine/choices.h"
#include "tiny.h"

static int choices_of(struct tiny t, struct engine_choice *out)
{
    struct hr_error e = {0};
    struct plan *p = tiny_plan(t);
    struct engine_config g = tiny_config(1 << 20);
    int n = engine_choices(plan_config(p), p, &g, out, &e);
    if (n < 0)
        printf("# %s\n", e.text);
    plan_unref(p);
    return n;
}

static void longer_blocks_read_less_and_take_more_memory(void)
{
    struct engine_choice x[ENGINE_CHOICES];
    int n = choices_of(
        (struct tiny){
            .samples = 4000, .chunk = 4, .rows = 8, .shuffle = HR_SHUFFLE_SPREAD, .steps = 9},
        x);
    const struct engine_choice *now = NULL, *longer = NULL;
    check(n >= 4 && n <= ENGINE_CHOICES);
    for (int i = 0; i < n; i++) {
        check(x[i].minimum <= x[i].memory && x[i].amplification >= 1);
        check(!i || x[i].memory >= x[i - 1].memory);
        now = x[i].current ? &x[i] : now;
        longer = x[i].block == 4 ? &x[i] : longer;
    }
    check(now && now->block == 1 && now->spread == 4 && longer);
    check(now->amplification > 2.9 && now->amplification < 3.1); /* a chunk and the next two */
    check(longer->amplification > 1.4 && longer->amplification < 1.6);
    check(longer->memory > now->memory);
}

static void orders_without_blocks_have_nothing_to_choose(void)
{
    struct engine_choice x[ENGINE_CHOICES];
    check_eq(
        choices_of((struct tiny){.samples = 400, .chunk = 4, .rows = 8, .shuffle = HR_SHUFFLE_NONE},
                   x),
        1);
    check(x[0].current && x[0].amplification == 1);
}

int main(void)
{
    RUN(longer_blocks_read_less_and_take_more_memory);
    RUN(orders_without_blocks_have_nothing_to_choose);
    return t_done();
}
