/* What all samples derived from one another share: the archive, the sample axis and the views.
 *
 * Building calls (view.c) fill the specs; the first use freezes the core (freeze.c) into the planner's arrays and parts,
 * after which it is immutable. The lock guards building and freezing. Reference counted. */
#ifndef API_CORE_H
#define API_CORE_H
#include "api/label.h"
#include "api/samples.h"
#include "api/transform.h"
#include "base/arena.h"
#include <pthread.h>
#include <stdatomic.h>

struct dim_spec {
    bool set, keep; /* keep: the dimension stays in the tensor */
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
    int axis; /* which dimension is the sample axis */
    const char *dims[HR_MAX_DIMS];
    struct dim_spec dim[HR_MAX_DIMS];
    struct view_transform transform;
    struct view_layout layout;
    const struct view_spec *mask_of; /* this is the mask of another view's values */
};

struct core {
    atomic_int refs;
    pthread_mutex_t lock;
    struct arena arena;
    struct hr_archive *archive;
    const char *along;
    struct view_spec **views;
    size_t n_views, cap_views;
    int64_t axis; /* length of the sample axis, -1 before the first view */
    const struct array *axis_array;
    struct core *base; /* whose names and lists the views share, or NULL */
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
    bool whole; /* all ids of the core: first and last follow when it freezes */
    int64_t first, last;
    struct bitmap *filter;
};

struct core *core_ref(struct core *c);
void core_unref(struct core *c);
/* The number of a view while samples are built, with the lock held; HR_ESTATE, HR_ENOENT. */
int core_view_named(struct hr_samples *s, const char *view, struct hr_error *e);
/* An object with the ids [first, last) or `filter` (taken over) of core c; NULL when out of memory. */
struct hr_samples *samples_derive(struct core *c, int64_t first, int64_t last,
                                  struct bitmap *filter, bool whole);
/* Name of dimension d of an array: its own, or dim_0, dim_1, …; NULL when out of memory. */
const char *core_dim_name(struct core *c, const struct array *x, int d);
/* Freeze the core if it is not, and settle the ids of `s`. */
int samples_freeze(struct hr_samples *s, struct hr_error *e);
int64_t samples_count_ids(const struct hr_samples *s); /* frozen samples */
/* The tensor of a view: dimensions and shape into *t, elements of a sample, strides in items of the stack and of each
 * array dimension (0 where it is dropped). */
int core_view_layout(const struct core *c, const struct view_spec *v, struct samples_tensor *t,
                     uint64_t *items, uint64_t *stack_stride, uint64_t *strides,
                     struct hr_error *e);
/* Python's slice rules for step > 0 on a dimension of length n. */
int core_slice_range(int has_start, int64_t start, int has_stop, int64_t stop, int64_t step,
                     int64_t n, int64_t *from, int64_t *count, struct hr_error *e);
/* JSON labels → indices, on the coordinate of `dim`; lists land in `arena`. */
int core_resolve(struct hr_archive *a, struct arena *arena, const struct array *x, const char *dim,
                 int64_t n, const char *labels, struct selection *out, struct hr_error *e);

#endif
