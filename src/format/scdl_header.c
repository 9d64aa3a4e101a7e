/* `header.sch`, a chain of counted lists in network byte order.
 *
 *     "SCDL"  u8 major, minor, point  u8 1 (network order)  u32 backend
 *     u32 n  n × { name  u64 items  u32 type  u8 has_shape  [u32 d  d × u32] }
 *     u32 n  n × { name  u64 rows  u32 type  u32 f  f × file  u8 has_shape  [u32 d  d × u32] }     may be absent
 *     u8 has_chunks  [u32 rows of a chunk  u32 chunks  u64 rows]                                   may be absent
 *
 * Names are a u32 length and as many bytes. Every count is held against the bytes that are left before anything is made
 * for it. What follows the last list belongs to versions to come, and is left alone. */
#include <string.h>
#include "base/mem.h"
#include "format/node.h"
#include "format/scdl.h"

#define NETWORK_ORDER 1
#define NAME_MOST     4096

struct cursor {
    const uint8_t *begin, *at, *end;
    const char *where;
    struct arena *a;
    struct hr_error *e;
};

static size_t left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

static int wrong(const struct cursor *c, const uint8_t *at, const char *what)
{
    return error_set(c->e, HR_EDATA, "%s, byte %zu: %s; the header is damaged", c->where,
                     (size_t)(at - c->begin), what);
}

/* An integer of n bytes. */
static int take(struct cursor *c, size_t n, const char *what, uint64_t *out)
{
    if (left(c) < n)
        return error_set(c->e, HR_EDATA,
                         "%s ends at byte %zu, where %s should stand; it may be cut short",
                         c->where, (size_t)(c->end - c->begin), what);
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out = *out << 8 | c->at[i];
    c->at += n;
    return 0;
}

/* How many of something that takes at least `each` bytes. */
static int take_count(struct cursor *c, size_t each, const char *what, uint32_t *out)
{
    uint64_t n = 0;
    const uint8_t *at = c->at;
    TRY(take(c, 4, what, &n));
    if (n > left(c) / each)
        return error_set(c->e, HR_EDATA,
                         "%s, byte %zu: %s is %llu, but only %zu bytes follow; the header is "
                         "damaged or cut short",
                         c->where, (size_t)(at - c->begin), what, (unsigned long long)n, left(c));
    *out = (uint32_t)n;
    return 0;
}

static int take_name(struct cursor *c, const char *what, const char **out)
{
    uint32_t n = 0;
    const uint8_t *at = c->at;
    TRY(take_count(c, 1, what, &n));
    if (!n || n > NAME_MOST || memchr(c->at, 0, n))
        return wrong(c, at, "a name that is empty, longer than 4096 bytes or holds a NUL");
    *out = arena_strndup(c->a, (const char *)c->at, n);
    c->at += n;
    return *out ? 0 : error_nomem(c->e, n, "a name");
}

/* Dimensions, which the lengths tell already. */
static int skip_shape(struct cursor *c)
{
    uint64_t has = 0;
    uint32_t n = 0;
    const uint8_t *at = c->at;
    TRY(take(c, 1, "whether there is a shape", &has));
    if (has > 1)
        return wrong(c, at, "neither 0 nor 1 where it says whether there is a shape");
    if (has)
        TRY(take_count(c, 4, "the number of dimensions", &n));
    c->at += (size_t)n * 4;
    return 0;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static const char *const types[] = {NULL, "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"};

/* By the name that the writer uses, or that of the file. */
static int part_of(const char *name)
{
    static const char *const names[][2] = {
        [SCDL_DATA] = {"DATA", "data.npy"},
        [SCDL_INDICES] = {"COLPTR", "col_ptr.npy"},
        [SCDL_INDPTR] = {"ROWPTR", "row_ptr.npy"},
    };
    for (int p = 0; p < SCDL_PARTS; p++)
        if (!strcmp(name, names[p][0]) || !strcmp(name, names[p][1]))
            return p;
    return -1;
}

static int take_type(struct cursor *c, int part, uint64_t number, const uint8_t *at,
                     struct dtype *out)
{
    if (!number || number >= sizeof types / sizeof *types)
        return error_set(c->e, HR_EUNSUPPORTED,
                         "%s, byte %zu: type %llu of an array; 1 to 7 (u8, u16, u32, u64, f16, "
                         "f32, f64) are read",
                         c->where, (size_t)(at - c->begin), (unsigned long long)number);
    if (part != SCDL_DATA && types[number][1] != 'u')
        return wrong(c, at, "places within arrays that are no integers");
    return dtype_from_numpy(c->a, types[number], c->where, out, c->e);
}

static int take_array(struct cursor *c, struct scdl_header *h)
{
    const char *name = NULL;
    uint64_t length = 0, type = 0;
    const uint8_t *begin = c->at;
    TRY(take_name(c, "the length of an array's name", &name));
    TRY(take(c, 8, "the length of an array", &length));
    const uint8_t *at = c->at;
    TRY(take(c, 4, "the type of an array", &type));
    TRY(skip_shape(c));
    int part = part_of(name);
    if (part < 0)
        return 0;
    if (h->given[part])
        return wrong(c, begin, "an array that was described before");
    h->given[part] = true;
    h->length[part] = length;
    return take_type(c, part, type, at, &h->type[part]);
}

static int take_arrays(struct cursor *c, struct scdl_header *h)
{
    static const char *const names[] = {"DATA", "COLPTR", "ROWPTR"};
    uint32_t n = 0;
    TRY(take_count(c, 17, "the number of arrays", &n));
    while (n--)
        TRY(take_array(c, h));
    for (int p = 0; p < SCDL_PARTS; p++)
        if (!h->given[p])
            return error_set(c->e, HR_EDATA, "%s describes no array %s", c->where, names[p]);
    if (!h->length[SCDL_INDPTR])
        return error_set(c->e, HR_EDATA,
                         "%s: ROWPTR has no items; it has one more than there are rows", c->where);
    return 0;
}

/* ---- features --------------------------------------------------------------------------------------------------- */

static int take_files(struct cursor *c, struct scdl_features *f)
{
    const uint8_t *at = c->at;
    TRY(take_count(c, 5, "the number of files", &f->n_files));
    const char **files = arena_array(c->a, (size_t)f->n_files + 1, sizeof *files);
    if (!files)
        return error_nomem(c->e, (size_t)f->n_files * sizeof *files, "names of files");
    for (uint32_t i = 0; i < f->n_files; i++) {
        at = c->at;
        TRY(take_name(c, "the length of a file's name", &files[i]));
        if (!path_is_sound(files[i]))
            return wrong(c, at, "the name of a file that lies outside of the archive");
    }
    f->files = files;
    return 0;
}

static int take_feature(struct cursor *c, struct scdl_header *h)
{
    uint64_t type = 0;
    struct scdl_features *f = arena_alloc(c->a, sizeof *f);
    if (!f)
        return error_nomem(c->e, sizeof *f, "a header");
    TRY(take_name(c, "the length of an index's name", &f->name));
    TRY(take(c, 8, "the length of an index", &f->rows));
    TRY(take(c, 4, "the type of an index", &type));
    TRY(take_files(c, f));
    TRY(skip_shape(c));
    if (!h->obs && !strcmp(f->name, "obs_features"))
        h->obs = f;
    else if (!h->var && (!strcmp(f->name, "var_features") || !strcmp(f->name, "features")))
        h->var = f;
    return 0;
}

static int take_features(struct cursor *c, struct scdl_header *h)
{
    uint32_t n = 0;
    if (left(c))
        TRY(take_count(c, 21, "the number of indices of features", &n));
    while (n--)
        TRY(take_feature(c, h));
    return 0;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

static int take_chunks(struct cursor *c, struct scdl_header *h)
{
    uint64_t has = 0;
    const uint8_t *at = c->at;
    if (left(c))
        TRY(take(c, 1, "whether there are chunks", &has));
    if (!has || h->backend != SCDL_CHUNKED)
        return 0;
    if (has > 1)
        return wrong(c, at, "neither 0 nor 1 where it says whether there are chunks");
    h->has_chunks = true;
    TRY(take(c, 4, "the rows of a chunk", &h->chunk_rows));
    TRY(take(c, 4, "the number of chunks", &h->n_chunks));
    TRY(take(c, 8, "the number of rows", &h->n_rows));
    uint64_t rows = h->chunk_rows ? h->chunk_rows : 1;
    if ((!h->chunk_rows && h->n_rows) || h->n_chunks != h->n_rows / rows + (h->n_rows % rows != 0))
        return error_set(c->e, HR_EDATA,
                         "%s: %llu rows in %llu chunks of %llu do not fit together; the header is "
                         "damaged",
                         c->where, (unsigned long long)h->n_rows, (unsigned long long)h->n_chunks,
                         (unsigned long long)h->chunk_rows);
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int take_core(struct cursor *c, struct scdl_header *h)
{
    uint64_t v[3] = {0}, order = 0, backend = 0;
    if (left(c) < 4 || memcmp(c->at, "SCDL", 4))
        return error_set(c->e, HR_EDATA,
                         "%s does not begin with \"SCDL\": it is no header of an SCDL archive",
                         c->where);
    c->at += 4;
    for (int i = 0; i < 3; i++) {
        TRY(take(c, 1, "the version", &v[i]));
        h->version[i] = (uint8_t)v[i];
    }
    if (v[0])
        return error_set(c->e, HR_EUNSUPPORTED, "%s: SCDL version %llu.%llu.%llu; 0.x is read",
                         c->where, (unsigned long long)v[0], (unsigned long long)v[1],
                         (unsigned long long)v[2]);
    TRY(take(c, 1, "the byte order", &order));
    if (order != NETWORK_ORDER)
        return wrong(c, c->at - 1, "a byte order other than 1 (network order)");
    TRY(take(c, 4, "the backend", &backend));
    if (backend != SCDL_PLAIN && backend != SCDL_CHUNKED)
        return error_set(c->e, HR_EUNSUPPORTED,
                         "%s: backend %llu; 1 (MEMMAP_V0) and 2 (CHUNKED_MEMMAP_V0) are read",
                         c->where, (unsigned long long)backend);
    h->backend = (enum scdl_backend)backend;
    return 0;
}

int scdl_header_parse(struct arena *a, const void *data, size_t n, const char *where,
                      struct scdl_header *out, struct hr_error *e)
{
    struct cursor c = {.begin = data, .at = data, .where = where, .a = a, .e = e};
    c.end = c.begin + n;
    *out = (struct scdl_header){0};
    TRY(take_core(&c, out));
    TRY(take_arrays(&c, out));
    TRY(take_features(&c, out));
    return take_chunks(&c, out);
}
