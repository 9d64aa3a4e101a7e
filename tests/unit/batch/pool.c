/* Buffers go round instead of being mapped afresh, and never exceed what they were given. */
#include "base/mem.h"
#include "base/thread.h"
#include "batch/pool.h"
#include "t.h"

#define MB (1u << 20)

static struct pool_stats stats_of(struct pool *p)
{
    struct pool_stats s;
    pool_stats(p, &s);
    return s;
}

static void the_block_let_go_last_comes_back_first(void)
{
    struct pool *p = pool_new(64 * MB);
    char *a = pool_get(p, 3 * MB), *b = pool_get(p, 3 * MB);
    check(a && b && a != b && !((uintptr_t)a & 255));
    a[3 * MB - 1] = 1;
    pool_put(p, a, 3 * MB);
    pool_put(p, b, 3 * MB);
    check(pool_get(p, 3 * MB) == b);
    check(pool_get(p, 3 * MB - 1000) == a); /* nearly the same size is the same class */
    check_eq(stats_of(p).mapped, 2);
    check_eq(stats_of(p).recycled, 2);
    pool_put(p, a, 3 * MB - 1000);
    pool_put(p, b, 3 * MB);
    pool_unref(p);
}

static void a_steady_mix_of_sizes_maps_nothing_new(void)
{
    struct pool *p = pool_new(40 * MB);
    static const size_t sizes[4] = {300000, 8 * MB, 70000, 5 * MB};
    for (int turn = 0; turn < 100; turn++) {
        void *block[4];
        for (int i = 0; i < 4; i++)
            block[i] = pool_get(p, sizes[i]);
        for (int i = 3; i >= 0; i--)
            pool_put(p, block[i], sizes[i]);
    }
    check_eq(stats_of(p).mapped, 4);
    pool_unref(p);
}

static void free_lists_make_room_before_the_cap_is_passed(void)
{
    struct pool *p = pool_new(20 * MB);
    void *a = pool_get(p, 8 * MB), *b = pool_get(p, 8 * MB);
    pool_put(p, a, 8 * MB);
    pool_put(p, b, 8 * MB);
    check_eq(stats_of(p).free, 16 * MB);
    void *c = pool_get(p, 10 * MB); /* one of the two has to go */
    check_eq(stats_of(p).free, 8 * MB);
    check(stats_of(p).peak <= 20 * MB);
    void *d =
        pool_get(p, 30 * MB); /* the ledger decides about use: given, and everything free let go */
    check(d != NULL);
    check_eq(stats_of(p).free, 0);
    pool_put(p, d, 30 * MB); /* beyond the cap: not kept */
    check_eq(stats_of(p).free, 0);
    pool_put(p, c, 10 * MB);
    check_eq(stats_of(p).free, 10 * MB);
    pool_unref(p);
}

static void the_class_not_asked_for_longest_goes_first(void)
{
    struct pool *p = pool_new(20 * MB);
    void *old = pool_get(p, 4 * MB), *hot = pool_get(p, 6 * MB);
    pool_put(p, old, 4 * MB);
    pool_put(p, hot, 6 * MB);
    void *big = pool_get(p, 12 * MB);
    check(pool_get(p, 6 * MB) == hot);
    check_eq(stats_of(p).mapped, 3);
    pool_put(p, hot, 6 * MB);
    pool_put(p, big, 12 * MB);
    pool_unref(p);
}

static void every_size_gets_a_block_that_holds_it(void)
{
    struct pool *p = pool_new(0);
    for (size_t n = 1; n < 40 * MB; n += n / 3 + 1) {
        char *b = pool_get(p, n);
        if (!check(b != NULL))
            break;
        b[0] = b[n - 1] = 1;
        uint64_t used = stats_of(p).used;
        check(used >= n && used <= n + n / 16 + 8192);
        pool_put(p, b, n);
    }
    check_eq(stats_of(p).used, 0);
    check_eq(stats_of(p).free, 0);
    check(!pool_get(p, SIZE_MAX / 2));
    pool_unref(p);
}

static void small_blocks_share_huge_pages(void)
{
    enum { N = 1000, SIZE = 16384 };
    struct pool *p = pool_new(64 * MB);
    static char *blocks[N];
    bool good = true;
    for (int i = 0; i < N; i++) {
        blocks[i] = pool_get(p, SIZE);
        good &= !((uintptr_t)blocks[i] & 4095);
        memset(blocks[i], i, SIZE);
    }
    check(stats_of(p).used + stats_of(p).free <= (uint64_t)N * SIZE + 3 * MB);
    for (int i = 0; i < N; i++)
        good &= blocks[i][0] == (char)i && blocks[i][SIZE - 1] == (char)i;
    check(good);
    for (int i = 0; i < N; i += 2)
        pool_put(p, blocks[i], SIZE);
    check(pool_get(p, SIZE) == blocks[N - 2]);
    pool_put(p, blocks[N - 2], SIZE);
    for (int i = 1; i < N; i += 2)
        pool_put(p, blocks[i], SIZE);
    check_eq(stats_of(p).used, 0);
    void *big = pool_get(p, 60 * MB); /* unused slabs make room like anything else */
    check(stats_of(p).used + stats_of(p).free <= 64 * MB);
    pool_put(p, big, 60 * MB);
    void *again = pool_get(p, SIZE);
    check(again != NULL);
    pool_close(p);
    pool_put(p, again, SIZE);
    check_eq(stats_of(p).free, 0);
    pool_unref(p);
}

/* Those of half a MiB, too: four huge pages hold a dozen of them. */
static void medium_blocks_share_wide_slabs(void)
{
    enum { N = 25, SIZE = 640 << 10 };
    struct pool *p = pool_new(256 * MB);
    char *blocks[N];
    bool good = true;
    for (int i = 0; i < N; i++) {
        blocks[i] = pool_get(p, SIZE);
        memset(blocks[i], i, SIZE);
    }
    for (int i = 0; i < N; i++)
        good &= blocks[i][0] == (char)i && blocks[i][SIZE - 1] == (char)i;
    check(good);
    check_eq(stats_of(p).mapped, 3);
    check(stats_of(p).used + stats_of(p).free <= 24 * MB);
    for (int i = 0; i < N; i++)
        pool_put(p, blocks[i], SIZE);
    check_eq(stats_of(p).used, 0);
    void *big = pool_get(p, 250 * MB);
    check(stats_of(p).used + stats_of(p).free <= 256 * MB);
    pool_put(p, big, 250 * MB);
    pool_unref(p);
    struct pool *small = pool_new(64 * MB); /* which cannot afford them */
    void *one = pool_get(small, SIZE);
    check(stats_of(small).used + stats_of(small).free <= MB);
    pool_put(small, one, SIZE);
    pool_unref(small);
}

static void a_closed_pool_keeps_nothing(void)
{
    uint64_t before = mem_live();
    struct pool *p = pool_new(64 * MB);
    void *a = pool_get(p, MB), *b = pool_get(p, MB);
    pool_put(p, a, MB);
    pool_close(p);
    check_eq(stats_of(p).free, 0);
    memset(b, 1, MB);
    pool_put(p, b, MB);
    check_eq(stats_of(p).free, 0);
    pool_unref(p);
    check_eq(mem_live(), before);
}

static void no_memory_is_an_answer_not_a_crash(void)
{
    struct pool *p = pool_new(64 * MB);
    mem_fail_at(1, true);
    check(!pool_get(p, MB));
    mem_fail_at(0, false);
    check_eq(stats_of(p).used, 0);
    pool_unref(p);
}

static void *hammer(void *arg)
{
    struct pool *p = arg;
    for (int i = 0; i < 2000; i++) {
        size_t n = 5000 + (size_t)(i % 7) * 30000;
        unsigned char *b = pool_get(p, n);
        b[0] = (unsigned char)i;
        b[n - 1] = (unsigned char)i;
        if (b[0] != (unsigned char)i)
            return arg;
        pool_put(p, b, n);
    }
    return NULL;
}

static void hammer_with_cap(uint64_t cap)
{
    struct pool *p = pool_new(cap);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        check_eq(thread_start(&t[i], "hammer", hammer, p), 0);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        check(!bad);
    }
    check_eq(stats_of(p).used, 0);
    check(stats_of(p).free <= cap);
    pool_unref(p);
}

static void threads_never_share_a_block(void)
{
    hammer_with_cap(MB);
    hammer_with_cap(40 * MB);
}

int main(void)
{
    RUN(the_block_let_go_last_comes_back_first);
    RUN(a_steady_mix_of_sizes_maps_nothing_new);
    RUN(free_lists_make_room_before_the_cap_is_passed);
    RUN(the_class_not_asked_for_longest_goes_first);
    RUN(every_size_gets_a_block_that_holds_it);
    RUN(small_blocks_share_huge_pages);
    RUN(medium_blocks_share_wide_slabs);
    RUN(a_closed_pool_keeps_nothing);
    RUN(no_memory_is_an_answer_not_a_crash);
    RUN(threads_never_share_a_block);
    return t_done();
}
