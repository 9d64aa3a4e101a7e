#include "base/bitmap.h"
#include "base/keyed.h"
#include "base/mem.h"
#include "t.h"

/* Compare with one byte per id. */
static void compare(struct bitmap *b, const unsigned char *set, uint64_t n)
{
    uint64_t count = 0, wrong = 0;
    check_eq(bitmap_index(b), 0);
    for (uint64_t i = 0; i < n; i++) {
        wrong += bitmap_test(b, i) != (set[i] != 0);
        wrong += bitmap_rank(b, i) != count;
        if (set[i])
            wrong += bitmap_select(b, count++) != i;
    }
    check_eq(wrong, 0);
    check_eq(b->total, count);
    check_eq(bitmap_rank(b, n), count);
    check_eq(bitmap_rank(b, n + 1000), count);
    check_eq(bitmap_select(b, count), n);
}

static void rank_and_select_agree_with_counting(void)
{
    static const uint64_t sizes[] = {0, 1, 63, 64, 65, 511, 512, 513, 1024, 5000, 20000};
    static unsigned char set[20000];
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint64_t density = 0; density <= 8; density++) {
            struct bitmap b;
            check_eq(bitmap_init(&b, sizes[s]), 0);
            for (uint64_t i = 0; i < sizes[s]; i++) {
                set[i] = keyed_word(density, i) % 8 < density;
                if (set[i])
                    bitmap_set(&b, i);
            }
            compare(&b, set, sizes[s]);
            bitmap_dispose(&b);
        }
}

static void ranges_are_set_and_cleared_exactly(void)
{
    enum { N = 1500 };
    static unsigned char set[N];
    struct bitmap b;
    check_eq(bitmap_init(&b, N), 0);
    for (uint64_t k = 0; k < 400; k++) {
        uint64_t from = keyed_word(5, 2 * k) % N,
                 to = from + keyed_word(5, 2 * k + 1) % (k % 3 ? 100 : 900);
        bool value = keyed_word(6, k) & 1;
        if (value)
            bitmap_set_range(&b, from, to); /* may reach beyond the end */
        else
            bitmap_clear_range(&b, from, to);
        for (uint64_t i = from; i < to && i < N; i++)
            set[i] = value;
        if (k % 40 == 0)
            compare(&b, set, N);
    }
    bitmap_set_range(&b, 0, UINT64_MAX);
    check_eq(bitmap_index(&b), 0);
    check_eq(b.total, N);
    bitmap_set_range(&b, 9, 3); /* empty */
    bitmap_dispose(&b);
}

static void ids_beyond_the_end_are_not_in_the_set(void)
{
    struct bitmap b;
    check_eq(bitmap_init(&b, 100), 0);
    bitmap_set(&b, 100);
    bitmap_set(&b, UINT64_MAX);
    check(!bitmap_test(&b, 100) && !bitmap_test(&b, UINT64_MAX));
    check_eq(bitmap_index(&b), 0);
    check_eq(b.total, 0);
    bitmap_dispose(&b);
}

static void lack_of_memory_is_reported(void)
{
    struct bitmap b;
    uint64_t before = mem_live();
    check_eq(bitmap_init(&b, UINT64_MAX), -1);
    bitmap_dispose(&b);
    mem_fail_at(1, true);
    check_eq(bitmap_init(&b, 100), -1);
    mem_fail_at(2, true);
    check_eq(bitmap_init(&b, 100), 0);
    check_eq(bitmap_index(&b), -1);
    mem_fail_at(0, false);
    bitmap_dispose(&b);
    check_eq(mem_live(), before);
}

int main(void)
{
    RUN(rank_and_select_agree_with_counting);
    RUN(ranges_are_set_and_cleared_exactly);
    RUN(ids_beyond_the_end_are_not_in_the_set);
    RUN(lack_of_memory_is_reported);
    return t_done();
}
