/* What the options come to: ranks, streams, batch, remainder, steps. Every refusal names the
 * nearest values that fit, because the numbers involved (world size, batch) come from different
 * people. */
#include "plan/impl.h"

#include "base/mem.h"
#include <stdio.h>

#define N(x)           ((unsigned long long)(x))
#define S(x)           ((x) == 1 ? "" : "s")
#define DEFAULT_SPREAD 16
#define MAX_SPREAD     65536
#define MAX_STREAMS    65536

/* "8", or "8 or 12": the multiples of `unit` around x. */
static const char *multiples(char *out, size_t n, uint64_t x, uint64_t unit)
{
    uint64_t below = x / unit * unit;
    if (below)
        snprintf(out, n, "%llu or %llu", N(below), N(below + unit));
    else
        snprintf(out, n, "%llu", N(unit));
    return out;
}

/* The divisors of c around x. */
static const char *divisors(char *out, size_t n, uint64_t x, uint64_t c)
{
    uint64_t below = x < c ? x : c, above = x;
    while (c % below)
        below--;
    while (above < c && c % above)
        above++;
    if (above <= c && above != below)
        snprintf(out, n, "%llu or %llu", N(below), N(above));
    else
        snprintf(out, n, "%llu", N(below));
    return out;
}

static int ranks_resolve(struct plan *p, struct hr_error *e)
{
    const struct plan_config *c = &p->config;
    struct plan_facts *f = &p->facts;
    char a[64], b[64];
    f->world = c->world ? c->world : 1;
    f->rank = c->rank;
    f->streams = c->streams ? c->streams : f->world;
    if (f->rank >= f->world)
        return error_set(e, HR_EINVAL, "rank %llu of %llu: ranks count from 0 to %llu", N(f->rank),
                         N(f->world), N(f->world - 1));
    if (f->streams > MAX_STREAMS)
        return error_set(e, HR_EINVAL, "streams=%llu: at most %d", N(f->streams), MAX_STREAMS);
    if (f->streams % f->world)
        return error_set(
            e, HR_EINVAL,
            "streams=%llu cannot be dealt to %llu ranks evenly: use streams=%s, or %s ranks",
            N(f->streams), N(f->world), multiples(a, sizeof a, f->streams, f->world),
            divisors(b, sizeof b, f->world, f->streams));
    if (f->streams > f->samples)
        return error_set(
            e, HR_EINVAL,
            "%llu sample%s not fill %llu streams (one per rank, unless streams= says more): "
            "use at most %llu",
            N(f->samples), f->samples == 1 ? " does" : "s do", N(f->streams), N(f->samples));
    return 0;
}

static int batch_resolve(struct plan *p, struct hr_error *e)
{
    const struct plan_config *c = &p->config;
    struct plan_facts *f = &p->facts;
    char near[64];
    if (!c->rows == !c->global_batch)
        return error_set(
            e, HR_EINVAL,
            "give the batch as n= (rows per rank) or as global_batch= (rows over all ranks)%s",
            c->rows ? ", not both" : "");
    f->global_batch = c->global_batch;
    if (c->rows && (!mul_u64(c->rows, f->world, &f->global_batch) || f->global_batch > INT32_MAX))
        return error_set(e, HR_EINVAL,
                         "n=%llu rows on %llu rank%s: at most 2^31 rows a global batch", N(c->rows),
                         N(f->world), S(f->world));
    if (f->global_batch > INT32_MAX)
        return error_set(e, HR_EINVAL, "global_batch=%llu: at most 2^31 rows", N(f->global_batch));
    if (f->global_batch % f->streams && c->rows)
        return error_set(
            e, HR_EINVAL,
            "n=%llu on %llu rank%s: a global batch of %llu rows is no multiple of %llu "
            "streams: use n=%s",
            N(c->rows), N(f->world), S(f->world), N(f->global_batch), N(f->streams),
            multiples(near, sizeof near, c->rows, f->streams / f->world));
    if (f->global_batch % f->streams)
        return error_set(e, HR_EINVAL, "global_batch=%llu is no multiple of %llu streams: use %s",
                         N(f->global_batch), N(f->streams),
                         multiples(near, sizeof near, f->global_batch, f->streams));
    f->share = f->global_batch / f->streams;
    f->rows = f->global_batch / f->world;
    f->batch_bytes = 0;
    for (int i = 0; i < c->n_views; i++) {
        uint64_t bytes;
        if (!mul_u64(c->views[i].items, c->views[i].item, &bytes) ||
            !mul_u64(bytes, f->rows, &bytes) || !add_u64(bytes, 255, &bytes) ||
            !add_u64(f->batch_bytes, bytes & ~UINT64_C(255), &f->batch_bytes) ||
            f->batch_bytes > INT64_MAX)
            return error_set(
                e, HR_EINVAL,
                "view %s: a batch of %llu row%s has more than 2^63 bytes; use a smaller batch",
                c->views[i].name, N(f->rows), S(f->rows));
    }
    return 0;
}

static int remainder_resolve(struct plan *p, struct hr_error *e)
{
    const struct plan_config *c = &p->config;
    struct plan_facts *f = &p->facts;
    f->remainder = c->remainder;
    if (!f->remainder)
        f->remainder = f->shuffle ? HR_DROP : f->streams > 1 ? HR_PAD : HR_SHORT;
    if (f->remainder < HR_DROP || f->remainder > HR_WRAP)
        return error_set(e, HR_EINVAL, "remainder %d is not known: drop, pad, short or wrap",
                         f->remainder);
    if (f->remainder == HR_SHORT && f->streams > 1)
        return error_set(
            e, HR_EINVAL,
            "remainder=\"short\" works with one stream, and there are %llu: use \"pad\", "
            "whose batches say in valid which rows are real",
            N(f->streams));
    uint64_t rows = f->samples / f->streams;
    if (f->remainder != HR_DROP)
        rows += f->samples % f->streams != 0;
    else if (rows < f->share)
        return error_set(e, HR_EINVAL,
                         "a global batch of %llu is larger than the %llu row%s that %llu sample%s "
                         "give%s on %llu stream%s: use at most %llu, or remainder=\"pad\" or "
                         "\"wrap\"",
                         N(f->global_batch), N(rows * f->streams), S(rows * f->streams),
                         N(f->samples), S(f->samples), f->samples == 1 ? "s" : "", N(f->streams),
                         S(f->streams), N(rows * f->streams));
    f->steps = f->remainder == HR_DROP ? rows / f->share : (rows - 1) / f->share + 1;
    f->stream_rows = f->remainder == HR_SHORT ? rows : f->steps * f->share;
    if (c->offset >= f->share)
        return error_set(
            e, HR_EINVAL,
            "an offset of %llu row%s is a batch (%llu row%s of a stream) or more: seek instead",
            N(c->offset), S(c->offset), N(f->share), S(f->share));
    uint64_t lost = f->samples - f->stream_rows * f->streams;
    if (f->remainder == HR_DROP && lost > f->samples / 20)
        plan_warn(p,
                  "remainder=\"drop\" leaves %llu of %llu samples out of each epoch, %s; "
                  "%sremainder=\"pad\" or \"wrap\" leaves out none",
                  N(lost), N(f->samples),
                  f->shuffle ? "other ones each time" : "the same ones each time",
                  f->share > 1 ? "a smaller batch leaves out fewer, " : "");
    return 0;
}

int options_resolve(struct plan *p, struct hr_error *e)
{
    const struct plan_config *c = &p->config;
    struct plan_facts *f = &p->facts;
    f->order_version = PLAN_ORDER_VERSION;
    f->seed = c->seed;
    f->shuffle = c->shuffle;
    f->spread = c->spread ? c->spread : DEFAULT_SPREAD;
    if (f->shuffle < HR_SHUFFLE_NONE || f->shuffle > HR_SHUFFLE_GLOBAL)
        return error_set(e, HR_EINVAL, "shuffle %d is not known: False, True or \"global\"",
                         f->shuffle);
    if (f->spread > MAX_SPREAD)
        return error_set(e, HR_EINVAL, "spread=%llu: at most %d blocks open at once", N(f->spread),
                         MAX_SPREAD);
    TRY(ranks_resolve(p, e));
    TRY(batch_resolve(p, e));
    return remainder_resolve(p, e);
}

void plan_stream_range(const struct plan *p, uint64_t c, uint64_t *from, uint64_t *to)
{
    uint64_t rows = p->facts.samples / p->facts.streams,
             longer = p->facts.samples % p->facts.streams;
    if (p->facts.remainder == HR_DROP)
        longer = 0;
    *from = c * rows + (c < longer ? c : longer);
    *to = *from + rows + (c < longer);
}

uint64_t plan_steps(const struct plan *p, uint64_t epoch)
{
    const struct plan_facts *f = &p->facts;
    uint64_t offset = epoch == p->config.offset_epoch ? p->config.offset : 0;
    uint64_t rows = f->samples / f->streams + (f->remainder != HR_DROP && f->samples % f->streams);
    if (offset >= rows)
        return 0;
    return f->remainder == HR_DROP ? (rows - offset) / f->share
                                   : (rows - offset - 1) / f->share + 1;
}
