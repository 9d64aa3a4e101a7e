/* The heap's door, and the pages beside it. */
#include "base/mem.h"
#include "base/pages.h"
#include "t.h"

static void live_counts_what_is_not_given_back(void)
{
    uint64_t before = mem_live();
    void *a = mem_alloc(10), *b = mem_zalloc(0), *c = mem_array(3, 7), *d = mem_strdup("x");
    void *e = pages_map(5000);
    check(a && b && c && d && e);
    check_eq(mem_live() - before, 5);
    a = mem_realloc(a, 1000);
    d = mem_realloc(d, 0);
    check_eq(mem_live() - before, 5);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(d);
    mem_free(NULL);
    pages_unmap(e, 5000);
    pages_unmap(NULL, 5000);
    check_eq(mem_live(), before);
}

static void only_the_nth_allocation_fails(void)
{
    uint64_t before = mem_live();
    mem_fail_at(2, false);
    void *a = mem_alloc(1), *b = mem_alloc(1), *c = mem_alloc(1);
    check(a && !b && c);
    check_eq(mem_count(), 3);
    mem_fail_at(0, false);
    check_eq(mem_count(), 0);
    mem_free(a);
    mem_free(c);
    check_eq(mem_live(), before);
}

static void a_persistent_failure_fails_all_from_the_nth_on(void)
{
    uint64_t before = mem_live();
    mem_fail_at(2, true);
    void *a = mem_alloc(1);
    check(a && !mem_zalloc(1) && !mem_array(1, 1) && !mem_strdup("x") && !pages_map(1));
    check(!mem_realloc(a, 100)); /* and a stays valid */
    *(char *)a = 1;
    mem_fail_at(0, false);
    mem_free(a);
    check_eq(mem_live(), before);
}

static void an_overflowing_array_is_out_of_memory(void)
{
    uint64_t before = mem_live();
    volatile size_t huge = SIZE_MAX / 2;
    check(!mem_array(huge, 3) && !mem_alloc(huge) && !mem_zalloc(MEM_MAX_BYTES + 1));
    void *one = mem_alloc(1);
    check(!mem_realloc(one, huge));
    mem_free(one);
    void *p = NULL;
    size_t cap = 0;
    check_eq(mem_grow(&p, &cap, huge, 8), -1);
    check(!p && !cap);
    check_eq(mem_live(), before);
}

static void growing_keeps_the_contents_and_doubles(void)
{
    int *p = NULL;
    size_t cap = 0, moves = 0;
    for (int i = 0; i < 10000; i++) {
        size_t old = cap;
        check_eq(mem_grow((void **)&p, &cap, (size_t)i + 1, sizeof(int)), 0);
        moves += cap != old;
        p[i] = i;
    }
    check(moves < 15);
    for (int i = 0; i < 10000; i++)
        if (p[i] != i)
            check(!"contents kept");
    size_t kept = cap;
    mem_fail_at(1, true);
    check_eq(mem_grow((void **)&p, &cap, cap + 1, sizeof(int)), -1);
    mem_fail_at(0, false);
    check(cap == kept && p[9999] == 9999);
    mem_free(p);
}

static void strndup_stops_at_the_nul_or_the_bound(void)
{
    char *a = mem_strndup("abc", 2), *b = mem_strndup("abc", 10);
    check_str(a, "ab");
    check_str(b, "abc");
    mem_free(a);
    mem_free(b);
}

static void checked_arithmetic_leaves_its_result_alone_on_overflow(void)
{
    uint64_t u = 7;
    int64_t i = 7;
    check(!mul_u64(UINT64_MAX, 2, &u) && !add_u64(UINT64_MAX, 1, &u) && mul_u64(3, 4, &u) &&
          u == 12);
    check(!mul_i64(INT64_MIN, -1, &i) && !add_i64(INT64_MAX, 1, &i) && add_i64(-3, 4, &i) &&
          i == 1);
}

static void pages_are_zeroed_and_large_ones_lie_on_huge_page_borders(void)
{
    static const size_t sizes[] = {1, 4096, 100000, 2u << 20, (2u << 20) + 1, 5000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i], whole = pages_round(n);
        unsigned char *p = pages_map(n);
        check(p && whole >= n && whole - n < 65536);
        check_eq((uintptr_t)p % (n >= 2u << 20 ? 2u << 20 : 4096), 0);
        check(!p[0] && !p[n / 2] && !p[whole - 1]);
        memset(p, 0xAB, whole);
        pages_unmap(p, n);
    }
    check(!pages_map(SIZE_MAX) && !pages_map(SIZE_MAX - (1u << 20)) && !pages_map(SIZE_MAX / 2));
}

int main(void)
{
    RUN(live_counts_what_is_not_given_back);
    RUN(only_the_nth_allocation_fails);
    RUN(a_persistent_failure_fails_all_from_the_nth_on);
    RUN(an_overflowing_array_is_out_of_memory);
    RUN(growing_keeps_the_contents_and_doubles);
    RUN(strndup_stops_at_the_nul_or_the_bound);
    RUN(checked_arithmetic_leaves_its_result_alone_on_overflow);
    RUN(pages_are_zeroed_and_large_ones_lie_on_huge_page_borders);
    return t_done();
}
