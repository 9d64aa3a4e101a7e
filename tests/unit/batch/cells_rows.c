/* Single rows: damaged ones, odd ones, and what must hold for any. */
#include "cells_naive.h"

#include "base/keyed.h"

struct world {
    struct cells_form f;
    struct cells_genes g;
    struct cells_scratch s;
};

static struct world world_of(struct cells_form f, uint64_t n)
{
    struct world w = {.f = f};
    cells_scratch_init(&w.s);
    check_eq(cells_form_init(&w.f, NULL), 0);
    check_eq(cells_genes_init(&w.g, &w.f, n, NULL, NULL), 0);
    return w;
}

static void world_free(struct world *w)
{
    cells_genes_dispose(&w->g);
    cells_form_dispose(&w->f);
    cells_scratch_dispose(&w->s);
}

static const enum hr_dtype column_types[] = {HR_I8, HR_I16, HR_I32, HR_I64,
                                             HR_U8, HR_U16, HR_U32, HR_U64};

static int csr(struct world *w, const struct cells_row *r, struct hr_error *e)
{
    static float values[8];
    static int32_t columns[8];
    return cells_csr(&w->f, &w->g, r, &w->s, values, columns, NULL, false, e);
}

static void columns_that_do_not_exist_are_named(void)
{
    struct world w = world_of(
        (struct cells_form){.kind = CELLS_CSR, .value = HR_F32, .column = HR_I32, .n_columns = 100},
        100);
    static const double rising[] = {1, 99, 100}, mixed[] = {3, 120, 2}, negative[] = {-3, 1, 2},
                        inside[] = {5, -4, 2};
    for (int t = 0; t < 8; t++) {
        float values[] = {1, 2, 3};
        uint64_t columns[3];
        struct hr_error e;
        struct cells_row r = {values, columns, 3, HR_F32, column_types[t], 0};
        const double *cases[] = {rising, mixed, negative, inside};
        const char *names[] = {"column 100, of 100", "column 120, of 100", "column -3, of 100",
                               "column -4, of 100"};
        for (int c = 0; c < (column_types[t] < HR_U8 ? 4 : 2); c++) {
            for (uint64_t i = 0; i < 3; i++)
                number_put(column_types[t], columns, i, cases[c][i]);
            check_eq(csr(&w, &r, &e), HR_EDATA);
            check_has(e.text, names[c]);
        }
    }
    uint64_t huge[] = {1, 1ull << 63}, high[] = {1, 1ull << 32};
    float values[] = {1, 2};
    struct hr_error e;
    struct cells_row r = {values, huge, 2, HR_F32, HR_U64, 0};
    check_eq(csr(&w, &r, &e), HR_EDATA);
    check_has(e.text, "column 9223372036854775808");
    r.columns = high;
    check_eq(csr(&w, &r, &e), HR_EDATA);
    check_has(e.text, "column 4294967296");
    r = (struct cells_row){values, NULL, 2, HR_F32, HR_NONE, 0};
    check_eq(csr(&w, &r, &e), HR_EDATA);
    check_has(e.text, "2 values for 100 columns");
    world_free(&w);
}

/* Columns without a value that is a number: carried in CSR, last in orders by value. */
static void nan_and_infinities_are_carried_and_rank_at_the_ends(void)
{
    static const float values[] = {NAN, 2, INFINITY, -INFINITY, 0, -1, NAN};
    static const uint8_t columns[] = {0, 1, 2, 3, 4, 5, 6};
    static const enum hr_dtype types[] = {HR_F32, HR_F64, HR_F16, HR_BF16};
    struct world w = world_of(
                     (struct cells_form){
                         .kind = CELLS_CSR, .value = HR_F32, .column = HR_I32, .n_columns = 7},
                     7),
                 t = world_of((struct cells_form){.kind = CELLS_RANKED,
                                                  .column = HR_I64,
                                                  .n_columns = 7,
                                                  .length = 7,
                                                  .pad = -1},
                              7);
    for (int k = 0; k < 4; k++) {
        uint64_t stored[7];
        float got[7];
        int32_t at[7];
        int64_t tokens[7];
        static const int64_t order[] = {2, 1, 5, 3, 0, 6, -1};
        for (uint64_t i = 0; i < 7; i++)
            number_put(types[k], stored, i, values[i]);
        struct cells_row r = {stored, columns, 7, types[k], HR_U8, 0};
        check_eq(cells_csr(&w.f, &w.g, &r, &w.s, got, at, NULL, false, NULL), 0);
        for (int i = 0; i < 7; i++)
            check(isnan(values[i]) ? isnan(got[i]) : got[i] == values[i]);
        check_eq(cells_ranked(&t.f, &t.g, &r, &t.s, tokens, NULL, below(2), NULL), 0);
        check(!memcmp(tokens, order, sizeof order));
    }
    world_free(&w);
    world_free(&t);
}

/* Also rows as long as none before, and what comes after them. */
static void giant_rows_and_rows_of_equal_values_are_ranked(void)
{
    enum { GIANT = 60000, LENGTH = 5000 };
    static int32_t tokens[LENGTH];
    static uint8_t mask[LENGTH];
    struct world w = world_of((struct cells_form){.kind = CELLS_RANKED,
                                                  .column = HR_I32,
                                                  .n_columns = 65000,
                                                  .length = LENGTH,
                                                  .total = 1e4},
                              65000);
    for (int round = 0; round < 4; round++) {
        struct sample s = sample_of(round == 2 ? 3 : GIANT, 65000, HR_F32, HR_U16, RISING);
        float *v = s.values;
        for (uint64_t i = 0; i < s.row.n; i++)
            v[i] = round == 1 ? 3 : (float)(1 + below(1000000)) / 7;
        struct naive d = naive_of(&w.f, NULL, &s.row);
        uint64_t n = d.n < LENGTH ? d.n : LENGTH;
        bool same = cells_ranked(&w.f, &w.g, &s.row, &w.s, tokens, mask, below(2), NULL) == 0;
        for (uint64_t i = 0; same && i < LENGTH; i++) {
            /* the sum is taken in another order: a last bit may differ */
            double got = i < n ? 0 : 1, want = i < n ? d.value[d.falling[i]] : 1;
            for (uint64_t k = 0; i < n && i % 97 == 0 && k < d.n; k++)
                got = d.column[k] == tokens[i] ? d.value[k] : got;
            same = mask[i] == (i < n) && (i >= n || i % 97 || fabs(got - want) <= 1e-7 * want);
        }
        check(same);
        naive_free(&d);
        sample_free(&s);
    }
    world_free(&w);
}

static void no_row_allocates_once_the_scratch_has_grown(void)
{
    int64_t genes[64];
    float values[64];
    struct world w = world_of((struct cells_form){.kind = CELLS_PADDED,
                                                  .value = HR_F32,
                                                  .column = HR_I64,
                                                  .n_columns = 500,
                                                  .length = 64,
                                                  .pick = CELLS_PICK_TOP,
                                                  .log1p = true,
                                                  .bins = 9},
                              500);
    struct sample largest = sample_of(500, 500, HR_U16, HR_I32, SHUFFLED);
    check_eq(cells_padded(&w.f, &w.g, &largest.row, &w.s, genes, values, NULL, true, NULL), 0);
    mem_fail_at(UINT64_MAX, false);
    for (int i = 0; i < 50; i++) {
        struct sample s = sample_of(below(501), 500, HR_U16, HR_I32, i % 3);
        check_eq(cells_padded(&w.f, &w.g, &s.row, &w.s, genes, values, NULL, true, NULL), 0);
        sample_free(&s);
    }
    check_eq(mem_count(), 0);
    mem_fail_at(0, false);
    sample_free(&largest);
    world_free(&w);
}

/* float32 log1p of every 997th float against the C library's in double: at most one step away. */
static void log1p_is_within_one_step_of_the_correctly_rounded(void)
{
    enum { N = 4096 };
    static float values[N], got[N];
    static int32_t columns[N], at[N];
    struct world w = world_of(
        (struct cells_form){
            .kind = CELLS_CSR, .value = HR_F32, .column = HR_I32, .n_columns = N, .log1p = true},
        N);
    struct cells_row r = {values, columns, N, HR_F32, HR_I32, 0};
    uint64_t wrong = 0, inexact = 0, total = 0;
    for (int i = 0; i < N; i++)
        columns[i] = i;
    for (uint64_t bits = 0; bits < 1ull << 32;) {
        for (int i = 0; i < N; i++, bits += 997) {
            uint32_t b = (uint32_t)bits;
            memcpy(&values[i], &b, sizeof b);
        }
        check_eq(cells_csr(&w.f, &w.g, &r, &w.s, got, at, NULL, false, NULL), 0);
        for (int i = 0; i < N; i++, total++) {
            float want = (float)log1p(values[i]);
            bool same = isnan(want) ? isnan(got[i]) : got[i] == want;
            inexact += !same;
            wrong += !same && nextafterf(want, got[i]) != got[i];
        }
    }
    check_eq(wrong, 0);
    check(inexact * 1000000 <= total);
    world_free(&w);
}

/* What numpy 2.4 gives: np.digitize(x, np.quantile(x, np.linspace(0, 1, bins - 1))). */
static void bins_are_those_of_scgpt(void)
{
    enum { N = 16 };
    static const uint8_t counts[N] = {3, 0, 1, 1, 2, 7, 1, 0, 12, 2, 5, 1, 1, 3, 30, 2};
    static const float six[N] = {3, 0, 2, 2, 3, 4, 2, 0, 4, 3, 4, 2, 2, 3, 5, 3};
    static const float nine[N] = {5, 0, 3, 3, 4, 6, 3, 0, 7, 4, 6, 3, 3, 5, 8, 4};
    static const uint8_t columns[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct cells_row r = {counts, columns, N, HR_U8, HR_U8, 0};
    float row[N];
    struct cells_form f = {.kind = CELLS_DENSE, .value = HR_F32, .n_columns = N, .bins = 6};
    struct world w = world_of(f, N);
    check_eq(cells_dense(&w.f, &w.g, &r, &w.s, row, false, NULL), 0);
    check(!memcmp(row, six, sizeof six));
    world_free(&w);
    f.bins = 9;
    f.log1p = true;
    f.total = 1e4;
    w = world_of(f, N);
    check_eq(cells_dense(&w.f, &w.g, &r, &w.s, row, false, NULL), 0);
    check(!memcmp(row, nine, sizeof nine));
    world_free(&w);
}

/* The largest bin for +inf, none for -inf; the others as if they were not there. */
static void infinities_count_for_no_quantile(void)
{
    static const float values[] = {INFINITY, 1, 2, 3, -INFINITY, NAN}, want[] = {3, 1, 2, 3, 0};
    static const uint8_t columns[] = {0, 1, 2, 3, 4, 5};
    struct cells_row r = {values, columns, 6, HR_F32, HR_U8, 0};
    struct world w = world_of(
        (struct cells_form){.kind = CELLS_DENSE, .value = HR_F32, .n_columns = 6, .bins = 4}, 6);
    float row[6];
    check_eq(cells_dense(&w.f, &w.g, &r, &w.s, row, false, NULL), 0);
    check(!memcmp(row, want, sizeof want) && isnan(row[5]));
    world_free(&w);
}

/* By way of float32 the first would be a tie, and go down. */
static void half_precision_is_rounded_once(void)
{
    static const double values[] = {1 + 0x1p-11 + 0x1p-30, 1 + 0x1p-11};
    static const uint8_t columns[] = {0, 1};
    static const uint16_t want[] = {0x3c01, 0x3c00};
    struct cells_row r = {values, columns, 2, HR_F64, HR_U8, 0};
    uint16_t row[2];
    struct world w =
        world_of((struct cells_form){.kind = CELLS_DENSE, .value = HR_F16, .n_columns = 2}, 2);
    check_eq(cells_dense(&w.f, &w.g, &r, &w.s, row, false, NULL), 0);
    check(!memcmp(row, want, sizeof want));
    world_free(&w);
}

/* The same bytes with and without the kernels of newer processors. */
static void every_level_gives_the_same_bytes(void)
{
#if defined(__x86_64__)
    enum { N = 3000 };
    static float first[N], second[N];
    static int32_t at[N], again[N];
    static float factors[N];
    if (!__builtin_cpu_supports("avx2"))
        SKIP("no second level on this processor");
    for (int i = 0; i < N; i++)
        factors[i] = (float)(1 + below(1000)) / 77;
    for (int round = 0; round < 60; round++) {
        struct cells_form f = {
            .kind = CELLS_CSR, .value = HR_F32, .column = HR_I32, .n_columns = N};
        f.log1p = round & 1;
        f.total = round & 2 ? 12345 : 0;
        f.factors = round & 4 ? factors : NULL;
        f.bins = round & 8 ? 51 : 0;
        struct world w = world_of(f, N);
        enum hr_dtype type = round & 16 ? HR_F32 : HR_F64;
        struct sample s = sample_of(below(N + 1), N, type, column_types[1 + round % 3], round % 3);
        for (uint64_t i = 0; i < s.row.n; i++)
            number_put(type, s.values, i, (double)below(1 << 30) / 1234567);
        uint64_t n, m;
        check_eq(cells_csr(&w.f, &w.g, &s.row, &w.s, first, at, &n, false, NULL), 0);
        w.f.made->own = cells_kernels_base();
        w.f.made->kernels = kernels_base();
        check_eq(cells_csr(&w.f, &w.g, &s.row, &w.s, second, again, &m, false, NULL), 0);
        check(n == m && !memcmp(at, again, n * sizeof *at));
        check(!memcmp(first, second, n * sizeof *first));
        sample_free(&s);
        world_free(&w);
    }
#else
    SKIP("one level only on this architecture");
#endif
}

/* One of three weights 1 : 2 : 5, and a stored 0 and a negative one, which never are. */
static void draws_by_weight_follow_the_weights(void)
{
    enum { DRAWS = 20000 };
    struct world w = world_of((struct cells_form){.kind = CELLS_PADDED,
                                                  .value = HR_F32,
                                                  .column = HR_I32,
                                                  .n_columns = 8,
                                                  .length = 2,
                                                  .pick = CELLS_PICK_WEIGHTED,
                                                  .pad = -1},
                              8);
    static const float values[] = {1, 0, 2, -3, 5};
    static const uint8_t columns[] = {0, 1, 2, 3, 7};
    int first[8] = {0}, second[8] = {0};
    struct cells_row r = {values, columns, 5, HR_F32, HR_U8, 0};
    for (int i = 0; i < DRAWS; i++) {
        int32_t genes[2];
        float got[2];
        uint8_t mask[2];
        r.key = keyed_word(7, (uint64_t)i);
        check_eq(cells_padded(&w.f, &w.g, &r, &w.s, genes, got, mask, below(2), NULL), 0);
        check(mask[0] && mask[1] && genes[0] != genes[1]);
        check(got[0] == (genes[0] == 0 ? 1 : genes[0] == 2 ? 2 : 5));
        first[genes[0]]++;
        second[genes[1]]++;
    }
    check_eq(first[1] + first[3] + second[1] + second[3], 0);
    check(first[0] > DRAWS / 8 - 300 && first[0] < DRAWS / 8 + 300);
    check(first[2] > DRAWS / 4 - 400 && first[2] < DRAWS / 4 + 400);
    /* the second is the first again, without the one that is gone: 1/8 · 2/7 + 5/8 · 2/3 */
    double expected = DRAWS * (1.0 / 8 * 2 / 7 + 5.0 / 8 * 2 / 3);
    check(second[2] > expected - 400 && second[2] < expected + 400);
    world_free(&w);
}

int main(void)
{
    RUN(columns_that_do_not_exist_are_named);
    RUN(nan_and_infinities_are_carried_and_rank_at_the_ends);
    RUN(giant_rows_and_rows_of_equal_values_are_ranked);
    RUN(no_row_allocates_once_the_scratch_has_grown);
    RUN(log1p_is_within_one_step_of_the_correctly_rounded);
    RUN(bins_are_those_of_scgpt);
    RUN(infinities_count_for_no_quantile);
    RUN(half_precision_is_rounded_once);
    RUN(draws_by_weight_follow_the_weights);
    RUN(every_level_gives_the_same_bytes);
    return t_done();
}
