/* Samples → what planner and driver work from: arrays, parts with their conversions and fill items,
 * tensors.
 *
 * Here the packing of an array (format/cf.h) meets the type of the tensor: the chosen conversion,
 * and what an absent chunk becomes under `missing=`, are settled before anything is read, so that a
 * loader that opens cannot fail on types. */
#include <math.h>
#include <string.h>

#include "api/archive.h"
#include "api/cells.h"
#include "api/loader.h"
#include "api/transform.h"
#include "base/mem.h"
#include "codec/number.h"
#include "format/members.h"

static bool is_number(enum hr_dtype t)
{
    return t >= HR_BOOL && t <= HR_F64;
}

static void fill_conversion(const struct array *x, const struct cf *cf,
                            const struct samples_tensor *t, uint64_t to_item, struct convert *c)
{
    bool decoded = t->decode && is_number(x->type.kind);
    *c = (struct convert){.from = decoded ? cf->packed : x->type.kind,
                          .to = t->dtype,
                          .from_item = (uint32_t)x->type.item_size,
                          .to_item = (uint32_t)to_item,
                          .scale = 1};
    if (!decoded)
        return;
    c->scaled = cf->scaled;
    c->scale = cf->scale;
    c->offset = cf->offset;
    c->n_missing = cf->n_missing;
    c->ranged = cf->ranged;
    memcpy(&c->low, &cf->low, sizeof c->low);
    memcpy(&c->high, &cf->high, sizeof c->high);
    for (int i = 0; i < cf->n_missing; i++)
        memcpy(&c->missing[i], &cf->missing[i], sizeof c->missing[i]);
}

_Static_assert(sizeof(union convert_number) == sizeof(union cf_number) &&
                   CONVERT_MAX_MISSING >= CF_MAX_MISSING,
               "missing values are handed from format to batch as they are");

/* Absent chunks of a normalised view differ from place to place, where they are no NaN. */
static const void *stored_fill(const struct array *x, const struct transform *t, bool nan)
{
    return t && t->tables && !nan ? x->fill : NULL;
}

/* The constant outside the array: what the axis says, or where a join has no counterpart no value; NULL: nothing said. */
static const double *pad_value(const struct samples_plan *s, const struct plan_part *part)
{
    static const double none = NAN;
    const struct core *c = s->samples->core;
    const struct view_transform *t = &c->views[part->view]->transform;
    for (int d = 0; d < s->arrays[part->array].ndim; d++) {
        const struct plan_dim *x = &part->dim[d];
        if (x->kind != SEL_SAMPLE || x->edge != EDGE_PAD)
            continue;
        if (x->table)
            return t->fills ? &t->fill : &none;
        if (c->axes[x->axis].padded)
            return &c->axes[x->axis].value;
    }
    return NULL;
}

static int wire_pad(struct wiring *w, int p, struct scatter_part *out, struct hr_error *e)
{
    const struct plan_part *part = &w->samples->parts[p];
    const struct samples_tensor *t = &w->samples->tensors[part->view];
    const double *value = pad_value(w->samples, part);
    if (t->mask)
        out->pad = arena_array(&w->arena, 16, 1); /* no value there: false */
    if (t->mask || !value)
        return !t->mask || out->pad ? 0 : error_nomem(e, 16, "a pad value");
    void *item = arena_alloc(&w->arena, 16);
    double back;
    if (!item)
        return error_nomem(e, 16, "a pad value");
    bool number = is_number(t->dtype);
    if (number) {
        number_store_f64(t->dtype, false, value, 1, item);
        number_load_f64(t->dtype, false, item, 1, &back);
    }
    if (!number || (t->dtype < HR_F16 && back != *value && isnan(*value)))
        return error_set(e, HR_EINVAL,
                         "view %s: where join=\"left\" has no counterpart it has no value, and %s "
                         "knows none: give it a float dtype, or join=\"inner\"",
                         t->name, hr_dtype_name(t->dtype));
    if (t->dtype < HR_F16 && back != *value)
        return error_set(e, HR_EINVAL,
                         "view %s: %g, the value outside the array, does not exist in %s", t->name,
                         *value, hr_dtype_name(t->dtype));
    out->pad = item;
    return 0;
}

/* The items of array x, packed as cf says, into the tensor of a view. */
static int wire_array(struct wiring *w, int view, const struct array *x, const struct cf *cf,
                      int missing, struct scatter_part *out, struct hr_error *e)
{
    const struct samples_tensor *t = &w->samples->tensors[view];
    fill_conversion(x, cf, t, w->samples->views[view].item, &out->convert);
    out->convert.transform = w->transforms[view];
    int rc = convert_init(&out->convert, e);
    if (rc < 0)
        return error_context(e, rc, "view %s, array %s", t->name, x->path);
    out->from_step = x->field_stride ? x->field_stride : x->type.item_size;
    out->from_skip = x->field_stride ? x->field_offset : 0;
    uint64_t item = out->convert.to_item;
    void *fill = arena_alloc(&w->arena, item < 16 ? 16 : item);
    if (!fill)
        return error_nomem(e, item, "a fill value");
    out->fill = fill;
    bool nan = missing == HR_MISSING_NAN;
    out->stored_fill = stored_fill(x, out->convert.transform, nan);
    if (convert_fill(&out->convert, x->fill, nan, fill))
        return 0;
    if (nan)
        return error_set(e, HR_EINVAL,
                         "missing=\"nan\": view %s has no NaN in %s; give it a float dtype",
                         t->name, hr_dtype_name(t->dtype));
    return error_set(e, HR_EINVAL,
                     "view %s, array %s: the fill value does not exist in %s; give a wider dtype",
                     t->name, x->path, hr_dtype_name(t->dtype));
}

static bool same_fill(const struct array *x, const struct array *y)
{
    return !memcmp(x->fill, y->fill, x->type.item_size);
}

/* Members of a joined array convert alike, or each in its own way. */
static int wire_leaves(struct wiring *w, int view, const struct samples_source *s, int missing,
                       struct scatter_part *out, struct hr_error *e)
{
    const struct array *x = s->array, *first = array_leaf_at(x, 0);
    int n = array_leaves(x);
    bool same = !s->cf.mixed;
    for (int i = 1; i < n; i++)
        same &= same_fill(first, array_leaf_at(x, i));
    if (same)
        return 0;
    struct scatter_part *leaves = arena_array(&w->arena, (size_t)n, sizeof *leaves);
    if (!leaves)
        return error_nomem(e, (uint64_t)n * sizeof *leaves, "a loader's tables");
    for (int i = 0; i < n; i++) {
        struct cf cf;
        TRY(cf_of_array(array_leaf_at(x, i), &cf, e));
        TRY(wire_array(w, view, array_leaf_at(x, i), &cf, missing, &leaves[i], e));
    }
    out->leaves = leaves;
    return 0;
}

static int wire_part(struct wiring *w, int p, int missing, struct hr_error *e)
{
    const struct plan_part *part = &w->samples->parts[p];
    const struct samples_source *s = &w->samples->sources[part->array];
    struct scatter_part *out = &w->parts[p];
    struct cf cf = s->cf;
    if (cf.mixed)
        TRY(cf_of_array(array_leaf_at(s->array, 0), &cf, e));
    TRY(wire_array(w, part->view, s->array, &cf, missing, out, e));
    return s->array->members ? wire_leaves(w, part->view, s, missing, out, e) : 0;
}

static int check_missing(const struct hr_loader_options *o, const char *view, struct hr_error *e)
{
    if (o->missing != HR_MISSING_NAN)
        return 0;
    return error_set(
        e, HR_EINVAL,
        "missing=\"nan\": view %s is of rows of a sparse matrix, of which chunks of zeros "
        "are not stored: \"fill\" takes them as such, \"error\" refuses them",
        view);
}

/* Samples of several rows have these as their second dimension. */
static void shape_wire(const struct samples_tensor *t, struct batch_tensor *out)
{
    const struct members *m = t->view->members;
    int at = 1;
    if (m) {
        out->members = m->n;
        out->shape[at++] = (int64_t)m->n;
    }
    for (int d = 1; d < t->ndim; d++)
        out->shape[at++] = t->shape[d];
    out->ndim = at;
}

static void table_wire(const struct table_spec *t, struct batch_tensor *out)
{
    *out = (struct batch_tensor){
        .name = t->name, .dtype = t->dtype, .ndim = 1, .item = hr_dtype_size(t->dtype)};
    if (t->members) {
        out->members = t->members->n;
        out->shape[out->ndim++] = (int64_t)t->members->n;
    }
    if (t->items > 1)
        out->shape[out->ndim++] = t->items;
}

/* Tensors of all views and tables, and which of them are whose. */
static int wire_tensors(struct wiring *w, struct hr_error *e)
{
    const struct samples_plan *s = w->samples;
    for (int i = 0; i < s->n_views; i++) {
        const struct samples_tensor *t = &s->tensors[i];
        struct batch_tensor *out = &w->tensors[w->n_tensors];
        w->first[i] = w->n_tensors;
        w->n_tensors += t->view->cells ? cells_tensors(t->view->cells) : 1;
        if (t->view->cells) {
            TRY(cells_wire(t->view, &w->arena, out, e));
            continue;
        }
        *out = (struct batch_tensor){
            .name = t->name, .dtype = t->dtype, .ndim = t->ndim, .item = s->views[i].item};
        shape_wire(t, out);
        TRY(transform_wire(t, &w->arena, &w->transforms[i], e));
    }
    for (int i = 0; i < s->n_tables; i++) {
        const struct table_spec *t = &s->tables[i];
        w->first[s->n_views + i] = w->n_tensors;
        w->tables[i] =
            (struct table){.tensor = w->n_tensors, .data = t->data, .members = t->members};
        table_wire(t, &w->tensors[w->n_tensors++]);
    }
    return 0;
}

static int wire_cells(struct wiring *w, int p, struct hr_error *e)
{
    int view = w->samples->parts[p].view;
    const struct cells_spec *spec = w->samples->tensors[view].view->cells;
    struct cells_view *v = arena_alloc(&w->arena, sizeof *v);
    if (!v)
        return error_nomem(e, sizeof *v, "a loader's tables");
    *v = (struct cells_view){.form = spec->form, .genes = spec->genes, .tensor = w->first[view]};
    w->parts[p].cells = v;
    return 0;
}

#define MOST_TENSORS_A_VIEW 3

static int wire(struct wiring *w, const struct hr_loader_options *o, struct hr_error *e)
{
    const struct samples_plan *s = w->samples;
    size_t views = (size_t)s->n_views, tables = (size_t)s->n_tables;
    w->arrays = arena_array(&w->arena, (size_t)s->n_arrays, sizeof *w->arrays);
    w->parts = arena_array(&w->arena, (size_t)s->n_parts, sizeof *w->parts);
    w->tensors = arena_array(&w->arena, MOST_TENSORS_A_VIEW * views + tables, sizeof *w->tensors);
    w->transforms = arena_array(&w->arena, views, sizeof *w->transforms);
    w->first = arena_array(&w->arena, views + tables, sizeof *w->first);
    w->tables = arena_array(&w->arena, tables + 1, sizeof *w->tables);
    if (!w->arrays || !w->parts || !w->tensors || !w->transforms || !w->first || !w->tables)
        return error_nomem(e, (uint64_t)s->n_parts * sizeof *w->parts, "a loader's tables");
    for (int i = 0; i < s->n_arrays; i++)
        w->arrays[i] = s->sources[i].array;
    TRY(wire_tensors(w, e));
    for (int p = 0; p < s->n_parts; p++) {
        if (s->tensors[s->parts[p].view].view->cells) {
            TRY(check_missing(o, s->tensors[s->parts[p].view].name, e));
            TRY(wire_cells(w, p, e));
            continue;
        }
        TRY(wire_part(w, p, o->missing, e));
        TRY(wire_pad(w, p, &w->parts[p], e));
    }
    return 0;
}

int wiring_new(struct hr_samples *s, const struct hr_loader_options *o, struct wiring **out,
               struct hr_error *e)
{
    struct wiring *w = mem_zalloc(sizeof *w);
    if (!w)
        return error_nomem(e, sizeof *w, "a loader's tables");
    arena_init(&w->arena);
    int rc = samples_plan_open(s, (enum hr_dtype)o->dtype, &w->samples, e);
    if (rc >= 0)
        rc = wire(w, o, e);
    if (rc < 0) {
        wiring_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

void wiring_free(struct wiring *w)
{
    samples_plan_free(w->samples);
    arena_dispose(&w->arena);
    mem_free(w);
}

/* Runs of cells may be many; 0: as the plan has it. */
static uint64_t usual_spread(const struct wiring *w)
{
    uint64_t open = 0;
    for (int i = 0; i < w->samples->n_arrays; i++) {
        const struct sparse *m = w->arrays[i]->sparse;
        if (m && (!open || m->open < open))
            open = m->open;
    }
    return open;
}

void wiring_plan_config(const struct wiring *w, const struct hr_loader_options *o,
                        const struct plan_state *resumed, struct plan_config *out)
{
    const struct samples_plan *s = w->samples;
    *out = (struct plan_config){.arrays = s->arrays,
                                .n_arrays = s->n_arrays,
                                .views = s->views,
                                .n_views = s->n_views + s->n_tables,
                                .parts = s->parts,
                                .n_parts = s->n_parts,
                                .axes = s->axes,
                                .n_axes = s->n_axes,
                                .filter = s->filter,
                                .shuffle = o->shuffle,
                                .remainder = o->remainder,
                                .seed = o->seed,
                                .spread = o->spread ? (uint64_t)o->spread : usual_spread(w),
                                .block = (uint64_t)o->block,
                                .streams = (uint64_t)o->streams,
                                .rows = (uint64_t)o->n,
                                .global_batch = (uint64_t)o->global_batch,
                                .rank = (uint64_t)(o->world ? o->rank : 0),
                                .world = (uint64_t)(o->world ? o->world : 1),
                                .archive_hash = s->archive_hash,
                                .views_hash = s->views_hash};
    if (!resumed)
        return;
    uint64_t batch = o->global_batch ? (uint64_t)o->global_batch : out->rows * out->world;
    uint64_t share = batch / (resumed->streams ? resumed->streams : 1);
    out->offset_epoch = resumed->epoch;
    out->offset = share ? resumed->position % share : 0;
}
