#include "net/hedge.h"

#include "t.h"

#define MS 1000000ull

static struct hedging after(size_t answers, uint64_t ms, size_t late, uint64_t late_ms)
{
    struct hedging g = {0};
    for (size_t i = 0; i < answers; i++)
        hedging_learn(&g, 10, (late && i % late == 0 ? late_ms : ms) * MS);
    return g;
}

static void nothing_is_late_before_enough_is_known(void)
{
    check_eq(after(90, 20, 0, 0).after_ns, 0);
    check(after(130, 20, 0, 0).after_ns > 0);
}

static void late_is_later_than_nearly_all_others(void)
{
    uint64_t one = after(1000, 20, 100, 900).after_ns, ten = after(1000, 20, 10, 900).after_ns;
    check(one >= 20 * MS && one < 30 * MS);
    check(ten >= 900 * MS);                           /* one in ten: not late, but how it is */
    check_eq(after(1000, 1, 0, 0).after_ns, 10 * MS); /* the least */
}

static void what_is_old_fades(void)
{
    struct hedging g = after(5000, 20, 0, 0);
    for (size_t i = 0; i < 5000; i++)
        hedging_learn(&g, 10, 200 * MS);
    check(g.after_ns >= 200 * MS);
    for (size_t i = 0; i < 20000; i++)
        hedging_learn(&g, 10, 20 * MS);
    check(g.after_ns < 30 * MS);
}

static size_t takes(struct hedging *g, size_t n, uint64_t now)
{
    size_t taken = 0;
    for (size_t i = 0; i < n; i++)
        taken += hedging_take(g, now);
    return taken;
}

static void at_most_one_in_twenty_and_a_few_at_once(void)
{
    struct hedging g = {0};
    size_t taken = 0;
    for (size_t i = 0; i < 10000; i++) {
        hedging_learn(&g, 10, 20 * MS);
        taken += hedging_take(&g, 1);
    }
    check_eq(taken, 500);
    g = after(10000, 20, 0, 0);
    check_eq(takes(&g, 100, 1), 8);
    check_eq(takes(&g, 100, 1), 0);
}

static void none_after_a_throttle_and_fewer_after_failures(void)
{
    struct hedging g = after(10000, 20, 0, 0);
    hedging_throttled(&g, 100 * MS);
    check_eq(takes(&g, 10, 5099 * MS), 0);
    check_eq(takes(&g, 1, 5100 * MS), 1);
    hedging_failed(&g);
    hedging_failed(&g);
    check_eq(takes(&g, 10, 5100 * MS), 5);
    hedging_failed(&g); /* no debts */
    for (size_t i = 0; i < 20; i++)
        hedging_learn(&g, 10, 20 * MS);
    check_eq(takes(&g, 10, 5100 * MS), 1);
}

int main(void)
{
    RUN(nothing_is_late_before_enough_is_known);
    RUN(late_is_later_than_nearly_all_others);
    RUN(what_is_old_fades);
    RUN(at_most_one_in_twenty_and_a_few_at_once);
    RUN(none_after_a_throttle_and_fewer_after_failures);
    return t_done();
}
