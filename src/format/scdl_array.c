/* Arrays that are one object each, and what is known of them without asking. See scdl.h. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "format/scdl_round.h"

#define DIGITS_LEAST 5 /* of a chunk's number: "%05d" */

const char *scdl_part_name(int part)
{
    static const char *const names[] = {"data", "indices", "indptr"};
    return names[part];
}

/* ---- one array -------------------------------------------------------------------------------------------------- */

int scdl_array_begin(struct arena *a, const struct scdl_place *p, struct array **out,
                     struct array_layout **layout, struct hr_error *e)
{
    struct array *x = arena_alloc(a, sizeof *x);
    struct array_layout *l = arena_alloc(a, sizeof *l);
    uint64_t *shape = arena_array(a, 2, sizeof *shape);
    void *fill = arena_alloc(a, p->type->item_size);
    if (!x || !l || !shape || !fill)
        return error_nomem(e, sizeof *x, "an array");
    shape[0] = p->length;
    shape[1] = p->length ? p->length : 1; /* the one chunk */
    *l = (struct array_layout){.owner = p->number,
                               .prefix = p->key,
                               .prefix_size = strlen(p->key),
                               .scalar = p->key,
                               .single = true,
                               .object = shape + 1,
                               .where = p->key,
                               .type = &x->type,
                               .fill = fill};
    *x = (struct array){.path = p->path,
                        .number = p->number,
                        .document = p->document,
                        .object = p->key,
                        .type = *p->type,
                        .ndim = 1,
                        .shape = shape,
                        .chunk = shape + 1,
                        .fill = fill,
                        .fill_text = "",
                        .layout = l};
    *out = x;
    *layout = l;
    return 0;
}

int scdl_array_raw(struct arena *a, const struct scdl_place *p, struct array **out,
                   struct hr_error *e)
{
    struct array_layout *l;
    struct codec_chain *chain;
    TRY(scdl_array_begin(a, p, out, &l, e));
    struct array *x = *out;
    if (p->length > INT64_MAX / 64)
        return error_set(e, HR_EDATA, "%s: %llu items are more than any object can hold", p->key,
                         (unsigned long long)p->length);
    TRY(codec_chain_v2(a, NULL, NULL, 'C', &x->type, 1, l->object, x->fill, p->key, &chain, e));
    l->object_chain = chain;
    return layout_build(a, x, l, e);
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

bool scdl_chunk_number(const char *path, uint64_t *k, const char **rest)
{
    char name[SCDL_NAME];
    size_t n = strcspn(path, "/"), digits = strlen("chunk_");
    uint64_t v = 0;
    if (n >= sizeof name || strncmp(path, "chunk_", digits) || n - digits < DIGITS_LEAST ||
        n - digits > 19)
        return false;
    for (size_t i = digits; i < n; i++) {
        if (path[i] < '0' || path[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(path[i] - '0');
    }
    snprintf(name, sizeof name, "chunk_%05llu", (unsigned long long)v);
    *k = v;
    *rest = path[n] ? path + n + 1 : "";
    return strlen(name) == n && !strncmp(name, path, n); /* one name for each number */
}

uint64_t scdl_chunk_rows(const struct scdl_shape *s, uint64_t k, uint64_t *first)
{
    *first = k * s->chunk_rows;
    return s->n_rows - *first < s->chunk_rows ? s->n_rows - *first : s->chunk_rows;
}

int scdl_chunk_array(const struct scdl_shape *s, uint64_t k, enum scdl_part part, uint64_t nnz,
                     struct arena *a, struct array **out, struct hr_error *e)
{
    static const char *const files[] = {"data.npy", "col_ptr.npy", "row_ptr.npy"};
    char name[SCDL_NAME] = "X";
    uint64_t first;
    if (k >= s->n_chunks)
        return error_set(e, HR_EINTERNAL, "chunk %llu of %llu asked for", (unsigned long long)k,
                         (unsigned long long)s->n_chunks);
    if (s->backend == SCDL_CHUNKED)
        snprintf(name, sizeof name, "chunk_%05llu", (unsigned long long)k);
    bool plain = s->backend == SCDL_PLAIN;
    char *path = arena_printf(a, "%s/%s", name, scdl_part_name(part));
    char *key = arena_printf(a, "%s%s%s", plain ? "" : name, plain ? "" : "/", files[part]);
    if (!path || !key)
        return error_nomem(e, sizeof name, "a path");
    struct scdl_place p = {.path = path, .key = key, .document = key, .type = &s->type[part]};
    p.length = part == SCDL_INDPTR ? scdl_chunk_rows(s, k, &first) + 1 : nnz;
    return scdl_array_raw(a, &p, out, e);
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

int scdl_check_size(const struct array *x, uint64_t object_size, struct hr_error *e)
{
    uint64_t items = x->shape[0], bytes = items * x->type.item_size;
    if (object_size == UINT64_MAX || object_size == bytes)
        return 0;
    return error_set(e, HR_EDATA,
                     "%s has %llu bytes where %llu items of %llu bytes (%llu in all) are expected; "
                     "%s",
                     x->object, (unsigned long long)object_size, (unsigned long long)items,
                     (unsigned long long)x->type.item_size, (unsigned long long)bytes,
                     object_size < bytes ? "it is cut short, or belongs to something else"
                                         : "it belongs to something else");
}

int scdl_check_ends(const struct array *indptr, uint64_t first, uint64_t last, uint64_t nnz,
                    struct hr_error *e)
{
    if (first)
        return error_set(e, HR_EDATA, "%s begins with %llu, it must be 0", indptr->object,
                         (unsigned long long)first);
    if (nnz != UINT64_MAX && last != nnz)
        return error_set(e, HR_EDATA,
                         "%s ends with %llu, but there are %llu values; the files do not belong "
                         "together",
                         indptr->object, (unsigned long long)last, (unsigned long long)nnz);
    return 0;
}

int scdl_describe(const struct reader *r, struct scdl_shape *out)
{
    if (!r->scdl || !r->scdl->opened)
        return 0;
    *out = r->scdl->shape;
    return 1;
}
