/* Rows that differ in length: in their places, in the order they come, and where the block is full. */
#include <pthread.h>

#include "base/mem.h"
#include "batch/ragged.h"
#include "codec/dtype.h"
#include "t.h"

static struct hr_error e;

#define ROWS 6

struct world {
    struct pool *pool;
    struct batch_layout *layout;
    struct hr_batch *b;
};

static void layout_new(struct world *w, uint64_t room, enum hr_dtype value, enum hr_dtype column)
{
    struct batch_tensor t[4] = {
        {.name = "before", .dtype = HR_U8, .ndim = 1, .item = 1},
        {.kind = BATCH_VALUES, .room = room, .name = "X.data", .dtype = value, .ndim = 1},
        {.kind = BATCH_COLUMNS, .name = "X.indices", .dtype = column, .ndim = 1},
        {.kind = BATCH_OFFSETS, .name = "X.indptr", .dtype = column, .ndim = 1}};
    for (int i = 1; i < 4; i++)
        t[i].item = dtype_kind_size(t[i].dtype);
    w->pool = pool_new(1 << 20);
    check(batch_layout_new(t, 4, ROWS, &w->layout, &e) == 0);
}

static int open_batch(struct world *w, uint64_t rows, const uint64_t *ends)
{
    int64_t ids[ROWS] = {0};
    uint8_t valid[ROWS] = {0};
    w->b = NULL;
    int rc = batch_new(w->layout, w->pool, NULL, rows, ids, valid, &w->b, &e);
    if (rc >= 0 && (rc = ragged_open(w->b, 1, ends, &e)) < 0) {
        batch_dispose(w->b);
        w->b = NULL;
    }
    return rc;
}

static void world_free(struct world *w)
{
    if (w->b)
        batch_unref(w->b);
    batch_layout_unref(w->layout);
    pool_close(w->pool);
    pool_unref(w->pool);
}

/* Row r: n values 100 r + i, columns 1000 r + i; `kept` of them in the end. */
static int put(struct hr_batch *b, uint64_t r, uint64_t n, uint64_t kept)
{
    void *values, *columns;
    TRY(ragged_room(b, 1, r, n, &values, &columns, &e));
    for (uint64_t i = 0; i < n; i++) {
        ((float *)values)[i] = (float)(100 * r + i);
        ((int32_t *)columns)[i] = (int32_t)(1000 * r + i);
    }
    if (kept != n)
        ragged_shrink(b, 1, r, kept);
    return 0;
}

static void check_batch(const struct hr_batch *b, const uint64_t *n)
{
    const float *values = batch_data(b, 1);
    const int32_t *columns = batch_data(b, 2), *offsets = batch_data(b, 3);
    uint64_t at = 0;
    bool good = true;
    for (int64_t r = 0; r < b->rows; r++) {
        good &= offsets[r] == (int32_t)at;
        for (uint64_t i = 0; i < n[r]; i++, at++)
            good &= values[at] == (float)(100 * (uint64_t)r + i) &&
                    columns[at] == (int32_t)(1000 * (uint64_t)r + i);
    }
    check(good);
    check_eq(offsets[b->rows], at);
    check_eq(b->shapes[1][0], at);
    check_eq(b->shapes[2][0], at);
    check_eq(b->shapes[3][0], b->rows + 1);
    check_eq((uintptr_t)values % BATCH_ALIGN, 0);
    check_eq((uintptr_t)columns % BATCH_ALIGN, 0);
}

static void rows_of_known_lengths_lie_in_place(void)
{
    struct world w;
    static const uint64_t n[ROWS] = {3, 0, 5, 1, 0, 7}, ends[ROWS] = {3, 3, 8, 9, 9, 16};
    static const uint64_t order[ROWS] = {5, 2, 0, 4, 1, 3};
    layout_new(&w, 1, HR_F32, HR_I32);
    check_eq(open_batch(&w, ROWS, ends), 0);
    const void *block = batch_data(w.b, 1);
    for (int i = 0; i < ROWS; i++)
        check_eq(put(w.b, order[i], n[order[i]], n[order[i]]), 0);
    check_eq(ragged_seal(w.b, &e), 0);
    check(batch_data(w.b, 1) == block); /* without another copy */
    check_batch(w.b, n);
    world_free(&w);
}

static void a_known_row_of_another_length_is_a_fault(void)
{
    struct world w;
    static const uint64_t ends[2] = {3, 5};
    layout_new(&w, 1, HR_F32, HR_I32);
    check_eq(open_batch(&w, 2, ends), 0);
    check_eq(put(w.b, 1, 3, 3), HR_EINTERNAL);
    check_has(e.text, "a row of 3 items where 2 were known");
    world_free(&w);
}

static void rows_of_unknown_lengths_are_brought_into_order(void)
{
    struct world w;
    static const uint64_t n[ROWS] = {3, 0, 5, 1, 0, 7};
    static const uint64_t order[ROWS] = {5, 2, 0, 4, 1, 3};
    for (uint64_t room = 0; room < 8; room++) { /* from none in the block to all */
        layout_new(&w, room, HR_F32, HR_I32);
        check_eq(open_batch(&w, ROWS, NULL), 0);
        for (int i = 0; i < ROWS; i++)
            check_eq(put(w.b, order[i], n[order[i]], n[order[i]]), 0);
        check_eq(ragged_seal(w.b, &e), 0);
        check_batch(w.b, n);
        world_free(&w);
    }
}

static void rows_may_come_to_less(void)
{
    struct world w;
    static const uint64_t n[ROWS] = {3, 2, 5, 1, 4, 7}, kept[ROWS] = {3, 0, 2, 1, 4, 3};
    static const uint64_t ends[ROWS] = {3, 5, 10, 11, 15, 22};
    for (int room = -1; room < 8; room++) {
        layout_new(&w, room < 0 ? 0 : (uint64_t)room, HR_F32, HR_I32);
        check_eq(open_batch(&w, ROWS, room < 0 ? ends : NULL), 0);
        for (uint64_t r = 0; r < ROWS; r++)
            check_eq(put(w.b, r, n[r], kept[r]), 0);
        check_eq(ragged_seal(w.b, &e), 0);
        check_batch(w.b, kept);
        world_free(&w);
    }
}

/* A job that is given up after some of its rows is begun anew. */
static void rows_may_be_asked_for_again(void)
{
    struct world w;
    static const uint64_t n[ROWS] = {3, 0, 5, 1, 4, 7};
    uint64_t before = mem_live();
    for (uint64_t room = 0; room < 8; room++) {
        layout_new(&w, room, HR_F32, HR_I32);
        check_eq(open_batch(&w, ROWS, NULL), 0);
        for (int times = 0; times < 3; times++)
            for (uint64_t r = 0; r < ROWS; r++)
                check_eq(put(w.b, r, n[r], n[r]), 0);
        check_eq(w.b->ragged[0].taken <= 20 + 3 * 20, true);
        check_eq(ragged_seal(w.b, &e), 0);
        check_batch(w.b, n);
        world_free(&w);
    }
    check_eq(mem_live(), before);
}

static void rows_that_never_came_are_empty(void)
{
    struct world w;
    static const uint64_t kept[ROWS] = {3, 0, 0, 1, 0, 7}, ends[ROWS] = {3, 5, 10, 11, 15, 22};
    for (int known = 0; known < 2; known++) {
        layout_new(&w, 2, HR_F32, HR_I32);
        check_eq(open_batch(&w, ROWS, known ? ends : NULL), 0);
        for (uint64_t r = 0; r < ROWS; r++)
            if (kept[r])
                check_eq(put(w.b, r, kept[r], kept[r]), 0);
        check_eq(put(w.b, 2, 5, 5), 0);
        ragged_shrink(w.b, 1, 2, 0); /* masked after all */
        check_eq(ragged_seal(w.b, &e), 0);
        check_batch(w.b, kept);
        world_free(&w);
    }
}

static void batches_without_items_or_rows_are_sealed(void)
{
    struct world w;
    static const uint64_t none[ROWS] = {0};
    for (int known = 0; known < 2; known++)
        for (uint64_t rows = 0; rows <= 2; rows++) {
            layout_new(&w, 2, HR_F32, HR_I32);
            check_eq(open_batch(&w, rows, known ? none : NULL), 0);
            check_eq(ragged_seal(w.b, &e), 0);
            check(batch_data(w.b, 1) != NULL);
            check_batch(w.b, none);
            world_free(&w);
        }
}

static void more_items_than_32_bits_count_are_refused(void)
{
    struct world w;
    static const uint64_t ends[2] = {0, 0};
    for (int wide = 0; wide < 2; wide++) {
        layout_new(&w, 1, HR_F32, wide ? HR_I64 : HR_I32);
        check_eq(open_batch(&w, 2, ends), 0);
        ragged_shrink(w.b, 1, 1, (uint64_t)INT32_MAX + 1); /* nothing of it is touched */
        check_eq(ragged_seal(w.b, &e), wide ? 0 : HR_EINVAL);
        if (wide)
            check_eq(((int64_t *)batch_data(w.b, 3))[2], (int64_t)INT32_MAX + 1);
        else
            check_has(e.text, "index_dtype=\"int64\"");
        world_free(&w);
    }
}

struct writer {
    struct hr_batch *b;
    uint64_t from;
    const uint64_t *n;
};

static void *write_rows(void *arg)
{
    struct writer *w = arg;
    for (uint64_t r = w->from; r < ROWS; r += 3)
        if (put(w->b, r, w->n[r], w->n[r]) < 0)
            return w;
    return NULL;
}

static void rows_are_written_by_several_threads_at_once(void)
{
    static const uint64_t n[ROWS] = {300, 0, 500, 1, 4, 700};
    static const uint64_t ends[ROWS] = {300, 300, 800, 801, 805, 1505};
    for (int round = 0; round < 60; round++) {
        struct world w;
        pthread_t t[3];
        struct writer of[3];
        layout_new(&w, round % 3 ? 300 : 10, HR_F32, HR_I32);
        check_eq(open_batch(&w, ROWS, round % 2 ? ends : NULL), 0);
        for (uint64_t i = 0; i < 3; i++) {
            of[i] = (struct writer){w.b, i, n};
            pthread_create(&t[i], NULL, write_rows, &of[i]);
        }
        for (int i = 0; i < 3; i++) {
            void *bad;
            pthread_join(t[i], &bad);
            check(!bad);
        }
        check_eq(ragged_seal(w.b, &e), 0);
        check_batch(w.b, n);
        world_free(&w);
    }
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    static const uint64_t n[ROWS] = {3, 0, 5, 1, 4, 7};
    uint64_t before = mem_live();
    int failures = 0;
    for (uint64_t at = 1; at < 20; at++) {
        struct world w;
        layout_new(&w, 1, HR_F32, HR_I32);
        mem_fail_at(at, false);
        int rc = open_batch(&w, ROWS, NULL);
        for (uint64_t r = 0; r < ROWS && rc >= 0; r++)
            rc = put(w.b, r, n[r], n[r]);
        if (rc >= 0)
            rc = ragged_seal(w.b, &e);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        failures += rc < 0;
        if (rc >= 0)
            check_batch(w.b, n);
        world_free(&w);
    }
    check(failures > 5 && failures < 19);
    check_eq(mem_live(), before);
}

int main(void)
{
    RUN(rows_of_known_lengths_lie_in_place);
    RUN(a_known_row_of_another_length_is_a_fault);
    RUN(rows_of_unknown_lengths_are_brought_into_order);
    RUN(rows_may_come_to_less);
    RUN(rows_may_be_asked_for_again);
    RUN(rows_that_never_came_are_empty);
    RUN(batches_without_items_or_rows_are_sealed);
    RUN(more_items_than_32_bits_count_are_refused);
    RUN(rows_are_written_by_several_threads_at_once);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    return t_done();
}
