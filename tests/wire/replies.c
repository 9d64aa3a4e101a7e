/* Every way in which a server's answer can be other than it should: the read is byte-identical
 * or the one right error, in bounded time, and the place for the bytes is asked for once. */
#include "wire/wire.h"

static struct server liar;
static struct net *net;
static const struct net_policy quick = QUICK;

static struct store *open_with(const char *how, const char *options)
{
    char url[256];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {.net = net, .policy = &quick};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", liar.port, how);
    if (!check(store_open_with(url, options, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

/* Read one key and expect these bytes of version 1. */
static void expect(const char *how, int64_t offset, uint64_t length, uint64_t first, uint64_t size)
{
    struct store *s = open_with(how, NULL);
    struct got g = read_range(s, "k", offset, length);
    if (!check_eq(g.r.rc, STORE_OK))
        printf("# %s: %s\n", how, g.r.error.text);
    check_eq(g.r.size, size);
    check_eq(g.asked, 1);
    check(g.r.rc == 0 && liar_bytes(g.data, first, size, 1));
    check(g.ms < 5000);
    free(g.data);
    store_unref(s);
}

static void expect_error(const char *how, int64_t offset, uint64_t length, int code,
                         const char *text)
{
    struct store *s = open_with(how, NULL);
    struct got g = read_range(s, "k", offset, length);
    check_eq(g.r.rc, code);
    check_eq(g.r.error.code, code);
    check_has(g.r.error.text, text);
    check_has(g.r.error.text, "/k: ");
    check(g.asked <= 1);
    if (!check(g.ms < 5000))
        printf("# %s: %d ms\n", how, (int)g.ms);
    free(g.data);
    store_unref(s);
}

static void honest_objects_are_read_whole_and_in_part(void)
{
    expect("ok,size=300000", 0, 0, 0, 300000);
    expect("ok,size=300000", 1000, 250000, 1000, 250000);
    expect("ok,size=300000", -5, 0, 299995, 5);
    expect("ok,size=3", -500, 0, 0, 3); /* a suffix longer than the object is the whole */
    expect("ok,size=0", 0, 0, 0, 0);
    expect("ok,size=0", -20, 0, 0, 0);
    expect("ok,size=1", 0, 1, 0, 1);
}

static void chunked_whole_objects_are_read(void)
{
    expect("chunked,size=100000", 0, 0, 0, 100000);
    expect("chunked,size=0", 0, 0, 0, 0);
    expect("chunked,size=100000", 500, 9000, 500, 9000); /* Content-Range gives the length */
}

static void cut_bodies_are_resumed(void)
{
    expect("truncate,size=100000,at=40000,n=2", 0, 0, 0, 100000);
    expect("truncate,size=100000,at=400,n=3", 5000, 20000, 5000, 20000);
    expect("truncate,size=100000,at=100,n=1", -600, 0, 99400, 600);
    expect("reset,size=100000,at=40000,n=1", 0, 0, 0, 100000);
    expect("stall,size=100000,at=40000,n=1", 0, 0, 0, 100000);
    expect("chunkcut,size=100000,at=40000,n=1", 0, 0, 0, 100000);
}

static void a_resumed_read_asks_only_for_the_rest(void)
{
    struct store *s = open_with("truncate,size=1000000,at=700000,n=1,resume=strict", NULL);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, 0);
    check(liar_bytes(g.data, 0, 1000000, 1));
    check_eq(stat_of(s, "requests"), 2);
    check_eq(stat_of(s, "cut"), 1);
    check(stat_of(s, "bytes") <= 1000000);
    free(g.data);
    store_unref(s);
}

static void without_a_strong_etag_a_cut_body_is_read_anew(void)
{
    const char *const how[] = {"truncate,size=100000,at=40000,n=1,etag=weak",
                               "truncate,size=100000,at=40000,n=1,etag=none"};
    for (int i = 0; i < 2; i++) {
        struct store *s = open_with(how[i], NULL);
        struct got g = read_all(s, "k");
        check_eq(g.r.rc, 0);
        check(liar_bytes(g.data, 0, 100000, 1));
        check(stat_of(s, "bytes") >= 100000 + 30000);
        check_eq(g.asked, 1);
        free(g.data);
        store_unref(s);
    }
}

/* All of `size` bytes of `version`, however often the place for them was asked for. */
static void expect_version(struct store *s, int64_t offset, uint64_t length, uint64_t size,
                           unsigned version)
{
    struct got g = read_range(s, "k", offset, length);
    if (!check_eq(g.r.rc, STORE_OK))
        printf("# %s\n", g.r.error.text);
    check_eq(g.r.size, size);
    check(g.r.rc == 0 && g.room == size && liar_bytes(g.data, (uint64_t)offset, size, version));
    free(g.data);
}

static void a_read_that_meets_two_versions_begins_anew(void)
{
    const char *const how[] = {"change,size=100000,at=40000,n=1",
                               "change,size=100000,at=40000,n=1,etag=none"};
    for (int i = 0; i < 2; i++) {
        struct store *s = open_with(how[i], NULL);
        expect_version(s, 0, 0, 100000, 2);
        store_unref(s);
        s = open_with(how[i], NULL);
        expect_version(s, 10, 90000, 90000, 2);
        store_unref(s);
    }
}

/* A page that says "log in", cut, before the object itself: neither its size nor its ETag nor its
 * bytes are believed. */
static void another_answer_that_was_cut_leaves_nothing(void)
{
    const char *const how[] = {"page,claim=5000,at=25,n=1,size=1000", "page,claim=500,at=25,n=2",
                               "page,claim=5000,at=25,n=1,etag=strong",
                               "page,claim=900,at=800,n=1,etag=strong",
                               "ignore,claim=5000,n=1,size=1000"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        struct store *s = open_with(how[i], NULL);
        expect_version(s, 0, 0, 1000, 1);
        check_eq(stat_of(s, "failed"), 0);
        store_unref(s);
        s = open_with(how[i], NULL);
        expect_version(s, 100, 200, 200, 1);
        store_unref(s);
    }
}

/* … nor do they tell that an object that was read before has changed. */
static void another_answer_does_not_change_an_object(void)
{
    struct store *s = open_with("every,k=3,code=200,body=5000", NULL);
    for (int i = 0; i < 8; i++)
        expect_version(s, 10 * i, 20, 20, 1);
    check(stat_of(s, "wrong_reply") >= 2);
    store_unref(s);
}

static void ranges_of_two_versions_are_never_mixed(void)
{
    struct store *s = open_with("change,size=100000,n=2", NULL);
    struct got a = read_range(s, "k", 0, 10), b = read_range(s, "k", 50, 10),
               c = read_range(s, "k", 100, 10);
    check_eq(a.r.rc, 0);
    check_eq(b.r.rc, 0);
    check_eq(c.r.rc, HR_ESTORE);
    check_has(c.r.error.text, "changed");
    check_has(c.r.error.text, "/k: ");
    free(a.data), free(b.data), free(c.data);
    store_unref(s);
}

static void a_body_that_stays_short_is_an_error(void)
{
    expect_error("truncate,size=100000,at=0", 0, 0, HR_ESTORE, "cut");
    expect_error("stall,size=1000,at=10,etag=none", 0, 0, HR_ESTORE, "no byte within 0.4 s");
    expect_error("silent", 0, 0, HR_ESTORE, "no answer within 0.4 s");
    expect_error("reset,at=-1", 0, 0, HR_ESTORE, "tries in");
}

static void ignored_ranges_are_cut_out_of_the_whole(void)
{
    expect("ignore,size=100000", 1000, 5000, 1000, 5000);
    expect("ignore,size=100000", -300, 0, 99700, 300);
    expect("ignore,size=100000", 0, 100000, 0, 100000);
    expect("ignore,size=100", -300, 0, 0, 100);
    expect_error("ignore,size=100", 50, 100, HR_EDATA, "has 100 bytes");
    expect_error("ignore,claim=18000000", 100, 10, HR_ESTORE, "ignores Range requests");
}

static void wrong_ranges_are_refused(void)
{
    expect_error("shift", 100, 100, HR_ESTORE, "asked for bytes 100-199, got 0-9");
    expect_error("shift", -100, 0, HR_ESTORE, "asked for the last 100 bytes, got 0-9 of 1000");
    expect_error("liarrange", 100, 100, HR_ESTORE, "Content-Length 99");
    expect("shift,n=1", 100, 100, 100, 100); /* a second try may hit a better server */
}

static void ranges_past_the_end_are_errors(void)
{
    expect_error("ok,size=1000", 900, 200, HR_EDATA, "has 1000 bytes");
    expect_error("ok,size=1000", 2000, 200, HR_EDATA, "has 1000 bytes");
}

static void bodies_without_a_length_are_refused(void)
{
    expect_error("nolength", 0, 0, HR_ESTORE, "no length");
    expect_error("nolength", 10, 10, HR_ESTORE, "no length");
}

static void compressed_answers_are_refused(void)
{
    expect_error("gzip", 0, 0, HR_ESTORE, "compressed");
    expect_error("gzip", 10, 10, HR_ESTORE, "compressed");
}

static void surplus_bytes_never_reach_the_next_read(void)
{
    struct net *shared = net;
    net = net_new(&(struct net_options){0}, NULL); /* its connections are not for the other tests */
    struct store *s = open_with("surplus,size=1000", NULL);
    for (int k = 0; k < 6; k++) { /* what comes with the body or just behind it: ranges tell */
        struct got g = read_range(s, k % 2 ? "k" : "other", 100 + k, 200);
        check_eq(g.r.rc, 0);
        check(g.r.rc == 0 && liar_bytes(g.data, 100 + (uint64_t)k, 200, 1));
        free(g.data);
    }
    store_unref(s);
    net_unref(net);
    net = net_new(&(struct net_options){0}, NULL);
    struct store *late = open_with("surplus,size=1000,late=20", NULL);
    for (int k = 0; k < 3; k++) { /* what lies on a kept connection: seen before it is used */
        struct got g = read_all(late, "k");
        check(g.r.rc == 0 && g.r.size == 1000 && liar_bytes(g.data, 0, 1000, 1));
        free(g.data);
        usleep(150000);
    }
    check_eq(stat_of(late, "stale"), 2);
    store_unref(late);
    net_unref(net);
    net = shared;
}

static void junk_is_an_error(void)
{
    expect_error("junk", 0, 0, HR_ESTORE, "tries in");
    expect("junk,n=2", 0, 0, 0, 1000);
}

static void temporary_statuses_are_tried_again(void)
{
    const int codes[] = {408, 429, 500, 502, 503, 504, 509};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char how[64], code[16];
        snprintf(how, sizeof how, "status,code=%d,n=2", codes[i]);
        expect(how, 0, 0, 0, 1000);
        snprintf(how, sizeof how, "status,code=%d", codes[i]);
        snprintf(code, sizeof code, "status %d", codes[i]);
        expect_error(how, 0, 0, HR_ESTORE, code);
    }
}

static void other_statuses_are_final(void)
{
    const int codes[] = {204, 400, 401, 403, 405, 410, 412, 501};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char how[64], code[16];
        snprintf(how, sizeof how, "status,code=%d,n=1", codes[i]); /* a second try would succeed */
        snprintf(code, sizeof code, "status %d", codes[i]);
        if (codes[i] == 204)
            strcat(how, ",body=0");
        expect_error(how, 0, 0, HR_ESTORE, code);
    }
}

static void one_redirect_may_be_a_stray(void)
{
    expect("status,code=302,location=1,n=1,size=1000", 0, 0, 0, 1000);
    expect_error("status,code=302,location=1", 0, 0, HR_ESTORE, "redirects are not followed");
}

static void missing_is_404_with_any_body(void)
{
    struct store *s = open_with("status,code=404,body=2000000", NULL);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, STORE_MISSING);
    check_eq(g.asked, 0);
    store_unref(s);
}

static void a_403_is_missing_only_when_told_so(void)
{
    struct store *s = open_with("status,code=403", NULL),
                 *t = open_with("status,code=403", "{\"missing_403\": true}");
    struct got g = read_all(s, "k"), h = read_all(t, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "missing_403");
    check_eq(h.r.rc, STORE_MISSING);
    check_eq(read_all(t, "a/zarr.json").r.rc, HR_ESTORE); /* there may be one, for others */
    store_unref(s);
    store_unref(t);
}

static void retry_after_is_a_floor(void)
{
    struct store *s = open_with("status,code=503,n=1,retry_after=1", NULL);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, 0);
    check(g.ms >= 990 && g.ms < 2500);
    check_eq(stat_of(s, "throttles"), 1);
    free(g.data);
    store_unref(s);
    s = open_with("status,code=429,n=1,retry_after=Sun,06_Nov_1994_08:49:38_GMT",
                  NULL); /* no comma in our paths: see liar */
    g = read_all(s, "k");
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
}

static void a_slow_body_that_moves_is_left_alone(void)
{
    struct store *s =
        open_with("drip,size=1000,bytes=100,ms=60", NULL); /* 600 ms in all, time-outs are 400 ms */
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, 0);
    check_eq(stat_of(s, "requests"), 1);
    check(g.ms >= 500);
    free(g.data);
    store_unref(s);
}

static void a_reused_connection_that_died_costs_no_retry(void)
{
    struct store *s = open_with("stale,size=1000", NULL);
    for (int i = 0; i < 12; i++) { /* more than max_retries */
        struct got g = read_all(s, "k");
        check_eq(g.r.rc, 0);
        check(g.ms < 150);
        free(g.data);
    }
    store_unref(s);
}

static void redirects_are_named_without_their_secrets(void)
{
    struct store *s = open_with("status,code=302,location=1", NULL);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "http://elsewhere.invalid/x");
    check(!strstr(g.r.error.text, "SECRET"));
    store_unref(s);
}

static void *no_room(void *arg, uint64_t size)
{
    *(uint64_t *)arg = size;
    return NULL;
}

static void an_object_without_room_says_its_size(void)
{
    struct store *s = open_with("ok,size=100000", NULL);
    uint64_t asked = 0;
    struct store_sink sink = {no_room, &asked};
    struct store_result r;
    check_eq(store_read(s, "k", (struct store_range){0, 0}, &sink, &r), HR_ENOMEM);
    check_eq(asked, 100000);
    check_eq(r.object_size, 100000);
    struct got g = read_all(s, "k"); /* the store goes on */
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
}

static void running_out_of_memory_is_an_error_and_leaks_nothing(void)
{
    int failed = 0;
    struct store *s = open_with("truncate,size=5000,at=2000,n=1", NULL);
    struct got warm = read_range(s, "warm", 0, 10); /* handles and tables are there */
    free(warm.data);
    uint64_t live = mem_live();
    for (uint64_t n = 1; n < 14; n++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", (int)n);
        mem_fail_at(n, false);
        struct got g = read_range(s, key, 0, 4000);
        mem_fail_at(0, false);
        check(g.r.rc == HR_ENOMEM || (g.r.rc == 0 && liar_bytes(g.data, 0, 4000, 1)));
        failed += g.r.rc == HR_ENOMEM;
        free(g.data);
    }
    check(failed >= 2);
    check(mem_live() <= live + 4); /* pins and buffers of a handle may have grown */
    store_unref(s);
}

int main(int argc, char **argv)
{
    struct hr_error e;
    net = net_new(&(struct net_options){0}, &e);
    if (argc < 2 || !server_start(&liar, argv[1]))
        return 77;
    RUN(honest_objects_are_read_whole_and_in_part);
    RUN(chunked_whole_objects_are_read);
    RUN(cut_bodies_are_resumed);
    RUN(a_resumed_read_asks_only_for_the_rest);
    RUN(without_a_strong_etag_a_cut_body_is_read_anew);
    RUN(a_read_that_meets_two_versions_begins_anew);
    RUN(another_answer_that_was_cut_leaves_nothing);
    RUN(another_answer_does_not_change_an_object);
    RUN(ranges_of_two_versions_are_never_mixed);
    RUN(a_body_that_stays_short_is_an_error);
    RUN(ignored_ranges_are_cut_out_of_the_whole);
    RUN(wrong_ranges_are_refused);
    RUN(ranges_past_the_end_are_errors);
    RUN(bodies_without_a_length_are_refused);
    RUN(compressed_answers_are_refused);
    RUN(surplus_bytes_never_reach_the_next_read);
    RUN(junk_is_an_error);
    RUN(temporary_statuses_are_tried_again);
    RUN(other_statuses_are_final);
    RUN(one_redirect_may_be_a_stray);
    RUN(missing_is_404_with_any_body);
    RUN(a_403_is_missing_only_when_told_so);
    RUN(retry_after_is_a_floor);
    RUN(a_slow_body_that_moves_is_left_alone);
    RUN(a_reused_connection_that_died_costs_no_retry);
    RUN(redirects_are_named_without_their_secrets);
    RUN(an_object_without_room_says_its_size);
    RUN(running_out_of_memory_is_an_error_and_leaks_nothing);
    net_unref(net);
    server_stop(&liar);
    return t_done();
}
