/* Large objects in parts: byte-exact in the caller's place, one version, whatever fails. */
#include "wire/reads.h"

static struct server liar;

static struct net_policy splitting(void)
{
    struct net_policy p = QUICK;
    p.split_bytes = 100000;
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

static void expect(struct got g, uint64_t first, uint64_t size)
{
    if (!check_eq(g.r.rc, 0))
        printf("# %s\n", g.r.error.text);
    check_eq(g.r.size, size);
    check_eq(g.asked, 1);
    check(g.r.rc == 0 && liar_bytes(g.data, first, size, 1));
    free(g.data);
}

static void large_objects_and_ranges_come_in_parts(void)
{
    struct net_policy p = splitting();
    struct store *s = open_liar("ok,size=1000003,ranges", &p);
    expect(read_all(s, "k"), 0, 1000003);
    check_eq(stat_of(s, "parts"), 11);
    expect(read_range(s, "k", 5, 555555), 5, 555555);
    expect(read_range(s, "k", -300001, 0), 700002, 300001);
    check_eq(stat_of(s, "parts"), 11 + 6 + 4);
    expect(read_range(s, "k", 5, 199999), 5, 199999); /* not large */
    check_eq(stat_of(s, "parts"), 21);
    check_eq(stat_of(s, "completed"), 4);
    check_eq(stat_of(s, "in_flight"), 0);
    store_unref(s);
}

static void parts_are_as_large_as_keeps_them_few(void)
{
    struct net_policy p = splitting();
    struct store *s = open_liar("ok,size=20000000,ranges", &p);
    expect(read_all(s, "k"), 0, 20000000);
    check_eq(stat_of(s, "parts"), 100); /* of 200 000: twice the size */
    store_unref(s);
}

static void objects_whose_version_has_no_name_come_in_one_piece(void)
{
    struct net_policy p = splitting();
    const char *const how[] = {"ok,size=500000,ranges,etag=weak", "ok,size=500000,ranges,etag=none",
                               "ok,size=500000", "chunked,size=500000,ranges"};
    for (size_t i = 0; i < 4; i++) {
        struct store *s = open_liar(how[i], &p);
        expect(read_all(s, "k"), 0, 500000);
        check_eq(stat_of(s, "parts"), 0);
        check_eq(stat_of(s, "requests"), 1);
        store_unref(s);
    }
}

static void a_busy_lane_does_not_split(void)
{
    struct net_policy p = splitting();
    p.concurrency = p.concurrency_max = 4;
    struct store *s = open_liar("ok,size=500000,ranges", &p);
    struct reads all;
    start_reads(&all, s, 40, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, 500000);
    end_reads(&all);
    check(stat_of(s, "parts") < 20);
    store_unref(s);
}

/* Of each path `n` requests misbehave; parts and the first stream share a path. */
static void faults_of_parts_are_retried(void)
{
    struct net_policy p = splitting();
    p.max_retries = 20;
    const char *const how[] = {
        "truncate,at=30000,n=7,size=1000003,ranges", "reset,at=50000,n=7,size=1000003,ranges",
        "status,code=503,n=7,size=1000003,ranges", "stall,at=20000,n=4,size=1000003,ranges",
        "every,k=2,code=500,size=1000003,ranges"};
    for (size_t i = 0; i < 5; i++) {
        struct store *s = open_liar(how[i], &p);
        expect(read_all(s, "k"), 0, 1000003);
        expect(read_range(s, "k", 77, 700000), 77, 700000);
        check_eq(stat_of(s, "completed"), 2);
        check_eq(stat_of(s, "in_flight"), 0);
        store_unref(s);
    }
}

static void a_version_that_changes_between_parts_is_an_error(void)
{
    struct net_policy p = splitting();
    struct store *s = open_liar("change,n=4,size=1000003,ranges", &p);
    struct got g = read_all(s, "some/key");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "some/key");
    check_has(g.r.error.text, "changed");
    free(g.data);
    check_eq(stat_of(s, "in_flight"), 0);
    check_eq(stat_of(s, "failed"), 1);
    store_unref(s);
}

static void a_server_that_does_not_serve_ranges_after_all_is_read_whole(void)
{
    struct net_policy p = splitting();
    p.stall_ms = p.first_byte_ms = 3000;
    struct store *s = open_liar("ignore,size=30000000,ranges", &p);
    expect(read_all(s, "k"), 0, 30000000);
    uint64_t parts = stat_of(s, "parts"), requests = stat_of(s, "requests");
    check(parts > 1);
    expect(read_all(s, "k"), 0, 30000000);
    check_eq(stat_of(s, "parts"), parts); /* once is enough */
    check_eq(stat_of(s, "requests"), requests + 1);
    store_unref(s);
}

static void reads_in_parts_end_at_once(void)
{
    struct net_policy p = PATIENT;
    p.split_bytes = 100000;
    struct store *s = open_liar("drip,bytes=10000,ms=100,size=1000003,ranges", &p);
    struct reads all;
    start_reads(&all, s, 3, 0, 0);
    usleep(150000);
    check(stat_of(s, "parts") > 10);
    uint64_t from = clock_ns();
    store_cancel(s, all.flights[0].ticket);
    store_cancel(s, all.flights[2].ticket);
    usleep(20000);
    store_unref(s);
    wait_reads(&all, 5000);
    check((clock_ns() - from) / 1000000 < 400);
    check_eq(all.flights[0].got.r.rc, HR_ECANCELED);
    check_eq(all.flights[1].got.r.rc, HR_ECLOSED);
    end_reads(&all);
}

static void nothing_is_left_behind(void)
{
    for (int i = 0; i < 100 && mem_live(); i++)
        usleep(50000);
    check_eq(mem_live(), 0);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !server_start(&liar, argv[1]))
        return 77;
    RUN(large_objects_and_ranges_come_in_parts);
    RUN(parts_are_as_large_as_keeps_them_few);
    RUN(objects_whose_version_has_no_name_come_in_one_piece);
    RUN(a_busy_lane_does_not_split);
    RUN(faults_of_parts_are_retried);
    RUN(a_version_that_changes_between_parts_is_an_error);
    RUN(a_server_that_does_not_serve_ranges_after_all_is_read_whole);
    RUN(reads_in_parts_end_at_once);
    RUN(nothing_is_left_behind);
    server_stop(&liar);
    return t_done();
}
