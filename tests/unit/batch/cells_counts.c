/* Counts ranked as they are stored come in the order of the values that the form makes of them. */
#include "cells_naive.h"

enum { MOST = 70000 };

static const enum hr_dtype types[] = {HR_I8,  HR_I16, HR_I32, HR_I64, HR_U8,
                                      HR_U16, HR_U32, HR_U64, HR_F32, HR_F64};

/* n of cells: mostly small, all small, all alike, some of any size, or mostly large. */
static double count_of(int kind, double most)
{
    double v = 1;
    switch (kind) {
    case 0:
        v = 1 + floor(1 / (1e-4 + (double)below(1000000) * 1e-6));
        break;
    case 1:
        v = 1 + (double)below(CELLS_BUCKETS + 1);
        break;
    case 2:
        v = most;
        break;
    case 3:
        v = below(9) ? 1 + (double)below(3) : 1 + (double)below((uint64_t)most);
        break;
    default:
        v = 1 + (double)below((uint64_t)most);
    }
    return v < most ? v : most;
}

static double most_of(enum hr_dtype t)
{
    return t == HR_I8 ? INT8_MAX : t == HR_U8 ? UINT8_MAX : CELLS_COUNT_MOST;
}

struct tried {
    struct cells_form form;
    struct cells_scratch scratch;
    struct cells_room room;
    struct cells_part part;
};

static void begin(struct tried *t, enum hr_dtype type, uint64_t n, double total, bool log1p)
{
    t->form = (struct cells_form){.kind = CELLS_RANKED,
                                  .column = HR_I64,
                                  .n_columns = MOST,
                                  .length = MOST,
                                  .total = total,
                                  .log1p = log1p};
    check_eq(cells_form_init(&t->form, NULL), 0);
    cells_scratch_init(&t->scratch);
    check_eq(cells_reserve(&t->scratch, n, &t->room, NULL), 0);
    t->part = (struct cells_part){.values = t->room.raw, .value = type, .n = n};
}

static void end(struct tried *t)
{
    cells_scratch_dispose(&t->scratch);
    cells_form_dispose(&t->form);
}

static void sum_up(struct tried *t)
{
    cells_sum(&t->form, t->part.value, t->part.values, t->part.n, &t->room, &t->part);
}

/* The first `want`, by the float32 values. */
static bool in_order(struct tried *t, uint64_t want)
{
    static double values[MOST];
    static uint32_t falling[MOST];
    uint64_t n = t->part.n;
    const uint32_t *places = t->room.places;
    struct naive d = {.n = n, .value = values, .falling = falling};
    cells_singles(&t->form, &t->part, &t->room);
    for (uint64_t i = 0; i < n; i++) {
        values[i] = t->room.single[i];
        falling[i] = (uint32_t)i;
    }
    sorted_naive = &d;
    qsort(falling, n, sizeof *falling, by_falling);
    return !memcmp(places, falling, want * sizeof *places);
}

static void counts_keep_the_order_of_their_values(void)
{
    static const uint64_t sizes[] = {1, 2, 3, 5, 63, 64, 65, 1000, 4001, UINT16_MAX};
    static const double totals[] = {0, 1, 1e4, 1e12};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < 5; kind++) {
                struct tried t;
                uint64_t n = sizes[s], want = below(2) ? n : 1 + below(n);
                begin(&t, types[k], n, totals[below(4)], below(2));
                for (uint64_t i = 0; i < n; i++)
                    number_put(types[k], t.room.raw, i, count_of(kind, most_of(types[k])));
                sum_up(&t);
                bool done = cells_rank_counts(&t.form, &t.part, &t.room, t.room.places, want);
                /* otherwise nearly all are large, or the factor is out of range */
                bool expected = kind == 2 || kind == 4 || t.form.total / t.part.sum < 0x1p-20;
                if (!check(done || expected) || (done && !check(in_order(&t, want))))
                    printf("# %s, kind %d, %d of %d, total %g, sum %g\n", dtype_kind_name(types[k]),
                           kind, (int)want, (int)n, t.form.total, t.part.sum);
                end(&t);
            }
}

/* Counters of places have 16 bits. */
static void longer_rows_are_left_to_others(void)
{
    for (uint64_t n = UINT16_MAX; n <= UINT16_MAX + 1; n++) {
        struct tried t;
        begin(&t, HR_U16, n, 0, false);
        for (uint64_t i = 0; i < n; i++)
            number_put(HR_U16, t.room.raw, i, 1 + (double)below(CELLS_BUCKETS));
        check_eq(cells_rank_counts(&t.form, &t.part, &t.room, t.room.places, n), n == UINT16_MAX);
        end(&t);
    }
}

/* One value that is no count, anywhere in a row. */
static void what_is_no_count_is_left_to_others(void)
{
    static const double odd[] = {0,
                                 -1,
                                 0.5,
                                 1.5,
                                 CELLS_COUNT_MOST + 1,
                                 CELLS_COUNT_MOST - 0.5,
                                 64.25,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 -0.0,
                                 16777216};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t o = 0; o < sizeof odd / sizeof *odd; o++) {
            bool is_float = types[k] >= HR_F16, is_signed = types[k] <= HR_I64;
            bool fits = odd[o] == floor(odd[o]) && odd[o] <= 2 * CELLS_COUNT_MOST &&
                        (odd[o] >= 0 || (is_signed && odd[o] >= -1)) &&
                        odd[o] <= most_of(types[k]) + 1;
            if (!is_float && (!fits || (odd[o] > 255 && most_of(types[k]) < 256)))
                continue;
            struct tried t;
            begin(&t, types[k], 100, 0, false);
            for (uint64_t i = 0; i < 100; i++)
                number_put(types[k], t.room.raw, i, 7);
            check(cells_rank_counts(&t.form, &t.part, &t.room, t.room.places, 100));
            number_put(types[k], t.room.raw, below(100), odd[o]);
            check(!cells_rank_counts(&t.form, &t.part, &t.room, t.room.places, 100));
            end(&t);
        }
}

/* Where different counts could become the same number, and where something else is done to each. */
static void forms_that_may_change_the_order_are_left_to_others(void)
{
    static const float factors[MOST] = {1, 2};
    static const double totals[] = {1e-30, 1e40};
    for (int i = 0; i < 3; i++) {
        struct tried t;
        begin(&t, HR_F32, 2, i < 2 ? totals[i] : 1e4, false);
        if (i == 2) {
            end(&t);
            t.form.factors = factors;
            check_eq(cells_form_init(&t.form, NULL), 0);
            cells_scratch_init(&t.scratch);
            check_eq(cells_reserve(&t.scratch, 2, &t.room, NULL), 0);
            t.part.values = t.room.raw;
        }
        number_put(HR_F32, t.room.raw, 0, 3);
        number_put(HR_F32, t.room.raw, 1, 5);
        sum_up(&t);
        check(!cells_rank_counts(&t.form, &t.part, &t.room, t.room.places, 2));
        end(&t);
    }
}

int main(void)
{
    RUN(counts_keep_the_order_of_their_values);
    RUN(longer_rows_are_left_to_others);
    RUN(what_is_no_count_is_left_to_others);
    RUN(forms_that_may_change_the_order_are_left_to_others);
    return t_done();
}
