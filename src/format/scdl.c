/* SCDL in the rounds of a reader: what tells such an archive, what is looked at, and what stands in the hierarchy for it.
 *
 * It is sought only where no document of zarr is at the root, so that archives of zarr cost no request more. A store that
 * lists says at once whether `header.sch` is there; one that cannot is asked for it. Old archives lack it: then the types
 * are the writer's defaults, and lengths come from the sizes of the objects.
 *
 * A *look* (struct scdl_probe) asks for the last item of each of three arrays and the first of row_ptr: together, for
 * they do not wait for each other. Opening looks at the plain archive's arrays or at the first chunk; other chunks, of
 * which there may be thousands, are looked at when they are asked for. */
#include <string.h>
#include "format/scdl_round.h"

#define WALK_CHUNKS 16 /* shown of an archive that has more */

/* ---- what is at the root ---------------------------------------------------------------------------------------- */

/* A file or a folder: some stores say the same of both. */
static bool listed(const struct answer *names, const char *name)
{
    const char *p = names->data, *end = p + names->size;
    size_t length = strlen(name);
    while (p < end) {
        size_t n = strnlen(p, (size_t)(end - p));
        if (p + n == end)
            return false;
        if (!strncmp(p, name, length) && (n == length || !strcmp(p + length, "/")))
            return true;
        p += n + 1;
    }
    return false;
}

static int ask(struct reader *r, enum phase phase, struct hr_error *e)
{
    return phase == SCDL_HEADER     ? scdl_push(r, phase, NULL, 0, "header.sch", 0, 0, e)
           : phase == SCDL_METADATA ? scdl_push(r, phase, NULL, 0, "metadata.json", 0, 0, e)
                                    : scdl_push(r, phase, NULL, 0, "row_ptr.npy", -8, 8, e);
}

int scdl_begin(struct reader *r, const struct answer *names, bool *begun, struct hr_error *e)
{
    bool chunks = names && listed(names, "chunk_00000") && listed(names, "metadata.json");
    if (names && names->kind != ANSWER_BYTES)
        return 0;
    *begun = true;
    if (!names || listed(names, "header.sch"))
        return ask(r, SCDL_HEADER, e);
    if (listed(names, "row_ptr.npy") && listed(names, "col_ptr.npy") && listed(names, "data.npy"))
        return ask(r, SCDL_ROWS, e);
    if (chunks)
        return ask(r, SCDL_METADATA, e);
    *begun = false;
    return 0;
}

static struct scdl *begin_archive(struct reader *r, struct hr_error *e)
{
    struct scdl *s = arena_alloc(&r->nodes.arena, sizeof *s);
    if (!s)
        error_nomem(e, sizeof *s, "an archive");
    return s;
}

/* ---- looks ------------------------------------------------------------------------------------------------------ */

int scdl_push(struct reader *r, enum phase phase, struct scdl_probe *p, int part, const char *key,
              int64_t offset, uint64_t length, struct hr_error *e)
{
    return reader_append(r,
                         &(struct task){.phase = phase,
                                        .path = key,
                                        .offset = offset,
                                        .length = length,
                                        .part = part,
                                        .probe = p},
                         e);
}

void scdl_need(const struct task *t, struct need *need)
{
    need->alternative = true;
    if (t->phase <= SCDL_METADATA)
        return;
    need->kind = NEED_RANGE;
    need->offset = t->offset;
    need->length = (int64_t)t->length;
}

/* Three arrays at `folder` (files[] in the order of the parts), to stand at `group`. */
static int look(struct reader *r, struct scdl_probe *p, const char *const *files,
                struct hr_error *e)
{
    for (int i = 0; i < SCDL_PARTS; i++) {
        p->key[i] =
            arena_printf(&r->nodes.arena, "%s%s%s", p->folder, *p->folder ? "/" : "", files[i]);
        if (!p->key[i])
            return error_nomem(e, strlen(p->folder), "a key");
    }
    p->left = SCDL_PARTS + 1;
    for (int i = 0; i < SCDL_PARTS; i++) {
        uint64_t n = p->type[i].item_size;
        TRY(scdl_push(r, SCDL_TAIL, p, i, p->key[i], -(int64_t)n, n, e));
    }
    return scdl_push(r, SCDL_HEAD, p, SCDL_INDPTR, p->key[SCDL_INDPTR], 0,
                     p->type[SCDL_INDPTR].item_size, e);
}

static const char *const files[] = {"data.npy", "col_ptr.npy", "row_ptr.npy"};

static int look_at_plain(struct reader *r, struct hr_error *e)
{
    struct scdl *s = r->scdl;
    struct scdl_probe *p = arena_alloc(&r->nodes.arena, sizeof *p);
    if (!p)
        return error_nomem(e, sizeof *p, "an archive");
    *p = (struct scdl_probe){.folder = "", .group = "X", .type = s->header.type};
    if (s->shape.has_header) {
        p->rows_known = p->nnz_known = true;
        p->rows = s->header.length[SCDL_INDPTR] - 1;
        p->nnz = s->header.length[SCDL_DATA];
    }
    return look(r, p, files, e);
}

static int look_at_chunk(struct reader *r, uint64_t k, struct hr_error *e)
{
    const struct scdl *s = r->scdl;
    uint64_t first;
    struct scdl_probe *p = arena_alloc(&r->nodes.arena, sizeof *p);
    char *name = arena_printf(&r->nodes.arena, "chunk_%05llu", (unsigned long long)k);
    if (!p || !name)
        return error_nomem(e, sizeof *p, "a chunk");
    *p = (struct scdl_probe){.folder = name, .group = name, .type = s->header.type, .chunk = k};
    p->rows_known = s->rows_known;
    p->rows = s->rows_known ? scdl_chunk_rows(&s->shape, k, &first) : 0;
    return look(r, p, files, e);
}

static int look_at_neighbors(struct reader *r, struct hr_error *e)
{
    static const char *const names[] = {"neighbor_values.npy", "neighbor_indices.npy",
                                        "neighbor_indptr.npy"};
    static const char *const kinds[] = {"<f4", "<u4", "<u8"};
    struct arena *a = &r->nodes.arena;
    struct scdl_probe *p = arena_alloc(a, sizeof *p);
    struct dtype *type = arena_array(a, SCDL_PARTS, sizeof *type);
    if (!p || !type)
        return error_nomem(e, sizeof *p, "an archive");
    for (int i = 0; i < SCDL_PARTS; i++)
        TRY(dtype_from_numpy(a, kinds[i], names[i], &type[i], e));
    *p = (struct scdl_probe){.folder = "", .group = "obsp/neighbors", .type = type};
    p->optional = true;
    p->rows_known = r->scdl->rows_known;
    p->rows = r->scdl->shape.n_rows;
    r->scdl->neighbors = true;
    return look(r, p, names, e);
}

/* ---- the end of a look ------------------------------------------------------------------------------------------ */

static uint64_t load(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t v = 0;
    for (size_t i = n; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

int scdl_keep(struct reader *r, struct array *x, int rc, const struct hr_error *why,
              struct hr_error *e)
{
    if (rc == HR_ENOMEM)
        return error_set(e, rc, "%s", why->text);
    if (rc < 0) {
        x->problem = arena_strdup(&r->nodes.arena, why->text);
        x->problem_code = rc;
        if (!x->problem)
            return error_nomem(e, sizeof why->text, "an array");
    }
    return nodes_add_array(&r->nodes, x, e);
}

/* Rows and values, from what was found where the header does not say. */
static void conclude(struct scdl_probe *p)
{
    uint64_t item = p->type[SCDL_INDPTR].item_size, size = p->found[SCDL_INDPTR].size;
    if (!p->rows_known && p->found[SCDL_INDPTR].measured && size >= item) {
        p->rows = size / item - 1;
        p->rows_known = true;
    }
    if (!p->nnz_known)
        p->nnz = p->last;
}

static int judge(const struct scdl_probe *p, int part, const struct array *x, struct hr_error *e)
{
    uint64_t n = p->found[part].measured ? p->found[part].size : UINT64_MAX;
    if (!p->found[part].there)
        return error_set(e, HR_EDATA, "%s does not exist, or may not be read", p->key[part]);
    if (part != SCDL_INDPTR && !p->nnz_known && p->rows_problem)
        return error_set(e, HR_EDATA, "%s: how many values there are is written in %s alone (%s)",
                         p->key[part], p->key[SCDL_INDPTR], p->rows_problem);
    if (part == SCDL_INDPTR && !p->rows_known)
        return error_set(e, HR_EDATA,
                         "%s: how many rows there are is known from its size alone, and that %s",
                         p->key[part], n == UINT64_MAX ? "the store does not tell" : "is 0");
    TRY(scdl_check_size(x, n, e));
    return part == SCDL_INDPTR
               ? scdl_check_ends(x, p->first, p->last, p->nnz_known ? p->nnz : UINT64_MAX, e)
               : 0;
}

static int keep_part(struct reader *r, struct scdl_probe *p, int part, struct hr_error *e)
{
    struct hr_error why;
    struct array *x = NULL;
    struct scdl_place place = {.key = p->key[part], .document = p->key[part]};
    place.path = arena_printf(&r->nodes.arena, "%s/%s", p->group, scdl_part_name(part));
    if (!place.path)
        return error_nomem(e, strlen(p->group), "a path");
    place.type = &p->type[part];
    place.number = (int)r->nodes.n_arrays;
    place.length = part == SCDL_INDPTR ? p->rows + 1 : p->nnz;
    int rc = scdl_array_raw(&r->nodes.arena, &place, &x, &why);
    if (!x)
        return error_set(e, rc, "%s", why.text);
    if (rc >= 0)
        rc = judge(p, part, x, &why);
    if (rc < 0 && !r->scdl->shape.has_header)
        error_append(&why, "; without header.sch, items are taken to be %s", x->type.name);
    TRY(scdl_keep(r, x, rc, &why, e));
    if (part == SCDL_INDPTR)
        p->rows_problem = x->problem;
    return 0;
}

static bool nothing_there(const struct scdl_probe *p)
{
    bool there = false;
    for (int i = 0; i < SCDL_PARTS; i++)
        there |= p->found[i].there;
    return !there;
}

static int end_look(struct reader *r, struct scdl_probe *p, struct hr_error *e)
{
    if (nothing_there(p) && p->optional)
        return 0;
    if (nothing_there(p) && *p->folder)
        return scdl_npz_begin(r, p, e);
    conclude(p);
    TRY(keep_part(r, p, SCDL_INDPTR, e)); /* first: the others may depend on it */
    TRY(keep_part(r, p, SCDL_INDICES, e));
    TRY(keep_part(r, p, SCDL_DATA, e));
    return scdl_ended(r, p, p->rows, e);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static int feed_header(struct reader *r, const struct answer *answer, struct hr_error *e)
{
    struct scdl *s;
    if (answer->kind != ANSWER_BYTES)
        return ask(r, SCDL_ROWS, e);
    if (!(s = begin_archive(r, e)))
        return HR_ENOMEM;
    if (answer->size > READER_MAX_DOCUMENT)
        return error_set(e, HR_EUNSUPPORTED, "header.sch is larger than any header");
    const struct scdl_header *h = &s->header;
    TRY(scdl_header_parse(&r->nodes.arena, answer->data, answer->size, "header.sch", &s->header,
                          e));
    s->shape = (struct scdl_shape){.backend = h->backend,
                                   .has_header = true,
                                   .n_rows = h->length[SCDL_INDPTR] - 1,
                                   .nnz = h->length[SCDL_DATA],
                                   .type = h->type,
                                   .var = h->var,
                                   .obs = h->obs};
    if (h->has_chunks) {
        s->shape.n_rows = h->n_rows;
        s->shape.chunk_rows = h->chunk_rows;
        s->shape.n_chunks = h->n_chunks;
        s->rows_known = true;
    }
    r->scdl = s;
    if (h->backend == SCDL_PLAIN)
        return look_at_plain(r, e);
    if (s->shape.n_rows)
        return look_at_chunk(r, 0, e);
    return scdl_opened_empty(r, e);
}

/* Old archives: types are the writer's defaults. */
static int feed_rows(struct reader *r, const struct answer *answer, struct hr_error *e)
{
    static const char *const defaults[] = {"<f4", "<u4", "<u8"};
    struct scdl *s;
    if (answer->kind != ANSWER_BYTES)
        return ask(r, SCDL_METADATA, e);
    if (!(s = begin_archive(r, e)))
        return HR_ENOMEM;
    for (int i = 0; i < SCDL_PARTS; i++)
        TRY(dtype_from_numpy(&r->nodes.arena, defaults[i], files[i], &s->header.type[i], e));
    s->shape = (struct scdl_shape){.backend = SCDL_PLAIN, .type = s->header.type};
    r->scdl = s;
    return look_at_plain(r, e);
}

static bool is_scdl_metadata(const struct answer *answer)
{
    struct arena a;
    struct json *v;
    arena_init(&a);
    bool good = answer->kind == ANSWER_BYTES && answer->size < 4096 &&
                json_parse(&a, answer->data, answer->size, "metadata.json", &v, NULL) >= 0 &&
                json_get(v, "num_rows");
    arena_dispose(&a);
    return good;
}

static int feed_metadata(const struct answer *answer, struct hr_error *e)
{
    if (!is_scdl_metadata(answer))
        return 0;
    return error_set(
        e, HR_EDATA,
        "metadata.json is that of an SCDL archive, but neither header.sch nor "
        "row_ptr.npy exists: it was copied in part, or is chunked and lost its header");
}

static int feed_end(struct reader *r, const struct task *t, const struct answer *answer,
                    struct hr_error *e)
{
    struct scdl_probe *p = t->probe;
    int i = t->part;
    if (answer->kind == ANSWER_BYTES && t->phase == SCDL_HEAD) {
        p->first = answer->size == t->length ? load(answer->data, answer->size) : 0;
    } else if (answer->kind == ANSWER_BYTES) {
        bool whole = answer->size < t->length; /* of a shorter object, all comes */
        p->found[i].there = true;
        p->found[i].measured = whole || answer->object_size;
        p->found[i].size = whole ? answer->size : answer->object_size;
        if (i == SCDL_INDPTR && !whole)
            p->last = load((const uint8_t *)answer->data + answer->size - t->length, t->length);
    }
    return --p->left ? 0 : end_look(r, p, e);
}

int scdl_feed(struct reader *r, struct task *t, const struct answer *answer, struct hr_error *e)
{
    switch (t->phase) {
    case SCDL_HEADER:
        return feed_header(r, answer, e);
    case SCDL_METADATA:
        return feed_metadata(answer, e);
    case SCDL_ROWS:
        return feed_rows(r, answer, e);
    case SCDL_HEAD:
    case SCDL_TAIL:
        return feed_end(r, t, answer, e);
    default:
        return scdl_npz_feed(r, t, answer, e);
    }
}

/* ---- later rounds ----------------------------------------------------------------------------------------------- */

int scdl_want(struct reader *r, const char *path, bool must, struct hr_error *e)
{
    const struct scdl_shape *s = &r->scdl->shape;
    const char *rest;
    uint64_t k;
    if (s->backend == SCDL_PLAIN)
        return strncmp(path, "obsp", 4) || r->scdl->neighbors ? 0 : look_at_neighbors(r, e);
    if (!scdl_chunk_number(path, &k, &rest))
        return 0;
    if (k < s->n_chunks)
        return scdl_knows_chunk(r, k) ? 0 : look_at_chunk(r, k, e);
    if (!must)
        return 0;
    reader_forget_round(r);
    return error_set(e, HR_ENOENT, "no array \"%.200s\": the archive has %llu chunks, from 0 on",
                     path, (unsigned long long)s->n_chunks);
}

int scdl_walk(struct reader *r, struct hr_error *e)
{
    const struct scdl_shape *s = &r->scdl->shape;
    if (s->backend == SCDL_PLAIN)
        return r->scdl->neighbors ? 0 : look_at_neighbors(r, e);
    for (uint64_t k = 0; k < s->n_chunks && k < WALK_CHUNKS; k++)
        if (!scdl_knows_chunk(r, k))
            TRY(look_at_chunk(r, k, e));
    return 0;
}
