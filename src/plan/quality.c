/* The value of a row is its block's number. The mean of a batch of independent draws has a variance
 * of sigma² ÷ batch; what the batches of the epoch have instead is the figure. Of a long epoch,
 * runs of consecutive batches are looked at (lag1 needs neighbours). */
#include "plan/quality.h"

#include "plan/cursor.h"
#include "plan/impl.h"
#include <math.h>
#include <stdlib.h>

#define MAX_ROWS  (UINT64_C(1) << 18) /* looked at */
#define MAX_BATCH (UINT64_C(1) << 22)
#define RUNS      8

struct moments {
    double mean, sigma;
};
struct sums { /* of z, the deviation of a batch mean in standard errors */
    double n, z, square, product, pairs, worst, last, blocks;
    bool inside; /* `last` is of the batch before */
};

/* Mean and standard deviation of the block number over rows; of very many blocks, every stride-th. */
static struct moments block_moments(const struct plan *p)
{
    const struct blocks *b = &p->blocks;
    uint64_t stride = b->n / 1000000 + 1;
    double rows = 0, sum = 0, square = 0;
    for (uint64_t i = 0; i < b->n; i += stride) {
        double size = p->config.weights
                          ? repeats_mean(&p->repeats, blocks_rank(b, i), blocks_rank(b, i + 1))
                          : (double)blocks_size(b, i),
               centred = (double)i - (double)b->n / 2;
        rows += size;
        sum += size * centred;
        square += size * centred * centred;
    }
    double mean = sum / rows, variance = square / rows - mean * mean;
    return (struct moments){mean + (double)b->n / 2, sqrt(variance > 0 ? variance : 0)};
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void batch_look(const struct plan *p, const struct moments *m, uint64_t *ranks, uint64_t n,
                       struct sums *s)
{
    double sum = 0, distinct = 0;
    for (uint64_t i = 0; i < n; i++)
        ranks[i] = blocks_find(&p->blocks, ranks[i]);
    qsort(ranks, (size_t)n, sizeof *ranks, by_number);
    for (uint64_t i = 0; i < n; i++) {
        sum += (double)ranks[i] - m->mean;
        distinct += !i || ranks[i] != ranks[i - 1];
    }
    double z = sum / (double)n / m->sigma * sqrt((double)n);
    s->n++;
    s->z += z;
    s->square += z * z;
    s->worst = fabs(z) > s->worst ? fabs(z) : s->worst;
    s->blocks += distinct;
    if (s->inside) {
        s->product += z * s->last;
        s->pairs++;
    }
    s->last = z;
    s->inside = true;
}

static int runs_look(const struct plan *p, struct plan_cursor *c, uint64_t epoch, uint64_t *ranks,
                     uint8_t *valid, struct sums *s, struct hr_error *e)
{
    uint64_t steps = plan_steps(p, epoch), batches = MAX_ROWS / p->facts.global_batch, runs = 1,
             length = steps;
    struct moments m = block_moments(p);
    if (batches < steps) {
        batches = batches < 4 * RUNS ? 4 * RUNS : batches;
        runs = batches < steps ? RUNS : 1;
        length = batches < steps ? batches / RUNS : steps;
    }
    for (uint64_t i = 0; i < runs; i++) {
        TRY(plan_cursor_seek(c, epoch, i * steps / runs, e));
        s->inside = false;
        for (uint64_t j = 0; j < length; j++) {
            int64_t n = cursor_next_ranks(c, ranks, valid);
            if (n <= 0)
                break;
            batch_look(p, &m, ranks, (uint64_t)n, s);
        }
    }
    return 0;
}

int quality_find(const struct plan *p, uint64_t epoch, struct plan_cursor *c, uint64_t *ranks,
                 uint8_t *valid, struct plan_cost *out, struct hr_error *e)
{
    struct sums s = {0};
    out->variance = out->worst = out->lag1 = out->distinct_blocks = NAN;
    if (p->facts.global_batch > MAX_BATCH)
        return 0;
    TRY(runs_look(p, c, epoch, ranks, valid, &s, e));
    if (s.n)
        out->distinct_blocks = s.blocks / s.n;
    if (s.n < 2 || p->facts.blocks < 2)
        return 0;
    double mean = s.z / s.n, centred = s.square / s.n - mean * mean;
    out->variance = s.square / s.n;
    out->worst = s.worst;
    out->lag1 = centred > 0 && s.pairs ? (s.product / s.pairs - mean * mean) / centred : 0;
    return 0;
}
