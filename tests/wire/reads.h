/* Many reads at once, for the wire tests. */
#ifndef TESTS_WIRE_READS_H
#define TESTS_WIRE_READS_H
#include <stdatomic.h>

#include "wire/wire.h"

/* Patience for tests in which only a cancel or a close may end a read. */
#define PATIENT                                                                                    \
    {                                                                                              \
        .connect_ms = 60000, .first_byte_ms = 60000, .stall_ms = 60000, .max_retries = 100,        \
        .retry_total_ms = 600000, .backoff_ms = 30000, .backoff_max_ms = 60000,                    \
        .retry_after_max_ms = 60000, .concurrency = 64, .concurrency_max = 256                     \
    }

struct flight {
    struct reads *all;
    uint64_t ticket;
    struct got got;
    _Atomic int done; /* how often */
};
struct reads {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n, ended;
    struct flight *flights;
};

static inline void landed(void *arg, const struct store_result *r)
{
    struct flight *f = arg;
    f->got.r = *r;
    pthread_mutex_lock(&f->all->lock);
    atomic_fetch_add(&f->done, 1);
    f->all->ended++;
    pthread_cond_broadcast(&f->all->changed);
    pthread_mutex_unlock(&f->all->lock);
}

static inline void start_reads(struct reads *all, struct store *s, size_t n, int64_t offset,
                               uint64_t length)
{
    *all = (struct reads){.n = n, .flights = calloc(n, sizeof *all->flights)};
    pthread_mutex_init(&all->lock, NULL);
    cond_init_monotonic(&all->changed);
    for (size_t i = 0; i < n; i++) {
        struct flight *f = &all->flights[i];
        struct store_sink sink = {got_room, &f->got};
        struct hr_error e;
        char key[32];
        f->all = all;
        snprintf(key, sizeof key, "k%zu", i);
        check_eq(store_start(s, key, (struct store_range){offset, length}, &sink, landed, f,
                             &f->ticket, &e),
                 0);
    }
}

/* Wait for all; the time it took, in ms, or -1. */
static inline int64_t wait_reads(struct reads *all, uint64_t most_ms)
{
    uint64_t from = clock_ns();
    bool ok = true;
    pthread_mutex_lock(&all->lock);
    while (all->ended < all->n && ok)
        ok = cond_wait_until(&all->changed, &all->lock, from + most_ms * 1000000);
    pthread_mutex_unlock(&all->lock);
    return check(ok) ? (int64_t)((clock_ns() - from) / 1000000) : -1;
}

static inline void end_reads(struct reads *all)
{
    for (size_t i = 0; i < all->n; i++) {
        check_eq(all->flights[i].done, 1);
        free(all->flights[i].got.data);
    }
    free(all->flights);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
}

static inline void check_bytes(struct reads *all, uint64_t first, uint64_t size)
{
    size_t right = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct got *g = &all->flights[i].got;
        right += g->r.rc == 0 && g->r.size == size && liar_bytes(g->data, first, size, 1);
        if (g->r.rc < 0)
            printf("# %s\n", g->r.error.text);
    }
    check_eq(right, all->n);
}

#endif
