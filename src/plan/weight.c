/* The first pass tries a palette: each weight is looked up in a small table of those seen, the one before it first. The
 * 257th different weight ends the try, and plain floats are kept instead. */
#include "plan/weight.h"

#include "base/mem.h"
#include <string.h>

#define RUN    1024 /* weights that are looked at together */
#define PLACES 1024 /* of the table of weights seen: a power of two, well above WEIGHT_PALETTE */

struct palette {
    struct weights *w;
    int n;
    uint16_t table[PLACES]; /* 1 + code; 0: free */
};

static int weight_check(double v, const char *what, uint64_t at, struct hr_error *e)
{
    if (v >= 0 && v <= WEIGHT_MOST)
        return 0;
    if (v >= 0 && v <= 1e300)
        return error_set(e, HR_EINVAL,
                         "weights: %s %llu has %g, and at most 2^30 is possible: a weight is how "
                         "often a sample appears in an epoch",
                         what, (unsigned long long)at, v);
    return error_set(e, HR_EINVAL,
                     "weights: %s %llu has %g; a weight is how often a sample appears in an epoch: "
                     "a number from 0 on",
                     what, (unsigned long long)at, v);
}

/* The code of a weight; -1: there are too many. */
static int palette_code(struct palette *p, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, 4);
    uint32_t at = bits * UINT32_C(0x9E3779B1) >> 22;
    for (; p->table[at]; at = (at + 1) % PLACES)
        if (p->w->palette[p->table[at] - 1] == v)
            return p->table[at] - 1;
    if (p->n == WEIGHT_PALETTE)
        return -1;
    p->w->palette[p->n] = v;
    p->table[at] = (uint16_t)++p->n;
    return p->n - 1;
}

/* 1: done; 0: there are too many different ones. */
static int codes_fill(struct weights *w, const double *values, struct hr_error *e)
{
    struct palette p = {.w = w};
    double last = 0;
    int code = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        if (!i || values[i] != last) {
            TRY(weight_check(values[i], "position", i, e));
            last = values[i];
            if ((code = palette_code(&p, last == 0 ? 0.0f : (float)last)) < 0)
                return 0;
        }
        w->codes[i] = (uint8_t)code;
    }
    return 1;
}

static int values_fill(struct weights *w, const double *values, struct hr_error *e)
{
    mem_free(w->codes);
    w->codes = NULL;
    if (!(w->values = mem_alloc((size_t)w->n * sizeof *w->values)))
        return error_nomem(e, w->n * sizeof *w->values, "the weights");
    for (uint64_t from = 0; from < w->n; from += RUN) {
        uint64_t to = w->n - from < RUN ? w->n : from + RUN;
        bool fine = true;
        for (uint64_t i = from; i < to; i++) {
            fine &= values[i] >= 0 && values[i] <= WEIGHT_MOST;
            w->values[i] = (float)values[i] + 0.0f; /* -0 is 0 */
        }
        for (uint64_t i = from; i < to && !fine; i++)
            TRY(weight_check(values[i], "position", i, e));
    }
    return 0;
}

static int weights_start(uint64_t n, struct weights **out, struct hr_error *e)
{
    struct weights *w = mem_zalloc(sizeof *w);
    if (n > INT32_MAX) {
        mem_free(w);
        return error_set(e, HR_EUNSUPPORTED, "weights of %llu samples: at most 2^31 - 1",
                         (unsigned long long)n);
    }
    if (!w || !(w->codes = mem_alloc((size_t)n))) {
        mem_free(w);
        return error_nomem(e, n, "the weights");
    }
    w->refs = 1;
    w->n = n;
    *out = w;
    return 0;
}

static int finish(struct weights *w, int rc, struct weights **out)
{
    if (rc < 0)
        weights_unref(w);
    else
        *out = w;
    return rc < 0 ? rc : 0;
}

int weights_new(const double *values, uint64_t n, struct weights **out, struct hr_error *e)
{
    struct weights *w = NULL;
    TRY(weights_start(n, &w, e));
    int rc = codes_fill(w, values, e);
    if (!rc)
        rc = values_fill(w, values, e);
    return finish(w, rc, out);
}

static int class_fill(struct weights *w, const uint16_t *classes, const double *of_class,
                      uint64_t n_classes, struct hr_error *e)
{
    bool few = n_classes <= WEIGHT_PALETTE;
    for (uint64_t c = 0; c < n_classes; c++) {
        TRY(weight_check(of_class[c], "class", c, e));
        if (few)
            w->palette[c] = of_class[c] == 0 ? 0.0f : (float)of_class[c];
    }
    if (!few) {
        mem_free(w->codes);
        w->codes = NULL;
        if (!(w->values = mem_alloc((size_t)w->n * sizeof *w->values)))
            return error_nomem(e, w->n * sizeof *w->values, "the weights");
    }
    for (uint64_t i = 0; i < w->n; i++) {
        if (classes[i] >= n_classes)
            return error_set(e, HR_EINVAL, "position %llu is of class %u, and there are %llu",
                             (unsigned long long)i, classes[i], (unsigned long long)n_classes);
        if (few)
            w->codes[i] = (uint8_t)classes[i];
        else
            w->values[i] = of_class[classes[i]] == 0 ? 0.0f : (float)of_class[classes[i]];
    }
    return 0;
}

int weights_by_class(const uint16_t *classes, uint64_t n, const double *of_class,
                     uint64_t n_classes, struct weights **out, struct hr_error *e)
{
    struct weights *w = NULL;
    TRY(weights_start(n, &w, e));
    return finish(w, class_fill(w, classes, of_class, n_classes, e), out);
}

struct weights *weights_ref(struct weights *w)
{
    if (w)
        __atomic_add_fetch(&w->refs, 1, __ATOMIC_RELAXED);
    return w;
}

void weights_unref(struct weights *w)
{
    if (!w || __atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL))
        return;
    mem_free(w->codes);
    mem_free(w->values);
    mem_free(w);
}

uint64_t weights_bytes(const struct weights *w)
{
    return w ? sizeof *w + w->n * (w->codes ? 1 : sizeof *w->values) : 0;
}
