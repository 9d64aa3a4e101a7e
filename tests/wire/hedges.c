/* Second requests for late answers: they win, they are few, and nothing is written twice. */
#include "wire/reads.h"

static struct server liar;

static struct net_policy hedging(void)
{
    struct net_policy p = QUICK;
    p.hedge_ms = 10;
    p.first_byte_ms = 5000;
    p.concurrency = p.concurrency_max = 16;
    return p;
}

static struct store *open_liar(const char *how, const struct net_policy *p)
{
    char url[256];
    struct store *s = NULL;
    struct store_env env = {.policy = p};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", liar.port, how);
    check_eq(store_open_with(url, NULL, &env, &s, NULL), 0);
    return s;
}

/* n reads, 8 at a time, so that a second request has a place. The slowest of a round counts. */
static uint64_t read_rounds(struct store *s, size_t n, uint64_t size)
{
    uint64_t from = clock_ns();
    for (size_t i = 0; i < n; i += 8) {
        struct reads all;
        start_reads(&all, s, 8, 0, 0);
        wait_reads(&all, 20000);
        for (size_t j = 0; j < all.n; j++)
            check_eq(all.flights[j].got.asked, 1);
        check_bytes(&all, 0, size);
        end_reads(&all);
    }
    return (clock_ns() - from) / 1000000;
}

static void ask_count(void) /* and set it to 0 */
{
    struct net_policy p = QUICK;
    struct store *s = open_liar("count", &p);
    struct got g = read_all(s, "k");
    free(g.data);
    store_unref(s);
}

static void late_answers_are_overtaken(void)
{
    struct net_policy p = hedging();
    struct store *s = open_liar("late,every=60,ms=700,size=5000", &p);
    read_rounds(s, 400, 5000); /* learns */
    uint64_t won = stat_of(s, "hedges_won"), ms = read_rounds(s, 400, 5000);
    won = stat_of(s, "hedges_won") - won;
    printf("# %d of %d won, %d ms\n", (int)won, (int)stat_of(s, "hedges"), (int)ms);
    check(won >= 4);
    check(ms < 3000); /* six or seven times 700 ms without */
    check(stat_of(s, "hedges") <= 800 / 20);
    check_eq(stat_of(s, "requests"), 800 + stat_of(s, "hedges"));
    check_eq(stat_of(s, "completed"), 800);
    check_eq(stat_of(s, "first_byte"), 0);
    check_eq(stat_of(s, "in_flight"), 0);
    store_unref(s);
}

static void a_store_that_slows_down_is_not_asked_twice_as_much(void)
{
    struct net_policy p = hedging();
    struct store *s = open_liar("late,every=1000000,ms=1,size=500", &p),
                 *slow = open_liar("busy,ms=150,size=500", &p);
    read_rounds(s, 200, 500);
    store_unref(s);
    read_rounds(slow, 160, 500); /* learns that this is how it is */
    check(stat_of(slow, "hedges") <= 160 / 20);
    store_unref(slow);
}

static void none_are_sent_while_the_store_throttles(void)
{
    struct net_policy p = hedging();
    p.max_retries = 1000;
    p.retry_total_ms = 60000;
    struct store *s = open_liar("busy,ms=8,most=3,size=500", &p);
    struct reads all;
    start_reads(&all, s, 400, 0, 0);
    wait_reads(&all, 30000);
    check_bytes(&all, 0, 500);
    end_reads(&all);
    check(stat_of(s, "throttles") > 0);
    check_eq(stat_of(s, "hedges"), 0);
    store_unref(s);
}

static void either_of_both_requests_may_fail(void)
{
    struct net_policy p = hedging();
    p.max_retries = 50;
    /* The late ones break off in the end; then, all but the late ones are reset. */
    const char *const how[] = {"late,every=60,ms=60,at=100,size=5000,etag=weak",
                               "late,every=150,ms=60,rst,size=5000"};
    for (int i = 0; i < 2; i++) {
        bool seen = false;
        for (int turn = 0; turn < 4 && !seen;
             turn++) { /* on a busy machine none may be slow enough */
            struct store *s = open_liar(how[i], &p);
            read_rounds(s, 1200, 5000);
            printf("# %d of %d won, %d cut, %d reset\n", (int)stat_of(s, "hedges_won"),
                   (int)stat_of(s, "hedges"), (int)stat_of(s, "cut"), (int)stat_of(s, "reset"));
            seen = stat_of(s, "hedges") > 0 && (i || stat_of(s, "hedges_won") > 0);
            check_eq(stat_of(s, "completed"), 1200);
            check_eq(stat_of(s, "in_flight"), 0);
            store_unref(s);
        }
        check(seen);
    }
}

static void reads_with_two_requests_end_at_once(void)
{
    struct net_policy p = hedging();
    struct store *s = open_liar("late,every=202,ms=500,size=500", &p);
    uint64_t ms = UINT64_MAX;
    read_rounds(s, 200, 500);
    for (int i = 0; i < 3 && ms >= 100; i++) {
        struct reads all;
        ask_count();
        for (int j = 0; j < 200; j++) {
            struct got g = read_all(s, "k");
            free(g.data);
        }
        start_reads(&all, s, 4, 0, 0); /* the second of them is late */
        usleep(40000);
        uint64_t from = clock_ns();
        for (size_t j = 0; j < all.n; j++)
            store_cancel(s, all.flights[j].ticket);
        wait_reads(&all, 5000);
        ms = (clock_ns() - from) / 1000000;
        end_reads(&all);
    }
    check(ms < 100);
    check_eq(stat_of(s, "in_flight"), 0);
    store_unref(s);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !server_start(&liar, argv[1]))
        return 77;
    RUN(late_answers_are_overtaken);
    RUN(a_store_that_slows_down_is_not_asked_twice_as_much);
    RUN(none_are_sent_while_the_store_throttles);
    RUN(either_of_both_requests_may_fail);
    RUN(reads_with_two_requests_end_at_once);
    server_stop(&liar);
    return t_done();
}
