/* Views over rows of sparse matrices and tables: what is refused, and rows end to end over files, HTTP and memory. */
#include "api/runtime.h"
#include "base/mem.h"
#include "base/thread.h"
#include "little.h"
#include "served.h"

static struct hr_error e;

#define ROWS    200
#define COLUMNS 40

static void must(int rc)
{
    if (rc < 0)
        printf("# %s\n", e.text);
    check(rc >= 0);
}

/* ---- the matrices: m (zstd, chunks that fit nothing) and k (raw) ------------------------------- */

static int64_t length_of(int64_t row)
{
    return row % 7 == 3 ? 0 : row == 90 ? COLUMNS : row % 13;
}
static int64_t column_of(int64_t row, int64_t i)
{
    return row == 90 ? i : i * 3 + row % 3;
}
static float value_of(int64_t row, int64_t i)
{
    return (float)(row * 100 + i + 1);
}

static int64_t offsets[ROWS + 1];
static int32_t columns[ROWS * COLUMNS];
static float values[ROWS * COLUMNS];

static void array_meta(const char *path, int64_t n, int chunk, const char *type, bool zstd)
{
    char key[64], text[900];
    snprintf(key, sizeof key, "%s/zarr.json", path);
    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%lld],\"data_type\":\"%s\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%d]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[{\"name\":"
             "\"bytes\",\"configuration\":{\"endian\":\"little\"}}%s]}",
             (long long)n, type, chunk,
             zstd ? ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}" : "");
    little_put(key, text, strlen(text));
}

/* One chunk, with so many bytes behind it that no decoder looks at. */
static void chunk_put(const char *path, int64_t n, int chunk, int number, const void *items,
                      size_t size, bool zstd, uint32_t more)
{
    char key[64], *raw = calloc((size_t)chunk, size);
    size_t cap = ZSTD_compressBound((size_t)chunk * size) + 8 + more, got = (size_t)chunk * size;
    char *stored = calloc(1, cap);
    int64_t first = (int64_t)number * chunk, here = n - first < chunk ? n - first : chunk;
    memcpy(raw, (const char *)items + (size_t)first * size, (size_t)here * size);
    if (zstd)
        got = ZSTD_compress(stored, cap, raw, got, 3);
    else
        memcpy(stored, raw, got);
    if (more) {
        uint32_t frame[2] = {0x184D2A50, more};
        memcpy(stored + got, frame, 8);
        got += 8 + more;
    }
    snprintf(key, sizeof key, "%s/c/%d", path, number);
    little_put(key, stored, got);
    free(raw);
    free(stored);
}

static void array_put(const char *path, int64_t n, int chunk, const char *type, const void *items,
                      size_t size, bool zstd)
{
    array_meta(path, n, chunk, type, zstd);
    for (int i = 0; (int64_t)i * chunk < n; i++)
        chunk_put(path, n, chunk, i, items, size, zstd, 0);
}

static void write_all(void)
{
    static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}";
    int32_t narrow[ROWS + 1];
    for (int64_t r = 0; r < ROWS; r++) {
        offsets[r + 1] = offsets[r] + length_of(r);
        for (int64_t i = 0; i < length_of(r); i++) {
            columns[offsets[r] + i] = (int32_t)column_of(r, i);
            values[offsets[r] + i] = value_of(r, i);
        }
    }
    for (int64_t r = 0; r <= ROWS; r++)
        narrow[r] = (int32_t)offsets[r];
    little_put("zarr.json", group, sizeof group - 1);
    array_put("m/indptr", ROWS + 1, 50, "int64", offsets, 8, true);
    array_put("m/indices", offsets[ROWS], 17, "int32", columns, 4, true);
    array_put("m/data", offsets[ROWS], 30, "float32", values, 4, true);
    array_put("k/indptr", ROWS + 1, 70, "int32", narrow, 4, false);
    array_put("k/indices", offsets[ROWS], 100, "int32", columns, 4, false);
    array_put("k/data", offsets[ROWS], 4000, "float32", values, 4, false);
}

static const struct hr_matrix m_part = {"m/indptr", "m/indices", "m/data", COLUMNS, 0};
static const struct hr_matrix k_part = {"k/indptr", "k/indices", "k/data", COLUMNS, 0};

static struct hr_samples *no_views(void)
{
    struct hr_archive *a = NULL;
    struct hr_samples *s = NULL;
    must(hr_open(little_url(), NULL, &a, &e));
    must(hr_samples_new(a, "obs", &s, &e));
    hr_archive_unref(a);
    return s;
}

static int add(struct hr_samples *s, const char *view, const struct hr_matrix *part, int form,
               int64_t row_chunk, int64_t read_offsets)
{
    struct hr_cells_options o = HR_CELLS_OPTIONS;
    o.form = form;
    o.row_chunk = row_chunk;
    o.read_offsets = read_offsets;
    o.length = 5;
    return hr_samples_cells(s, view, part, 1, NULL, 0, &o, &e);
}

static struct hr_samples *one_view(const struct hr_matrix *part, int64_t row_chunk, bool known)
{
    struct hr_samples *s = no_views();
    must(add(s, "X", part, HR_CELLS_CSR, row_chunk, known ? 0 : -1));
    return s;
}

static struct hr_loader *open_loader(struct hr_samples *s, const struct hr_loader_options *o)
{
    struct hr_loader *l = NULL;
    must(hr_loader_open(s, o, &l, &e));
    return l;
}

/* Tensors 0, 1, 2: rows as they are stored; invalid ones empty. */
static bool is_right(const struct hr_batch *b, int tensor)
{
    struct hr_tensor d, c, p;
    hr_batch_tensor(b, tensor, &d);
    hr_batch_tensor(b, tensor + 1, &c);
    hr_batch_tensor(b, tensor + 2, &p);
    const int32_t *at = p.data;
    bool good = at[0] == 0;
    for (int64_t r = 0; r < hr_batch_rows(b); r++) {
        int64_t id = hr_batch_index(b)[r], n = hr_batch_valid(b)[r] ? length_of(id) : 0;
        good &= at[r + 1] - at[r] == n;
        for (int64_t i = 0; i < n && good; i++)
            good &= ((const float *)d.data)[at[r] + i] == value_of(id, i) &&
                    ((const int32_t *)c.data)[at[r] + i] == column_of(id, i);
    }
    return good && d.shape[0] == at[hr_batch_rows(b)];
}

/* The rows of an epoch; -1: something was wrong. */
static int64_t run_epoch(struct hr_loader *l)
{
    struct hr_batch *b;
    int64_t rows = 0, rc;
    bool good = true;
    while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
        good &= is_right(b, 0);
        rows += hr_batch_rows(b);
        hr_batch_release(b);
    }
    must((int)rc);
    return good ? rows : -1;
}

/* ---- what is refused --------------------------------------------------------------------------- */

static void wrong_arguments_are_named(void)
{
    struct hr_samples *s = no_views();
    struct hr_cells_options o = HR_CELLS_OPTIONS;
    struct hr_matrix part = m_part;
    int32_t to[COLUMNS] = {0};
    struct hr_columns map = {to, COLUMNS - 1};
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, NULL, &e), HR_EINVAL);
    check_eq(hr_samples_cells(s, "", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
    check_eq(hr_samples_cells(s, "X", NULL, 0, NULL, 0, &o, &e), HR_EINVAL);
    check_eq(hr_samples_cells(s, "X", &part, 1, &map, 1, &o, &e), HR_EINVAL);
    check_has(e.text, "data set 0 has 40 columns, and is given a map of 39");
    map.n = COLUMNS; /* all to the same column */
    check_eq(hr_samples_cells(s, "X", &part, 1, &map, 1, &o, &e), HR_EINVAL);
    for (int form = -1; form <= 4; form += 5) {
        o.form = form;
        check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
        check_has(e.text, "no such choice");
    }
    o.form = HR_CELLS_CSR;
    o.row_chunk = -1;
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
    o.row_chunk = 0;
    part.columns = 0;
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
    part.columns = (int64_t)1 << 31;
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
    part.columns = COLUMNS;
    for (int set = -1; set <= 1; set += 2) {
        part.set = set;
        check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
        check_has(e.text, "data set");
    }
    part.set = 0;
    part.data = NULL;
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EINVAL);
    part.data = "m/nothing";
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_ENOENT);
    part.data = "m/indptr"; /* 201 values for fewer columns */
    check_eq(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e), HR_EDATA);
    part = m_part;
    part.indptr = "m/data"; /* of CSC, or of something else */
    check(hr_samples_cells(s, "X", &part, 1, NULL, 0, &o, &e) < 0);
    must(hr_samples_cells(s, "X", &m_part, 1, NULL, 0, &o, &e));
    check_eq(hr_samples_cells(s, "X", &m_part, 1, NULL, 0, &o, &e), HR_EINVAL);
    check_has(e.text, "X");
    hr_samples_unref(s);
}

static void tables_are_checked(void)
{
    struct hr_samples *s = no_views(), *derived = NULL;
    static const int64_t numbers[ROWS * 2] = {1};
    int64_t n;
    must(add(s, "X", &m_part, HR_CELLS_CSR, 0, 0));
    check_eq(hr_samples_table(s, "X", HR_I64, numbers, ROWS, 1, &e), HR_EINVAL);
    check_has(e.text, "there is a view named X already");
    check_eq(hr_samples_table(s, "", HR_I64, numbers, ROWS, 1, &e), HR_EINVAL);
    check_eq(hr_samples_table(s, "t", HR_I64, NULL, ROWS, 1, &e), HR_EINVAL);
    check_eq(hr_samples_table(s, "t", HR_NONE, numbers, ROWS, 1, &e), HR_EINVAL);
    check_eq(hr_samples_table(s, "t", HR_I64, numbers, 0, 1, &e), HR_EINVAL);
    must(hr_samples_table(s, "t", HR_I64, numbers, ROWS, 2, &e));
    check_eq(hr_samples_table(s, "t", HR_I64, numbers, ROWS, 1, &e), HR_EINVAL);
    check_eq(add(s, "t", &m_part, HR_CELLS_CSR, 0, 0), HR_EINVAL); /* no view of a table's name */
    must(hr_samples_table(s, "u", HR_I64, numbers, ROWS - 1, 1, &e));
    check_eq(hr_samples_count(s, &n, &e), HR_EINVAL);
    check_has(e.text, "table u has 199 rows, one for each of the 200 positions");
    hr_samples_unref(s);
    s = one_view(&m_part, 0, true);
    must(hr_samples_isel_slice(s, 1, 5, 1, 50, 1, &derived, &e));
    check(hr_samples_table(s, "t", HR_I64, numbers, ROWS, 1, &e) < 0); /* too late */
    check(add(s, "Y", &m_part, HR_CELLS_CSR, 0, 0) < 0);
    hr_samples_unref(derived);
    hr_samples_unref(s);
}

static void a_state_of_another_view_is_refused(void)
{
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    char *state = NULL;
    o.n = 5;
    struct hr_samples *s = one_view(&m_part, 20, true);
    struct hr_loader *l = open_loader(s, &o);
    must(hr_loader_state(l, &state, &e));
    hr_loader_unref(l);
    hr_samples_unref(s);
    for (int form = HR_CELLS_CSR; form <= HR_CELLS_RANKED; form++) {
        s = no_views();
        must(add(s, "X", &m_part, form, 20, 0));
        l = open_loader(s, &o);
        check_eq(hr_loader_load_state(l, state, 0, &e), form == HR_CELLS_CSR ? 0 : HR_ESTATE);
        hr_loader_unref(l);
        hr_samples_unref(s);
    }
    hr_free(state);
}

/* ---- rows -------------------------------------------------------------------------------------- */

static void every_row_comes_as_it_is_stored(void)
{
    static const int64_t chunks[] = {0, 1, 7, 64};
    for (int i = 0; i < 16; i++) {
        struct hr_samples *s = one_view(i & 1 ? &k_part : &m_part, chunks[i / 4], i & 2);
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        o.n = 9;
        o.shuffle = i % 3 == 0 ? HR_SHUFFLE_NONE : HR_SHUFFLE_SPREAD;
        o.remainder = HR_SHORT;
        struct hr_loader *l = open_loader(s, &o);
        for (int epoch = 0; epoch < 2; epoch++)
            check_eq(run_epoch(l), ROWS);
        hr_loader_unref(l);
        hr_samples_unref(s);
    }
}

/* Down to the smallest that is accepted, where chunks are held and read again. */
static void budgets_change_nothing(void)
{
    for (int known = 0; known < 2; known++) {
        struct hr_samples *s = one_view(&m_part, 7, known);
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        int opened = 0;
        o.n = 9;
        o.shuffle = HR_SHUFFLE_SPREAD;
        o.remainder = HR_SHORT;
        for (uint64_t bytes = 1 << 12; opened < 6 && bytes < 1 << 22; bytes += bytes / 4) {
            struct hr_loader *l = NULL;
            o.memory = bytes;
            int rc = hr_loader_open(s, &o, &l, &e);
            check(rc == 0 || rc == HR_EBUDGET);
            if (rc < 0)
                continue;
            opened++;
            check_eq(run_epoch(l), ROWS);
            hr_loader_unref(l);
        }
        check_eq(opened, 6);
        hr_samples_unref(s);
    }
}

static void views_over_several_matrices_go_together(void)
{
    struct hr_samples *s = no_views();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b;
    int64_t rows = 0;
    int rc;
    static float label[ROWS];
    for (int i = 0; i < ROWS; i++)
        label[i] = (float)i / 2;
    must(add(s, "X", &m_part, HR_CELLS_CSR, 7, -1));
    must(add(s, "D", &k_part, HR_CELLS_DENSE, 30, -1));
    must(add(s, "K", &k_part, HR_CELLS_CSR, 11, 0));
    must(hr_samples_table(s, "t", HR_F32, label, ROWS, 1, &e));
    o.n = 16;
    o.shuffle = HR_SHUFFLE_GLOBAL;
    o.remainder = HR_SHORT;
    struct hr_loader *l = open_loader(s, &o);
    while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
        struct hr_tensor d, t;
        bool good = is_right(b, 0) && is_right(b, 4);
        hr_batch_tensor(b, 3, &d);
        hr_batch_tensor(b, 7, &t);
        for (int64_t r = 0; r < hr_batch_rows(b); r++, rows++) {
            int64_t id = hr_batch_index(b)[r];
            const float *row = (const float *)d.data + r * COLUMNS;
            float sum = 0, want = 0;
            for (int64_t i = 0; i < length_of(id); i++) {
                want += value_of(id, i);
                good &= row[column_of(id, i)] == value_of(id, i);
            }
            for (int c = 0; c < COLUMNS; c++)
                sum += row[c];
            good &= sum == want && ((const float *)t.data)[r] == (float)id / 2;
        }
        check(good);
        hr_batch_release(b);
    }
    must(rc);
    check_eq(rows, ROWS);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

/* ---- what goes wrong --------------------------------------------------------------------------- */

static void stored_chunks_larger_than_usual_get_a_larger_ticket(void)
{
    for (int part = 0; part < 3; part++) {
        if (part == 0)
            chunk_put("m/data", offsets[ROWS], 30, 9, values, 4, true, 6000);
        else if (part == 1)
            chunk_put("m/indices", offsets[ROWS], 17, 9, columns, 4, true, 9000);
        else
            chunk_put("m/indptr", ROWS + 1, 50, 2, offsets, 8, true, 20000);
        for (int known = 0; known < 2; known++) {
            struct hr_samples *s = one_view(&m_part, 7, known);
            struct hr_loader_options o = HR_LOADER_OPTIONS;
            o.n = 9;
            o.memory = 8 << 20;
            o.remainder = HR_SHORT;
            o.shuffle = HR_SHUFFLE_SPREAD;
            struct hr_loader *l = open_loader(s, &o);
            check_eq(run_epoch(l), ROWS);
            hr_loader_unref(l);
            hr_samples_unref(s);
        }
        write_all();
    }
}

/* A row chunk with far more items than the mean, of which nothing is known before. */
static void row_chunks_with_more_items_than_reserved_get_a_larger_ticket(void)
{
    static int64_t at[4002];
    int64_t n = 3000;
    int32_t *ids = calloc((size_t)n, 4);
    float *x = calloc((size_t)n, 4);
    for (int i = 0; i < 4002; i++)
        at[i] = i <= 2000 ? 0 : i >= 2004 ? n : (i - 2000) * n / 4;
    for (int64_t i = 0; i < n; i++) {
        ids[i] = (int32_t)(i % (n / 4));
        x[i] = (float)i;
    }
    for (int zstd = 0; zstd < 2; zstd++) {
        array_put("g/indptr", 4002, 500, "int64", at, 8, zstd);
        array_put("g/indices", n, 100, "int32", ids, 4, zstd);
        array_put("g/data", n, 100, "float32", x, 4, zstd);
        const struct hr_matrix g = {"g/indptr", "g/indices", "g/data", 3000, 0};
        struct hr_samples *s = one_view(&g, 4, false);
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        struct hr_batch *b;
        int64_t rows = 0, items = 0;
        int rc;
        o.n = 100;
        o.remainder = HR_SHORT;
        struct hr_loader *l = open_loader(s, &o);
        while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
            struct hr_tensor d;
            hr_batch_tensor(b, 0, &d);
            bool good = true;
            for (int64_t i = 0; i < d.shape[0]; i++)
                good &= ((const float *)d.data)[i] == (float)(items + i);
            check(good);
            items += d.shape[0];
            rows += hr_batch_rows(b);
            hr_batch_release(b);
        }
        must(rc);
        check_eq(rows, 4001);
        check_eq(items, n);
        hr_loader_unref(l);
        hr_samples_unref(s);
    }
    free(ids);
    free(x);
}

/* `key` is damaged: the batches before it come, its own is an error that names it; or its rows are masked. */
static void check_bad(const struct hr_matrix *part, bool known, const char *says, int64_t least)
{
    for (int mask = 0; mask < 2; mask++) {
        struct hr_samples *s = one_view(part, 10, known);
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        struct hr_batch *b;
        int64_t invalid = 0, rows = 0;
        int rc;
        o.n = 10;
        o.on_error = mask ? HR_ON_ERROR_MASK : HR_ON_ERROR_RAISE;
        struct hr_loader *l = open_loader(s, &o);
        while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
            check(is_right(b, 0) || !strncmp(says, "row 119", 7)); /* nothing is wrong with 120 */
            for (int64_t r = 0; r < hr_batch_rows(b); r++, rows++)
                invalid += !hr_batch_valid(b)[r];
            hr_batch_release(b);
        }
        if (mask) {
            must(rc);
            check_eq(rows, ROWS);
            check(invalid >= least && invalid < ROWS / 2);
        } else {
            check(rc == HR_EDATA || rc == HR_ESTORE);
            check_has(e.text, says);
            check_has(e.text, "rows ");
        }
        hr_loader_unref(l);
        hr_samples_unref(s);
    }
}

static void damaged_pieces_fail_or_are_masked(void)
{
    for (int known = 0; known < 2; known++) {
        little_put("m/data/c/9", "rubbish", 7);
        check_bad(&m_part, known, "chunk 9 of m/data", 10);
        write_all();
        little_put("m/indices/c/30", "rubbish", 7);
        check_bad(&m_part, known, "chunk 30 of m/indices", 10);
        write_all();
        columns[600] = COLUMNS; /* a column that does not exist */
        array_put("m/indices", offsets[ROWS], 17, "int32", columns, 4, true);
        check_bad(&m_part, known, "row ", 10);
        write_all();
        little_put("k/indices/c/3", columns, 100); /* cut short */
        check_bad(&k_part, known, "k/indices", 10);
        write_all();
    }
    little_put("m/indptr/c/2", "rubbish", 7); /* rows 100 … 149 */
    check_bad(&m_part, false, "m/indptr", 50);
    offsets[120] = offsets[119] - 3;
    array_put("m/indptr", ROWS + 1, 50, "int64", offsets, 8, true);
    check_bad(&m_part, false, "row 119 goes from", 10);
    struct hr_samples *s = no_views(); /* what is read at once is refused at once */
    check_eq(add(s, "X", &m_part, HR_CELLS_CSR, 10, 0), HR_EDATA);
    check_has(e.text, "row 119 goes from");
    hr_samples_unref(s);
    write_all();
}

static void missing_pieces_are_filled_counted_or_refused(void)
{
    little_delete("m/data/c/9");
    for (int known = 0; known < 2; known++)
        for (int missing = HR_MISSING_FILL; missing <= HR_MISSING_ERROR;
             missing += HR_MISSING_ERROR) {
            struct hr_samples *s = one_view(&m_part, 10, known);
            struct hr_loader_options o = HR_LOADER_OPTIONS;
            struct hr_batch *b;
            int64_t filled = 0, zeros = 0;
            int rc;
            o.n = 10;
            o.missing = missing;
            struct hr_loader *l = open_loader(s, &o);
            while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
                struct hr_tensor d;
                hr_batch_tensor(b, 0, &d);
                for (int64_t i = 0; i < d.shape[0]; i++)
                    zeros += ((const float *)d.data)[i] == 0;
                filled += hr_batch_filled(b);
                hr_batch_release(b);
            }
            if (missing == HR_MISSING_FILL) {
                must(rc);
                check_eq(zeros, 30);
                check(filled >= 1 && filled < 5);
            } else {
                check_eq(rc, HR_EDATA);
                check_has(e.text, "chunk 9 of m/data is missing");
            }
            hr_loader_unref(l);
            hr_samples_unref(s);
        }
    write_all();
}

static uint64_t settled(void)
{
    uint64_t live = mem_live();
    for (int still = 0; still < 20;) {
        usleep(5000);
        still = mem_live() == live ? still + 1 : 0;
        live = mem_live();
    }
    return live;
}

static void everything_is_given_back_whenever_it_is_closed(void)
{
    uint64_t before = settled();
    for (int i = 0; i < 24; i++) {
        struct hr_samples *s = one_view(&m_part, 5, i % 2);
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        struct hr_batch *b = NULL;
        o.n = 4;
        o.shuffle = HR_SHUFFLE_SPREAD;
        o.memory = i % 3 ? 8 << 20 : 0;
        struct hr_loader *l = open_loader(s, &o);
        for (int k = 0; k < i / 6; k++) {
            check_eq(hr_loader_next(l, 20000, &b, &e), 1);
            hr_batch_release(b);
        }
        usleep((useconds_t)(i * 997 % 9000));
        if (i % 4 == 0)
            must(hr_loader_rewind(l, &e));
        hr_loader_unref(l);
        hr_samples_unref(s);
    }
    check(settled() <= before);
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    uint64_t before = settled();
    int failures = 0;
    for (uint64_t at = 1; at < 1500; at += 1 + at / 14) {
        struct hr_samples *s = no_views();
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        struct hr_loader *l = NULL;
        struct hr_batch *b = NULL;
        o.n = 5;
        o.shuffle = HR_SHUFFLE_SPREAD;
        o.memory = 1 << 20;
        mem_fail_at(at, false);
        int rc = add(s, "X", &m_part, HR_CELLS_CSR, 7, at % 2 ? -1 : 0);
        if (rc >= 0)
            rc = hr_loader_open(s, &o, &l, &e);
        for (int i = 0; rc >= 0 && i < 12; i++) {
            rc = hr_loader_next(l, 20000, &b, &e);
            if (rc == 1)
                check(is_right(b, 0));
            hr_batch_release(b);
        }
        mem_fail_at(0, false);
        failures += rc < 0;
        check(rc >= 0 || rc == HR_ENOMEM);
        if (rc < 0 && rc != HR_ENOMEM)
            printf("# allocation %d: %s\n", (int)at, e.text);
        hr_loader_unref(l);
        hr_samples_unref(s);
    }
    check(failures > 10);
    check(settled() <= before);
}

static int sentences_of(struct hr_samples *s, uint32_t last)
{
    static const int64_t begin[] = {0, 2, 3}, first[] = {0, 8}, size[] = {8, 4};
    uint32_t cells[12];
    struct hr_sentences o = HR_SENTENCES;
    for (uint32_t i = 0; i < 12; i++)
        cells[i] = i < 11 ? i * 5 : last;
    o.begin = begin;
    o.n_pools = 2;
    o.cells = (struct hr_pools){
        .members = 4, .first = first, .size = size, .cells = cells, .n_cells = 12};
    o.controls = o.cells;
    return hr_samples_sentences(s, &o, &e);
}

/* What is refused leaves the samples as they were. */
static void sentences_are_checked_before_they_are_made(void)
{
    static const int64_t numbers[ROWS];
    struct hr_samples *s = one_view(&m_part, 10, true);
    check(sentences_of(s, ROWS) < 0);
    must(hr_samples_table(s, "short", HR_I64, numbers, ROWS - 1, 1, &e));
    check(sentences_of(s, 7) == HR_EINVAL && strstr(e.text, "table short has 199 rows"));
    hr_samples_unref(s);

    s = one_view(&m_part, 10, true);
    must(hr_samples_table(s, "cells", HR_I64, numbers, ROWS, 1, &e));
    check(sentences_of(s, 7) == HR_EINVAL && strstr(e.text, "cells is a name"));
    hr_samples_unref(s);

    s = one_view(&m_part, 10, true);
    check(sentences_of(s, ROWS) < 0);
    must(sentences_of(s, 7));
    check(sentences_of(s, 7) == HR_ESTATE);
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 3;
    struct hr_loader *l = open_loader(s, &o);
    check(hr_loader_next(l, 20000, &b, &e) == 1);
    hr_batch_release(b);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void pools_are_cut_of_what_there_can_be(void)
{
    static const uint32_t ids[4] = {3, 5, 8, 9};
    int64_t sizes[2] = {4, 0}, first[2], size[2], count[2], group[2], n = 0;
    struct hr_cut c = {.ids = ids, .sizes = sizes, .n_groups = 2, .members = 2};
    must(hr_pools_cut(&c, 2, first, size, count, group, &n, &e));
    check(n == 1 && first[0] == 0 && size[0] == 4 && count[0] == 2 && group[0] == 0);
    c.members = 0;
    check_eq(hr_pools_cut(&c, 2, first, size, count, group, &n, &e), HR_EINVAL);
    c.members = INT64_MAX;
    check_eq(hr_pools_cut(&c, 2, first, size, count, group, &n, &e), HR_EINVAL);
    c.members = 2;
    sizes[1] = -1;
    check_eq(hr_pools_cut(&c, 2, first, size, count, group, &n, &e), HR_EINVAL);
    check(strstr(e.text, "group 1 has -1 ids") != NULL);
}

static void run_all(void)
{
    write_all();
    RUN(wrong_arguments_are_named);
    RUN(tables_are_checked);
    RUN(a_state_of_another_view_is_refused);
    RUN(sentences_are_checked_before_they_are_made);
    RUN(pools_are_cut_of_what_there_can_be);
    RUN(every_row_comes_as_it_is_stored);
    RUN(budgets_change_nothing);
    RUN(views_over_several_matrices_go_together);
    RUN(stored_chunks_larger_than_usual_get_a_larger_ticket);
    RUN(row_chunks_with_more_items_than_reserved_get_a_larger_ticket);
    RUN(damaged_pieces_fail_or_are_masked);
    RUN(missing_pieces_are_filled_counted_or_refused);
    RUN(everything_is_given_back_whenever_it_is_closed);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
}

int main(void)
{
    char command[300];
    snprintf(little_root, sizeof little_root, "%s/headrace-cells-%d",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
    run_all();
    int port = served_start(little_root);
    check(port > 0);
    snprintf(little_served, sizeof little_served, "http://127.0.0.1:%d", port);
    run_all();
    *little_served = 0;
    snprintf(command, sizeof command, "rm -rf '%s'", little_root);
    if (system(command))
        return 1;
    *little_root = 0;
    run_all();
    return t_done();
}
