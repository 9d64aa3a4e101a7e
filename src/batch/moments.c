/* See moments.h. */
#include "batch/moments.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK 1024
#define LANES 8

static void put_dim(struct moments *m, uint64_t count, uint64_t stride, uint64_t group)
{
    int d = m->ndim - 1;
    if (count == 1)
        return;
    if (d >= 0 && m->stride[d] == count * stride && m->group_stride[d] == count * group) {
        m->count[d] *= count;
        m->stride[d] = stride;
        m->group_stride[d] = group;
        return;
    }
    m->count[m->ndim] = count;
    m->stride[m->ndim] = stride;
    m->group_stride[m->ndim++] = group;
}

int moments_init(struct moments *m, enum hr_dtype dtype, int ndim, const int64_t *shape,
                 const bool *grouped, struct hr_error *e)
{
    uint64_t stride[HR_MAX_DIMS], group[HR_MAX_DIMS], items = 1;
    *m = (struct moments){.dtype = dtype, .groups = 1};
    for (int d = ndim - 1; d >= 0; d--) {
        stride[d] = items;
        group[d] = grouped[d] ? m->groups : 0;
        items *= (uint64_t)shape[d];
        m->groups *= grouped[d] ? (uint64_t)shape[d] : 1;
    }
    for (int d = 0; d < ndim; d++)
        put_dim(m, (uint64_t)shape[d], stride[d], group[d]);
    if (!m->ndim) {
        m->ndim = 1;
        m->count[0] = m->stride[0] = 1;
    }
    m->n = mem_zalloc(5 * m->groups * sizeof *m->n);
    if (!m->n)
        return error_nomem(e, 5 * m->groups * sizeof *m->n, "moments");
    m->mean = m->n + m->groups;
    m->distance = m->mean + m->groups;
    m->least = m->distance + m->groups;
    m->greatest = m->least + m->groups;
    for (uint64_t g = 0; g < m->groups; g++) {
        m->least[g] = INFINITY;
        m->greatest[g] = -INFINITY;
    }
    return 0;
}

void moments_dispose(struct moments *m)
{
    mem_free(m->n);
    m->n = NULL;
}

double moments_std(const struct moments *m, uint64_t group)
{
    return m->n[group] > 0 ? sqrt(m->distance[group] / m->n[group]) : (double)NAN;
}

/* ---- a run of one group ---------------------------------------------------------------------- */

/* Sums in LANES columns: a loop that the compiler may vectorise without changing a bit. */
struct lanes {
    double n[LANES], sum[LANES], least[LANES], greatest[LANES];
};

static void sum_block(const double *v, uint64_t n, struct lanes *l)
{
    for (uint64_t i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            double x = v[i + (uint64_t)j];
            bool some = x == x;
            l->n[j] += some ? 1 : 0;
            l->sum[j] += some ? x : 0;
            l->least[j] = x < l->least[j] ? x : l->least[j];
            l->greatest[j] = x > l->greatest[j] ? x : l->greatest[j];
        }
}

static double distance_block(const double *v, uint64_t n, double mean)
{
    double sum[LANES] = {0}, all = 0;
    for (uint64_t i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            double x = v[i + (uint64_t)j], d = x - mean;
            sum[j] += x == x ? d * d : 0;
        }
    for (int j = 0; j < LANES; j++)
        all += sum[j];
    return all;
}

static void merge(struct moments *m, uint64_t g, double n, double mean, double distance)
{
    double all = m->n[g] + n, apart = mean - m->mean[g];
    m->mean[g] += apart * (n / all);
    m->distance[g] += distance + apart * apart * (m->n[g] * n / all);
    m->n[g] = all;
}

/* n ≤ BLOCK values, NaN from n up to a whole number of LANES. */
static void add_block(struct moments *m, uint64_t g, const double *v, uint64_t n)
{
    struct lanes l;
    double count = 0, sum = 0;
    memset(&l, 0, sizeof l);
    for (int j = 0; j < LANES; j++) {
        l.least[j] = INFINITY;
        l.greatest[j] = -INFINITY;
    }
    sum_block(v, n, &l);
    for (int j = 0; j < LANES; j++) {
        count += l.n[j];
        sum += l.sum[j];
        m->least[g] = l.least[j] < m->least[g] ? l.least[j] : m->least[g];
        m->greatest[g] = l.greatest[j] > m->greatest[g] ? l.greatest[j] : m->greatest[g];
    }
    if (count > 0)
        merge(m, g, count, sum / count, distance_block(v, n, sum / count));
}

static void load(const struct moments *m, const void *row, uint64_t at, uint64_t stride, uint64_t n,
                 double *out)
{
    if (m->dtype == HR_F32)
        for (uint64_t i = 0; i < n; i++)
            out[i] = (double)((const float *)row)[at + i * stride];
    else
        for (uint64_t i = 0; i < n; i++)
            out[i] = ((const double *)row)[at + i * stride];
}

static void add_run(struct moments *m, const void *row, uint64_t at, uint64_t stride, uint64_t n,
                    uint64_t g)
{
    _Alignas(64) double v[BLOCK + LANES];
    for (uint64_t done = 0; done < n; done += BLOCK) {
        uint64_t k = n - done < BLOCK ? n - done : BLOCK;
        load(m, row, at + done * stride, stride, k, v);
        for (int j = 0; j < LANES; j++)
            v[k + (uint64_t)j] = NAN;
        add_block(m, g, v, k);
    }
}

/* ---- a run of neighbouring groups ------------------------------------------------------------ */

static void add_each(struct moments *m, const double *restrict v, uint64_t n, uint64_t g)
{
    double *restrict count = m->n + g, *restrict mean = m->mean + g;
    double *restrict distance = m->distance + g;
    double *restrict least = m->least + g, *restrict greatest = m->greatest + g;
    for (uint64_t i = 0; i < n; i++) {
        double x = v[i], apart = x - mean[i], more = count[i] + 1;
        double next = mean[i] + apart / more;
        bool some = x == x;
        distance[i] += some ? apart * (x - next) : 0;
        mean[i] = some ? next : mean[i];
        count[i] = some ? more : count[i];
        least[i] = x < least[i] ? x : least[i];
        greatest[i] = x > greatest[i] ? x : greatest[i];
    }
}

static void add_groups(struct moments *m, const void *row, uint64_t at, uint64_t stride, uint64_t n,
                       uint64_t g, uint64_t group_stride)
{
    _Alignas(64) double v[BLOCK];
    uint64_t most = group_stride == 1 ? BLOCK : 1;
    for (uint64_t done = 0; done < n; done += most) {
        uint64_t k = n - done < most ? n - done : most;
        load(m, row, at + done * stride, stride, k, v);
        add_each(m, v, k, g + done * group_stride);
    }
}

void moments_add(struct moments *m, const void *row)
{
    uint64_t at[HR_MAX_DIMS] = {0}, place = 0, group = 0;
    int last = m->ndim - 1, d;
    do {
        if (m->group_stride[last])
            add_groups(m, row, place, m->stride[last], m->count[last], group,
                       m->group_stride[last]);
        else
            add_run(m, row, place, m->stride[last], m->count[last], group);
        for (d = last - 1; d >= 0; d--) {
            place += m->stride[d];
            group += m->group_stride[d];
            if (++at[d] < m->count[d])
                break;
            place -= m->count[d] * m->stride[d];
            group -= m->count[d] * m->group_stride[d];
            at[d] = 0;
        }
    } while (d >= 0);
}
