/* Options that say how often samples come → what the planner works from. */
#include "api/loader.h"

static int bins_of(const struct hr_loader_options *o, struct bins **out, struct hr_error *e)
{
    *out = NULL;
    if (!o->strata)
        return 0;
    if (o->n_positions < 1 || o->n_strata < 1)
        return error_set(e, HR_EINVAL,
                         "strata: n_positions says how many there are, n_strata how many bins");
    return bins_new(o->strata, (uint64_t)o->n_positions, (uint64_t)o->n_strata, out, e);
}

static int weights_of(const struct hr_loader_options *o, struct weights **out, struct hr_error *e)
{
    *out = NULL;
    if (!o->weights && !o->class_weights)
        return 0;
    if (o->weights && o->class_weights)
        return error_set(e, HR_EINVAL, "give weights by position or by class, not both");
    if (o->n_positions < 1 || (o->class_weights && (!o->classes || o->n_classes < 1)))
        return error_set(e, HR_EINVAL,
                         "weights: n_positions says how many there are; weights by class need "
                         "classes and n_classes");
    if (o->weights)
        return weights_new(o->weights, (uint64_t)o->n_positions, out, e);
    return weights_by_class(o->classes, (uint64_t)o->n_positions, o->class_weights,
                            (uint64_t)o->n_classes, out, e);
}

int sampling_new(const struct hr_loader_options *o, struct sampling *s, struct hr_error *e)
{
    *s = (struct sampling){0};
    TRY(weights_of(o, &s->weights, e));
    int rc = bins_of(o, &s->bins, e);
    if (rc < 0)
        sampling_dispose(s);
    return rc;
}

void sampling_dispose(struct sampling *s)
{
    weights_unref(s->weights);
    bins_unref(s->bins);
    *s = (struct sampling){0};
}
