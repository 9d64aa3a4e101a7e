/* Building views over the rows of sparse matrices: arrays are looked up, options become a form, and where rows begin is read
 * at once where that is little. */
#include "api/cells.h"

#include <math.h>
#include <string.h>

#include "api/region.h"
#include "base/mem.h"
#include "format/scdl.h"

#define MOST_COLUMNS INT32_MAX
#define MOST_ITEMS   ((uint64_t)1 << 40) /* of a chunk of which nothing is known yet */
#define READ_BYTES   (16u << 20)         /* of indptr that is read when the view is made … */
#define READ_ARRAYS  8 /* … from so many arrays: one request each, one after another */

void cells_spec_free(struct cells_spec *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n_genes; i++)
        cells_genes_dispose(&c->genes[i]);
    cells_form_dispose(&c->form);
    mem_free(c->genes);
    sparse_table_free(c->matrix.table, c->matrix.n_chunks);
    mem_free(c);
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static int check_part(const struct hr_matrix *m, int n, struct hr_error *e)
{
    if (!m->data || !m->indptr != !m->indices)
        return error_set(
            e, HR_EINVAL,
            "a sparse matrix has three arrays: indptr, indices, data; a dense one data "
            "alone");
    if (m->columns < 1 || m->columns > MOST_COLUMNS)
        return error_set(e, HR_EINVAL, "%s: %lld columns; from 1 to 2^31 - 1 are possible", m->data,
                         (long long)m->columns);
    if (m->set < 0 || m->set >= n)
        return error_set(e, HR_EINVAL,
                         "%s: data set %lld; they are counted from 0, and are no more than parts",
                         m->data, (long long)m->set);
    return 0;
}

static int dense_find(struct core *c, const struct hr_matrix *m, struct sparse_segment *s,
                      struct hr_error *e)
{
    TRY(archive_array(c->archive, m->data, &s->data, e));
    s->indptr = s->indices = NULL;
    s->rows = s->data->ndim > 0 ? s->data->shape[0] : 0;
    s->items = SPARSE_UNKNOWN;
    return 0;
}

static int part_find(struct core *c, const struct hr_matrix *m, struct sparse_segment *s,
                     struct hr_error *e)
{
    if (!m->indptr)
        return dense_find(c, m, s, e);
    TRY(archive_array(c->archive, m->indptr, &s->indptr, e));
    TRY(archive_array(c->archive, m->indices, &s->indices, e));
    TRY(archive_array(c->archive, m->data, &s->data, e));
    if (s->indptr->ndim != 1 || !s->indptr->shape[0])
        return error_set(e, HR_EDATA,
                         "array %s: where rows begin is an array of one dimension, with one more "
                         "item than there are rows",
                         s->indptr->path);
    s->rows = s->indptr->shape[0] - 1;
    s->items = s->data->ndim == 1 ? s->data->shape[0] : SPARSE_UNKNOWN;
    return 0;
}

/* A chunk of SCDL, without a request: an archive has a thousand of them. How many items it has is known once its rows are read,
 * and so is whether its objects are as large as they should be. */
static int chunk_find(struct core *c, const struct scdl_shape *shape, uint64_t k,
                      struct sparse_segment *s, struct hr_error *e)
{
    struct array *x[SCDL_PARTS];
    uint64_t first;
    for (int part = 0; part < SCDL_PARTS; part++)
        TRY(scdl_chunk_array(shape, k, (enum scdl_part)part, MOST_ITEMS, &c->arena, &x[part], e));
    s->data = x[SCDL_DATA];
    s->indices = x[SCDL_INDICES];
    s->indptr = x[SCDL_INDPTR];
    s->rows = scdl_chunk_rows(shape, k, &first);
    s->items = SPARSE_UNKNOWN;
    return 0;
}

/* The chunks of an archive are alike: where the first is three objects, all are. */
static bool chunked(struct core *c, const struct hr_matrix *parts, struct scdl_shape *shape)
{
    const struct array *x;
    return archive_scdl(c->archive, shape) == 1 && shape->backend == SCDL_CHUNKED &&
           archive_look_up(c->archive, parts[0].data, &x, NULL) >= 0 && x->object && !x->problem &&
           codec_chain_is_raw(x->chain);
}

static int matrix_find(struct core *c, struct cells_spec *spec, const struct hr_matrix *parts,
                       int n, struct hr_error *e)
{
    struct sparse_segment *s = arena_array(&c->arena, (size_t)n, sizeof *s);
    struct scdl_shape shape;
    uint64_t rows = 0, k;
    const char *rest;
    int kept = 0;
    if (!s)
        return error_nomem(e, (uint64_t)n * sizeof *s, "a sparse matrix");
    TRY(check_part(&parts[0], n, e));
    bool of_chunks = chunked(c, parts, &shape);
    if (of_chunks && shape.n_rows && shape.nnz)
        spec->matrix.mean = (double)shape.nnz / (double)shape.n_rows;
    for (int i = 0; i < n; i++) {
        TRY(check_part(&parts[i], n, e));
        bool is_chunk = of_chunks && scdl_chunk_number(parts[i].data, &k, &rest);
        TRY(is_chunk ? chunk_find(c, &shape, k, &s[kept], e)
                     : part_find(c, &parts[i], &s[kept], e));
        s[kept].columns = (uint64_t)parts[i].columns;
        s[kept].set = (int)parts[i].set;
        s[kept].first = rows;
        rows += s[kept].rows;
        kept += s[kept].rows > 0; /* parts without rows are none */
    }
    return sparse_init(&spec->matrix, &c->arena, s, kept, (uint64_t)spec->row_chunk, e);
}

/* ---- where rows begin ------------------------------------------------------------------------ */

static int offsets_read(struct core *c, struct sparse *m, int segment, void *stored, uint64_t *out,
                        struct hr_error *e)
{
    const struct sparse_segment *s = &m->segments[segment];
    struct region *r;
    int64_t start = 0, count = (int64_t)s->rows + 1, step = 1;
    TRY(region_open(c->archive, s->indptr, &r, e));
    int rc = region_read(r, &start, &count, &step, stored, e);
    region_close(r);
    TRY(rc);
    TRY(sparse_offsets(s->indptr, stored, s->rows + 1, 0, sparse_items(s), out, e));
    return sparse_know(m, segment, out, e);
}

static int offsets_read_all(struct core *c, struct sparse *m, struct hr_error *e)
{
    uint64_t most = 0;
    for (int i = 0; i < m->n_segments; i++)
        if (!sparse_is_dense(&m->segments[i]) && m->segments[i].rows > most)
            most = m->segments[i].rows;
    void *stored = mem_alloc((most + 1) * 8);
    uint64_t *offsets = mem_alloc((most + 1) * sizeof *offsets);
    int rc = stored && offsets ? 0 : error_nomem(e, most * 16, "where rows begin");
    for (int i = 0; i < m->n_segments && !rc; i++)
        rc = sparse_is_dense(&m->segments[i]) ? 0 : offsets_read(c, m, i, stored, offsets, e);
    mem_free(stored);
    mem_free(offsets);
    sparse_settle(m);
    return rc;
}

/* All of indptr, if it is little: then batches know their rows' places from the beginning. Of more, what is read along the way
 * is kept, as much as loaders allow. */
static int offsets_know(struct core *c, struct cells_spec *spec, int64_t most, struct hr_error *e)
{
    struct sparse *m = &spec->matrix;
    uint64_t limit = most ? (uint64_t)(most > 0 ? most : 0) : READ_BYTES;
    spec->table_bytes = sparse_table_bytes(m);
    m->table = sparse_table_new(m);
    if (!m->table)
        return error_nomem(e, spec->table_bytes, "where rows begin");
    uint64_t rows = 0;
    int arrays = 0;
    for (int i = 0; i < m->n_segments; i++) {
        rows += sparse_is_dense(&m->segments[i]) ? 0 : m->segments[i].rows;
        arrays += !sparse_is_dense(&m->segments[i]);
    }
    if (!arrays || rows > limit / 8 || arrays > READ_ARRAYS)
        return 0;
    sparse_allow(m, UINT64_MAX);
    return offsets_read_all(c, m, e);
}

/* ---- the form -------------------------------------------------------------------------------- */

static bool changes(const struct hr_cells_options *o)
{
    return o->total > 0 || o->log1p || o->factors;
}

static enum hr_dtype value_dtype(const struct hr_cells_options *o, const struct sparse *m)
{
    if (o->dtype)
        return (enum hr_dtype)o->dtype;
    if (o->form == HR_CELLS_PADDED || o->form == HR_CELLS_RANKED || changes(o))
        return HR_F32;
    for (int i = 1; i < m->n_segments;
         i++) /* data sets of several types meet in one that has room */
        if (m->segments[i].data->type.kind != m->segments[0].data->type.kind)
            return HR_F32;
    return m->segments[0].data->type.kind == HR_BOOL ? HR_U8 : m->segments[0].data->type.kind;
}

static int form_make(struct cells_spec *spec, const struct hr_cells_options *o, uint64_t columns,
                     struct hr_error *e)
{
    static const enum cells_kind kinds[] = {CELLS_CSR, CELLS_DENSE, CELLS_PADDED, CELLS_RANKED};
    static const enum cells_pick picks[] = {CELLS_PICK_FIRST, CELLS_PICK_TOP, CELLS_PICK_RANDOM,
                                            CELLS_PICK_WEIGHTED};
    if (o->form < 0 || o->form > HR_CELLS_RANKED || o->pick < 0 || o->pick > HR_PICK_WEIGHTED ||
        o->bins < 0 || o->bins > INT32_MAX || o->length < 0)
        return error_set(e, HR_EINVAL, "cells: form, pick, bins or length: no such choice");
    bool tokens = o->form == HR_CELLS_RANKED || (o->form == HR_CELLS_PADDED && o->tokens);
    spec->form = (struct cells_form){.kind = kinds[o->form],
                                     .value = value_dtype(o, &spec->matrix),
                                     .column = o->index_dtype ? (enum hr_dtype)o->index_dtype
                                               : tokens       ? HR_I64
                                                              : HR_I32,
                                     .n_columns = columns,
                                     .total = o->total,
                                     .total_selected = o->total_selected != 0,
                                     .log1p = o->log1p != 0,
                                     .factors = o->factors,
                                     .bins = (uint32_t)o->bins,
                                     .length = (uint64_t)o->length,
                                     .pick = picks[o->pick],
                                     .tokens = o->tokens,
                                     .pad = o->pad,
                                     .has_first = o->has_first != 0,
                                     .has_last = o->has_last != 0,
                                     .first = o->first,
                                     .last = o->last,
                                     .pad_value = (float)o->pad_value,
                                     .special_value = (float)o->special_value};
    return cells_form_init(&spec->form, e);
}

static int genes_make(struct cells_spec *spec, const struct hr_columns *sets, int n_sets,
                      struct hr_error *e)
{
    const struct sparse *m = &spec->matrix;
    sets = n_sets > 0 ? sets : NULL;
    if (sets && n_sets < m->n_sets)
        return error_set(e, HR_EINVAL, "%d data sets, and maps of the columns of %d", m->n_sets,
                         n_sets);
    spec->genes = mem_array((size_t)m->n_sets, sizeof *spec->genes);
    if (!spec->genes)
        return error_nomem(e, (uint64_t)m->n_sets * sizeof *spec->genes,
                           "the columns of data sets");
    for (int set = 0; set < m->n_sets; set++) {
        uint64_t columns = 0;
        for (int i = 0; i < m->n_segments; i++) {
            const struct sparse_segment *s = &m->segments[i];
            if (s->set != set)
                continue;
            TRY(cells_form_accepts(&spec->form, s->data->type.kind,
                                   sparse_is_dense(s) ? HR_NONE : s->indices->type.kind, e));
            columns = s->columns > columns ? s->columns : columns;
        }
        const int32_t *to = sets ? sets[set].to : NULL;
        if (to && (uint64_t)sets[set].n != columns)
            return error_set(e, HR_EINVAL,
                             "data set %d has %llu columns, and is given a map of %lld", set,
                             (unsigned long long)columns, (long long)sets[set].n);
        if (columns)
            TRY(cells_genes_init(&spec->genes[set], &spec->form, columns, to, e));
        spec->n_genes = set + 1;
    }
    return 0;
}

static uint64_t options_hash(const struct cells_spec *spec, const struct hr_cells_options *o)
{
    struct hash h;
    hash_init(&h, 6);
    const struct cells_form *f = &spec->form;
    const uint64_t numbers[] = {
        f->kind,      f->value,    f->column,          f->n_columns,     f->total_selected,
        f->log1p,     f->bins,     f->length,          f->pick,          (uint64_t)f->pad,
        f->has_first, f->has_last, (uint64_t)f->first, (uint64_t)f->last};
    hash_data(&h, numbers, sizeof numbers);
    hash_data(&h, &f->total, sizeof f->total);
    hash_data(&h, &f->pad_value, sizeof f->pad_value);
    hash_data(&h, &f->special_value, sizeof f->special_value);
    hash_u64(&h, o->factors != NULL);
    if (o->factors)
        hash_data(&h, o->factors, f->n_columns * sizeof *o->factors);
    hash_u64(&h, o->tokens != NULL);
    if (o->tokens)
        hash_data(&h, o->tokens, f->n_columns * sizeof *o->tokens);
    for (int i = 0; i < spec->n_genes; i++) {
        hash_u64(&h, spec->genes[i].n);
        hash_u64(&h, spec->genes[i].to != NULL);
        if (spec->genes[i].to)
            hash_data(&h, spec->genes[i].to, spec->genes[i].n * sizeof *spec->genes[i].to);
    }
    return hash_value(&h);
}

/* ---- the call -------------------------------------------------------------------------------- */

static int check_call(const struct core *c, const char *view, const struct hr_matrix *parts, int n,
                      const struct hr_cells_options *o, struct hr_error *e)
{
    if (!o || o->size < sizeof *o)
        return error_set(e, HR_EINVAL, "cells: set the options up with HR_CELLS_OPTIONS");
    if (!view || !*view)
        return error_set(e, HR_EINVAL, "a view needs a name");
    if (!parts || n < 1)
        return error_set(e, HR_EINVAL, "view %s: a sparse matrix has at least one part", view);
    if (o->row_chunk < 0 || o->columns < 0 || o->columns > MOST_COLUMNS)
        return error_set(e, HR_EINVAL, "view %s: %lld rows together, %lld columns", view,
                         (long long)o->row_chunk, (long long)o->columns);
    if (c->n_axes != 1 || c->axes[0].kind != AXIS_STEPS)
        return error_set(e, HR_EINVAL,
                         "view %s: the rows of a sparse matrix are samples along one axis", view);
    return 0;
}

static int spec_make(struct core *c, struct cells_spec *spec, const char *view,
                     const struct hr_matrix *parts, int n, const struct hr_columns *sets,
                     int n_sets, const struct hr_cells_options *o, struct hr_error *e)
{
    uint64_t columns = (uint64_t)o->columns;
    spec->row_chunk = o->row_chunk;
    spec->items = o->items ? arena_strdup(&c->arena, o->items) : "genes";
    spec->values = o->values ? arena_strdup(&c->arena, o->values) : "values";
    if (!spec->items || !spec->values)
        return error_nomem(e, 16, "names of tensors");
    TRY(matrix_find(c, spec, parts, n, e));
    for (int i = 0; i < n && !o->columns; i++)
        columns = (uint64_t)parts[i].columns > columns ? (uint64_t)parts[i].columns : columns;
    TRY(form_make(spec, o, columns, e));
    TRY(genes_make(spec, sets, n_sets, e));
    spec->hash = options_hash(spec, o);
    TRY(offsets_know(c, spec, o->read_offsets, e));
    TRY(sparse_array(&c->arena, &spec->matrix, view, c->axes[0].name, &spec->rows, e));
    return core_view_add(c, view, spec->rows, spec, e);
}

int hr_samples_cells(struct hr_samples *s, const char *view, const struct hr_matrix *parts,
                     int n_parts, const struct hr_columns *sets, int n_sets,
                     const struct hr_cells_options *o, struct hr_error *e)
{
    struct core *c = s->core;
    struct cells_spec *spec = NULL;
    pthread_mutex_lock(&c->lock);
    int rc = core_building(s, e);
    if (!rc)
        rc = check_call(c, view, parts, n_parts, o, e);
    if (!rc && !(spec = mem_zalloc(sizeof *spec)))
        rc = error_nomem(e, sizeof *spec, "a view of cells");
    if (!rc) {
        rc = spec_make(c, spec, view, parts, n_parts, sets, n_sets, o, e);
        if (rc < 0) {
            cells_spec_free(spec);
            rc = error_context(e, rc, "view %s", view);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}
