/* Chunks that are one `chunk.npz`: its directory is read, then row_ptr whole, for only that tells how many values there
 * are; data and indices are each one chunk of their array, a range of the object. */
#include <string.h>
#include "base/mem.h"
#include "format/scdl_round.h"
#include "format/zip.h"

#define MEMBERS_MOST 16

struct scdl_npz { /* what the directory says, between two answers */
    struct scdl_probe look;
    const char *key;
    struct zip_entry entry[SCDL_PARTS];
};

static const char *const members[] = {"data.npy", "col_ptr.npy", "row_ptr.npy"};

static struct scdl_npz *npz_of(const struct task *t)
{
    return (struct scdl_npz *)t->probe; /* its first member */
}

int scdl_npz_begin(struct reader *r, struct scdl_probe *p, struct hr_error *e)
{
    struct scdl_npz *z = arena_alloc(&r->nodes.arena, sizeof *z);
    char *key = arena_printf(&r->nodes.arena, "%s/chunk.npz", p->folder);
    if (!z || !key)
        return error_nomem(e, sizeof *z, "a chunk");
    z->look = *p;
    z->key = key;
    return scdl_push(r, SCDL_ZIP, &z->look, 0, key, -(int64_t)ZIP_TAIL, ZIP_TAIL, e);
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static int make(struct reader *r, const struct scdl_npz *z, int part, const struct scdl_place *p,
                struct array **out, struct hr_error *e)
{
    const struct zip_entry *m = &z->entry[part];
    struct arena *a = &r->nodes.arena;
    struct array_layout *l;
    struct codec_chain *chain;
    TRY(scdl_array_begin(a, p, out, &l, e));
    struct array *x = *out;
    l->offset = m->offset;
    l->length = m->span;
    TRY(codec_chain_npz(a, &m->member, &x->type, p->length, m->span, p->key, &chain, e));
    l->object_chain = chain;
    return layout_build(a, x, l, e);
}

/* `bad`: what is wrong with all of the chunk (code rc), or 0. */
static int keep(struct reader *r, const struct scdl_npz *z, uint64_t rows, uint64_t nnz, int bad,
                const struct hr_error *wrong, struct hr_error *e)
{
    for (int i = 0; i < SCDL_PARTS; i++) {
        struct hr_error why = {0};
        struct array *x = NULL;
        struct scdl_place p = {.key = z->key, .document = z->key, .type = &z->look.type[i]};
        p.path = arena_printf(&r->nodes.arena, "%s/%s", z->look.group, scdl_part_name(i));
        if (!p.path)
            return error_nomem(e, strlen(z->look.group), "a path");
        p.number = (int)r->nodes.n_arrays;
        p.length = i == SCDL_INDPTR ? rows + 1 : nnz;
        struct array_layout *l;
        int rc =
            bad ? scdl_array_begin(&r->nodes.arena, &p, &x, &l, &why) : make(r, z, i, &p, &x, &why);
        if (!x)
            return error_set(e, rc, "%s", why.text);
        TRY(bad ? scdl_keep(r, x, bad, wrong, e) : scdl_keep(r, x, rc, &why, e));
    }
    return scdl_ended(r, &z->look, rows, e);
}

/* The chunk cannot be read, but others may. */
static int give_up(struct reader *r, const struct scdl_npz *z, int rc, const struct hr_error *why,
                   struct hr_error *e)
{
    if (rc == HR_ENOMEM)
        return error_set(e, rc, "%s", why->text);
    return keep(r, z, z->look.rows, 0, rc, why, e);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static int read_directory(struct scdl_npz *z, const struct answer *answer, struct hr_error *e)
{
    struct zip_entry found[MEMBERS_MOST];
    size_t n;
    uint64_t size = answer->size < ZIP_TAIL ? answer->size : answer->object_size;
    TRY(zip_directory(answer->data, answer->size, size, z->key, found, MEMBERS_MOST, &n, e));
    for (int i = 0; i < SCDL_PARTS; i++) {
        const struct zip_entry *m = zip_find(found, n, members[i]);
        if (!m)
            return error_set(e, HR_EDATA, "%s: it has no member %s", z->key, members[i]);
        z->entry[i] = *m;
        z->entry[i].name = members[i];
    }
    if (z->entry[SCDL_INDPTR].span > READER_MAX_DOCUMENT ||
        z->entry[SCDL_INDPTR].member.size > 8 * (uint64_t)READER_MAX_DOCUMENT)
        return error_set(e, HR_EUNSUPPORTED, "%s: a row_ptr.npy of %llu bytes, larger than is read",
                         z->key, (unsigned long long)z->entry[SCDL_INDPTR].span);
    return 0;
}

static int feed_directory(struct reader *r, struct scdl_npz *z, const struct answer *answer,
                          struct hr_error *e)
{
    struct hr_error why = {0};
    int rc =
        answer->kind == ANSWER_BYTES
            ? read_directory(z, answer, &why)
            : error_set(&why, HR_EDATA,
                        "%s: neither row_ptr.npy nor chunk.npz exists there, or they may not be "
                        "read",
                        z->look.folder);
    if (rc < 0)
        return give_up(r, z, rc, &why, e);
    const struct zip_entry *m = &z->entry[SCDL_INDPTR];
    return scdl_push(r, SCDL_ZIP_ROWS, &z->look, SCDL_INDPTR, z->key, (int64_t)m->offset, m->span,
                     e);
}

static uint64_t item(const uint8_t *p, uint64_t size)
{
    uint64_t v = 0;
    while (size--)
        v = v << 8 | p[size];
    return v;
}

/* First and last item of row_ptr, and how many there are. */
static int read_rows(struct scdl_npz *z, const struct answer *answer, struct codec_context *x,
                     uint64_t *rows, struct hr_error *e)
{
    const struct zip_entry *m = &z->entry[SCDL_INDPTR];
    struct npy_head head;
    const uint8_t *items;
    uint64_t bytes, size = z->look.type[SCDL_INDPTR].item_size;
    if (answer->size != m->span)
        return error_set(e, HR_EDATA, "%s: %zu bytes where %llu are expected", z->key, answer->size,
                         (unsigned long long)m->span);
    int rc = npz_member_read(x, &m->member, answer->data, answer->size, &head, &items, &bytes, e);
    if (rc < 0)
        return error_context(e, rc, "row_ptr.npy in %s", z->key);
    if (bytes < size || bytes % size)
        return error_set(e, HR_EDATA, "%s: row_ptr.npy in it has %llu bytes, its items have %llu",
                         z->key, (unsigned long long)bytes, (unsigned long long)size);
    *rows = bytes / size - 1;
    z->look.first = item(items, size);
    z->look.last = item(items + bytes - size, size);
    if (z->look.first)
        return error_set(e, HR_EDATA, "%s: row_ptr.npy in it begins with %llu, it must be 0",
                         z->key, (unsigned long long)z->look.first);
    if (z->look.rows_known && *rows != z->look.rows)
        return error_set(e, HR_EDATA, "%s has %llu rows, the chunk should have %llu", z->key,
                         (unsigned long long)*rows, (unsigned long long)z->look.rows);
    return 0;
}

static int feed_rows(struct reader *r, struct scdl_npz *z, const struct answer *answer,
                     struct hr_error *e)
{
    struct hr_error why = {0};
    uint64_t rows = 0;
    struct codec_context *x = codec_context_new();
    if (!x)
        return error_nomem(e, 0, "a decoder");
    int rc = answer->kind == ANSWER_BYTES
                 ? read_rows(z, answer, x, &rows, &why)
                 : error_set(&why, HR_EDATA, "%s: gone while it was being read", z->key);
    codec_context_free(x);
    return rc < 0 ? give_up(r, z, rc, &why, e) : keep(r, z, rows, z->look.last, 0, NULL, e);
}

int scdl_npz_feed(struct reader *r, const struct task *t, const struct answer *answer,
                  struct hr_error *e)
{
    return t->phase == SCDL_ZIP ? feed_directory(r, npz_of(t), answer, e)
                                : feed_rows(r, npz_of(t), answer, e);
}
