#include "store/bridge.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "t.h"

static atomic_int wakes, releases, stop_asked;

static void on_wake(void *arg)
{
    (void)arg;
    atomic_fetch_add(&wakes, 1);
}

static void on_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&releases, 1);
}

static int on_wait(void *arg)
{
    (void)arg;
    return atomic_load(&stop_asked);
}

static struct hr_store *bridge_with(int64_t concurrency, struct store **s)
{
    struct hr_store_options o = HR_STORE_OPTIONS;
    struct hr_store *b = NULL;
    o.url = "test://user:secret@host/a";
    o.concurrency = concurrency;
    o.wake = on_wake;
    o.interrupted = on_wait;
    o.release = on_release;
    wakes = releases = stop_asked = 0;
    check_eq(bridge_new(&o, &b, NULL), 0);
    check_eq(bridge_open(b, s, NULL), 0);
    return b;
}

struct got { /* what one asynchronous read ended with */
    int ends;
    char text[32];
    struct store_result r;
};

static void *got_room(void *arg, uint64_t size)
{
    struct got *g = arg;
    return size < sizeof g->text ? g->text : NULL;
}

static void got_done(void *arg, const struct store_result *r)
{
    struct got *g = arg;
    g->ends++;
    g->r = *r;
}

static uint64_t ask(struct store *s, const char *key, int64_t offset, uint64_t length,
                    struct got *g)
{
    struct store_sink sink = {got_room, g};
    uint64_t ticket = 0;
    memset(g, 0, sizeof *g);
    check_eq(store_start(s, key, (struct store_range){offset, length}, &sink, got_done, g, &ticket,
                         NULL),
             0);
    return ticket;
}

static void answers_reach_their_reads_in_any_order(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(0, &s);
    struct got one, two, three;
    struct hr_task t[8];
    ask(s, "a/c/0", 0, 0, &one);
    ask(s, "a/c/1", 4, 3, &two);
    ask(s, "a/c/2", -2, 0, &three);
    check_eq(wakes, 1);
    check_eq(bridge_take(b, t, 8), 3);
    check_eq(bridge_take(b, t + 3, 5), 0);
    check(t[0].kind == HR_TASK_READ && !strcmp(t[0].key, "a/c/0") && !t[0].offset && !t[0].length);
    check(t[1].offset == 4 && t[1].length == 3);
    check(t[2].offset == -2);
    bridge_answer(b, t[2].id, "yz", 2);
    bridge_missing(b, t[1].id);
    bridge_answer(b, t[0].id, "whole", 5);
    bridge_answer(b, t[0].id, "again", 5);
    check(one.ends == 1 && two.ends == 1 && three.ends == 1);
    check_eq(one.r.rc, STORE_OK);
    check_str(one.text, "whole");
    check(one.r.size == 5 && one.r.object_size == 5);
    check_eq(two.r.rc, STORE_MISSING);
    check_str(three.text, "yz");
    check_eq(three.r.object_size, 0);
    ask(s, "a/c/0", 0, 0, &one);
    check_eq(wakes, 2);
    check_eq(bridge_take(b, t, 8), 1);
    bridge_fail(b, t[0].id, HR_ESTORE, 1, "RuntimeError: boom");
    check(one.r.rc == HR_ESTORE && one.r.error.retryable);
    check_str(one.r.error.text, "reading a/c/0 of test://host/a: RuntimeError: boom");
    struct buf stats;
    buf_init(&stats);
    store_stats_json(s, &stats);
    check_has(stats.data, "\"requests\": 4, \"bytes\": 7, \"missing\": 1, \"failed\": 1");
    buf_dispose(&stats);
    store_unref(s);
    bridge_unref(b);
    check_eq(releases, 1);
}

static void wrong_byte_counts_are_errors(void)
{
    static const struct {
        int64_t offset;
        uint64_t length, size;
        int rc;
    } cases[] = {{0, 4, 4, 0},        {0, 4, 3, HR_EDATA},  {0, 4, 5, HR_EDATA},
                 {0, 4, 0, HR_EDATA}, {8, 4, 12, HR_EDATA}, {-4, 0, 4, 0},
                 {-4, 0, 2, 0},       {-4, 0, 5, HR_EDATA}, {0, 0, 0, 0},
                 {0, 0, 9, 0},        {0, 0, 99, HR_ENOMEM}};
    static const char bytes[100];
    struct store *s;
    struct hr_store *b = bridge_with(0, &s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct got g;
        struct hr_task t;
        ask(s, "k", cases[i].offset, cases[i].length, &g);
        check_eq(bridge_take(b, &t, 1), 1);
        bridge_answer(b, t.id, bytes, cases[i].size);
        check_eq(g.r.rc, cases[i].rc);
        check_eq(g.r.size, cases[i].rc ? 0 : cases[i].size);
    }
    store_unref(s);
    bridge_unref(b);
}

static void no_more_are_under_way_than_agreed(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(2, &s);
    struct got g[3];
    struct hr_task t[4];
    for (int i = 0; i < 3; i++)
        ask(s, "k", 0, 0, &g[i]);
    check_eq(bridge_take(b, t, 4), 2);
    check_eq(bridge_take(b, t + 2, 2), 0);
    bridge_missing(b, t[0].id);
    check_eq(bridge_take(b, t + 2, 2), 1);
    bridge_missing(b, t[1].id);
    bridge_missing(b, t[2].id);
    check_eq(g[2].ends, 1);
    store_unref(s);
    bridge_unref(b);
}

static void cancelled_reads_end_at_once(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(1, &s);
    struct got taken, queued, next;
    struct hr_task t[4];
    uint64_t one = ask(s, "taken", 0, 0, &taken), two = ask(s, "queued", 0, 0, &queued);
    check_eq(bridge_take(b, t, 4), 1);
    store_cancel(s, one);
    store_cancel(s, two);
    store_cancel(s, two);
    store_cancel(s, 12345);
    check(taken.ends == 1 && taken.r.rc == HR_ECANCELED);
    check(queued.ends == 1 && queued.r.rc == HR_ECANCELED);
    ask(s, "next", 0, 0, &next);
    check_eq(bridge_take(b, t + 1, 3),
             1); /* the place is taken until the cancelled one is answered */
    check(t[1].kind == HR_TASK_CANCEL && t[1].id == t[0].id);
    bridge_answer(b, t[0].id, "late", 4);
    check(taken.ends == 1 && !taken.text[0]);
    check_eq(bridge_take(b, t, 4), 1);
    check_str(t[0].key, "next");
    store_cancel(s, t[0].id); /* answered before anybody heard of it */
    bridge_answer(b, t[0].id, "late", 4);
    check_eq(bridge_take(b, t, 4), 0);
    check_eq(next.ends, 1);
    store_unref(s);
    bridge_unref(b);
}

static void either_side_may_go_first(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(0, &s);
    struct got queued, taken;
    struct hr_task t[2];
    struct hr_error e = {0};
    uint64_t ticket;
    ask(s, "taken", 0, 0, &taken);
    check_eq(bridge_take(b, t, 1), 1);
    ask(s, "queued", 0, 0, &queued);
    int before = wakes;
    store_unref(s);
    check(taken.r.rc == HR_ECLOSED && queued.r.rc == HR_ECLOSED);
    check(wakes >= before);
    check_eq(bridge_take(b, t, 2), 1);
    check_eq(t[0].kind, HR_TASK_CANCEL);
    check_eq(bridge_take(b, t, 2), HR_ECLOSED);
    check_eq(releases, 0);
    bridge_unref(b);
    check_eq(releases, 1);

    b = bridge_with(0, &s);
    ask(s, "taken", 0, 0, &taken);
    check_eq(bridge_take(b, t, 1), 1);
    ask(s, "queued", 0, 0, &queued);
    bridge_unref(b);
    check(taken.r.rc == HR_ECLOSED && queued.r.rc == HR_ECLOSED);
    check_has(queued.r.error.text, "closed");
    struct store_sink sink = {got_room, &queued};
    check_eq(store_start(s, "k", (struct store_range){0, 0}, &sink, got_done, &queued, &ticket, &e),
             HR_ECLOSED);
    check_eq(releases, 0);
    store_unref(s);
    check_eq(releases, 1);
}

static void *serve(void *arg) /* until the archive is closed */
{
    struct hr_store *b = arg;
    struct hr_task t;
    for (int n; (n = bridge_take(b, &t, 1)) != HR_ECLOSED; usleep(n ? 0 : 100)) {
        if (n == 0)
            continue;
        if (t.kind == HR_TASK_LIST && !strcmp(t.key, "none"))
            bridge_missing(b, t.id);
        else if (t.kind == HR_TASK_LIST && !strcmp(t.key, "no"))
            bridge_fail(b, t.id, HR_EUNSUPPORTED, 0, "it cannot list");
        else if (t.kind == HR_TASK_LIST)
            bridge_answer(b, t.id, "a/\0b\0", 5);
        else if (t.kind == HR_TASK_CANCEL || strcmp(t.key, "hangs"))
            bridge_answer(b, t.id, "bytes", 5);
    }
    return NULL;
}

static void blocking_reads_and_lists_wait_for_their_answer(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(0, &s);
    pthread_t thread;
    struct got g = {0};
    struct store_sink sink = {got_room, &g};
    struct hr_error e = {0};
    char *names;
    size_t size;
    pthread_create(&thread, NULL, serve, b);
    check_eq(store_read(s, "k", (struct store_range){0, 0}, &sink, &g.r), STORE_OK);
    check_str(g.text, "bytes");
    check_eq(store_read(s, "k", (struct store_range){0, 6}, &sink, &g.r), HR_EDATA);
    check_has(g.r.error.text, "reading k of test://host/a: the store gave 5 bytes for the 6");
    check_eq(store_list(s, "", &names, &size, NULL), 0);
    check(size == 5 && !memcmp(names, "a/\0b\0", 6));
    mem_free(names);
    check_eq(store_list(s, "none", &names, &size, NULL), STORE_MISSING);
    check(!names);
    check_eq(store_list(s, "no", &names, &size, &e), HR_EUNSUPPORTED);
    check_str(e.text, "listing no of test://host/a: it cannot list");
    atomic_store(&stop_asked, 1);
    check_eq(store_read(s, "hangs", (struct store_range){0, 0}, &sink, &g.r), HR_ECANCELED);
    store_unref(s);
    pthread_join(thread, NULL);
    bridge_unref(b);
    check_eq(releases, 1);
}

static void one_store_serves_one_archive(void)
{
    struct store *s, *again = NULL;
    struct hr_store_options o = {0};
    struct hr_store *b = bridge_with(0, &s), *none = NULL;
    check_eq(bridge_open(b, &again, NULL), HR_ESTATE);
    store_unref(s);
    bridge_unref(b);
    check_eq(bridge_new(&o, &none, NULL), HR_EINVAL);
    o = (struct hr_store_options)HR_STORE_OPTIONS;
    check_eq(bridge_new(&o, &none, NULL), HR_EINVAL);
    bridge_unref(NULL);
}

static void a_forked_child_is_told(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(0, &s);
    struct got g;
    struct hr_task t;
    ask(s, "k", 0, 0, &g);
    pid_t pid = fork();
    if (pid == 0) {
        struct store_sink sink = {got_room, &g};
        uint64_t ticket;
        int ok = store_start(s, "k", (struct store_range){0, 0}, &sink, got_done, &g, &ticket,
                             NULL) == HR_EFORK &&
                 bridge_take(b, &t, 1) == HR_ECLOSED;
        bridge_answer(b, 1, "x", 1);
        store_cancel(s, 1);
        bridge_unref(b);
        store_unref(s);
        _exit(ok && g.ends == 0 && wakes == 1 && releases == 0 ? 0 : 1);
    }
    int status = 1;
    check_eq(waitpid(pid, &status, 0), pid);
    check_eq(status, 0);
    check_eq(bridge_take(b, &t, 1), 1);
    bridge_answer(b, t.id, "fine", 4);
    check_str(g.text, "fine");
    store_unref(s);
    bridge_unref(b);
}

static void running_out_of_memory_leaks_nothing(void)
{
    for (uint64_t n = 1; n < 8; n++) {
        struct hr_store_options o = HR_STORE_OPTIONS;
        struct hr_store *b = NULL;
        struct store *s = NULL;
        struct got g = {0};
        struct store_sink sink = {got_room, &g};
        uint64_t ticket, live = mem_live();
        o.url = "test";
        o.wake = on_wake;
        mem_fail_at(n, false);
        int rc = bridge_new(&o, &b, NULL);
        if (rc == 0)
            rc = bridge_open(b, &s, NULL);
        if (rc == 0)
            rc =
                store_start(s, "k", (struct store_range){0, 0}, &sink, got_done, &g, &ticket, NULL);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        store_unref(s);
        bridge_unref(b);
        check_eq(mem_live(), live);
    }
}

struct reader {
    struct store *s;
    int failed;
};

static void *read_many(void *arg)
{
    struct reader *r = arg;
    for (int i = 0; i < 500; i++) {
        struct got g = {0};
        struct store_sink sink = {got_room, &g};
        r->failed += store_read(r->s, i % 7 ? "k" : "other", (struct store_range){0, 5}, &sink,
                                &g.r) != STORE_OK;
        r->failed += memcmp(g.text, "bytes", 5) != 0;
    }
    return NULL;
}

static void many_threads_read_and_serve_at_once(void)
{
    struct store *s;
    struct hr_store *b = bridge_with(5, &s);
    struct reader r[4];
    pthread_t readers[4], servers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&servers[i], NULL, serve, b);
    for (int i = 0; i < 4; i++) {
        r[i] = (struct reader){s, 0};
        pthread_create(&readers[i], NULL, read_many, &r[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(readers[i], NULL);
        check_eq(r[i].failed, 0);
    }
    store_unref(s);
    for (int i = 0; i < 2; i++)
        pthread_join(servers[i], NULL);
    bridge_unref(b);
    check_eq(releases, 1);
}

int main(void)
{
    RUN(answers_reach_their_reads_in_any_order);
    RUN(wrong_byte_counts_are_errors);
    RUN(no_more_are_under_way_than_agreed);
    RUN(cancelled_reads_end_at_once);
    RUN(either_side_may_go_first);
    RUN(blocking_reads_and_lists_wait_for_their_answer);
    RUN(one_store_serves_one_archive);
    RUN(a_forked_child_is_told);
    RUN(running_out_of_memory_leaks_nothing);
    RUN(many_threads_read_and_serve_at_once);
    return t_done();
}
