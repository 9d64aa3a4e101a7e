/* The public face of batches (batch/batch.h). */
#include "batch/batch.h"

struct hr_batch *hr_batch_ref(struct hr_batch *b)
{
    return batch_ref(b);
}

void hr_batch_release(struct hr_batch *b)
{
    batch_unref(b);
}

int hr_batch_count(const struct hr_batch *b)
{
    return b->layout->n;
}

int hr_batch_tensor(const struct hr_batch *b, int i, struct hr_tensor *out)
{
    if (i < 0 || i >= b->layout->n)
        return HR_EINVAL;
    const struct batch_tensor *t = &b->layout->tensors[i];
    *out = (struct hr_tensor){.name = t->name,
                              .dtype = t->dtype,
                              .ndim = t->ndim,
                              .shape = b->shapes[i],
                              .data = batch_data(b, i),
                              .bytes = t->item};
    for (int d = 0; d < t->ndim; d++)
        out->bytes *= (size_t)out->shape[d];
    return 0;
}

int64_t hr_batch_rows(const struct hr_batch *b)
{
    return b->rows;
}

const int64_t *hr_batch_places(const struct hr_batch *b)
{
    return b->places;
}

const int64_t *hr_batch_index(const struct hr_batch *b)
{
    return b->ids;
}

const uint8_t *hr_batch_valid(const struct hr_batch *b)
{
    return b->valid;
}

int64_t hr_batch_step(const struct hr_batch *b)
{
    return b->step;
}

int64_t hr_batch_epoch(const struct hr_batch *b)
{
    return b->epoch;
}

int64_t hr_batch_filled(const struct hr_batch *b)
{
    return b->filled;
}
