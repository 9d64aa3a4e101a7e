/* Rows of single cells made at random, and what becomes of them by the definition in cells.h, one value after
 * another in double: shared by the tests of cells. */
#ifndef TESTS_CELLS_NAIVE_H
#define TESTS_CELLS_NAIVE_H
#include <math.h>
#include "base/mem.h"
#include "batch/cells_inside.h"
#include "codec/dtype.h"
#include "t.h"

static uint64_t random_state = 11;
static inline uint64_t random_word(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 16;
}

static inline uint64_t below(uint64_t n)
{
    return random_word() % n;
}

/* ---- stored numbers -------------------------------------------------------------------------- */

static inline double half_number(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double rest = h & 1023, v;
    if (exponent == 31)
        v = rest != 0 ? NAN : INFINITY;
    else
        v = exponent ? ldexp(1024 + rest, exponent - 25) : ldexp(rest, -24);
    return h & 0x8000 ? -v : v;
}

static inline double brain_number(uint16_t h)
{
    uint32_t b = (uint32_t)h << 16;
    float v;
    memcpy(&v, &b, sizeof v);
    return v;
}

#define NUMBERS(X)                                                                                 \
    X(HR_I8, int8_t)                                                                               \
    X(HR_I16, int16_t)                                                                             \
    X(HR_I32, int32_t)                                                                             \
    X(HR_I64, int64_t)                                                                             \
    X(HR_U8, uint8_t)                                                                              \
    X(HR_U16, uint16_t)                                                                            \
    X(HR_U32, uint32_t)                                                                            \
    X(HR_U64, uint64_t)                                                                            \
    X(HR_F32, float)                                                                               \
    X(HR_F64, double)

static inline double number_at(enum hr_dtype t, const void *items, uint64_t i)
{
    switch (t) {
#define READ(K, T)                                                                                 \
    case K:                                                                                        \
        return (double)((const T *)items)[i];
        NUMBERS(READ)
#undef READ
    case HR_BOOL:
        return ((const uint8_t *)items)[i] != 0;
    case HR_F16:
        return half_number(((const uint16_t *)items)[i]);
    default:
        return brain_number(((const uint16_t *)items)[i]);
    }
}

/* Halves hold whole numbers up to 256 here, written by their definition. */
static inline uint16_t half_bits_of(double v, bool brain)
{
    for (uint32_t h = 0; h < 65536; h++) /* slow, and above doubt */
        if ((brain ? brain_number((uint16_t)h) : half_number((uint16_t)h)) == v)
            return (uint16_t)h;
    return 0;
}

static inline void number_put(enum hr_dtype t, void *items, uint64_t i, double v)
{
    static uint16_t halves[2][512];
    switch (t) {
#define WRITE(K, T)                                                                                \
    case K:                                                                                        \
        ((T *)items)[i] = (T)v;                                                                    \
        break;
        NUMBERS(WRITE)
#undef WRITE
    case HR_BOOL:
        ((uint8_t *)items)[i] = v != 0;
        break;
    default:
        if (isnan(v) || isinf(v)) {
            uint16_t high = t == HR_BF16 ? 0x7f80 : 0x7c00;
            ((uint16_t *)items)[i] =
                (uint16_t)(high | (v < 0 ? 0x8000 : 0) | (isnan(v) ? 0x40 : 0));
        } else {
            uint16_t *known = &halves[t == HR_BF16][(int)v + 256];
            if (v != 0 && !*known)
                *known = half_bits_of(v, t == HR_BF16);
            ((uint16_t *)items)[i] = v != 0 ? *known : 0;
        }
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { RISING, SHUFFLED, REPEATED }; /* how the columns of a row lie */

struct sample {
    struct cells_row row;
    void *values, *columns;
};

/* n values in columns of a data set of `width`; whole numbers, some of them 0. */
static inline struct sample sample_of(uint64_t n, uint64_t width, enum hr_dtype value,
                                      enum hr_dtype column, int order)
{
    struct sample s;
    uint8_t *taken = calloc(width + 1, 1);
    uint64_t k = 0;
    bool is_signed = value <= HR_I64 || value >= HR_F16;
    s.values = calloc(n + 1, 8);
    s.columns = calloc(n + 1, 8);
    for (uint64_t left = n; left;) {
        uint64_t c = below(width);
        left -= !taken[c];
        taken[c] = 1;
    }
    for (uint64_t c = 0; c < width; c++)
        if (taken[c])
            number_put(column, s.columns, k++, (double)c);
    for (uint64_t i = n; order != RISING && i > 1; i--) {
        uint64_t j = below(i);
        double a = number_at(column, s.columns, i - 1), b = number_at(column, s.columns, j);
        number_put(column, s.columns, i - 1, b);
        number_put(column, s.columns, j, a);
    }
    for (uint64_t i = 0; order == REPEATED && i < n / 4 + 1 && n; i++)
        number_put(column, s.columns, below(n), number_at(column, s.columns, below(n)));
    for (uint64_t i = 0; i < n; i++) {
        double v = (double)(below(10) ? below(4) ? 1 + below(4) : below(25) : 0);
        number_put(value, s.values, i, is_signed && !below(20) ? -v : v);
    }
    free(taken);
    s.row = (struct cells_row){.values = s.values,
                               .columns = s.columns,
                               .n = n,
                               .value = value,
                               .column = column,
                               .key = random_word()};
    return s;
}

static inline void sample_free(struct sample *s)
{
    free(s->values);
    free(s->columns);
}

/* ---- by definition --------------------------------------------------------------------------- */

struct naive { /* what is in the output, by column */
    uint64_t n;
    int32_t *column;
    double *value;
    uint32_t *falling; /* places by falling float32 value (before bins), ties by column, NaN last */
};

static const struct naive *sorted_naive;
static inline int by_falling(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = (float)sorted_naive->value[i], y = (float)sorted_naive->value[j];
    if (isnan(x) || isnan(y))
        return isnan(x) != isnan(y) ? (isnan(x) ? 1 : -1) : (i > j) - (i < j);
    return x != y ? (x < y ? 1 : -1) : (i > j) - (i < j);
}

static inline int by_rising(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* np.digitize(x, np.quantile(x, np.linspace(0, 1, bins - 1))) of the non-zeros. */
static inline void naive_bins(struct naive *d, uint32_t bins)
{
    float *v = calloc(d->n + 1, sizeof *v);
    uint64_t m = 0, edges = bins - 1;
    for (uint64_t i = 0; i < d->n; i++)
        if (d->value[i] != 0 && isfinite(d->value[i]))
            v[m++] = (float)d->value[i];
    qsort(v, m, sizeof *v, by_rising);
    for (uint64_t i = 0; i < d->n; i++) {
        float x = (float)d->value[i];
        uint64_t digit = 0;
        for (uint64_t q = 0; q < edges && x != 0 && isfinite(x); q++) {
            double step = edges > 1 ? 1 / (double)(edges - 1) : 0;
            double at = (double)(m - 1) * (q && q == edges - 1 ? 1 : (double)q * step);
            double t = at - floor(at);
            uint64_t k = (uint64_t)floor(at);
            float a = v[k], b = v[k + 1 < m ? k + 1 : k], step_up = b - a;
            digit += (t < 0.5 ? a + step_up * t : b - step_up * (1 - t)) <= x;
        }
        digit = isinf(x) && x > 0 ? edges : digit;
        d->value[i] = isnan(x) ? (double)x : (double)digit;
    }
    free(v);
}

static inline bool left_out(const struct cells_form *f, int64_t c)
{
    bool sampled = f->kind == CELLS_PADDED || f->kind == CELLS_RANKED;
    return c < 0 || (f->factors && (f->factors[c] == 0 || !isfinite(f->factors[c]))) ||
           (sampled && f->tokens && f->tokens[c] < 0);
}

static inline struct naive naive_of(const struct cells_form *f, const int32_t *to,
                                    const struct cells_row *r)
{
    bool genes_only = f->kind == CELLS_PADDED || f->kind == CELLS_RANKED || !r->columns;
    double *sum = calloc(f->n_columns + 1, sizeof *sum), total = 0, selected = 0;
    uint8_t *there = calloc(f->n_columns + 1, 1);
    struct naive d = {.column = calloc(r->n + 1, 4),
                      .value = calloc(r->n + 1, 8),
                      .falling = calloc(r->n + 1, 4)};
    for (uint64_t i = 0; i < r->n; i++) {
        uint64_t from = r->columns ? (uint64_t)number_at(r->column, r->columns, i) : i;
        int64_t c = to ? to[from] : (int64_t)from;
        double v = number_at(r->value, r->values, i);
        total += v;
        if (left_out(f, c))
            continue;
        sum[c] = r->value == HR_BOOL ? sum[c] != 0 || v != 0 : sum[c] + v;
        there[c] = 1;
    }
    for (uint64_t c = 0; c < f->n_columns; c++)
        if (there[c] && (sum[c] != 0 || !genes_only)) {
            selected += sum[c];
            d.column[d.n] = (int32_t)c;
            d.value[d.n++] = sum[c];
        }
    total = f->total_selected ? selected : total;
    for (uint64_t i = 0; i < d.n; i++) {
        double v = d.value[i];
        v = f->total != 0 && total != 0 ? v * (f->total / total) : v;
        v = f->log1p ? log1p(v) : v;
        d.value[i] = f->factors ? v * (1 / (double)f->factors[d.column[i]]) : v;
        d.falling[i] = (uint32_t)i;
    }
    sorted_naive = &d;
    qsort(d.falling, d.n, sizeof *d.falling, by_falling);
    if (f->bins)
        naive_bins(&d, f->bins);
    free(sum);
    free(there);
    return d;
}

static inline void naive_free(struct naive *d)
{
    free(d->column);
    free(d->value);
    free(d->falling);
}

/* One rounding to type t, and what log1p is off by before it. */
static inline bool value_is(enum hr_dtype t, const void *items, uint64_t i, double want)
{
    double got = number_at(t, items, i), digits = 0;
    if (isnan(want) || isinf(want) || t < HR_F16)
        return isnan(want) ? isnan(got) : got == want;
    digits = t == HR_F64   ? 0x1p-50
             : t == HR_F32 ? 0x1.01p-24
             : t == HR_F16 ? 0x1.01p-11
                           : 0x1.01p-8;
    return fabs(got - want) <= digits * fabs(want) + (t == HR_F16 ? 0x1p-24 : 0x1p-149);
}

#endif
