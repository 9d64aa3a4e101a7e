/* From what the user said a sample is, to the planner's numbers.
 *
 * `struct hr_samples` = a frozen core (archive, sample axis, views) shared by everything derived from it, and the ids that
 * are left: a box, or a bitmap over the axes' product. samples_plan is made from it once per loader. */
#ifndef API_SAMPLES_H
#define API_SAMPLES_H
#include "format/cf.h"
#include "format/reader.h"
#include "plan/plan.h"

struct view_spec;
struct table_spec;
struct samples_source { /* one per plan array */
    const struct array *array;
    struct cf cf; /* CF packing of the array's attributes */
};
struct samples_tensor { /* one per view */
    const char *name;
    enum hr_dtype dtype;
    int ndim; /* with the sample dimension, whose length is the batch's: shape[0] = 0 here */
    int64_t shape[HR_MAX_DIMS];
    const char *dims[HR_MAX_DIMS]; /* dims[0]: the sample axis */
    bool decode;                   /* CF packing is to be decoded */
    bool mask;                     /* 1 where the values of another view are no NaN */
    const struct view_spec *view;
};
struct samples_plan {
    struct hr_archive *archive; /* a reference */
    struct samples_source *sources;
    struct samples_tensor *tensors;
    struct plan_array *arrays;
    struct plan_view *views;
    struct plan_part *parts;
    int n_arrays, n_views, n_parts;
    const struct table_spec *tables; /* their views follow the others' */
    int n_tables;
    struct plan_axis axes[PLAN_MAX_AXES];
    int n_axes;
    struct bitmap *filter; /* NULL: the whole range; owned by the samples */
    uint64_t archive_hash, views_hash;
    struct hr_samples *samples; /* a reference: keeps strings, lists and the filter alive */
    struct arena arena;
};
/* Freeze and translate. `dtype`: for views without their own, HR_NONE: as decoded. */
int samples_plan_open(struct hr_samples *s, enum hr_dtype dtype, struct samples_plan **out,
                      struct hr_error *e);
void samples_plan_free(struct samples_plan *p);

#endif
