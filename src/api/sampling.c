/* Options that say how often samples come → what the planner works from. */
#include "api/loader.h"

int sampling_weights(const struct hr_loader_options *o, struct weights **out, struct hr_error *e)
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
