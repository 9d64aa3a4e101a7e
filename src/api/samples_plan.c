/* One loader's view of its samples: tensor types, fingerprints, and the report on them. */
#include "api/cells.h"
#include "api/ids.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "format/members.h"
#include <string.h>

/* Values that are changed are numbers, and become fractions. */
static int check_transform(const struct view_spec *v, const struct array *x, enum hr_dtype ask,
                           bool no_number, struct hr_error *e)
{
    if (no_number)
        return error_set(e, HR_EINVAL,
                         "view %s: array %s of type %s holds no numbers that could be scaled, "
                         "clipped or normalised",
                         v->name, x->path, x->type.name);
    if (!transform_any(&v->transform) || v->mask_of || !ask || (ask >= HR_F16 && ask <= HR_F64))
        return 0;
    return error_set(
        e, HR_EINVAL,
        "view %s: its values are scaled, clipped or normalised, which gives fractions, "
        "not %s; ask for a float dtype",
        v->name, hr_dtype_name(ask));
}

static int tensor_dtype(const struct core *c, const struct view_spec *v, enum hr_dtype wanted,
                        int number, struct samples_tensor *t, uint64_t *item, struct hr_error *e)
{
    enum hr_dtype ask = v->dtype ? v->dtype : wanted;
    *item = 1;
    if (v->cells) /* cells_layout has said it, and counts in bytes */
        return 0;
    *item = 0;
    for (int p = 0; p < c->n_parts; p++) {
        if (c->parts[p].view != number)
            continue;
        const struct samples_source *source = &c->sources[c->parts[p].array];
        const struct array *x = source->array;
        struct cf plain;
        cf_none(x->type.kind, &plain);
        const struct cf *cf = v->decode ? &source->cf : &plain;
        bool changes = transform_any(&v->transform) && !t->mask;
        enum hr_dtype own = t->mask ? HR_BOOL : cf->result;
        bool opaque =
            own == HR_RAW || own == HR_UTF32 || own == HR_DATETIME64 || own == HR_TIMEDELTA64;
        TRY(check_transform(v, x, ask, changes && (opaque || own >= HR_C64), e));
        own = changes ? transform_dtype(own) : own;
        enum hr_dtype got = ask && !opaque && !t->mask ? ask : own;
        uint64_t size = opaque ? x->type.item_size : hr_dtype_size(got);
        if (ask && opaque && v->dtype && v->dtype != own)
            return error_set(e, HR_EINVAL, "view %s: array %s of type %s cannot become %s", v->name,
                             x->path, x->type.name, hr_dtype_name(v->dtype));
        if (!opaque && !t->mask && cf_check(cf, got, e) < 0)
            return error_context(e, HR_EINVAL, "view %s, array %s", v->name, x->path);
        if (*item && (got != t->dtype || size != *item))
            return error_set(
                e, HR_EINVAL,
                "view %s: arrays %s and %s have different types (%s, %s): give dtype=", v->name,
                v->arrays[0]->path, x->path, hr_dtype_name(t->dtype), hr_dtype_name(got));
        t->dtype = got;
        *item = size;
    }
    return 0;
}

/* The first index along a dimension that no sample of the split takes, as far as that can be told. */
static uint64_t taken_end(const struct samples_plan *p, const struct plan_dim *dim)
{
    const struct plan_axis *axis = dim->kind == SEL_SAMPLE ? &p->axes[dim->axis] : NULL;
    if (!axis || dim->table || axis->places || !axis->last)
        return UINT64_MAX;
    int64_t mul = dim->mul ? dim->mul : 1, div = dim->div ? dim->div : 1,
            step = dim->step ? dim->step : 1;
    return (uint64_t)(dim->start + ((int64_t)axis->last - 1) * mul / div + (dim->count - 1) * step +
                      1);
}

/* Of the members of a joined array those that the split reaches: more may follow, and the last may grow. */
static void hash_members(const struct samples_plan *p, const struct plan_part *part,
                         const struct array *x, struct hash *h)
{
    uint64_t end = taken_end(p, &part->dim[x->members->dim]);
    for (int i = 0; i < array_leaves(x); i++) {
        const struct array *leaf = array_leaf_at(x, i);
        uint64_t from, to;
        array_leaf_range(x, i, x->members->dim, &from, &to);
        if (from >= end)
            continue;
        hash_u64(h, from);
        hash_string(h, codec_chain_text(leaf->chain));
        for (int d = 0; d < x->ndim; d++)
            hash_u64(h, leaf->chunk[d]);
    }
}

static uint64_t hash_archive(const struct samples_plan *p)
{
    struct hash h;
    hash_init(&h, 1);
    for (int i = 0; i < p->n_parts; i++) {
        const struct plan_part *part = &p->parts[i];
        const struct array *x = p->sources[part->array].array;
        hash_string(&h, x->path);
        hash_string(&h, x->type.name);
        if (x->members)
            hash_members(p, part, x, &h);
        else
            hash_string(&h, codec_chain_text(x->chain));
        for (int d = 0; d < x->ndim; d++) { /* the sample axis may grow */
            hash_u64(&h, part->dim[d].kind == SEL_SAMPLE ? 0 : x->shape[d]);
            if (!x->members)
                hash_u64(&h, x->chunk[d]);
        }
    }
    return hash_value(&h);
}

/* What differs from one plain axis, so that the fingerprints of such samples are what they always were. */
static void hash_dim(const struct plan_dim *dim, const struct plan_axis *axes, struct hash *h)
{
    if (!dim->axis && dim->mul <= 1 && dim->div <= 1 && !dim->edge && !dim->table)
        return;
    hash_u64(h, (uint64_t)dim->axis);
    hash_u64(h, (uint64_t)dim->mul);
    hash_u64(h, (uint64_t)dim->div);
    hash_u64(h, dim->edge);
    uint64_t n = axes[dim->axis].places ? axes[dim->axis].places : axes[dim->axis].n;
    for (uint64_t j = 0; dim->table && j < n; j++)
        hash_u64(h, (uint64_t)dim->table[j]);
}

/* The outermost axis may grow: ids stay what they are. */
static void hash_axes(const struct samples_plan *p, struct hash *h)
{
    if (p->n_axes == 1 && !p->axes[0].places)
        return;
    for (int a = 0; a < p->n_axes; a++) {
        hash_u64(h, a ? p->axes[a].n : 0);
        hash_u64(h, p->axes[a].places);
    }
}

static uint64_t hash_views(const struct samples_plan *p)
{
    struct hash h;
    hash_init(&h, 2);
    for (int i = 0; i < p->n_views; i++) {
        hash_string(&h, p->tensors[i].name);
        hash_u64(&h, p->tensors[i].dtype);
        hash_u64(&h, p->tensors[i].decode);
        transform_hash(p->tensors[i].view, &h);
        if (p->tensors[i].view->members)
            hash_u64(&h, p->tensors[i].view->members->hash);
        if (p->tensors[i].view->cells)
            hash_u64(&h, p->tensors[i].view->cells->hash);
        for (int d = 1; d < p->tensors[i].ndim; d++)
            hash_u64(&h, (uint64_t)p->tensors[i].shape[d]);
    }
    for (int i = 0; i < p->n_parts; i++) {
        const struct plan_part *part = &p->parts[i];
        hash_u64(&h, (uint64_t)part->view);
        for (int d = 0; d < p->arrays[part->array].ndim; d++) {
            const struct plan_dim *dim = &part->dim[d];
            hash_u64(&h, dim->kind);
            hash_u64(&h, (uint64_t)dim->start);
            hash_u64(&h, (uint64_t)dim->count);
            hash_u64(&h, (uint64_t)dim->step);
            for (int64_t j = 0; dim->kind == SEL_LIST && j < dim->count; j++)
                hash_u64(&h, (uint64_t)dim->list[j]);
            if (dim->kind == SEL_SAMPLE)
                hash_dim(dim, p->axes, &h);
        }
    }
    for (int i = 0; i < p->n_tables; i++) {
        hash_string(&h, p->tables[i].name);
        hash_u64(&h, p->tables[i].dtype);
        hash_u64(&h, (uint64_t)p->tables[i].items);
    }
    hash_axes(p, &h);
    return hash_value(&h);
}

static uint64_t members_of(const struct members *m)
{
    return m ? m->n : 1;
}

static int fill_plan(struct samples_plan *p, struct hr_samples *s, enum hr_dtype dtype,
                     struct hr_error *e)
{
    const struct core *c = s->core;
    p->n_arrays = c->n_arrays;
    p->n_views = (int)c->n_views;
    p->tables = c->tables;
    p->n_tables = (int)c->n_tables;
    p->n_parts = c->n_parts;
    p->sources = c->sources;
    p->arrays = c->arrays;
    p->parts = c->parts;
    p->n_axes = c->n_axes;
    for (int a = 0; a < c->n_axes; a++)
        p->axes[a] = axis_plan(&c->axes[a], s->box[a]);
    p->filter = s->filter;
    p->tensors = arena_array(&p->arena, c->n_views, sizeof *p->tensors);
    p->views = arena_array(&p->arena, c->n_views + c->n_tables, sizeof *p->views);
    if (!p->tensors || !p->views)
        return error_nomem(e, c->n_views * sizeof *p->tensors, "views");
    for (int i = 0; i < p->n_views; i++) {
        uint64_t stack, strides[HR_MAX_DIMS];
        p->views[i].name = c->views[i]->name;
        TRY(core_view_layout(c, c->views[i], &p->tensors[i], &p->views[i].items, &stack, strides,
                             e));
        TRY(tensor_dtype(c, c->views[i], dtype, i, &p->tensors[i], &p->views[i].item, e));
        p->views[i].items *= members_of(c->views[i]->members);
    }
    for (size_t i = 0; i < c->n_tables; i++)
        p->views[c->n_views + i] = (struct plan_view){.name = c->tables[i].name,
                                                      .items = (uint64_t)c->tables[i].items *
                                                               members_of(c->tables[i].members),
                                                      .item = hr_dtype_size(c->tables[i].dtype)};
    p->archive_hash = hash_archive(p);
    p->views_hash = hash_views(p);
    return 0;
}

int samples_plan_open(struct hr_samples *s, enum hr_dtype dtype, struct samples_plan **out,
                      struct hr_error *e)
{
    TRY(samples_freeze(s, e));
    struct samples_plan *p = mem_zalloc(sizeof *p);
    if (!p)
        return error_nomem(e, sizeof *p, "samples");
    arena_init(&p->arena);
    p->samples = hr_samples_ref(s);
    p->archive = hr_archive_ref(s->core->archive);
    int rc = fill_plan(p, s, dtype, e);
    if (rc < 0) {
        samples_plan_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void samples_plan_free(struct samples_plan *p)
{
    if (!p)
        return;
    hr_archive_unref(p->archive);
    hr_samples_unref(p->samples);
    arena_dispose(&p->arena);
    mem_free(p);
}

static void cells_json(struct buf *b, const struct cells_spec *c)
{
    static const char *const forms[] = {"csr", "dense", "padded", "ranked"};
    uint64_t reads, chunks;
    sparse_reads(&c->matrix, &reads, &chunks);
    buf_printf(b,
               ", \"form\": \"%s\", \"rows\": %llu, \"items_a_row\": %.6g, \"row_chunk\": %llu, "
               "\"chunk_reads\": %llu, \"chunks\": %llu",
               forms[c->form.kind], (unsigned long long)c->matrix.rows, c->matrix.mean,
               (unsigned long long)c->matrix.row_chunk, (unsigned long long)reads,
               (unsigned long long)chunks);
}

static void view_json(struct buf *b, const struct samples_plan *p, int i)
{
    const struct samples_tensor *t = &p->tensors[i];
    buf_puts(b, i ? ", {\"name\": " : "{\"name\": ");
    buf_json_string(b, t->name, strlen(t->name));
    buf_puts(b, ", \"arrays\": [");
    for (int j = 0, k = 0; j < p->n_parts; j++) {
        if (p->parts[j].view != i)
            continue;
        const char *path = p->sources[p->parts[j].array].array->path;
        buf_puts(b, k++ ? ", " : "");
        buf_json_string(b, path, strlen(path));
    }
    const struct members *m = t->view->members;
    buf_puts(b, m ? "], \"dims\": [\"cell\"" : "], \"dims\": [");
    for (int d = 1; d < t->ndim; d++) {
        buf_puts(b, d > 1 || m ? ", " : "");
        buf_json_string(b, t->dims[d], strlen(t->dims[d]));
    }
    buf_puts(b, "], \"shape\": [");
    if (m)
        buf_printf(b, "%llu", (unsigned long long)m->n);
    for (int d = 1; d < t->ndim; d++)
        buf_printf(b, "%s%lld", d > 1 || m ? ", " : "", (long long)t->shape[d]);
    buf_printf(b, "], \"dtype\": \"%s\", \"bytes\": %llu", hr_dtype_name(t->dtype),
               (unsigned long long)(p->views[i].items * p->views[i].item));
    if (m)
        buf_printf(b, ", \"members\": %llu", (unsigned long long)m->n);
    if (t->view->cells)
        cells_json(b, t->view->cells);
    buf_puts(b, "}");
}

static void table_json(struct buf *b, const struct table_spec *t, int number)
{
    buf_puts(b, number ? ", {\"name\": " : "{\"name\": ");
    buf_json_string(b, t->name, strlen(t->name));
    buf_printf(b, ", \"items\": %lld, \"dtype\": \"%s\"", (long long)t->items,
               hr_dtype_name(t->dtype));
    if (t->members)
        buf_printf(b, ", \"members\": %llu", (unsigned long long)t->members->n);
    buf_puts(b, "}");
}

static void axis_json(struct buf *b, const struct hr_samples *s, int number)
{
    const struct axis_spec *a = &s->core->axes[number];
    struct span box = s->box[number];
    static const char *const kinds[] = {"steps", "patch", "crop", "draws"};
    static const char *const edges[] = {"valid", "pad", "reflect", "clip"};
    buf_puts(b, number ? ", {\"name\": " : "{\"name\": ");
    buf_json_string(b, a->name, strlen(a->name));
    buf_printf(b, ", \"kind\": \"%s\", \"n\": %lld, \"first\": %lld, \"last\": %lld",
               kinds[a->kind], (long long)a->n, (long long)box.first, (long long)box.last - 1);
    buf_printf(b, ", \"chosen\": %lld", (long long)ids_positions(s, number));
    if (a->kind != AXIS_DRAWS)
        buf_printf(b, ", \"length\": %lld", (long long)a->length);
    if (a->size)
        buf_printf(b, ", \"size\": %lld", (long long)a->size);
    if (a->kind == AXIS_PATCH)
        buf_printf(b, ", \"stride\": %lld, \"edge\": \"%s\"", (long long)a->stride, edges[a->edge]);
    if (a->kind == AXIS_CROP)
        buf_printf(b, ", \"places\": %lld, \"align\": %lld", (long long)a->places,
                   (long long)a->align);
    buf_puts(b, "}");
}

int hr_samples_json(struct hr_samples *s, char **json, struct hr_error *e)
{
    struct samples_plan *p;
    TRY(samples_plan_open(s, HR_NONE, &p, e));
    struct buf b;
    buf_init(&b);
    int64_t count = samples_count_ids(s), first = -1, last = -1;
    if (count) {
        hr_samples_ids(s, 0, 1, &first, NULL);
        hr_samples_ids(s, count - 1, 1, &last, NULL);
    }
    const struct core *c = s->core;
    buf_puts(&b, "{\"along\": ");
    const char *first_axis = c->axes[core_first_axis(c)].name;
    buf_json_string(&b, first_axis, strlen(first_axis));
    buf_printf(&b, ", \"axis\": %lld, \"count\": %lld, \"first_id\": %lld, \"last_id\": %lld",
               (long long)c->ids, (long long)count, (long long)first, (long long)last);
    buf_puts(&b, ", \"axes\": [");
    for (int a = 0; a < c->n_axes; a++)
        axis_json(&b, s, a);
    buf_puts(&b, "], \"views\": [");
    for (int i = 0; i < p->n_views; i++)
        view_json(&b, p, i);
    buf_puts(&b, "], \"tables\": [");
    for (int i = 0; i < p->n_tables; i++)
        table_json(&b, &p->tables[i], i);
    buf_puts(&b, "]}");
    samples_plan_free(p);
    *json = buf_take(&b);
    buf_dispose(&b);
    return *json ? 0 : error_nomem(e, 0, "report");
}
