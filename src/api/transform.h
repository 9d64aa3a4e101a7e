/* What a view does to its values besides decoding, as asked for (view_transform), checked against the tensor it is for, and
 * made into what the scatter pass works from (batch/transform.h). Also the order of a tensor's dimensions, which costs no
 * pass of its own: the planner's pieces carry the strides. */
#ifndef API_TRANSFORM_H
#define API_TRANSFORM_H
#include "api/samples.h"
#include "base/arena.h"
#include "base/hash.h"
#include "batch/transform.h"

struct core;
struct view_spec;

struct view_transform {
    bool affine, log1p, clips, normalizes, fills;
    double scale, offset, low, high, fill;
    const double *mean, *std;
    int ndim; /* of mean and std */
    int64_t shape[HR_MAX_DIMS];
    const char **dims; /* their names; NULL: as numpy broadcasts */
};
struct view_layout {
    int channels; /* 1: first, 2: last, 0: by `order`, or as it comes */
    int n;
    const char **order;
};

/* Is there anything to do besides decoding? */
bool transform_any(const struct view_transform *t);
/* The type of the tensor where none is asked for, given the decoded one. */
enum hr_dtype transform_dtype(enum hr_dtype decoded);
void transform_masks(struct core *c); /* before freezing: masks select what their views do */
/* The stack, or a dimension whose name says that it has channels; -1. */
int transform_channel(const struct view_spec *v, const struct samples_tensor *t);
/* Does mean fit the tensor? place[d] (of each tensor dimension, from 1) is its dimension of mean, or -1. */
int transform_match(const struct view_spec *v, const struct samples_tensor *t, int *place,
                    struct hr_error *e);
/* The values a view gives and the order they come in, for the fingerprint; nothing for views without. */
void transform_hash(const struct view_spec *v, struct hash *h);

/* Put the dimensions 1 … ndim - 1 of a tensor in the order asked for: moved[d] is where the one at d goes. */
int transform_order(const struct view_spec *v, struct samples_tensor *t, int *moved,
                    struct hr_error *e);

/* For the scatter pass, in `arena`: NULL where the view has nothing to do. */
int transform_wire(const struct samples_tensor *t, struct arena *arena, struct transform **out,
                   struct hr_error *e);

#endif
