/* What stands in the hierarchy for an SCDL archive, beside its arrays: the root with what the header says, and a group for
 * every matrix, which says of itself what AnnData's do. */
#include <stdio.h>
#include <string.h>
#include "format/scdl_round.h"

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static int add_group(struct reader *r, const char *path, struct buf *attributes, struct hr_error *e)
{
    struct json *v;
    if (attributes->failed)
        return error_nomem(e, attributes->size, "attributes");
    TRY(json_parse(&r->nodes.arena, attributes->data, attributes->size, path, &v, e));
    return nodes_add_group_v2(&r->nodes, path, NULL, v, path, e);
}

/* How many columns there are is written in the parquet of the features alone. */
static int add_matrix(struct reader *r, const char *path, uint64_t rows, struct hr_error *e)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b,
               "{\"encoding-type\": \"csr_matrix\", \"encoding-version\": \"0.1.0\", "
               "\"shape\": [%llu, null]}",
               (unsigned long long)rows);
    int rc = add_group(r, path, &b, e);
    buf_dispose(&b);
    return rc;
}

static void put_features(struct buf *b, const char *name, const struct scdl_features *f)
{
    if (!f)
        return;
    buf_printf(b, ", \"%s\": {\"rows\": %llu, \"files\": [", name, (unsigned long long)f->rows);
    for (uint32_t i = 0; i < f->n_files; i++) {
        buf_puts(b, i ? ", " : "");
        buf_json_string(b, f->files[i], strlen(f->files[i]));
    }
    buf_puts(b, "]}");
}

static int add_root(struct reader *r, struct hr_error *e)
{
    const struct scdl *s = r->scdl;
    const uint8_t *v = s->header.version;
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "{\"n_obs\": %llu, \"nnz\": %llu", (unsigned long long)s->shape.n_rows,
               (unsigned long long)s->shape.nnz);
    if (s->shape.has_header)
        buf_printf(&b, ", \"version\": \"%u.%u.%u\"", v[0], v[1], v[2]);
    if (s->shape.backend == SCDL_CHUNKED)
        buf_printf(&b, ", \"n_chunks\": %llu, \"chunk_rows\": %llu",
                   (unsigned long long)s->shape.n_chunks, (unsigned long long)s->shape.chunk_rows);
    put_features(&b, "var_features", s->shape.var);
    put_features(&b, "obs_features", s->shape.obs);
    buf_putc(&b, '}');
    int rc = add_group(r, "", &b, e);
    buf_dispose(&b);
    return rc;
}

bool scdl_knows_chunk(const struct reader *r, uint64_t k)
{
    char name[SCDL_NAME];
    snprintf(name, sizeof name, "chunk_%05llu", (unsigned long long)k);
    return nodes_group(&r->nodes, name);
}

int scdl_opened_empty(struct reader *r, struct hr_error *e)
{
    r->scdl->opened = r->scdl->rows_known = true;
    return add_root(r, e);
}

/* The first look tells what no header said. */
static void learn(struct scdl *s, const struct scdl_probe *p, uint64_t rows)
{
    struct scdl_shape *h = &s->shape;
    if (h->backend == SCDL_PLAIN) {
        h->n_rows = h->chunk_rows = rows;
        h->n_chunks = 1;
        h->nnz = p->last;
    } else if (!s->rows_known) { /* of the chunks all but the last have as many rows as the first */
        h->chunk_rows = rows;
        h->n_chunks = !rows ? 0 : h->n_rows / rows + (h->n_rows % rows != 0);
    }
    s->rows_known = true;
}

int scdl_ended(struct reader *r, const struct scdl_probe *p, uint64_t rows, struct hr_error *e)
{
    if (!r->scdl->opened) {
        learn(r->scdl, p, rows);
        TRY(add_root(r, e));
        r->scdl->opened = true;
    }
    return add_matrix(r, p->group, rows, e);
}

const char *scdl_format(const struct reader *r)
{
    return r->scdl->shape.backend == SCDL_CHUNKED ? "SCDL chunked" : "SCDL";
}
