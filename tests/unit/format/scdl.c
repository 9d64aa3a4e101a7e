/* SCDL: its header, what tells such an archive, what stands in the hierarchy, and what is said of files that do not fit. */
#include "format/scdl.h"
#include "fake.h"

static struct hr_error e;

/* ---- headers ---------------------------------------------------------------------------------------------------- */

struct text {
    char data[2048];
    size_t n;
};

static void put(struct text *t, uint64_t v, int bytes)
{
    while (bytes--)
        t->data[t->n++] = (char)(v >> (8 * bytes));
}

static void put_name(struct text *t, const char *name)
{
    put(t, strlen(name), 4);
    memcpy(t->data + t->n, name, strlen(name));
    t->n += strlen(name);
}

static void put_array(struct text *t, const char *name, uint64_t length, unsigned type)
{
    put_name(t, name);
    put(t, length, 8);
    put(t, type, 4);
    put(t, 0, 1);
}

static void begin_header(struct text *t, unsigned backend)
{
    t->n = 0;
    memcpy(t->data, "SCDL", 4);
    t->n = 4;
    put(t, 0x000100, 3);
    put(t, 1, 1);
    put(t, backend, 4);
    put(t, 3, 4);
}

enum { U8 = 1, U16 = 2, U64 = 4, F32 = 6 };

static void header(struct text *t, unsigned backend, uint64_t nnz, uint64_t rows)
{
    begin_header(t, backend);
    put_array(t, "DATA", nnz, F32);
    put_array(t, "ROWPTR", rows + 1, U8);
    put_array(t, "COLPTR", nnz, U16);
}

static void chunks(struct text *t, unsigned chunk_rows, unsigned n, uint64_t rows)
{
    put(t, 0, 4);
    put(t, 1, 1);
    put(t, chunk_rows, 4);
    put(t, n, 4);
    put(t, rows, 8);
}

static int parse(const struct text *t, struct scdl_header *h, struct arena *a)
{
    char *exact = mem_alloc(t->n);
    memcpy(exact, t->data, t->n);
    arena_init(a);
    int rc = scdl_header_parse(a, exact, t->n, "header.sch", h, &e);
    mem_free(exact);
    return rc;
}

static int parse_only(const struct text *t)
{
    struct scdl_header h;
    struct arena a;
    int rc = parse(t, &h, &a);
    arena_dispose(&a);
    return rc;
}

static void a_header_is_read_to_its_end(void)
{
    struct text t;
    struct scdl_header h;
    struct arena a;
    header(&t, 2, 77, 250);
    put(&t, 1, 4);
    put_name(&t, "var_features");
    put(&t, 250, 8);
    put(&t, 8, 4);
    put(&t, 2, 4);
    put_name(&t, "var_features/version.npy");
    put_name(&t, "var_features/dataframe_0.parquet");
    put(&t, 0, 1);
    put(&t, 1, 1);
    put(&t, 100, 4);
    put(&t, 3, 4);
    put(&t, 250, 8);
    check_eq(parse(&t, &h, &a), 0);
    check_eq(h.backend, SCDL_CHUNKED);
    check_eq(h.length[SCDL_DATA], 77);
    check_eq(h.length[SCDL_INDPTR], 251);
    check_str(h.type[SCDL_DATA].name, "float32");
    check_str(h.type[SCDL_INDICES].name, "uint16");
    check_str(h.type[SCDL_INDPTR].name, "uint8");
    check(h.has_chunks && h.chunk_rows == 100 && h.n_chunks == 3 && h.n_rows == 250);
    if (check(h.var && !h.obs)) {
        check_eq(h.var->n_files, 2);
        check_str(h.var->files[1], "var_features/dataframe_0.parquet");
    }
    arena_dispose(&a);
}

static void every_cut_is_an_error_but_where_a_list_may_be_absent(void)
{
    struct text t, whole;
    header(&whole, 2, 77, 250);
    size_t arrays = whole.n;
    chunks(&whole, 100, 3, 250);
    for (t = whole, t.n = 0; t.n < whole.n; t.n++)
        check(parse_only(&t) == (t.n == arrays || t.n == arrays + 4 ? 0 : HR_EDATA));
    put(&whole, 0x1234, 2); /* of a version to come */
    check_eq(parse_only(&whole), 0);
}

static void hostile_counts_and_names_are_refused_by_their_place(void)
{
    struct text t;
    header(&t, 1, 5, 2);
    t.data[12] = 0x7f; /* two billion arrays */
    check_eq(parse_only(&t), HR_EDATA);
    check(strstr(e.text, "byte 12: the number of arrays is 21"));
    header(&t, 1, 5, 2);
    t.data[16] = (char)0xff; /* a name of four billion bytes */
    check_eq(parse_only(&t), HR_EDATA);
    check(strstr(e.text, "byte 16"));
    header(&t, 1, 5, 2);
    put(&t, 1, 4);
    put_name(&t, "obs_features");
    put(&t, 2, 8);
    put(&t, 8, 4);
    put(&t, 1, 4);
    put_name(&t, "../../etc/passwd");
    put(&t, 0, 1);
    check_eq(parse_only(&t), HR_EDATA);
    check(strstr(e.text, "outside"));
    header(&t, 2, 5, 2);
    chunks(&t, 100, 4, 250);
    check_eq(parse_only(&t), HR_EDATA);
    check(strstr(e.text, "do not fit"));
    begin_header(&t, 1);
    put_array(&t, "DATA", 5, F32);
    put_array(&t, "DATA", 5, F32);
    put_array(&t, "COLPTR", 5, U16);
    check_eq(parse_only(&t), HR_EDATA);
    begin_header(&t, 1);
    put_array(&t, "DATA", 5, F32);
    put_array(&t, "ROWPTR", 3, F32);
    put_array(&t, "COLPTR", 5, U16);
    check_eq(parse_only(&t), HR_EDATA);
    check(strstr(e.text, "no integers"));
}

static void versions_and_backends_to_come_are_named(void)
{
    struct text t;
    header(&t, 3, 5, 2);
    check_eq(parse_only(&t), HR_EUNSUPPORTED);
    check(strstr(e.text, "backend 3"));
    header(&t, 1, 5, 2);
    t.data[4] = 1;
    check_eq(parse_only(&t), HR_EUNSUPPORTED);
    header(&t, 1, 5, 2);
    t.data[5] = 9; /* a minor one */
    check_eq(parse_only(&t), 0);
    t.data[7] = 2;
    check_eq(parse_only(&t), HR_EDATA);
}

/* ---- archives --------------------------------------------------------------------------------------------------- */

#define ROWS "\0\2\3" /* two rows of 2 and 1 values */
#define COLS "\1\0\2\0\1\0"
#define DATA "\0\0\200\77\0\0\0\100\0\0\100\100"

static const struct array *readable(struct reader *r, const char *path, uint64_t length,
                                    const char *object)
{
    const struct array *x = reader_find(r, path);
    struct where w;
    if (!check(x && !x->problem))
        return NULL;
    check_eq(x->ndim, 1);
    check_eq(x->shape[0], length);
    check_eq(x->n_chunks, 1);
    check(array_chunk_raw(x, 0));
    check_str(x->object, object);
    check_eq(array_locate(x, NULL, 0, &w, &e), 0);
    check_eq(w.kind, WHERE_OBJECT);
    check_str(w.key, object);
    return x;
}

static void a_plain_archive_is_a_csr_matrix(void)
{
    struct text t;
    header(&t, 1, 3, 2);
    struct fake f = FAKE({"header.sch", t.data, t.n}, {"data.npy", DATA, 12},
                         {"col_ptr.npy", COLS, 6}, {"row_ptr.npy", ROWS, 3});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_str(reader_format(r), "SCDL");
    check_str(f.log, "zarr.json .zmetadata .zarray .zgroup list: header.sch data.npy col_ptr.npy "
                     "row_ptr.npy row_ptr.npy");
    check(reader_complete(r));
    readable(r, "X/data", 3, "data.npy");
    readable(r, "X/indices", 3, "col_ptr.npy");
    readable(r, "X/indptr", 3, "row_ptr.npy");
    struct scdl_shape s;
    check_eq(scdl_describe(r, &s), 1);
    check(s.backend == SCDL_PLAIN && s.has_header && s.n_rows == 2 && s.nnz == 3);
    check(s.n_chunks == 1 && s.chunk_rows == 2);
    int asked = f.requests;
    check_eq(fake_want(&f, r, "X/data", &e), READER_READY);
    check_eq(fake_want(&f, r, "X/none", &e), HR_ENOENT);
    check_eq(f.requests, asked);
    check_eq(fake_walk(&f, r, &e), READER_READY); /* neighbours */
    check_eq(f.requests, asked + 4);
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(f.requests, asked + 4);
    reader_free(r);
}

static void a_store_that_cannot_list_is_asked_for_the_header(void)
{
    struct text t;
    header(&t, 1, 3, 2);
    struct fake f = FAKE({"header.sch", t.data, t.n}, {"data.npy", DATA, 12},
                         {"col_ptr.npy", COLS, 6}, {"row_ptr.npy", ROWS, 3});
    f.cannot_list = f.hides_sizes = true;
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check(reader_complete(r));
    readable(r, "X/indptr", 3, "row_ptr.npy");
    reader_free(r);
    struct fake none = {.cannot_list = true};
    check(!fake_open(&none, &e));
    check_eq(e.code, HR_ENOENT);
    check(strstr(e.text, "SCDL") && strstr(e.text, "AnnData") &&
          strstr(e.text, "cannot be listed"));
}

static void without_a_header_types_are_the_defaults(void)
{
    struct fake f = FAKE({"row_ptr.npy", "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 24},
                         {"data.npy", DATA, 12}, {"col_ptr.npy", DATA, 12});
    for (int turn = 0; turn < 2; turn++, f.cannot_list = true) {
        struct reader *r = fake_open(&f, &e);
        if (!check(r != NULL))
            return;
        readable(r, "X/data", 3, "data.npy");
        const struct array *x = readable(r, "X/indices", 3, "col_ptr.npy");
        check(x && !strcmp(x->type.name, "uint32"));
        readable(r, "X/indptr", 3, "row_ptr.npy");
        struct scdl_shape s;
        check(scdl_describe(r, &s) && s.n_rows == 2 && s.nnz == 3 && !s.has_header);
        reader_free(r);
    }
    f.hides_sizes = true;
    struct reader *r = fake_open(&f, &e);
    if (check(r != NULL)) {
        const struct array *x = reader_find(r, "X/indptr");
        check(x && x->problem && strstr(x->problem, "does not tell"));
        reader_free(r);
    }
}

static void has_problem(const struct reader *r, const char *path, const char *part)
{
    const struct array *x = reader_find(r, path);
    if (check(x && x->problem) && !check(strstr(x->problem, part)))
        printf("# %s\n", x->problem);
    check(x && x->problem_code == HR_EDATA);
}

static void files_that_do_not_fit_are_the_problem_of_their_array(void)
{
    struct text t;
    header(&t, 1, 3, 2);
    struct fake f = FAKE({"header.sch", t.data, t.n}, {"data.npy", DATA, 11},
                         {"col_ptr.npy", COLS "x", 7}, {"row_ptr.npy", "\1\2\3", 3});
    struct reader *r = fake_open(&f, &e);
    if (check(r != NULL)) {
        has_problem(r, "X/data", "data.npy has 11 bytes");
        has_problem(r, "X/indices", "col_ptr.npy has 7 bytes");
        has_problem(r, "X/indptr", "row_ptr.npy begins with 1");
        reader_free(r);
    }
    struct fake g =
        FAKE({"header.sch", t.data, t.n}, {"col_ptr.npy", COLS, 6}, {"row_ptr.npy", "\0\2\4", 3});
    if (check((r = fake_open(&g, &e)) != NULL)) {
        has_problem(r, "X/data", "data.npy does not exist");
        has_problem(r, "X/indptr", "ends with 4, but there are 3");
        check(reader_find(r, "X/indices") && !reader_find(r, "X/indices")->problem);
        reader_free(r);
    }
}

static void metadata_alone_is_an_archive_that_lost_its_header(void)
{
    struct fake f = FAKE({"metadata.json", "{\"num_rows\": 3}"}, {"chunk_00000/row_ptr.npy", "\0"});
    check(!fake_open(&f, &e));
    check_eq(e.code, HR_EDATA);
    check(strstr(e.text, "header.sch"));
}

static void zarr_costs_no_request_more(void)
{
    struct fake f = FAKE({"a/zarr.json", V3_ARRAY("[4]", "[4]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_str(f.log, "zarr.json .zmetadata .zarray .zgroup list: a/zarr.json");
    check_eq(scdl_describe(r, &(struct scdl_shape){0}), 0);
    reader_free(r);
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

static void chunks_are_looked_at_when_they_are_asked_for(void)
{
    struct text t;
    header(&t, 2, 6, 4);
    chunks(&t, 2, 2, 4);
    struct fake f = FAKE({"header.sch", t.data, t.n}, {"chunk_00000/data.npy", DATA, 12},
                         {"chunk_00000/col_ptr.npy", COLS, 6}, {"chunk_00000/row_ptr.npy", ROWS, 3},
                         {"chunk_00001/data.npy", DATA, 12}, {"chunk_00001/col_ptr.npy", COLS, 6},
                         {"chunk_00001/row_ptr.npy", ROWS, 3});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_str(reader_format(r), "SCDL chunked");
    readable(r, "chunk_00000/data", 3, "chunk_00000/data.npy");
    check(!reader_find(r, "chunk_00001/data"));
    int asked = f.requests;
    check_eq(fake_want(&f, r, "chunk_00001/indptr", &e), READER_READY);
    check_eq(f.requests, asked + 4);
    readable(r, "chunk_00001/indices", 3, "chunk_00001/col_ptr.npy");
    check_eq(fake_want(&f, r, "chunk_00002/indptr", &e), HR_ENOENT);
    check(strstr(e.text, "2 chunks"));
    check_eq(fake_want(&f, r, "chunk_1/indptr", &e), HR_ENOENT);
    check_eq(f.requests, asked + 4);
    struct scdl_shape s;
    uint64_t first;
    check_eq(scdl_describe(r, &s), 1);
    check_eq(scdl_chunk_rows(&s, 1, &first), 2);
    check_eq(first, 2);
    struct arena a;
    struct array *x = NULL;
    arena_init(&a);
    check_eq(scdl_chunk_array(&s, 1, SCDL_DATA, 3, &a, &x, &e), 0);
    if (check(x != NULL)) {
        check_str(x->object, "chunk_00001/data.npy");
        check_eq(scdl_check_size(x, 12, &e), 0);
        check_eq(scdl_check_size(x, 13, &e), HR_EDATA);
        check_eq(scdl_check_size(x, UINT64_MAX, &e), 0);
    }
    check(scdl_chunk_array(&s, 2, SCDL_DATA, 3, &a, &x, &e) < 0);
    arena_dispose(&a);
    reader_free(r);
}

static void rows_of_chunks_are_deduced_where_the_header_lacks_them(void)
{
    struct text t;
    header(&t, 2, 6, 5);
    struct fake f =
        FAKE({"header.sch", t.data, t.n}, {"chunk_00000/data.npy", DATA, 12},
             {"chunk_00000/col_ptr.npy", COLS, 6}, {"chunk_00000/row_ptr.npy", ROWS, 3});
    struct reader *r = fake_open(&f, &e);
    struct scdl_shape s;
    if (!check(r != NULL))
        return;
    check(scdl_describe(r, &s) && s.chunk_rows == 2 && s.n_chunks == 3 && s.n_rows == 5);
    check_eq(fake_want(&f, r, "chunk_00002/data", &e), READER_READY); /* known, and broken */
    has_problem(r, "chunk_00002/data", "neither row_ptr.npy nor chunk.npz");
    check(reader_find(r, "chunk_00000/data") && !reader_find(r, "chunk_00000/data")->problem);
    reader_free(r);
}

static void names_of_chunks_have_one_form(void)
{
    uint64_t k;
    const char *rest;
    check(scdl_chunk_number("chunk_00042/data", &k, &rest) && k == 42 && !strcmp(rest, "data"));
    check(scdl_chunk_number("chunk_123456", &k, &rest) && k == 123456 && !*rest);
    check(!scdl_chunk_number("chunk_42", &k, &rest));
    check(!scdl_chunk_number("chunk_000042", &k, &rest));
    check(!scdl_chunk_number("chunk_00x42", &k, &rest));
    check(!scdl_chunk_number("chunk_", &k, &rest));
}

static void running_out_of_memory_is_an_error(void)
{
    struct text t;
    header(&t, 2, 6, 5);
    struct fake f =
        FAKE({"header.sch", t.data, t.n}, {"chunk_00000/data.npy", DATA, 12},
             {"chunk_00000/col_ptr.npy", COLS, 6}, {"chunk_00000/row_ptr.npy", ROWS, 3});
    uint64_t live = mem_live();
    for (uint64_t n = 1;; n++) {
        mem_fail_at(n, true);
        struct reader *r = fake_open(&f, &e);
        uint64_t asked = mem_count();
        mem_fail_at(0, false);
        if (!r)
            check_eq(e.code, HR_ENOMEM);
        reader_free(r);
        check_eq(mem_live(), live);
        if (asked < n)
            break;
    }
}

int main(void)
{
    RUN(a_header_is_read_to_its_end);
    RUN(every_cut_is_an_error_but_where_a_list_may_be_absent);
    RUN(hostile_counts_and_names_are_refused_by_their_place);
    RUN(versions_and_backends_to_come_are_named);
    RUN(a_plain_archive_is_a_csr_matrix);
    RUN(a_store_that_cannot_list_is_asked_for_the_header);
    RUN(without_a_header_types_are_the_defaults);
    RUN(files_that_do_not_fit_are_the_problem_of_their_array);
    RUN(metadata_alone_is_an_archive_that_lost_its_header);
    RUN(zarr_costs_no_request_more);
    RUN(chunks_are_looked_at_when_they_are_asked_for);
    RUN(rows_of_chunks_are_deduced_where_the_header_lacks_them);
    RUN(names_of_chunks_have_one_form);
    RUN(running_out_of_memory_is_an_error);
    return t_done();
}
