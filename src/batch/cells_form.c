/* Forms and gene maps (cells.h): everything that can be decided before the first row. */
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "batch/cells_inside.h"
#include "codec/dtype.h"

#define MAX_COLUMNS ((uint64_t)INT32_MAX)
#define MAX_BINS    65536

static bool is_float(enum hr_dtype t)
{
    return t >= HR_F16 && t <= HR_F64;
}

static bool is_integer(enum hr_dtype t)
{
    return t >= HR_I8 && t <= HR_U64;
}

static bool is_sampled(const struct cells_form *f)
{
    return f->kind == CELLS_PADDED || f->kind == CELLS_RANKED;
}

static const struct cells_kernels *kernels_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return cells_kernels_avx2();
#endif
    return cells_kernels_base();
}

/* ---- what makes sense ------------------------------------------------------------------------ */

/* The largest whole number below which a type has all of them. */
static double whole_numbers(enum hr_dtype t)
{
    switch (t) {
    case HR_I8:
        return INT8_MAX;
    case HR_U8:
        return UINT8_MAX;
    case HR_I16:
        return INT16_MAX;
    case HR_U16:
        return UINT16_MAX;
    case HR_F16:
        return 2048;
    case HR_BF16:
        return 256;
    default:
        return MAX_BINS;
    }
}

static int check_values(const struct cells_form *f, struct hr_error *e)
{
    if (!(f->total >= 0) || isinf(f->total))
        return error_set(e, HR_EINVAL, "cells are normalised to a positive total, not to %g",
                         f->total);
    if (f->bins == 1 || f->bins > MAX_BINS)
        return error_set(e, HR_EINVAL, "%u bins; there are 2 to %d", f->bins, MAX_BINS);
    if (f->kind == CELLS_RANKED && f->bins)
        return error_set(e, HR_EINVAL, "cells are ranked by value; bins make no sense for them");
    if (f->kind == CELLS_RANKED)
        return 0;
    if (!is_float(f->value) && !is_integer(f->value))
        return error_set(e, HR_EINVAL, "values of cells are numbers, not %s",
                         dtype_kind_name(f->value));
    if (f->kind == CELLS_PADDED && (!is_float(f->value) || f->value == HR_F64))
        return error_set(e, HR_EINVAL, "padded values are float32, float16 or bfloat16, not %s",
                         dtype_kind_name(f->value));
    if (f->bins && f->bins - 1 > whole_numbers(f->value))
        return error_set(e, HR_EINVAL, "%u bins do not fit %s; ask for float32", f->bins,
                         dtype_kind_name(f->value));
    if (is_integer(f->value) && !f->bins && (f->total != 0 || f->log1p || f->factors))
        return error_set(e, HR_EINVAL,
                         "values that are normalised, taken log1p of or divided are no %s; ask "
                         "for a float type",
                         dtype_kind_name(f->value));
    return 0;
}

static int check_token(const struct cells_form *f, const char *what, int64_t token,
                       struct hr_error *e)
{
    if (f->column == HR_I32 && token != (int32_t)token)
        return error_set(e, HR_EINVAL, "%s %lld does not fit int32; ask for int64", what,
                         (long long)token);
    return 0;
}

static int check_tokens(const struct cells_form *f, struct hr_error *e)
{
    uint64_t special = (uint64_t)f->has_first + f->has_last;
    if (f->length < special || f->length > MAX_COLUMNS)
        return error_set(e, HR_EINVAL, "a length of %llu; it is %llu (the special tokens) to %llu",
                         (unsigned long long)f->length, (unsigned long long)special,
                         (unsigned long long)MAX_COLUMNS);
    TRY(check_token(f, "the padding token", f->pad, e));
    if (f->has_first)
        TRY(check_token(f, "the first token", f->first, e));
    if (f->has_last)
        TRY(check_token(f, "the last token", f->last, e));
    for (uint64_t i = 0; f->tokens && i < f->n_columns; i++) {
        if (f->tokens[i] < -1)
            return error_set(e, HR_EINVAL, "column %llu has the token %lld; -1 leaves it out",
                             (unsigned long long)i, (long long)f->tokens[i]);
        TRY(check_token(f, "the token", f->tokens[i], e));
    }
    return 0;
}

static int check_form(const struct cells_form *f, struct hr_error *e)
{
    if (f->kind > CELLS_RANKED)
        return error_set(e, HR_EINVAL, "no such form of cells: %d", (int)f->kind);
    if (f->n_columns > MAX_COLUMNS)
        return error_set(e, HR_EINVAL, "%llu columns; there are at most %llu",
                         (unsigned long long)f->n_columns, (unsigned long long)MAX_COLUMNS);
    if (f->kind != CELLS_DENSE && f->column != HR_I32 && f->column != HR_I64)
        return error_set(e, HR_EINVAL, "columns and tokens are int32 or int64, not %s",
                         dtype_kind_name(f->column));
    if (f->kind == CELLS_PADDED && f->pick > CELLS_PICK_WEIGHTED)
        return error_set(e, HR_EINVAL, "no such pick of genes: %d", (int)f->pick);
    TRY(check_values(f, e));
    return is_sampled(f) ? check_tokens(f, e) : 0;
}

/* ---- the form -------------------------------------------------------------------------------- */

static bool usable(float factor)
{
    return isfinite(factor) && factor != 0;
}

static int make_weights(struct cells_made *m, const struct cells_form *f)
{
    m->weights = mem_array(f->n_columns, sizeof *m->weights);
    if (!m->weights)
        return -1;
    for (uint64_t i = 0; i < f->n_columns; i++)
        m->weights[i] = usable(f->factors[i]) ? 1 / (double)f->factors[i] : 0;
    return 0;
}

static int make_tokens(struct cells_made *m, const struct cells_form *f)
{
    m->tokens = mem_array(f->n_columns, sizeof *m->tokens);
    if (!m->tokens)
        return -1;
    memcpy(m->tokens, f->tokens, f->n_columns * sizeof *m->tokens);
    return 0;
}

static int make_left_out(struct cells_made *m, const struct cells_form *f)
{
    m->left_out = mem_array(f->n_columns, 1);
    if (!m->left_out)
        return -1;
    for (uint64_t i = 0; i < f->n_columns; i++)
        m->left_out[i] = (m->weights && m->weights[i] == 0) || (m->tokens && m->tokens[i] < 0);
    return 0;
}

int cells_form_init(struct cells_form *f, struct hr_error *e)
{
    struct convert any = {.from = HR_F64, .to = HR_F32, .from_item = 8, .to_item = 4};
    f->made = NULL;
    TRY(check_form(f, e));
    TRY(convert_init(&any, e));
    struct cells_made *m = f->made = mem_zalloc(sizeof *m);
    bool tokens = is_sampled(f) && f->tokens;
    if (!m || (f->factors && make_weights(m, f)) || (tokens && make_tokens(m, f)) ||
        ((f->factors || tokens) && make_left_out(m, f))) {
        cells_form_dispose(f);
        return error_nomem(e, f->n_columns * 17, "the genes of a form");
    }
    m->kernels = any.kernels;
    m->own = kernels_best();
    m->plain = f->total == 0 && !f->log1p && !f->factors && !f->bins;
    m->places = is_sampled(f) ? f->length - f->has_first - f->has_last : 0;
    return 0;
}

void cells_form_dispose(struct cells_form *f)
{
    if (f->made) {
        mem_free(f->made->weights);
        mem_free(f->made->tokens);
        mem_free(f->made->left_out);
    }
    mem_free(f->made);
    f->made = NULL;
}

int cells_form_accepts(const struct cells_form *f, enum hr_dtype value, enum hr_dtype column,
                       struct hr_error *e)
{
    if (value < HR_BOOL || value > HR_F64)
        return error_set(e, HR_EINVAL, "values of cells are numbers, not %s",
                         dtype_kind_name(value));
    if (column != HR_NONE && !is_integer(column))
        return error_set(e, HR_EINVAL, "columns are integers, not %s", dtype_kind_name(column));
    if (f->kind != CELLS_RANKED && is_float(value) && is_integer(f->value) && !f->bins)
        return error_set(e, HR_EINVAL, "%s values are not converted to %s; ask for a float type",
                         dtype_kind_name(value), dtype_kind_name(f->value));
    return 0;
}

/* ---- the map --------------------------------------------------------------------------------- */

static int check_map(const struct cells_form *f, uint64_t n, const int32_t *to, uint8_t *seen,
                     struct hr_error *e)
{
    for (uint64_t i = 0; i < n; i++) {
        int64_t column = to ? to[i] : (int64_t)i;
        if (column == -1)
            continue;
        if (column < 0 || (uint64_t)column >= f->n_columns)
            return error_set(e, HR_EINVAL, "column %llu goes to column %lld of an output of %llu",
                             (unsigned long long)i, (long long)column,
                             (unsigned long long)f->n_columns);
        if (seen[column])
            return error_set(e, HR_EINVAL,
                             "column %llu goes to column %lld of the output, as one before it does",
                             (unsigned long long)i, (long long)column);
        seen[column] = 1;
    }
    return 0;
}

/* What the map is good for, now that the form's own gaps are in it. */
static void describe(struct cells_genes *g)
{
    int64_t last = -1;
    bool same = true;
    g->rising = g->all = true;
    for (uint64_t i = 0; i < g->n; i++) {
        int32_t to = g->to[i];
        same &= (int64_t)i == to;
        g->all &= to >= 0;
        if (to < 0)
            continue;
        g->rising &= to > last;
        last = to;
    }
    if (same) {
        mem_free(g->to);
        g->to = NULL;
    }
}

int cells_genes_init(struct cells_genes *g, const struct cells_form *f, uint64_t n,
                     const int32_t *to, struct hr_error *e)
{
    const uint8_t *left_out = f->made->left_out;
    *g = (struct cells_genes){.n = n, .rising = true, .all = true};
    if (n > MAX_COLUMNS)
        return error_set(e, HR_EINVAL, "a data set of %llu columns; there are at most %llu",
                         (unsigned long long)n, (unsigned long long)MAX_COLUMNS);
    if (!to && n > f->n_columns)
        return error_set(e, HR_EINVAL,
                         "a data set of %llu columns for an output of %llu, without a map",
                         (unsigned long long)n, (unsigned long long)f->n_columns);
    if (!to && !left_out)
        return 0;
    uint8_t *seen = mem_array(f->n_columns, 1);
    g->to = mem_array(n, sizeof *g->to);
    int rc = seen && g->to ? check_map(f, n, to, seen, e)
                           : error_nomem(e, f->n_columns + n * sizeof *g->to, "a map of genes");
    mem_free(seen);
    if (rc < 0) {
        cells_genes_dispose(g);
        return rc;
    }
    for (uint64_t i = 0; i < n; i++) {
        int32_t column = to ? to[i] : (int32_t)i;
        g->to[i] = column >= 0 && left_out && left_out[column] ? -1 : column;
    }
    describe(g);
    return 0;
}

void cells_genes_dispose(struct cells_genes *g)
{
    mem_free(g->to);
    *g = (struct cells_genes){.rising = true, .all = true};
}
