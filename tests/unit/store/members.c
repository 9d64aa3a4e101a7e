/* Several stores as one, and the threads that read from those that block. */
#include "store/members.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"
#include "store/memory.h"
#include "store/readers.h"
#include "t.h"

static struct hr_error e;

static struct store *open_one(const char *url)
{
    struct store *s = NULL;
    if (store_open(url, NULL, &s, &e) < 0)
        exit(99);
    return s;
}

static struct store *open_both(void)
{
    struct store *of[] = {open_one("memory://one"), open_one("memory://two")}, *s = NULL;
    check_eq(store_members_open(of, 2, "both", &s, &e), 0);
    store_unref(of[0]);
    store_unref(of[1]);
    return s;
}

static void *room(void *arg, uint64_t size)
{
    return size < 16 ? arg : NULL;
}

static int read_text(struct store *s, const char *key, char *out)
{
    const struct store_sink sink = {room, out};
    struct store_result r;
    memset(out, 0, 16);
    int rc = store_read(s, key, (struct store_range){0}, &sink, &r);
    e = r.error;
    return rc;
}

static void keys_lead_to_their_store(void)
{
    char text[16];
    struct store *s = open_both();
    check_eq(read_text(s, "0/a", text), STORE_OK);
    check_str(text, "first");
    check_eq(read_text(s, "1/a", text), STORE_OK);
    check_str(text, "second");
    check_eq(read_text(s, "1/b", text), STORE_MISSING);
    for (int i = 0; i < 4; i++) {
        check_eq(read_text(s, (const char *[]){"2/a", "a", "/a", "99999999999/a"}[i], text),
                 HR_EINTERNAL);
        check_has(e.text, "both: no archive of it has the object");
    }
    const char *key = "1/x/y";
    check_str(store_url(store_of(s, &key)), "memory://two");
    check_str(key, "x/y");
    check(store_blocking(s) && !store_remote(s) && !store_local(s));
    store_unref(s);
}

static void stores_of_stores(void)
{
    char text[16];
    struct store *both = open_both(), *one = open_one("memory://one"), *of[] = {one, both},
                 *s = NULL;
    check_eq(store_members_open(of, 2, "more", &s, &e), 0);
    store_unref(both);
    store_unref(one);
    check_eq(read_text(s, "1/1/a", text), STORE_OK);
    check_str(text, "second");
    check_eq(read_text(s, "0/a", text), STORE_OK);
    check_str(text, "first");
    struct buf b;
    buf_init(&b);
    store_stats_json(s, &b);
    check_has(b.data, "\"requests\": 2, ");
    check_has(b.data, "\"bytes\": 11, ");
    check_has(b.data, "\"stores\": 2}");
    buf_dispose(&b);
    store_unref(s);
}

struct answer {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int n, fine, cancelled, closed;
    char text[16];
};

static void done(void *arg, const struct store_result *r)
{
    struct answer *a = arg;
    pthread_mutex_lock(&a->lock);
    a->n++;
    a->fine += r->rc == STORE_OK;
    a->cancelled += r->rc == HR_ECANCELED;
    a->closed += r->rc == HR_ECLOSED;
    pthread_cond_signal(&a->came);
    pthread_mutex_unlock(&a->lock);
}

static void *own_room(void *arg, uint64_t size)
{
    (void)arg;
    static _Thread_local char text[16];
    return size < 16 ? text : NULL;
}

static void threads_answer_every_read_once(void)
{
    struct answer a = {.n = 0};
    struct store *s = open_one("memory://one");
    struct readers *r = readers_new(&e);
    const struct store_sink sink = {own_room, NULL};
    uint64_t ticket = 0;
    pthread_mutex_init(&a.lock, NULL);
    cond_init_monotonic(&a.came);
    for (int i = 0; i < 500; i++) {
        check_eq(readers_start(r, s, "a", (struct store_range){0}, &sink, done, &a, &ticket, &e),
                 0);
        if (i % 3 == 0)
            readers_cancel(r, ticket);
        readers_cancel(r, 100000); /* of nobody */
    }
    readers_close(r);
    pthread_mutex_lock(&a.lock);
    while (a.n < 500 && cond_wait_until(&a.came, &a.lock, clock_ns() + 20000000000u))
        ;
    pthread_mutex_unlock(&a.lock);
    check_eq(a.n, 500);
    check_eq(a.fine + a.cancelled + a.closed, 500);
    store_unref(s);
}

int main(void)
{
    memory_put("one", "a", "first", 5, NULL);
    memory_put("two", "a", "second", 6, NULL);
    RUN(keys_lead_to_their_store);
    RUN(stores_of_stores);
    RUN(threads_answer_every_read_once);
    return t_done();
}
