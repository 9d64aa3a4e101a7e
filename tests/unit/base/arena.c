#include "base/arena.h"
#include "base/keyed.h"
#include "base/mem.h"
#include "t.h"

static void allocations_are_zeroed_aligned_and_disjoint(void)
{
    enum { COUNT = 3000 };
    static unsigned char *at[COUNT];
    static size_t size[COUNT];
    struct arena a;
    uint64_t before = mem_live();
    arena_init(&a);
    for (int i = 0; i < COUNT; i++) {
        uint64_t word = keyed_word(1, (uint64_t)i);
        size[i] = word % 97 == 0 ? word % 300000 : word % 200;
        at[i] = arena_alloc(&a, size[i]);
        check(at[i] && (uintptr_t)at[i] % 16 == 0);
        for (size_t j = 0; j < size[i]; j++)
            if (at[i][j])
                check(!"zeroed");
        memset(at[i], i & 255, size[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t j = 0; j < size[i]; j++)
            if (at[i][j] != (i & 255))
                check(!"disjoint");
    arena_dispose(&a);
    check(!a.head && !a.total);
    check_eq(mem_live(), before);
}

static void small_things_share_few_blocks(void)
{
    struct arena a;
    arena_init(&a);
    uint64_t before = mem_live();
    for (int i = 0; i < 100000; i++)
        arena_alloc(&a, 48);
    check(mem_live() - before < 20);
    check(a.total >= 4800000 && a.total < 6500000);
    arena_dispose(&a);
}

static void a_small_arena_costs_one_page(void)
{
    struct arena a;
    arena_init(&a);
    check_eq(a.total, 0);
    arena_alloc(&a, 1);
    check_eq(a.total, 4096);
    arena_dispose(&a);
}

static void a_large_request_leaves_the_block_in_use(void)
{
    struct arena a;
    arena_init(&a);
    char *first = arena_alloc(&a, 16);
    check(arena_alloc(&a, 1 << 20) != NULL);
    check(arena_alloc(&a, 16) == first + 16);
    arena_dispose(&a);
}

static void overflow_and_lack_of_memory_give_null(void)
{
    struct arena a;
    arena_init(&a);
    volatile size_t huge = SIZE_MAX;
    check(!arena_alloc(&a, huge) && !arena_alloc(&a, huge - 20) && !arena_array(&a, huge / 2, 4));
    mem_fail_at(1, true);
    check(!arena_alloc(&a, 1) && !arena_strdup(&a, "x") && !arena_printf(&a, "%d", 1));
    mem_fail_at(0, false);
    check_str(arena_strdup(&a, "usable again"), "usable again");
    arena_dispose(&a);
}

static void strings_are_copied_and_formatted(void)
{
    struct arena a;
    arena_init(&a);
    check_str(arena_strndup(&a, "abcdef", 3), "abc");
    check_str(arena_strndup(&a, "ab", 9), "ab");
    check_str(arena_printf(&a, "%s/%05d", "c", 42), "c/00042");
    check_str(arena_printf(&a, "%s", ""), "");
    arena_dispose(&a);
}

int main(void)
{
    RUN(allocations_are_zeroed_aligned_and_disjoint);
    RUN(small_things_share_few_blocks);
    RUN(a_small_arena_costs_one_page);
    RUN(a_large_request_leaves_the_block_in_use);
    RUN(overflow_and_lack_of_memory_give_null);
    RUN(strings_are_copied_and_formatted);
    return t_done();
}
