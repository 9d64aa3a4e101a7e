#include "net/timers.h"

#include "base/keyed.h"
#include "base/mem.h"
#include "t.h"

#define N 500

static void timers_fire_in_order_whatever_is_set_moved_and_cleared(void)
{
    static struct timer t[N];
    struct timers h = {0};
    check_eq(timers_reserve(&h, N), 0);
    for (uint64_t i = 0; i < 20000; i++) {
        struct timer *x = &t[keyed_word(1, i) % N];
        if (keyed_word(2, i) % 3)
            timers_set(&h, x, keyed_word(3, i) % 1000);
        else
            timers_clear(&h, x);
    }
    size_t set = 0, fired = 0;
    for (size_t i = 0; i < N; i++)
        set += t[i].place != 0;
    check_eq(h.count, set);
    uint64_t last = 0;
    struct timer *x;
    while ((x = timers_due(&h, UINT64_MAX - 1))) {
        check(x->at >= last && x->place == 0);
        last = x->at;
        fired++;
    }
    check_eq(fired, set);
    timers_dispose(&h);
}

static void only_what_is_due_fires(void)
{
    struct timer a = {0}, b = {0};
    struct timers h = {0};
    check_eq(timers_reserve(&h, 2), 0);
    check(timers_next(&h) == UINT64_MAX);
    timers_set(&h, &a, 20);
    timers_set(&h, &b, 10);
    check_eq(timers_next(&h), 10);
    check(!timers_due(&h, 9));
    check(timers_due(&h, 10) == &b);
    check(!timers_due(&h, 10));
    timers_set(&h, &a, 5);
    check(timers_due(&h, 10) == &a);
    timers_clear(&h, &a); /* not set: nothing */
    timers_dispose(&h);
}

static void no_memory_is_known_before_a_timer_is_needed(void)
{
    struct timers h = {0};
    mem_fail_at(1, true);
    check_eq(timers_reserve(&h, 10), -1);
    mem_fail_at(0, false);
    timers_dispose(&h);
}

int main(void)
{
    RUN(timers_fire_in_order_whatever_is_set_moved_and_cleared);
    RUN(only_what_is_due_fires);
    RUN(no_memory_is_known_before_a_timer_is_needed);
    return t_done();
}
