/* Rows of single cells in every form, against the definition followed value by value. */
#include "cells_naive.h"

enum { MOST = 300, LENGTH = 64 };

static const enum hr_dtype value_types[] = {HR_BOOL, HR_I8,  HR_I16, HR_I32,  HR_I64, HR_U8, HR_U16,
                                            HR_U32,  HR_U64, HR_F16, HR_BF16, HR_F32, HR_F64};
static const enum hr_dtype column_types[] = {HR_I8, HR_I16, HR_I32, HR_I64,
                                             HR_U8, HR_U16, HR_U32, HR_U64};
static const enum hr_dtype float_types[] = {HR_F32, HR_F64, HR_F16, HR_BF16};

struct world { /* a form, a map and all that they point to */
    struct cells_form f;
    struct cells_genes g;
    struct cells_scratch s;
    uint64_t width; /* of the data set */
    int32_t to[MOST];
    bool mapped;
    float factors[MOST];
    int64_t tokens[MOST];
};

/* A random map of the data set into the output: injective, often rising. */
static void random_map(struct world *w)
{
    bool rising = below(2);
    uint64_t next = below(3);
    uint8_t taken[MOST] = {0};
    for (uint64_t i = 0; i < w->width; i++) {
        uint64_t c = rising ? next : below(w->f.n_columns);
        w->to[i] = -1;
        if (c >= w->f.n_columns || taken[c] || !below(4))
            continue;
        w->to[i] = (int32_t)c;
        taken[c] = 1;
        next = c + 1 + below(2);
    }
}

static void random_arithmetic(struct world *w)
{
    if (below(2))
        w->f.total = 1e4;
    w->f.total_selected = below(2);
    w->f.log1p = below(2);
    for (int i = 0; i < MOST; i++)
        w->factors[i] = below(8) ? (float)(1 + below(7)) / 4 : below(2) ? 0 : NAN;
    if (below(2))
        w->f.factors = w->factors;
}

static void random_world(struct world *w, enum cells_kind kind)
{
    memset(w, 0, sizeof *w);
    w->f.kind = kind;
    w->f.column = below(2) ? HR_I32 : HR_I64;
    w->f.value = float_types[below(kind == CELLS_PADDED ? 1 : 4)];
    w->f.n_columns = 1 + below(MOST - 1);
    random_arithmetic(w);
    if (below(4) == 0 && kind != CELLS_RANKED)
        w->f.bins = 2 + (uint32_t)below(20);
    w->f.length = 2 + below(LENGTH - 2);
    w->f.pick = below(3);
    for (int i = 0; i < MOST; i++)
        w->tokens[i] = below(9) ? 1000 + i : -1;
    w->f.tokens = below(2) ? w->tokens : NULL;
    w->f.pad = -7;
    w->f.has_first = below(2);
    w->f.has_last = below(2);
    w->f.first = 3;
    w->f.last = 4;
    w->f.pad_value = -2;
    w->f.special_value = -1;
    w->mapped = below(2);
    w->width = w->mapped ? 1 + below(MOST - 1) : 1 + below(w->f.n_columns);
    if (w->mapped)
        random_map(w);
    cells_scratch_init(&w->s);
    check_eq(cells_form_init(&w->f, NULL), 0);
    check_eq(cells_genes_init(&w->g, &w->f, w->width, w->mapped ? w->to : NULL, NULL), 0);
}

static void world_free(struct world *w)
{
    cells_genes_dispose(&w->g);
    cells_form_dispose(&w->f);
    cells_scratch_dispose(&w->s);
}

static struct sample random_sample(const struct world *w)
{
    enum hr_dtype column = column_types[below(8)];
    uint64_t limit = column == HR_I8 ? 128 : column == HR_U8 ? 256 : MOST;
    uint64_t width = w->width < limit ? w->width : limit;
    int order = (int)below(6);
    struct sample s = sample_of(below(width + 1), width, value_types[below(13)], column,
                                order > REPEATED ? RISING : order);
    return s;
}

/* log(1 + x) below -1 is NaN on both sides; a sum that no longer fits bool or a byte cannot happen: values are
 * at most 24, three of a kind. */
static struct naive definition(const struct world *w, const struct cells_row *r)
{
    return naive_of(&w->f, w->mapped ? w->to : NULL, r);
}

static int64_t id_at(const struct cells_form *f, const void *ids, uint64_t i)
{
    return f->column == HR_I32 ? ((const int32_t *)ids)[i] : ((const int64_t *)ids)[i];
}

/* ---- each form against its definition -------------------------------------------------------- */

static bool csr_is_right(struct world *w, const struct cells_row *r, const struct naive *d)
{
    static char values[MOST * 8], columns[MOST * 8];
    uint64_t written = 99;
    memset(values, 0x55, sizeof values);
    memset(columns, 0x55, sizeof columns);
    bool ok = cells_csr(&w->f, &w->g, r, &w->s, values, columns, &written, false, NULL) == 0;
    ok &= written == d->n;
    for (uint64_t i = 0; ok && i < d->n; i++)
        ok = id_at(&w->f, columns, i) == d->column[i] &&
             value_is(w->f.value, values, i, d->value[i]);
    for (size_t i = d->n * dtype_kind_size(w->f.value); ok && i < sizeof values; i++)
        ok = values[i] == 0x55;
    for (size_t i = d->n * dtype_kind_size(w->f.column); ok && i < sizeof columns; i++)
        ok = columns[i] == 0x55;
    return ok;
}

static bool dense_is_right(struct world *w, const struct cells_row *r, const struct naive *d,
                           bool stream)
{
    static char row[MOST * 8 + 8];
    uint64_t k = 0;
    memset(row, 0x55, sizeof row);
    bool ok = cells_dense(&w->f, &w->g, r, &w->s, row, stream, NULL) == 0;
    for (uint64_t c = 0; ok && c < w->f.n_columns; c++) {
        bool there = k < d->n && d->column[k] == (int32_t)c;
        ok = value_is(w->f.value, row, c, there ? d->value[k] : 0);
        k += there;
    }
    return ok && row[w->f.n_columns * dtype_kind_size(w->f.value)] == 0x55;
}

/* The frame around n genes; they start at *at. */
static bool frame_is_right(const struct cells_form *f, const void *ids, const uint8_t *mask,
                           uint64_t n, uint64_t *at)
{
    uint64_t used = n + f->has_first + f->has_last;
    bool ok = used <= f->length;
    ok = ok && (!f->has_first || id_at(f, ids, 0) == f->first);
    ok = ok && (!f->has_last || id_at(f, ids, used - 1) == f->last);
    for (uint64_t i = 0; ok && i < f->length; i++)
        ok = mask[i] == (i < used) && (i < used || id_at(f, ids, i) == f->pad);
    *at = f->has_first;
    return ok;
}

static int64_t token_of(const struct cells_form *f, int32_t column)
{
    return f->tokens ? f->tokens[column] : column;
}

/* Values of neighbours in rank are float32 numbers; log1p may be off in the last bit of a tie, so there the
 * values are compared and not the genes. */
static bool same_rank(const struct cells_form *f, const struct naive *d, uint64_t i, int64_t got)
{
    uint32_t want = d->falling[i];
    if (got == token_of(f, d->column[want]))
        return true;
    for (uint64_t k = 0; f->log1p && k < d->n; k++)
        if (token_of(f, d->column[k]) == got)
            return fabs(d->value[k] - d->value[want]) <= 0x1p-22 * fabs(d->value[want]);
    return false;
}

static bool ranked_is_right(struct world *w, const struct cells_row *r, const struct naive *d)
{
    static int64_t tokens[LENGTH];
    uint8_t mask[LENGTH];
    uint64_t places = w->f.length - w->f.has_first - w->f.has_last, at = 0;
    uint64_t n = d->n < places ? d->n : places;
    bool ok = cells_ranked(&w->f, &w->g, r, &w->s, tokens, mask, below(2), NULL) == 0;
    ok = ok && frame_is_right(&w->f, tokens, mask, n, &at);
    for (uint64_t i = 0; ok && i < n; i++)
        ok = same_rank(&w->f, d, i, id_at(&w->f, tokens, at + i));
    return ok;
}

static bool padded_is_right(struct world *w, const struct cells_row *r, const struct naive *d)
{
    static int64_t genes[LENGTH];
    float values[LENGTH + 1];
    uint8_t mask[LENGTH];
    const struct cells_form *f = &w->f;
    uint64_t places = f->length - f->has_first - f->has_last, at = 0, k = 0;
    uint64_t n = d->n < places ? d->n : places;
    bool ok = cells_padded(f, &w->g, r, &w->s, genes, values, mask, below(2), NULL) == 0;
    ok = ok && frame_is_right(f, genes, mask, n, &at);
    ok = ok && (!f->has_first || values[0] == -1) && (!f->has_last || values[at + n] == -1);
    for (uint64_t i = at + n + f->has_last; ok && i < f->length; i++)
        ok = values[i] == -2;
    for (uint64_t i = 0; ok && i < n; i++) {
        int64_t got = id_at(f, genes, at + i);
        if (f->pick == CELLS_PICK_TOP && (f->bins || !f->log1p))
            ok = f->log1p || same_rank(f, d, i, got);
        for (k = f->pick == CELLS_PICK_TOP ? 0 : k; k < d->n; k++) /* rising but for the top */
            if (token_of(f, d->column[k]) == got)
                break;
        ok = ok && k < d->n && value_is(HR_F32, values, at + i, d->value[k]);
        ok = ok && (f->pick != CELLS_PICK_FIRST || k == i);
        k++;
    }
    return ok;
}

static bool form_is_right(struct world *w, const struct cells_row *r, const struct naive *d)
{
    switch (w->f.kind) {
    case CELLS_CSR:
        return csr_is_right(w, r, d);
    case CELLS_DENSE:
        return dense_is_right(w, r, d, false) && dense_is_right(w, r, d, true);
    case CELLS_PADDED:
        return padded_is_right(w, r, d);
    default:
        return ranked_is_right(w, r, d);
    }
}

static void many_rows(enum cells_kind kind)
{
    for (int i = 0; i < 1500; i++) {
        struct world w;
        random_world(&w, kind);
        for (int k = 0; k < 3; k++) {
            struct sample s = random_sample(&w);
            struct naive d = definition(&w, &s.row);
            check_eq(cells_form_accepts(&w.f, s.row.value, s.row.column, NULL), 0);
            if (!check(form_is_right(&w, &s.row, &d)))
                printf("# world %d: kind %d log %d %d %s, %s columns, %d values, bins %d\n", i,
                       kind, w.f.log1p, w.f.value, dtype_kind_name(s.row.value),
                       dtype_kind_name(s.row.column), (int)s.row.n, (int)w.f.bins);
            naive_free(&d);
            sample_free(&s);
        }
        world_free(&w);
    }
}

static void csr_rows_are_what_their_definition_says(void)
{
    many_rows(CELLS_CSR);
}

static void dense_rows_are_what_their_definition_says(void)
{
    many_rows(CELLS_DENSE);
}

static void padded_rows_are_what_their_definition_says(void)
{
    many_rows(CELLS_PADDED);
}

static void ranked_rows_are_what_their_definition_says(void)
{
    many_rows(CELLS_RANKED);
}

static void rows_of_dense_matrices_give_the_same_in_every_form(void)
{
    for (int i = 0; i < 1200; i++) {
        struct world w;
        random_world(&w, (enum cells_kind)(i % 4));
        struct sample s = sample_of(w.width, w.width, value_types[below(13)], HR_I32, RISING);
        s.row.columns = NULL;
        struct naive d = definition(&w, &s.row);
        check(form_is_right(&w, &s.row, &d));
        naive_free(&d);
        sample_free(&s);
        world_free(&w);
    }
}

/* Integers stay what they are, and say so when they cannot. */
static void stored_integers_come_out_exact_or_are_refused(void)
{
    struct world w = {.width = 10};
    struct hr_error e;
    w.f =
        (struct cells_form){.kind = CELLS_CSR, .value = HR_U16, .column = HR_I32, .n_columns = 10};
    check_eq(cells_form_init(&w.f, NULL), 0);
    check_eq(cells_genes_init(&w.g, &w.f, 10, NULL, NULL), 0);
    cells_scratch_init(&w.s);
    int64_t values[] = {1, 0, 65535}, large[] = {1, 65536, 3};
    uint8_t columns[] = {0, 4, 9};
    uint16_t got[3];
    int32_t at[3];
    struct cells_row r = {values, columns, 3, HR_I64, HR_U8, 0};
    check_eq(cells_csr(&w.f, &w.g, &r, &w.s, got, at, NULL, false, &e), 0);
    check(got[0] == 1 && got[1] == 0 && got[2] == 65535 && at[2] == 9);
    r.values = large;
    check_eq(cells_csr(&w.f, &w.g, &r, &w.s, got, at, NULL, false, &e), HR_EDATA);
    check_has(e.text, "uint16");
    check_eq(cells_form_accepts(&w.f, HR_F32, HR_I32, &e), HR_EINVAL);
    uint16_t twice[] = {65535, 7, 1};
    uint8_t again[] = {3, 2, 3};
    r = (struct cells_row){twice, again, 3, HR_U16, HR_U8, 0};
    check_eq(cells_csr(&w.f, &w.g, &r, &w.s, got, at, NULL, false, &e), HR_EDATA);
    check_has(e.text, "more than once");
    world_free(&w);
}

int main(void)
{
    RUN(csr_rows_are_what_their_definition_says);
    RUN(dense_rows_are_what_their_definition_says);
    RUN(padded_rows_are_what_their_definition_says);
    RUN(ranked_rows_are_what_their_definition_says);
    RUN(rows_of_dense_matrices_give_the_same_in_every_form);
    RUN(stored_integers_come_out_exact_or_are_refused);
    return t_done();
}
