/* struct hr_samples: a shared core that says what a sample is, and the ids that are left.
 *
 * Building calls resolve names, labels and lags at once, so that an error points at the call that caused it. The first use
 * freezes the core: arrays become plan_arrays, views become parts, and the ids whose boxes leave an array are excluded. What
 * is derived by sel, isel and split shares the core and differs in ids only. The core's lock guards building and freezing;
 * a frozen core is immutable. */
#include "api/samples.h"
#include "api/label.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "plan/split.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct dim_spec {
    bool set, keep;     /* keep: the dimension stays in the tensor */
    enum plan_sel kind;
    int64_t start, count, step;
    const int64_t *list;
};
struct view_spec {
    const char *name, *stack;
    const struct array **arrays;
    int n_arrays;
    enum hr_dtype dtype;
    bool decode;
    int axis;                 /* which dimension is the sample axis */
    const char *dims[HR_MAX_DIMS];
    struct dim_spec dim[HR_MAX_DIMS];
};

struct core {
    atomic_int refs;
    pthread_mutex_t lock;
    struct arena arena;
    struct hr_archive *archive;
    const char *along;
    struct view_spec **views;
    size_t n_views, cap_views;
    int64_t axis;             /* length of the sample axis, -1 before the first view */
    const struct array *axis_array;
    bool frozen;
    /* after freezing */
    struct samples_source *sources;
    struct plan_array *arrays;
    struct plan_part *parts;
    int n_arrays, n_parts;
    int64_t first, last;
};

struct hr_samples {
    atomic_int refs;
    struct core *core;
    bool whole;               /* all ids of the core: first and last follow when it freezes */
    int64_t first, last;
    struct bitmap *filter;
};

/* ---- lifetime ------------------------------------------------------------------------------------------------- */

static void core_unref(struct core *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    hr_archive_unref(c->archive);
    mem_free(c->views);
    arena_dispose(&c->arena);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static struct hr_samples *derive(struct core *c, int64_t first, int64_t last, struct bitmap *filter, bool whole)
{
    struct hr_samples *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    atomic_fetch_add(&c->refs, 1);
    s->core = c;
    s->first = first;
    s->last = last;
    s->filter = filter;
    s->whole = whole;
    return s;
}

int hr_samples_new(struct hr_archive *a, const char *along, struct hr_samples **out, struct hr_error *e)
{
    if (!along || !*along)
        return error_set(e, HR_EINVAL, "no sample axis given: name a dimension, such as along=\"time\"");
    struct core *c = mem_zalloc(sizeof *c);
    if (!c)
        return error_nomem(e, sizeof *c, "samples");
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    arena_init(&c->arena);
    c->archive = hr_archive_ref(a);
    c->axis = -1;
    c->along = arena_strdup(&c->arena, along);
    *out = c->along ? derive(c, 0, 0, NULL, true) : NULL;
    core_unref(c);
    return *out ? 0 : error_nomem(e, sizeof **out, "samples");
}

struct hr_samples *hr_samples_ref(struct hr_samples *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void hr_samples_unref(struct hr_samples *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    if (s->filter) {
        bitmap_dispose(s->filter);
        mem_free(s->filter);
    }
    core_unref(s->core);
    mem_free(s);
}

/* ---- building -------------------------------------------------------------------------------------------------- */

static const char *dim_name(struct core *c, const struct array *x, int d)
{
    if (x->dims && x->dims[d])
        return x->dims[d];
    return arena_printf(&c->arena, "dim_%d", d);
}

static const char *dims_text(struct core *c, const struct array *x, char *out, size_t n)
{
    size_t k = 0;
    out[0] = 0;
    for (int d = 0; d < x->ndim && k < n; d++) {
        const char *name = dim_name(c, x, d);
        k += (size_t)snprintf(out + k, n - k, "%s%s", d ? ", " : "", name ? name : "?");
    }
    return out;
}

/* The array's dimensions into the view; finds the sample axis. */
static int take_dims(struct core *c, struct view_spec *v, const struct array *x, struct hr_error *e)
{
    char all[200];
    v->axis = -1;
    for (int d = 0; d < x->ndim; d++) {
        if (!(v->dims[d] = dim_name(c, x, d)))
            return error_nomem(e, 16, "dimension names");
        if (strcmp(v->dims[d], c->along))
            continue;
        if (v->axis >= 0)
            return error_set(e, HR_EUNSUPPORTED, "array %s has dimension %s twice: it cannot be the sample axis", x->path,
                             c->along);
        v->axis = d;
    }
    if (v->axis < 0)
        return error_set(e, HR_ENOENT,
                         "array %s has no dimension %s (it has %s): every array of a view needs the sample axis",
                         x->path, c->along, dims_text(c, x, all, sizeof all));
    return 0;
}

static int check_array(struct core *c, struct view_spec *v, const struct array *x, struct hr_error *e)
{
    const struct array *first = v->arrays[0];
    if (x->type.kind == HR_STRING || x->type.kind == HR_BYTES)
        return error_set(e, HR_EUNSUPPORTED, "array %s holds variable-length %s, which have no tensor", x->path,
                         x->type.kind == HR_STRING ? "strings" : "bytes");
    if (x->ndim > HR_MAX_DIMS - 2)
        return error_set(e, HR_EUNSUPPORTED, "array %s has %d dimensions; at most %d are read", x->path, x->ndim,
                         HR_MAX_DIMS - 2);
    if (x == first) {
        TRY(take_dims(c, v, x, e));
    } else {
        bool same = x->ndim == first->ndim;
        for (int d = 0; same && d < x->ndim; d++) {
            const char *name = dim_name(c, x, d);
            same = name && !strcmp(name, v->dims[d]) && x->shape[d] == first->shape[d];
        }
        if (!same) {
            char a[200], b[200];
            return error_set(e, HR_EINVAL, "arrays %s (%s) and %s (%s) cannot be stacked: their dimensions differ",
                             first->path, dims_text(c, first, a, sizeof a), x->path, dims_text(c, x, b, sizeof b));
        }
    }
    int64_t length = (int64_t)x->shape[v->axis];
    if (c->axis >= 0 && c->axis != length)
        return error_set(e, HR_EINVAL, "dimension %s is %lld long in %s but %lld in %s: samples need one common axis",
                         c->along, (long long)c->axis, c->axis_array->path, (long long)length, x->path);
    if (c->axis < 0) {
        c->axis = length;
        c->axis_array = x;
    }
    return 0;
}

static int building(struct hr_samples *s, struct hr_error *e)
{
    if (!s->whole || s->core->frozen)
        return error_set(e, HR_ESTATE, "these samples are in use: views are added before the first sel, split or loader");
    return 0;
}

static int add_view(struct core *c, const char *name, const char *const *arrays, int n, const char *stack,
                    struct hr_error *e)
{
    if (!name || !*name)
        return error_set(e, HR_EINVAL, "a view needs a name");
    if (n < 1)
        return error_set(e, HR_EINVAL, "view %s names no array", name);
    if (n > 1 && !stack)
        return error_set(e, HR_EINVAL, "view %s has %d arrays: say what their common dimension is called, "
                         "such as stack=\"channel\"", name, n);
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, name))
            return error_set(e, HR_EINVAL, "there are two views named %s", name);
    struct view_spec *v = arena_alloc(&c->arena, sizeof *v);
    if (!v || mem_grow((void **)&c->views, &c->cap_views, c->n_views + 1, sizeof *c->views) ||
        !(v->arrays = arena_array(&c->arena, (size_t)n, sizeof *v->arrays)) ||
        !(v->name = arena_strdup(&c->arena, name)) || (stack && !(v->stack = arena_strdup(&c->arena, stack))))
        return error_nomem(e, sizeof *v, "view");
    v->decode = true;
    v->n_arrays = n;
    for (int i = 0; i < n; i++) {
        TRY(archive_array(c->archive, arrays[i], &v->arrays[i], e));
        TRY(check_array(c, v, v->arrays[i], e));
    }
    v->dim[v->axis] = (struct dim_spec){.kind = SEL_SAMPLE, .count = 1, .step = 1};
    c->views[c->n_views++] = v;
    return 0;
}

int hr_samples_view(struct hr_samples *s, const char *name, const char *const *arrays, int n_arrays, const char *stack,
                    struct hr_error *e)
{
    pthread_mutex_lock(&s->core->lock);
    int rc = building(s, e);
    if (!rc)
        rc = add_view(s->core, name, arrays, n_arrays, stack, e);
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

/* Finds the view and the dimension for a selection; takes the lock, which the caller gives back by view_done. */
static int view_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis, struct view_spec **v,
                    int *d, struct hr_error *e)
{
    struct core *c = s->core;
    TRY(building(s, e));
    *v = NULL;
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, view))
            *v = c->views[i];
    if (!*v)
        return error_set(e, HR_ENOENT, "there is no view named %s", view);
    const struct array *x = (*v)->arrays[0];
    char all[200];
    int found = -1;
    for (int i = 0; i < x->ndim; i++) {
        if (!strcmp((*v)->dims[i], dim)) {
            if (found >= 0)
                return error_set(e, HR_EUNSUPPORTED, "array %s has dimension %s twice: it cannot be selected by name",
                                 x->path, dim);
            found = i;
        }
    }
    if (found < 0)
        return error_set(e, HR_ENOENT, "array %s of view %s has no dimension %s (it has %s)", x->path, view, dim,
                         dims_text(c, x, all, sizeof all));
    if (on_axis && found != (*v)->axis)
        return error_set(e, HR_EINVAL, "steps, window and lag count along the sample axis %s, not along %s", c->along,
                         dim);
    if (!on_axis && found == (*v)->axis)
        return error_set(e, HR_EINVAL, "%s is the sample axis: a view takes steps, a window or a lag there; to choose "
                         "samples use samples.sel or samples.isel", dim);
    if ((*v)->dim[found].set)
        return error_set(e, HR_EINVAL, "view %s selects twice on dimension %s", view, dim);
    *d = found;
    return 0;
}

static int set_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis, struct dim_spec spec,
                   struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = view_dim(s, view, dim, on_axis, &v, &d, e);
    if (!rc) {
        spec.set = true;
        v->dim[d] = spec;
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

int hr_view_steps(struct hr_samples *s, const char *view, const char *dim, int64_t first, int64_t last,
                  struct hr_error *e)
{
    if (last < first || last - first > INT32_MAX || first < -(INT64_C(1) << 40) || last > INT64_C(1) << 40)
        return error_set(e, HR_EINVAL, "steps(%lld, %lld): the last step lies before the first", (long long)first,
                         (long long)last);
    return set_dim(s, view, dim, true,
                   (struct dim_spec){.kind = SEL_SAMPLE, .keep = last > first, .start = first, .count = last - first + 1,
                                     .step = 1}, e);
}

int hr_view_window(struct hr_samples *s, const char *view, const char *dim, int64_t n, struct hr_error *e)
{
    if (n < 1 || n > INT32_MAX)
        return error_set(e, HR_EINVAL, "window(%lld): a window has at least one step", (long long)n);
    return set_dim(s, view, dim, true,
                   (struct dim_spec){.kind = SEL_SAMPLE, .keep = true, .start = 1 - n, .count = n, .step = 1}, e);
}

int hr_view_lag(struct hr_samples *s, const char *view, const char *dim, const char *duration, struct hr_error *e)
{
    struct view_spec *v;
    struct coordinate c;
    int64_t steps;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = view_dim(s, view, dim, true, &v, &d, e);
    pthread_mutex_unlock(&s->core->lock);
    TRY(rc);
    TRY(coordinate_read(s->core->archive, v->arrays[0], dim, s->core->axis, &c, e));
    rc = coordinate_steps(&c, duration, &steps, e);
    coordinate_dispose(&c);
    TRY(rc);
    return hr_view_steps(s, view, dim, -steps, -steps, e);
}

/* Length of a dimension of a view, or an error. */
static int view_length(struct hr_samples *s, const char *view, const char *dim, const struct array **x, int64_t *n,
                       struct hr_error *e)
{
    struct view_spec *v;
    int d;
    pthread_mutex_lock(&s->core->lock);
    int rc = view_dim(s, view, dim, false, &v, &d, e);
    if (!rc) {
        *x = v->arrays[0];
        *n = (int64_t)(*x)->shape[d];
    }
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

static int wrap_index(int64_t *i, int64_t n, const char *dim, struct hr_error *e)
{
    if (*i < -n || *i >= n)
        return error_set(e, HR_EINVAL, "index %lld is outside dimension %s of length %lld", (long long)*i, dim,
                         (long long)n);
    *i += *i < 0 ? n : 0;
    return 0;
}

/* Python's slice rules for step > 0. */
static int slice_range(int has_start, int64_t start, int has_stop, int64_t stop, int64_t step, int64_t n,
                       int64_t *from, int64_t *count, struct hr_error *e)
{
    if (step < 1)
        return error_set(e, HR_EINVAL, "a slice with step %lld: steps are positive here", (long long)step);
    int64_t a = has_start ? start : 0, b = has_stop ? stop : n;
    a += a < 0 ? n : 0;
    b += b < 0 ? n : 0;
    a = a < 0 ? 0 : a > n ? n : a;
    b = b < 0 ? 0 : b > n ? n : b;
    *from = a;
    *count = b > a ? (b - a + step - 1) / step : 0;
    return 0;
}

static int nothing_selected(const char *view, const char *dim, struct hr_error *e)
{
    return error_set(e, HR_EINVAL, "view %s selects nothing of dimension %s", view, dim);
}

int hr_view_isel(struct hr_samples *s, const char *view, const char *dim, int64_t index, struct hr_error *e)
{
    const struct array *x;
    int64_t n;
    TRY(view_length(s, view, dim, &x, &n, e));
    TRY(wrap_index(&index, n, dim, e));
    return set_dim(s, view, dim, false, (struct dim_spec){.kind = SEL_SLICE, .start = index, .count = 1, .step = 1}, e);
}

int hr_view_isel_slice(struct hr_samples *s, const char *view, const char *dim, int has_start, int64_t start,
                       int has_stop, int64_t stop, int64_t step, struct hr_error *e)
{
    const struct array *x;
    int64_t n, from, count;
    TRY(view_length(s, view, dim, &x, &n, e));
    TRY(slice_range(has_start, start, has_stop, stop, step, n, &from, &count, e));
    if (!count)
        return nothing_selected(view, dim, e);
    return set_dim(s, view, dim, false,
                   (struct dim_spec){.kind = SEL_SLICE, .keep = true, .start = from, .count = count, .step = step}, e);
}

int hr_view_isel_list(struct hr_samples *s, const char *view, const char *dim, const int64_t *index, int n,
                      struct hr_error *e)
{
    const struct array *x;
    int64_t length;
    if (n < 1)
        return nothing_selected(view, dim, e);
    TRY(view_length(s, view, dim, &x, &length, e));
    pthread_mutex_lock(&s->core->lock);
    int64_t *list = arena_array(&s->core->arena, (size_t)n, sizeof *list);
    pthread_mutex_unlock(&s->core->lock);
    if (!list)
        return error_nomem(e, (uint64_t)n * sizeof *list, "index list");
    for (int i = 0; i < n; i++) {
        list[i] = index[i];
        TRY(wrap_index(&list[i], length, dim, e));
    }
    return set_dim(s, view, dim, false,
                   (struct dim_spec){.kind = SEL_LIST, .keep = true, .count = n, .step = 1, .list = list}, e);
}

/* Parses `labels` and resolves them on the coordinate of `dim`; lists land in `arena`. */
static int resolve(struct hr_archive *a, struct arena *arena, const struct array *x, const char *dim, int64_t n,
                   const char *labels, struct selection *out, struct hr_error *e)
{
    struct json *doc;
    struct coordinate c;
    TRY(json_parse(arena, labels, strlen(labels), "labels", &doc, e));
    TRY(coordinate_read(a, x, dim, n, &c, e));
    int rc = coordinate_select(&c, arena, doc, out, e);
    coordinate_dispose(&c);
    return rc;
}

int hr_view_sel(struct hr_samples *s, const char *view, const char *dim, const char *labels, struct hr_error *e)
{
    const struct array *x;
    struct selection sel;
    struct arena scratch;
    int64_t n;
    TRY(view_length(s, view, dim, &x, &n, e));
    arena_init(&scratch);
    int rc = resolve(s->core->archive, &scratch, x, dim, n, labels, &sel, e);
    if (!rc && !sel.count)
        rc = nothing_selected(view, dim, e);
    if (!rc && sel.kind == SELECTION_LIST)
        rc = hr_view_isel_list(s, view, dim, sel.list, (int)sel.count, e);
    else if (!rc)
        rc = set_dim(s, view, dim, false,
                     (struct dim_spec){.kind = SEL_SLICE, .keep = sel.kind == SELECTION_RANGE, .start = sel.start,
                                       .count = sel.count, .step = sel.step}, e);
    arena_dispose(&scratch);
    return rc;
}

static int set_view(struct hr_samples *s, const char *view, const enum hr_dtype *t, const int *decode,
                    struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = building(s, e);
    struct view_spec *v = NULL;
    for (size_t i = 0; !rc && i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, view))
            v = c->views[i];
    if (!rc && !v)
        rc = error_set(e, HR_ENOENT, "there is no view named %s", view);
    if (!rc && t)
        v->dtype = *t;
    if (!rc && decode)
        v->decode = *decode != 0;
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int hr_view_dtype(struct hr_samples *s, const char *view, enum hr_dtype t, struct hr_error *e)
{
    return set_view(s, view, &t, NULL, e);
}

int hr_view_decode(struct hr_samples *s, const char *view, int decode, struct hr_error *e)
{
    return set_view(s, view, NULL, &decode, e);
}

/* ---- freezing -------------------------------------------------------------------------------------------------- */

static int source_number(struct core *c, const struct array *x, struct hr_error *e)
{
    for (int i = 0; i < c->n_arrays; i++)
        if (c->sources[i].array == x)
            return i;
    struct samples_source *source = &c->sources[c->n_arrays];
    struct plan_array *a = &c->arrays[c->n_arrays];
    source->array = x;
    TRY(cf_of_array(x, &source->cf, e));
    uint64_t items = 1;
    a->ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) {
        a->shape[d] = x->shape[d];
        a->chunk[d] = x->chunk[d];
        a->grid[d] = x->grid[d];
        a->edges[d] = x->edges ? x->edges[d] : NULL;
        if (!mul_u64(items, x->chunk[d], &items))
            return error_set(e, HR_EFORMAT, "array %s: a chunk has more than 2^64 elements", x->path);
    }
    a->item = x->type.item_size;
    if (!mul_u64(items, x->field_stride ? x->field_stride : a->item, &a->decoded))
        return error_set(e, HR_EFORMAT, "array %s: a chunk has more than 2^64 bytes", x->path);
    a->direct = codec_chain_is_raw(x->chain);
    a->bound = codec_chain_bound(x->chain);
    a->scratch = codec_chain_scratch(x->chain);
    return c->n_arrays++;
}

/* The tensor of a view: which of its dimensions each dimension of the array becomes, with strides in items. */
static int view_layout(const struct core *c, const struct view_spec *v, struct samples_tensor *t, uint64_t *items,
                       uint64_t *stack_stride, uint64_t *strides, struct hr_error *e)
{
    const struct array *x = v->arrays[0];
    int place[HR_MAX_DIMS], stack = -1;
    t->name = v->name;
    t->decode = v->decode;
    t->ndim = 1;
    t->dims[0] = c->along;
    t->shape[0] = 0;
    place[v->axis] = -1;
    if (v->dim[v->axis].keep) {
        place[v->axis] = t->ndim;
        t->dims[t->ndim] = "step";
        t->shape[t->ndim++] = v->dim[v->axis].count;
    }
    if (v->stack) {
        stack = t->ndim;
        t->dims[t->ndim] = v->stack;
        t->shape[t->ndim++] = v->n_arrays;
    }
    for (int d = 0; d < x->ndim; d++) {
        if (d == v->axis)
            continue;
        bool whole = !v->dim[d].set;
        place[d] = -1;
        if (whole || v->dim[d].keep) {
            place[d] = t->ndim;
            t->dims[t->ndim] = v->dims[d];
            t->shape[t->ndim++] = whole ? (int64_t)x->shape[d] : v->dim[d].count;
        }
    }
    uint64_t stride[HR_MAX_DIMS];
    *items = 1;
    for (int d = t->ndim - 1; d > 0; d--) {
        stride[d] = *items;
        if (!mul_u64(*items, (uint64_t)t->shape[d], items) || *items > (UINT64_C(1) << 48))
            return error_set(e, HR_EINVAL, "view %s: one sample has more than 2^48 elements; select a part of it",
                             v->name);
    }
    if (!*items)
        return error_set(e, HR_EINVAL, "view %s: a sample has no elements (a dimension of length 0)", v->name);
    for (int d = 0; d < x->ndim; d++)
        strides[d] = place[d] < 0 ? 0 : stride[place[d]];
    *stack_stride = stack < 0 ? 0 : stride[stack];
    return 0;
}

static int freeze_view(struct core *c, int number, struct hr_error *e)
{
    struct view_spec *v = c->views[number];
    struct samples_tensor t;
    uint64_t items, stack_stride, strides[HR_MAX_DIMS];
    TRY(view_layout(c, v, &t, &items, &stack_stride, strides, e));
    for (int i = 0; i < v->n_arrays; i++) {
        const struct array *x = v->arrays[i];
        struct plan_part *p = &c->parts[c->n_parts++];
        p->array = source_number(c, x, e);
        TRY(p->array);
        p->view = number;
        p->to_offset = (uint64_t)i * stack_stride;
        for (int d = 0; d < x->ndim; d++) {
            const struct dim_spec *spec = &v->dim[d];
            p->dim[d] = (struct plan_dim){.kind = spec->kind, .start = spec->start, .count = spec->count,
                                          .step = spec->step, .list = spec->list, .to_stride = strides[d]};
            if (d != v->axis && !spec->set)
                p->dim[d] = (struct plan_dim){.kind = SEL_SLICE, .count = (int64_t)x->shape[d], .step = 1,
                                              .to_stride = strides[d]};
        }
    }
    return 0;
}

static int freeze_locked(struct core *c, struct hr_error *e)
{
    if (c->frozen)
        return 0;
    if (!c->n_views)
        return error_set(e, HR_EINVAL, "no view given: say what a sample takes, such as x=hr.view(\"t2m\")");
    size_t parts = 0;
    for (size_t i = 0; i < c->n_views; i++)
        parts += (size_t)c->views[i]->n_arrays;
    c->n_arrays = c->n_parts = 0;
    c->sources = arena_array(&c->arena, parts, sizeof *c->sources);
    c->arrays = arena_array(&c->arena, parts, sizeof *c->arrays);
    c->parts = arena_array(&c->arena, parts, sizeof *c->parts);
    if (!c->sources || !c->arrays || !c->parts)
        return error_nomem(e, parts * sizeof *c->parts, "views");
    for (size_t i = 0; i < c->n_views; i++)
        TRY(freeze_view(c, (int)i, e));
    TRY(split_valid_ids(c->arrays, c->parts, c->n_parts, (uint64_t)c->axis, &c->first, &c->last, e));
    c->frozen = true;
    return 0;
}

static int freeze(struct hr_samples *s, struct hr_error *e)
{
    struct core *c = s->core;
    pthread_mutex_lock(&c->lock);
    int rc = freeze_locked(c, e);
    if (!rc && s->whole) {
        s->first = c->first;
        s->last = c->last;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* ---- ids -------------------------------------------------------------------------------------------------------- */

/* A new object with the ids of `s` that `keep` says, keep being a range with a step or a sorted list of ids. */
static int restrict_ids(struct hr_samples *s, int64_t from, int64_t count, int64_t step, const int64_t *list,
                        struct hr_samples **out, struct hr_error *e)
{
    int64_t to = from + (count ? (count - 1) * step + 1 : 0);
    struct bitmap *b = NULL;
    if (list || step > 1 || s->filter) {
        if (!(b = mem_zalloc(sizeof *b)) || bitmap_init(b, (uint64_t)s->core->axis)) {
            mem_free(b);
            return error_nomem(e, (uint64_t)s->core->axis / 8, "sample filter");
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t id = list ? list[i] : from + i * step;
            if (id >= s->first && id < s->last && (!s->filter || bitmap_test(s->filter, (uint64_t)id)))
                bitmap_set(b, (uint64_t)id);
        }
        if (bitmap_index(b)) {
            bitmap_dispose(b);
            mem_free(b);
            return error_nomem(e, (uint64_t)s->core->axis / 64, "sample filter");
        }
        from = s->first;
        to = s->last;
    }
    from = from < s->first ? s->first : from;
    to = to > s->last ? s->last : to;
    *out = derive(s->core, from, to > from ? to : from, b, false);
    if (*out)
        return 0;
    if (b)
        bitmap_dispose(b);
    mem_free(b);
    return error_nomem(e, sizeof **out, "samples");
}

int hr_samples_isel_slice(struct hr_samples *s, int has_start, int64_t start, int has_stop, int64_t stop, int64_t step,
                          struct hr_samples **out, struct hr_error *e)
{
    int64_t from, count;
    TRY(freeze(s, e));
    TRY(slice_range(has_start, start, has_stop, stop, step, s->core->axis, &from, &count, e));
    return restrict_ids(s, from, count, step, NULL, out, e);
}

int hr_samples_sel(struct hr_samples *s, const char *labels, struct hr_samples **out, struct hr_error *e)
{
    struct selection sel;
    struct arena scratch;
    TRY(freeze(s, e));
    arena_init(&scratch);
    int rc = resolve(s->core->archive, &scratch, s->core->axis_array, s->core->along, s->core->axis, labels, &sel, e);
    if (!rc)
        rc = restrict_ids(s, sel.start, sel.count, sel.kind == SELECTION_LIST ? 1 : sel.step,
                          sel.kind == SELECTION_LIST ? sel.list : NULL, out, e);
    arena_dispose(&scratch);
    return rc;
}

static int64_t count_ids(const struct hr_samples *s)
{
    return s->filter ? (int64_t)s->filter->total : s->last - s->first;
}

/* Fractions of a filtered set as fractions of its id range, which is what the cutter knows. */
static void fractions_by_rank(const struct hr_samples *s, const double *fractions, int n, double *out)
{
    double sum = 0, before = 0, length = (double)(s->last - s->first);
    int64_t total = count_ids(s);
    for (int i = 0; i < n; i++) {
        sum += fractions[i];
        int64_t rank = llround(sum * (double)total);
        double at = rank >= total ? 1.0
                    : ((double)bitmap_select(s->filter, (uint64_t)rank) - (double)s->first) / length;
        out[i] = at - before;
        before = at;
    }
}

int hr_samples_split(struct hr_samples *s, const double *fractions, int n, int64_t gap, struct hr_samples **out,
                     struct hr_error *e)
{
    TRY(freeze(s, e));
    if (n < 1 || n > 1000)
        return error_set(e, HR_EINVAL, "split into %d runs: give between 1 and 1000 fractions", n);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0) || !(fractions[i] <= 1))
            return error_set(e, HR_EINVAL, "split: fraction %g is not in (0, 1]", fractions[i]);
        sum += fractions[i];
    }
    if (sum > 1 + 1e-9)
        return error_set(e, HR_EINVAL, "split: the fractions add up to %g, more than 1", sum);
    struct core *c = s->core;
    uint64_t rows, g;
    double reread;
    int anchor;
    TRY(split_block_rows(c->arrays, c->parts, c->n_parts, 0, &rows, &g, &anchor, &reread, e));
    int64_t *from = mem_array((size_t)n, sizeof *from), *to = mem_array((size_t)n, sizeof *to);
    double *by_range = mem_array((size_t)n, sizeof *by_range);
    int rc = from && to && by_range ? 0 : error_nomem(e, (uint64_t)n * 8, "split");
    int made = 0;
    if (!rc && s->filter)
        fractions_by_rank(s, fractions, n, by_range);
    if (!rc)
        rc = split_fractions(c->arrays, c->parts, c->n_parts, s->first, s->last, rows,
                             s->filter ? by_range : fractions, n, gap, from, to, e);
    for (; !rc && made < n; made++)
        if ((rc = restrict_ids(s, from[made], to[made] - from[made], 1, NULL, &out[made], e)))
            break;
    if (rc)
        while (made-- > 0)
            hr_samples_unref(out[made]);
    mem_free(from);
    mem_free(to);
    mem_free(by_range);
    return rc;
}

int hr_samples_count(struct hr_samples *s, int64_t *n, struct hr_error *e)
{
    TRY(freeze(s, e));
    *n = count_ids(s);
    return 0;
}

int hr_samples_ids(struct hr_samples *s, int64_t first, int64_t n, int64_t *ids, struct hr_error *e)
{
    TRY(freeze(s, e));
    if (first < 0 || n < 0 || first > count_ids(s) - n)
        return error_set(e, HR_EINVAL, "samples %lld … %lld of %lld", (long long)first, (long long)(first + n),
                         (long long)count_ids(s));
    for (int64_t i = 0; i < n; i++)
        ids[i] = s->filter ? (int64_t)bitmap_select(s->filter, (uint64_t)(first + i)) : s->first + first + i;
    return 0;
}

/* ---- for the loader ---------------------------------------------------------------------------------------------- */

static int tensor_dtype(const struct core *c, const struct view_spec *v, enum hr_dtype wanted, int number,
                        struct samples_tensor *t, uint64_t *item, struct hr_error *e)
{
    enum hr_dtype ask = v->dtype ? v->dtype : wanted;
    *item = 0;
    for (int p = 0; p < c->n_parts; p++) {
        if (c->parts[p].view != number)
            continue;
        const struct samples_source *source = &c->sources[c->parts[p].array];
        const struct array *x = source->array;
        struct cf plain;
        cf_none(x->type.kind, &plain);
        const struct cf *cf = v->decode ? &source->cf : &plain;
        enum hr_dtype own = cf->result;
        bool opaque = own == HR_RAW || own == HR_UTF32 || own == HR_DATETIME64 || own == HR_TIMEDELTA64;
        enum hr_dtype got = ask && !opaque ? ask : own;
        uint64_t size = opaque ? x->type.item_size : hr_dtype_size(got);
        if (ask && opaque && v->dtype && v->dtype != own)
            return error_set(e, HR_EINVAL, "view %s: array %s of type %s cannot become %s", v->name, x->path,
                             x->type.name, hr_dtype_name(v->dtype));
        if (!opaque && cf_check(cf, got, e) < 0)
            return error_context(e, HR_EINVAL, "view %s, array %s", v->name, x->path);
        if (*item && (got != t->dtype || size != *item))
            return error_set(e, HR_EINVAL, "view %s: arrays %s and %s have different types (%s, %s): give dtype=", v->name,
                             v->arrays[0]->path, x->path, hr_dtype_name(t->dtype), hr_dtype_name(got));
        t->dtype = got;
        *item = size;
    }
    return 0;
}

static uint64_t hash_archive(const struct core *c)
{
    struct hash h;
    hash_init(&h, 1);
    for (int i = 0; i < c->n_parts; i++) {
        const struct array *x = c->sources[c->parts[i].array].array;
        const struct plan_part *p = &c->parts[i];
        hash_string(&h, x->path);
        hash_string(&h, x->type.name);
        hash_string(&h, codec_chain_text(x->chain));
        for (int d = 0; d < x->ndim; d++) { /* the sample axis may grow */
            hash_u64(&h, p->dim[d].kind == SEL_SAMPLE ? 0 : x->shape[d]);
            hash_u64(&h, x->chunk[d]);
        }
    }
    return hash_value(&h);
}

static uint64_t hash_views(const struct samples_plan *p)
{
    struct hash h;
    hash_init(&h, 2);
    for (int i = 0; i < p->n_views; i++) {
        hash_string(&h, p->tensors[i].name);
        hash_u64(&h, p->tensors[i].dtype);
        hash_u64(&h, p->tensors[i].decode);
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
        }
    }
    return hash_value(&h);
}

static int fill_plan(struct samples_plan *p, struct hr_samples *s, enum hr_dtype dtype, struct hr_error *e)
{
    const struct core *c = s->core;
    p->n_arrays = c->n_arrays;
    p->n_views = (int)c->n_views;
    p->n_parts = c->n_parts;
    p->sources = c->sources;
    p->arrays = c->arrays;
    p->parts = c->parts;
    p->axis = (uint64_t)c->axis;
    p->first = (uint64_t)s->first;
    p->last = (uint64_t)s->last;
    p->filter = s->filter;
    p->tensors = arena_array(&p->arena, c->n_views, sizeof *p->tensors);
    p->views = arena_array(&p->arena, c->n_views, sizeof *p->views);
    if (!p->tensors || !p->views)
        return error_nomem(e, c->n_views * sizeof *p->tensors, "views");
    for (int i = 0; i < p->n_views; i++) {
        uint64_t stack, strides[HR_MAX_DIMS];
        p->views[i].name = c->views[i]->name;
        TRY(view_layout(c, c->views[i], &p->tensors[i], &p->views[i].items, &stack, strides, e));
        TRY(tensor_dtype(c, c->views[i], dtype, i, &p->tensors[i], &p->views[i].item, e));
    }
    p->archive_hash = hash_archive(c);
    p->views_hash = hash_views(p);
    return 0;
}

int samples_plan_open(struct hr_samples *s, enum hr_dtype dtype, struct samples_plan **out, struct hr_error *e)
{
    TRY(freeze(s, e));
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

/* ---- report ------------------------------------------------------------------------------------------------------ */

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
    buf_puts(b, "], \"dims\": [");
    for (int d = 1; d < t->ndim; d++) {
        buf_puts(b, d > 1 ? ", " : "");
        buf_json_string(b, t->dims[d], strlen(t->dims[d]));
    }
    buf_puts(b, "], \"shape\": [");
    for (int d = 1; d < t->ndim; d++)
        buf_printf(b, "%s%lld", d > 1 ? ", " : "", (long long)t->shape[d]);
    buf_printf(b, "], \"dtype\": \"%s\", \"bytes\": %llu}", hr_dtype_name(t->dtype),
               (unsigned long long)(p->views[i].items * p->views[i].item));
}

int hr_samples_json(struct hr_samples *s, char **json, struct hr_error *e)
{
    struct samples_plan *p;
    TRY(samples_plan_open(s, HR_NONE, &p, e));
    struct buf b;
    buf_init(&b);
    int64_t count = count_ids(s), first = -1, last = -1;
    if (count) {
        hr_samples_ids(s, 0, 1, &first, NULL);
        hr_samples_ids(s, count - 1, 1, &last, NULL);
    }
    buf_puts(&b, "{\"along\": ");
    buf_json_string(&b, s->core->along, strlen(s->core->along));
    buf_printf(&b, ", \"axis\": %lld, \"count\": %lld, \"first_id\": %lld, \"last_id\": %lld, \"views\": [",
               (long long)s->core->axis, (long long)count, (long long)first, (long long)last);
    for (int i = 0; i < p->n_views; i++)
        view_json(&b, p, i);
    buf_puts(&b, "]}");
    samples_plan_free(p);
    *json = buf_take(&b);
    buf_dispose(&b);
    return *json ? 0 : error_nomem(e, 0, "report");
}
