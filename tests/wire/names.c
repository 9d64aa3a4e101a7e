/* Names and addresses: a host with several of them, dead and silent ones, name servers that do not
 * answer. getaddrinfo is the test's own. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include "wire/reads.h"

static struct server liar;
static const struct net_policy patient = PATIENT;
static _Atomic int asked; /* for names of .test */

/* many.test has 127.0.0.1 to .3; dead.test those and .4, where nobody listens; full.test .1 and .5;
 * slow.invalid takes its time. */
static const char *addresses_of(const char *name)
{
    static const char *const known[][2] = {{"many.test", "127.0.0.1 127.0.0.2 127.0.0.3"},
                                           {"dead.test", "127.0.0.4 127.0.0.1 127.0.0.2 127.0.0.3"},
                                           {"full.test", "127.0.0.5 127.0.0.1"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (name && !strcmp(name, known[i][0]))
            return known[i][1];
    return NULL;
}

/* Memory of addrinfo lists is freed by the real freeaddrinfo, so lists are made by the real
 * getaddrinfo, one address at a time. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && !strcmp(node, "slow.invalid"))
        usleep(1500000);
    const char *list = addresses_of(node);
    if (!list)
        return real(node, service, hints, out);
    asked++;
    char copy[128], *rest = copy, *one;
    snprintf(copy, sizeof copy, "%s", list);
    struct addrinfo numeric = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    while ((one = strsep(&rest, " "))) {
        if (real(one, service, &numeric, out) != 0)
            return EAI_FAIL;
        out = &(*out)->ai_next;
    }
    return 0;
}

static struct store *open_host(const char *host, const char *how, const struct net_policy *policy)
{
    char url[256];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {.policy = policy};
    snprintf(url, sizeof url, "http://%s:%d/%s", host, liar.port, how);
    if (!check(store_open_with(url, NULL, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static struct net_policy quick(void)
{
    struct net_policy p = QUICK;
    p.rest_ms = 60000;
    return p;
}

struct places {
    int at[8];
};
static struct places places(void)
{
    struct net_policy p = quick();
    struct store *s = open_host("127.0.0.1", "places", &p);
    struct got g = read_all(s, "x");
    struct places found = {{0}};
    if (check_eq(g.r.rc, 0)) {
        g.data[g.r.size] = 0;
        for (char *at = g.data; at[0] && at[1]; at = strchr(at, ' ') + 1)
            found.at[(at[0] - '0') & 7] = (int)strtol(at + 2, NULL, 10);
    }
    free(g.data);
    store_unref(s);
    found.at[1]--; /* its own */
    return found;
}

static void read_many(struct store *s, size_t n, uint64_t size)
{
    struct reads all;
    start_reads(&all, s, n, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, size);
    end_reads(&all);
}

static void connections_are_spread_over_all_addresses(void)
{
    struct net_policy p = quick();
    p.concurrency_max = 48;
    p.concurrency = 48;
    places();
    asked = 0;
    struct store *s = open_host("many.test", "busy,ms=60,size=500", &p);
    read_many(s, 150, 500);
    check_eq(stat_of(s, "addresses"), 3);
    check_eq(stat_of(s, "rests"), 0);
    store_unref(s);
    check_eq(asked, 1);
    struct places on = places();
    printf("# connections: %d %d %d\n", on.at[1], on.at[2], on.at[3]);
    for (int i = 1; i <= 3; i++)
        check(on.at[i] >= 10 && on.at[i] <= 24);
}

static void a_dead_address_costs_no_retry_and_rests(void)
{
    struct net_policy p = quick();
    struct store *s = open_host("dead.test", "busy,ms=20,size=500", &p);
    read_many(s, 120, 500);
    check_eq(stat_of(s, "addresses"), 4);
    check_eq(stat_of(s, "rests"), 1);
    check_eq(stat_of(s, "connect"), 0);
    store_unref(s);
}

static void an_address_that_takes_no_connections_is_passed_by(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)liar.port)};
    inet_pton(AF_INET, "127.0.0.5", &a.sin_addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fill[4];
    if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0) {
        close(listener);
        SKIP("no address 127.0.0.5 here");
    }
    listen(listener, 0);
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&a, sizeof a);
    }
    struct net_policy p = quick();
    struct store *s = open_host("full.test", "busy,ms=10,size=500", &p);
    read_many(s, 100, 500);
    check_eq(stat_of(s, "rests"), 1);
    struct got g = read_all(s, "later"); /* does not go there again */
    check(g.r.rc == 0 && g.ms < 300);
    free(g.data);
    store_unref(s);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(listener);
}

static void an_address_that_does_not_answer_is_left_alone_after_a_few(void)
{
    struct net_policy p = quick();
    struct store *s = open_host("many.test", "mute,at=3,size=500", &p);
    for (int i = 0; i < 20 && stat_of(s, "first_byte") < 3; i++)
        read_many(s, 60, 500); /* how many connections it takes depends on how fast they are used */
    check_eq(stat_of(s, "rests"), 1);
    uint64_t before = stat_of(s, "first_byte");
    check(before >= 3);
    places();
    for (int i = 0; i < 5; i++)
        read_many(s, 60, 500);
    check_eq(stat_of(s, "first_byte"), before);
    check_eq(places().at[3], 0);
    store_unref(s);
}

static void an_address_that_comes_back_is_used_again(void)
{
    struct net_policy p = quick();
    p.rest_ms = 50;
    p.concurrency_max = 30;
    struct store *s = open_host("many.test", "mute,at=3,n=20,size=500", &p);
    read_many(s, 20, 500); /* one path: all 20 of its silences */
    check(stat_of(s, "rests") <= 1);
    usleep(120000);
    places();
    struct store *t = open_host("many.test", "busy,ms=30,size=500", &p);
    read_many(t, 30, 500);
    check(places().at[3] > 3);
    store_unref(s);
    store_unref(t);
}

static void when_all_addresses_fail_they_are_still_tried(void)
{
    struct net_policy p = quick();
    p.max_retries = 30;
    struct store *s = open_host("many.test", "reset,at=-1,n=12,size=500", &p);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, 0);
    check_eq(stat_of(s, "rests"), 3);
    free(g.data);
    store_unref(s);
}

static void a_name_that_is_not_known_is_one_clear_error(void)
{
    struct net_policy p = quick();
    struct store *s = open_host("nowhere.invalid", "x", &p);
    struct got g = read_all(s, "k");
    printf("# %s\n", g.r.error.text);
    check_eq(g.r.rc, HR_ESTORE);
    check_eq(g.r.error.retryable, 1);
    check_has(g.r.error.text, "nowhere.invalid");
    check_has(g.r.error.text, "is the name right");
    store_unref(s);
}

static void a_name_server_that_is_silent_is_one_clear_error(void)
{
    struct net_policy p = quick();
    p.connect_ms = 100;
    struct store *s = open_host("slow.invalid", "x", &p);
    struct got g = read_all(s, "k");
    printf("# %s\n", g.r.error.text);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "name server");
    check_has(g.r.error.text, "slow.invalid");
    check(g.ms >= 350 && g.ms < 1500);
    store_unref(s);
}

static void closing_does_not_wait_for_a_name_server(void)
{
    struct reads all;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 6 && best >= 100; i++) {
        struct store *s = open_host("slow.invalid", "x", &patient);
        start_reads(&all, s, 4, 0, 0);
        usleep(30000);
        uint64_t from = clock_ns();
        store_unref(s);
        wait_reads(&all, 5000);
        uint64_t ms = (clock_ns() - from) / 1000000;
        best = ms < best ? ms : best;
        end_reads(&all);
    }
    check(best < 100);
    usleep(1600000); /* the threads that ask have been let go, not killed */
}

static void questions_leave_nothing_behind(void)
{
    for (int i = 0; i < 100 && mem_live(); i++)
        usleep(50000);
    check_eq(mem_live(), 0);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !server_start(&liar, argv[1]))
        return 77;
    RUN(connections_are_spread_over_all_addresses);
    RUN(a_dead_address_costs_no_retry_and_rests);
    RUN(an_address_that_takes_no_connections_is_passed_by);
    RUN(an_address_that_does_not_answer_is_left_alone_after_a_few);
    RUN(an_address_that_comes_back_is_used_again);
    RUN(when_all_addresses_fail_they_are_still_tried);
    RUN(a_name_that_is_not_known_is_one_clear_error);
    RUN(a_name_server_that_is_silent_is_one_clear_error);
    RUN(closing_does_not_wait_for_a_name_server);
    RUN(questions_leave_nothing_behind);
    server_stop(&liar);
    return t_done();
}
