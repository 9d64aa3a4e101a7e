/* What all samples derived from one another share: the archive, the sample axes and the views.
 *
 * Building calls (view.c) fill the specs; the first use freezes the core (settle.c, freeze.c) into the planner's arrays and parts,
 * after which it is immutable. The lock guards building and freezing. Reference counted. */
#ifndef API_CORE_H
#define API_CORE_H
#include "api/axis.h"
#include "api/label.h"
#include "api/samples.h"
#include "api/transform.h"
#include "base/arena.h"
#include "plan/members.h"
#include <pthread.h>
#include <stdatomic.h>

#define NO_AXIS (-1)

enum view_join { JOIN_NOT, JOIN_INNER, JOIN_LEFT };

struct dim_spec {
    bool set, keep; /* keep: the dimension stays in the tensor */
    enum plan_sel kind;
    int64_t start, count, step;
    const int64_t *list;
    int axis; /* the sample axis it follows, or NO_AXIS */
    /* scale / scale_of positions of the axis' grid are one of this array's; 0: 1 */
    int64_t scale, scale_of;
    enum view_join join; /* how a position of the axis is found in the array, if not by number … */
    const char *tolerance; /* … and how far off its value may be; NULL: not at all */
    const int64_t *table;  /* where each position is, once the samples are frozen */
    const int64_t *lag;    /* where in the array each of its positions has its counterpart, or -1 */
    const char *gaps; /* "drop", or how far apart neighbours may be that steps run over; NULL */
};
static inline int64_t dim_scale_above(const struct dim_spec *d)
{
    return d->scale ? d->scale : 1;
}
static inline int64_t dim_scale_below(const struct dim_spec *d)
{
    return d->scale ? d->scale_of : 1;
}

struct view_spec {
    const char *name, *stack;
    const struct array **arrays;
    int n_arrays;
    enum hr_dtype dtype;
    bool decode;
    bool constant; /* follows no axis */
    const char *dims[HR_MAX_DIMS];
    struct dim_spec dim[HR_MAX_DIMS];
    struct view_transform transform;
    struct view_layout layout;
    const struct view_spec *mask_of; /* this is the mask of another view's values */
    struct cells_spec *cells;        /* rows of a sparse matrix; else NULL */
    struct members *members;         /* rows of a sentence; NULL: one a sample */
    bool twin;                       /* the same view of other rows: what it has belongs to it */
};
struct table_spec { /* a tensor out of memory */
    const char *name;
    enum hr_dtype dtype;
    const char *data;    /* NULL: numbers of rows */
    struct hr_lent lent; /* the data are; done NULL: they are the core's */
    int64_t n, items;
    struct members *members; /* by row of a sentence; NULL: by sample */
    bool twin;               /* the data are another's */
};

struct core {
    atomic_int refs;
    pthread_mutex_t lock;
    struct arena arena;
    struct hr_archive *archive;
    struct axis_spec axes[PLAN_MAX_AXES];
    int n_axes;
    struct view_spec **views;
    size_t n_views, cap_views;
    struct table_spec *tables;
    size_t n_tables, cap_tables;
    struct members *members, *controls; /* sentences: their rows, and those of controls, or NULL */
    const int64_t *members_table;       /* where each sentence counts as lying */
    uint64_t members_block;             /* chunks of a block; 0: chosen */
    struct core *base;                  /* whose names and lists the views share, or NULL */
    bool frozen;
    /* after freezing */
    struct samples_source *sources;
    struct plan_array *arrays;
    struct plan_part *parts;
    int n_arrays, n_parts;
    int64_t ids;                    /* positions of the product of all axes */
    struct span all[PLAN_MAX_AXES]; /* whose boxes lie inside */
    struct bitmap *joined;          /* of these those that inner joins have; NULL: all of them */
};

struct hr_samples {
    atomic_int refs;
    struct core *core;
    bool whole;                     /* all ids of the core: the box follows when it freezes */
    struct span box[PLAN_MAX_AXES]; /* per axis */
    struct bitmap *filter;          /* of the product's ids, all in the box; NULL: all of the box */
};

struct core *core_ref(struct core *c);
void core_unref(struct core *c);
/* The number of a view while samples are built, with the lock held; HR_ESTATE, HR_ENOENT. */
int core_view_named(struct hr_samples *s, const char *view, struct hr_error *e);
/* An object with the ids of `box` or of them those of `filter` (taken over); NULL when out of memory. */
struct hr_samples *samples_derive(struct core *c, const struct span *box, struct bitmap *filter,
                                  bool whole);
/* The axis that follows dimension `name`; NULL when there is none. */
struct axis_spec *core_axis(struct core *c, const char *name);
int core_same(const struct hr_samples *a, const struct hr_samples *b, struct hr_error *e);
int core_first_axis(const struct core *c); /* that is no draws: what calls without an axis mean */
int core_axis_number(struct core *c, const char *name, struct hr_error *e);
/* Names of the axes: "time" or "time × member". */
const char *core_axes_text(const struct core *c, char *out, size_t n);
/* Name of dimension d of an array: its own, or dim_0, dim_1, …; NULL when out of memory. */
const char *core_dim_name(struct core *c, const struct array *x, int d);
/* Freeze the core if it is not, and settle the ids of `s`. */
int samples_freeze(struct hr_samples *s, struct hr_error *e);
/* … of which the first part: lengths of axes, and tables of joins, from the arrays that follow them. With the lock held. */
int core_settle_axes(struct core *c, struct hr_error *e);
int64_t samples_count_ids(const struct hr_samples *s); /* frozen samples */
/* The tensor of a view: dimensions and shape into *t, elements of a sample, strides in items of the stack and of each
 * array dimension (0 where it is dropped). */
int core_view_layout(const struct core *c, const struct view_spec *v, struct samples_tensor *t,
                     uint64_t *items, uint64_t *stack_stride, uint64_t *strides,
                     struct hr_error *e);
/* May `s` still get axes and views? With the lock held; HR_ESTATE. */
int core_building(const struct hr_samples *s, struct hr_error *e);
/* The view and the dimension for a selection there, with the lock held: HR_ENOENT, HR_EINVAL. */
int core_view_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis,
                  struct view_spec **v, int *d, struct hr_error *e);
/* What a view takes there; scale, join and gaps stay. */
int core_set_dim(struct hr_samples *s, const char *view, const char *dim, bool on_axis,
                 struct dim_spec spec, struct hr_error *e);
/* "time, lat, lon", and the one that was perhaps meant where `wanted` is none of them. */
const char *core_dims_text(struct core *c, const struct array *x, const char *wanted, char *out,
                           size_t n);
/* A view of one array, added with the lock held; its number. */
int core_view_add(struct core *c, const char *name, const struct array *x, struct cells_spec *cells,
                  struct hr_error *e);
/* Python's slice rules for step > 0 on a dimension of length n. */
int core_slice_range(int has_start, int64_t start, int has_stop, int64_t stop, int64_t step,
                     int64_t n, int64_t *from, int64_t *count, struct hr_error *e);
/* JSON labels → indices, on the coordinate of `dim`; lists land in `arena`. */
int core_resolve(struct hr_archive *a, struct arena *arena, const struct array *x, const char *dim,
                 int64_t n, const char *labels, struct selection *out, struct hr_error *e);

#endif
