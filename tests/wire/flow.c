/* Many reads at once: limits, cancels, closing, dead servers, forks, threads. Times are checked
 * against bounds that a busy machine still keeps. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "wire/reads.h"

static struct server liar;
static const struct net_policy quick = QUICK, patient = PATIENT;

static struct store *open_at(struct net *net, int port, const char *how,
                             const struct net_policy *policy)
{
    char url[256];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {.net = net, .policy = policy};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", port, how);
    if (!check(store_open_with(url, NULL, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static struct store *open_liar(const char *how)
{
    return open_at(NULL, liar.port, how, &quick);
}

static int ask_liar(const char *what)
{
    struct store *s = open_liar(what);
    struct got g = read_all(s, "x");
    int v = -1;
    if (g.r.rc == 0) {
        g.data[g.r.size] = 0;
        v = (int)strtol(g.data, NULL, 10);
    }
    free(g.data);
    store_unref(s);
    return v;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void many_reads_all_arrive_within_the_limit(void)
{
    struct net_policy p = quick;
    p.concurrency_max = 64;
    struct store *s = open_at(NULL, liar.port, "busy,ms=5,size=3000", &p);
    struct reads all;
    ask_liar("peak");
    start_reads(&all, s, 300, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, 3000);
    end_reads(&all);
    check_eq(stat_of(s, "completed"), 300);
    check_eq(stat_of(s, "in_flight"), 0);
    check_eq(stat_of(s, "waiting"), 0);
    check(stat_of(s, "connections") <= 80);
    store_unref(s);
    int most = ask_liar("peak");
    check(most > 8 && most <= 80);
}

/* Servers with room for five connections that nobody has accepted yet drop the rest of a burst. */
static void the_first_burst_doubles_with_the_answers(void)
{
    struct store *s = open_liar("hold,ms=60,size=100"), *t = open_liar("waves");
    struct reads all;
    free(read_all(s, "alone").data);
    start_reads(&all, s, 124, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, 100);
    end_reads(&all);
    struct got g = read_all(t, "x");
    long waves[40] = {0}, sum = 0;
    int n = 0;
    char *at = g.data;
    g.data[g.r.size] = 0;
    printf("# waves: %s\n", at);
    for (char *end; n < 40 && (waves[n] = strtol(at, &end, 10), end > at); at = end)
        sum += waves[n++];
    check_eq(sum, 125);
    check(waves[0] == 1 && waves[1] <= 4);
    for (int i = 2; i < n; i++)
        check(waves[i] <= 2 * waves[i - 1]);
    check(n <= 8); /* 4, 8, 16, 32, 64; a busy machine may split one */
    free(g.data);
    store_unref(s);
    store_unref(t);
}

/* As if the liar were far away: the first request has the others' connections opened. */
static void a_burst_finds_connections_that_were_opened_ahead(void)
{
    struct net_policy p = quick;
    p.far_us = 1;
    p.warm = 12;
    struct store *s = open_at(NULL, liar.port, "hold,ms=60,size=100", &p);
    struct reads all;
    free(read_all(s, "metadata").data);
    check_eq(stat_of(s, "opened_ahead"), 12);
    check_eq(stat_of(s, "used_ahead"), 0);
    start_reads(&all, s, 24, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, 100);
    end_reads(&all);
    check_eq(stat_of(s, "used_ahead"), 12);
    check_eq(stat_of(s, "connections"), 24); /* one was kept */
    check_eq(stat_of(s, "connect") + stat_of(s, "reset") + stat_of(s, "stale"), 0);
    store_unref(s);
    s = open_at(NULL, liar.port, "ok,size=100", &p);
    free(read_all(s, "metadata").data);
    check_eq(stat_of(s, "opened_ahead"), 12);
    store_unref(s); /* and nobody wanted them */
    s = open_at(NULL, liar.port, "ok,size=100", &quick);
    free(read_all(s, "metadata").data);
    check_eq(stat_of(s, "opened_ahead"), 0); /* it is near */
    store_unref(s);
}

/* Servers may close what has not been used. */
static void connections_opened_ahead_that_were_closed_do_not_show(void)
{
    struct net_policy p = quick;
    p.far_us = 1;
    p.warm = 12;
    struct store *near = open_liar("ok,idle=100,size=100"),
                 *s = open_at(NULL, liar.port, "ok,idle=100,size=100", &p);
    struct reads all;
    free(read_all(near, "idle").data); /* from now on */
    free(read_all(s, "metadata").data);
    check_eq(stat_of(s, "opened_ahead"), 12);
    usleep(300000);
    start_reads(&all, s, 24, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, 100);
    end_reads(&all);
    check_eq(stat_of(s, "used_ahead"), 0);
    store_unref(s);
    store_unref(near);
}

static void throttling_lowers_the_limit_and_all_arrive(void)
{
    struct net_policy p = quick;
    p.max_retries = 30;
    struct store *s = open_at(NULL, liar.port, "busy,ms=10,most=6,size=300", &p);
    struct reads all;
    start_reads(&all, s, 150, 0, 0);
    wait_reads(&all, 20000);
    check_bytes(&all, 0, 300);
    end_reads(&all);
    check(stat_of(s, "throttles") > 0);
    check(stat_of(s, "limit") < 32);
    store_unref(s);
}

static void an_outage_cannot_multiply_the_load(void)
{
    struct net_policy p = quick;
    p.max_retries = 10;
    p.retry_total_ms = 800;
    struct store *s = open_at(NULL, liar.port, "status,code=500", &p);
    struct reads all;
    start_reads(&all, s, 300, 0, 0);
    wait_reads(&all, 10000);
    for (size_t i = 0; i < all.n; i++)
        check_eq(all.flights[i].got.r.rc, HR_ESTORE);
    end_reads(&all);
    check(stat_of(s, "requests") >= 300);
    check(stat_of(s, "requests") <= 300 + 100 + 60); /* one each, the bucket, and ten a second */
    store_unref(s);
}

static void retries_end_with_their_total_time(void)
{
    struct net_policy p = quick;
    p.max_retries = 1000;
    p.retry_total_ms = 300;
    p.backoff_ms = p.backoff_max_ms = 100;
    struct store *s = open_at(NULL, liar.port, "status,code=500,total", &p);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_eq(g.r.error.retryable, 1);
    check(g.ms < 600);
    store_unref(s);
}

static void canceling_ends_a_read_once_and_at_once(void)
{
    struct store *s = open_at(NULL, liar.port, "silent", &patient);
    struct reads all;
    start_reads(&all, s, 80, 0, 0); /* 64 in flight, the rest in the queue */
    usleep(50000);
    uint64_t from = clock_ns();
    for (int twice = 0; twice < 2; twice++)
        for (size_t i = 0; i < all.n; i++)
            store_cancel(s, all.flights[i].ticket);
    wait_reads(&all, 5000);
    check((clock_ns() - from) / 1000000 < 400); /* not the minute of its policy */
    for (size_t i = 0; i < all.n; i++)
        check_eq(all.flights[i].got.r.rc, HR_ECANCELED);
    store_cancel(s, all.flights[0].ticket); /* long gone */
    end_reads(&all);
    check_eq(stat_of(s, "canceled"), 80);
    store_unref(s);
}

static void canceled_reads_leave_others_alone(void)
{
    struct store *s = open_liar("drip,size=20000,bytes=1000,ms=3");
    struct reads all;
    size_t right = 0, canceled = 0;
    start_reads(&all, s, 60, 0, 0);
    for (size_t i = 0; i < all.n; i += 2)
        store_cancel(s, all.flights[i].ticket);
    wait_reads(&all, 10000);
    for (size_t i = 0; i < all.n; i++) {
        struct got *g = &all.flights[i].got;
        right += g->r.rc == 0 && liar_bytes(g->data, 0, 20000, 1);
        canceled += g->r.rc == HR_ECANCELED;
        check(i % 2 == 0 || g->r.rc == 0);
    }
    check_eq(right + canceled, 60);
    end_reads(&all);
    store_unref(s);
}

/* Close a store with n reads under way; how long the last of them took to end, in ms. */
static uint64_t close_and_count(struct store *s, size_t n)
{
    struct reads all;
    start_reads(&all, s, n, 0, 0);
    usleep(60000);
    uint64_t from = clock_ns();
    store_unref(s);
    wait_reads(&all, 5000);
    uint64_t ms = (clock_ns() - from) / 1000000;
    for (size_t i = 0; i < all.n; i++)
        check_eq(all.flights[i].got.r.rc, HR_ECLOSED);
    end_reads(&all);
    return ms;
}

/* The promise is 100 ms; on a busy machine one of six closes keeps it. */
static void check_close(int port, const char *how, size_t n)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 6 && best >= 100; i++) {
        uint64_t ms = close_and_count(open_at(NULL, port, how, &patient), n);
        best = ms < best ? ms : best;
    }
    printf("# closed within %d ms\n", (int)best);
    check(best < 100);
}

static void closing_ends_all_reads_at_once(void)
{
    check_close(liar.port, "silent", 200);
    check_close(liar.port, "stall,at=10", 100);
    check_close(liar.port, "status,code=503", 100); /* waiting for their retries */
}

/* A `done` that does not know of the close starts the next read, and cancels it at times. */
struct late {
    struct store *s;
    struct reads all;
    struct flight flights[3 * 16];
    _Atomic size_t started;
};

static void landed_late(void *arg, const struct store_result *r)
{
    struct flight *f = arg;
    struct late *late = (struct late *)((char *)f->all - offsetof(struct late, all));
    size_t next = r->rc == HR_ECLOSED ? atomic_fetch_add(&late->started, 1) : SIZE_MAX;
    if (next < late->all.n) {
        struct flight *g = &late->flights[next];
        struct store_sink sink = {got_room, &g->got};
        struct hr_error e;
        g->all = f->all;
        check_eq(store_start(late->s, "next", (struct store_range){0}, &sink, landed_late, g,
                             &g->ticket, &e),
                 0);
        if (next % 3 == 0)
            store_cancel(late->s, g->ticket);
    }
    landed(arg, r);
}

static void reads_that_a_done_starts_after_the_close_end_as_well(void)
{
    struct late *late = calloc(1, sizeof *late);
    late->s = open_at(NULL, liar.port, "silent", &patient);
    late->all = (struct reads){.n = 3 * 16, .flights = late->flights};
    pthread_mutex_init(&late->all.lock, NULL);
    cond_init_monotonic(&late->all.changed);
    late->started = 16;
    for (size_t i = 0; i < 16; i++) {
        struct flight *f = &late->flights[i];
        struct store_sink sink = {got_room, &f->got};
        struct hr_error e;
        f->all = &late->all;
        check_eq(store_start(late->s, "first", (struct store_range){0}, &sink, landed_late, f,
                             &f->ticket, &e),
                 0);
    }
    usleep(20000);
    store_unref(late->s);
    wait_reads(&late->all, 5000);
    for (size_t i = 0; i < late->all.n; i++) {
        check_eq(late->flights[i].done, 1);
        check_eq(late->flights[i].got.r.rc, HR_ECLOSED);
    }
    free(late);
}

/* A port that accepts no connection and refuses none: its backlog is full. */
static int full_port(int *listener, int *fill, int n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    *listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(*listener, (struct sockaddr *)&a, sizeof a);
    listen(*listener, 0);
    getsockname(*listener, (struct sockaddr *)&a, &size);
    for (int i = 0; i < n; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&a, sizeof a);
    }
    return ntohs(a.sin_port);
}

static void a_host_that_never_connects_is_given_up_and_closes_at_once(void)
{
    int listener, fill[4];
    int port = full_port(&listener, fill, 4);
    struct net_policy p = quick;
    p.connect_ms = 150;
    struct store *s = open_at(NULL, port, "x", &p);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_eq(g.r.error.retryable, 1);
    check(g.ms >= 4 * 140 && g.ms < 2000); /* never answered: four tries, not max_retries */
    store_unref(s);
    check_close(port, "x", 70);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(listener);
}

static void a_refused_connection_is_an_error_that_names_the_place(void)
{
    int listener, fill[1];
    int port = full_port(&listener, fill, 0);
    char place[64];
    close(listener);
    snprintf(place, sizeof place, "127.0.0.1:%d", port);
    struct store *s = open_at(NULL, port, "x", &quick);
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, place);
    check_has(g.r.error.text, "4 tries");
    check(g.ms < 1000);
    check_eq(stat_of(s, "connect"), 3);
    store_unref(s);
}

static void stale_connections_cost_one_retry_however_many(void)
{
    struct store *s = open_liar("stale,size=100");
    struct reads all;
    start_reads(&all, s, 16, 0, 0); /* on a connection each */
    wait_reads(&all, 5000);
    check_bytes(&all, 0, 100);
    end_reads(&all);
    uint64_t before = stat_of(s, "stale");
    struct got g = read_all(s, "k"); /* libcurl itself tries a few of the dead ones */
    check_eq(g.r.rc, 0);
    check(stat_of(s, "stale") - before <= 1);
    check_eq(stat_of(s, "reset"), 0);
    free(g.data);
    store_unref(s);
}

struct chain {
    struct store *s;
    struct reads *all;
    struct got got;
    int left;
};

static void next_read(void *arg, const struct store_result *r)
{
    struct chain *c = arg;
    struct store_sink sink = {got_room, &c->got};
    struct hr_error e;
    uint64_t ticket;
    check_eq(r->rc, 0);
    free(c->got.data);
    c->got = (struct got){0};
    if (--c->left > 0) {
        check_eq(
            store_start(c->s, "k", (struct store_range){0, 100}, &sink, next_read, c, &ticket, &e),
            0);
        return;
    }
    store_unref(c->s); /* the last reference, on the network thread itself */
    pthread_mutex_lock(&c->all->lock);
    c->all->ended++;
    pthread_cond_broadcast(&c->all->changed);
    pthread_mutex_unlock(&c->all->lock);
}

static void reads_start_and_stores_close_from_inside_done(void)
{
    struct reads all = {.n = 1};
    struct chain c = {.s = open_liar("ok"), .all = &all, .left = 40};
    pthread_mutex_init(&all.lock, NULL);
    cond_init_monotonic(&all.changed);
    struct store_sink sink = {got_room, &c.got};
    uint64_t ticket;
    check_eq(
        store_start(c.s, "k", (struct store_range){0, 100}, &sink, next_read, &c, &ticket, NULL),
        0);
    wait_reads(&all, 5000);
    pthread_mutex_lock(&all.lock); /* it has let go */
    pthread_mutex_unlock(&all.lock);
    pthread_cond_destroy(&all.changed);
    pthread_mutex_destroy(&all.lock);
    usleep(20000); /* its network thread ends by itself: for leak checks */
}

static void several_network_threads_share_the_work(void)
{
    struct net *net = net_new(&(struct net_options){.threads = 4}, NULL);
    struct store *s = open_at(net, liar.port, "busy,ms=3,size=2000", &quick),
                 *t = open_at(net, liar.port, "ok", &quick);
    struct reads all, more;
    start_reads(&all, s, 200, 5, 700);
    start_reads(&more, t, 100, -7, 0);
    wait_reads(&all, 10000);
    wait_reads(&more, 10000);
    check_bytes(&all, 5, 700);
    check_bytes(&more, 993, 7);
    check(stat_of(s, "limit") >= 64); /* 16 each, or what they have grown to */
    end_reads(&all);
    end_reads(&more);
    store_unref(s);
    store_unref(t);
    net_unref(net);
}

static void *read_some(void *arg)
{
    for (int i = 0; i < 20; i++) {
        struct got g = read_range(arg, "k", i, 100);
        check(g.r.rc == 0 && liar_bytes(g.data, (uint64_t)i, 100, 1));
        free(g.data);
    }
    return NULL;
}

static void any_thread_may_read(void)
{
    struct store *s = open_liar("ok");
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        check_eq(thread_start(&threads[i], "reader", read_some, s), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    check_eq(stat_of(s, "completed"), 120);
    store_unref(s);
}

/* What a forked child does with the parent's store: a bit for each thing that went wrong. */
static int child(struct store *s)
{
    struct hr_error e;
    struct got g = read_all(s, "k");
    uint64_t ticket;
    struct store_sink sink = {got_room, &g};
    int wrong = g.r.rc != HR_EFORK;
    wrong |=
        (store_start(s, "k", (struct store_range){0}, &sink, landed, NULL, &ticket, &e) != HR_EFORK)
        << 1;
    store_cancel(s, 1);
    store_unref(s);
#ifndef __SANITIZE_THREAD__ /* which ends a forked child that starts threads */
    struct store *own = open_liar("ok");
    g = read_all(own, "k");
    wrong |= (g.r.rc != 0) << 2;
    free(g.data);
    store_unref(own);
#endif
    return wrong;
}

static void a_forked_child_is_told_and_can_open_its_own(void)
{
    struct store *s = open_at(NULL, liar.port, "drip,size=20000,bytes=1000,ms=10", &quick);
    struct reads all;
    int status = -1;
    start_reads(&all, s, 10, 0, 0); /* in flight across the fork */
    usleep(30000);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(s));
    waitpid(pid, &status, 0);
    check_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    wait_reads(&all, 5000);
    check_bytes(&all, 0, 20000);
    end_reads(&all);
    store_unref(s);
}

static void opened_and_closed_stores_leave_nothing(void)
{
    usleep(50000); /* what earlier tests let go */
    uint64_t before = mem_live();
    for (int i = 0; i < 30; i++) {
        struct store *s = open_liar("ok");
        if (i % 3 == 0) {
            struct got g = read_all(s, "k");
            check_eq(g.r.rc, 0);
            free(g.data);
        }
        store_unref(s);
    }
    check_eq(mem_live(), before);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !server_start(&liar, argv[1]))
        return 77;
    RUN(many_reads_all_arrive_within_the_limit);
    RUN(the_first_burst_doubles_with_the_answers);
    RUN(a_burst_finds_connections_that_were_opened_ahead);
    RUN(connections_opened_ahead_that_were_closed_do_not_show);
    RUN(throttling_lowers_the_limit_and_all_arrive);
    RUN(an_outage_cannot_multiply_the_load);
    RUN(retries_end_with_their_total_time);
    RUN(canceling_ends_a_read_once_and_at_once);
    RUN(canceled_reads_leave_others_alone);
    RUN(closing_ends_all_reads_at_once);
    RUN(reads_that_a_done_starts_after_the_close_end_as_well);
    RUN(a_host_that_never_connects_is_given_up_and_closes_at_once);
    RUN(a_refused_connection_is_an_error_that_names_the_place);
    RUN(stale_connections_cost_one_retry_however_many);
    RUN(reads_start_and_stores_close_from_inside_done);
    RUN(several_network_threads_share_the_work);
    RUN(any_thread_may_read);
    RUN(a_forked_child_is_told_and_can_open_its_own);
    RUN(opened_and_closed_stores_leave_nothing);
    server_stop(&liar);
    return t_done();
}
