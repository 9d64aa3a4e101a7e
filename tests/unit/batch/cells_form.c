/* What a form and a map of genes refuse, and what they make of odd tables. */
#include "cells_naive.h"

static const struct cells_form plain = {
    .kind = CELLS_PADDED, .value = HR_F32, .column = HR_I32, .n_columns = 10, .length = 4};

static void refused(struct cells_form f, const char *why)
{
    struct hr_error e = {0};
    if (check_eq(cells_form_init(&f, &e), HR_EINVAL))
        check_has(e.text, why);
    else
        cells_form_dispose(&f);
}

#define WITH(...)                                                                                  \
    (struct cells_form)                                                                            \
    {                                                                                              \
        .kind = CELLS_PADDED, .value = HR_F32, .column = HR_I32, .n_columns = 10, .length = 4,     \
        __VA_ARGS__                                                                                \
    }
#pragma GCC diagnostic ignored "-Woverride-init"

static void forms_that_make_no_sense_say_why(void)
{
    static const int64_t large[10] = {[3] = 1ll << 40}, negative[10] = {[7] = -2};
    refused(WITH(.kind = 9), "no such form");
    refused(WITH(.pick = 7), "no such pick");
    refused(WITH(.n_columns = 1ull << 31), "at most 2147483647");
    refused(WITH(.column = HR_U32), "uint32");
    refused(WITH(.total = -1), "positive total");
    refused(WITH(.total = NAN), "positive total");
    refused(WITH(.total = INFINITY), "positive total");
    refused(WITH(.bins = 1), "2 to 65536");
    refused(WITH(.bins = 65537), "2 to 65536");
    refused(WITH(.kind = CELLS_RANKED, .bins = 5), "ranked");
    refused(WITH(.value = HR_F64), "padded");
    refused(WITH(.value = HR_I32), "padded");
    refused(WITH(.kind = CELLS_CSR, .value = HR_BOOL), "not bool");
    refused(WITH(.kind = CELLS_CSR, .value = HR_U8, .bins = 257), "uint8");
    refused(WITH(.kind = CELLS_CSR, .value = HR_F16, .bins = 2050), "float16");
    refused(WITH(.kind = CELLS_CSR, .value = HR_I32, .log1p = true), "float type");
    refused(WITH(.has_first = true, .has_last = true, .length = 1), "special tokens");
    refused(WITH(.pad = 1ll << 32), "padding token");
    refused(WITH(.has_last = true, .last = -(1ll << 32)), "last token");
    refused(WITH(.tokens = large), "1099511627776");
    refused(WITH(.tokens = negative), "column 7");
}

static void maps_are_checked_and_known_for_what_they_are(void)
{
    static const int32_t same[] = {0, 1, 2}, twice[] = {4, -1, 4}, beyond[] = {10},
                         below_all[] = {-2}, rising[] = {1, -1, 5}, falling[] = {5, 2, 0};
    struct cells_form f = plain;
    struct cells_genes g;
    struct hr_error e;
    check_eq(cells_form_init(&f, NULL), 0);
    check_eq(cells_genes_init(&g, &f, 3, twice, &e), HR_EINVAL);
    check_has(e.text, "column 2 goes to column 4");
    check_eq(cells_genes_init(&g, &f, 1, beyond, &e), HR_EINVAL);
    check_has(e.text, "an output of 10");
    check_eq(cells_genes_init(&g, &f, 1, below_all, &e), HR_EINVAL);
    check_eq(cells_genes_init(&g, &f, 11, NULL, &e), HR_EINVAL);
    check_has(e.text, "without a map");
    check_eq(cells_genes_init(&g, &f, 3, same, &e), 0);
    check(!g.to && g.rising && g.all);
    check_eq(cells_genes_init(&g, &f, 3, rising, &e), 0);
    check(g.to && g.rising && !g.all);
    cells_genes_dispose(&g);
    check_eq(cells_genes_init(&g, &f, 3, falling, &e), 0);
    check(g.to && !g.rising && g.all);
    cells_genes_dispose(&g);
    check_eq(cells_genes_init(&g, &f, 0, rising, &e), 0);
    cells_genes_dispose(&g);
    cells_form_dispose(&f);
}

/* A map knows what the form leaves out: two columns may not share one that is left out all the same. */
static void a_form_leaves_genes_out_by_factor_and_token(void)
{
    static const float factors[10] = {1, 0, 2, NAN, 1, INFINITY, 1, 1, 1, 1};
    static const int64_t tokens[10] = {5, 6, -1, 8, 9, 10, 11, 12, 13, 14};
    struct cells_form f = plain;
    struct cells_genes g;
    f.factors = factors;
    f.tokens = tokens;
    check_eq(cells_form_init(&f, NULL), 0);
    check_eq(cells_genes_init(&g, &f, 6, NULL, NULL), 0);
    static const int32_t want[] = {0, -1, -1, -1, 4, -1};
    check(g.to && !memcmp(g.to, want, sizeof want));
    cells_genes_dispose(&g);
    cells_form_dispose(&f);
}

static void stored_types_are_accepted_or_refused(void)
{
    struct cells_form f = {.kind = CELLS_CSR, .value = HR_I32, .column = HR_I32, .n_columns = 3};
    struct hr_error e;
    check_eq(cells_form_init(&f, NULL), 0);
    check_eq(cells_form_accepts(&f, HR_U64, HR_U8, &e), 0);
    check_eq(cells_form_accepts(&f, HR_I32, HR_NONE, &e), 0);
    check_eq(cells_form_accepts(&f, HR_F16, HR_U8, &e), HR_EINVAL);
    check_has(e.text, "float16");
    check_eq(cells_form_accepts(&f, HR_C64, HR_U8, &e), HR_EINVAL);
    check_eq(cells_form_accepts(&f, HR_I32, HR_F32, &e), HR_EINVAL);
    check_has(e.text, "columns are integers");
    cells_form_dispose(&f);
}

static void running_out_of_memory_leaves_nothing_behind(void)
{
    static const float factors[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t tokens[10] = {0};
    static const int32_t to[3] = {2, 1, 0};
    struct cells_row r = {(const uint8_t *)"abc", (const uint8_t *)"\2\1\0", 3, HR_U8, HR_U8, 0};
    int32_t genes[4];
    for (uint64_t n = 1; n < 12; n++) {
        struct cells_form f = plain;
        struct cells_genes g;
        struct cells_scratch s;
        struct hr_error e;
        f.factors = factors;
        f.tokens = tokens;
        uint64_t live = mem_live();
        cells_scratch_init(&s);
        mem_fail_at(n, false);
        int rc = cells_form_init(&f, &e);
        if (!rc) {
            rc = cells_genes_init(&g, &f, 3, to, &e);
            if (!rc) {
                rc = cells_padded(&f, &g, &r, &s, genes, NULL, NULL, false, &e);
                cells_genes_dispose(&g);
            }
            cells_form_dispose(&f);
        }
        cells_scratch_dispose(&s);
        mem_fail_at(0, false);
        check(rc == HR_ENOMEM || (rc == 0 && n > 6));
        check_eq(mem_live(), live);
    }
}

int main(void)
{
    RUN(forms_that_make_no_sense_say_why);
    RUN(maps_are_checked_and_known_for_what_they_are);
    RUN(a_form_leaves_genes_out_by_factor_and_token);
    RUN(stored_types_are_accepted_or_refused);
    RUN(running_out_of_memory_leaves_nothing_behind);
    return t_done();
}
