/* The anchor is the array with most decoded bytes per sample, because its chunks are what reading
 * costs. A part's bytes per sample are those of one cell of the sample axis (all chunks the sample
 * touches across the other dimensions) ÷ the cell's length: windows do not count, since
 * neighbouring samples share their rows.
 *
 * A block starts where the anchor's box of its first sample starts a chunk, so steps(6) alone costs
 * no second read. The cells that a block touches are the union, over all parts of the array, of
 * intervals that grow with g one cell for one cell; touched(g) ÷ g can therefore only fall as g
 * grows, and the smallest g is found by bisection. */
#include "plan/anchor.h"

#include "base/mem.h"
#include <stdlib.h>

#define BLOCK_BYTES (UINT64_C(1) << 20)
#define REREAD_NUM  11 /* touched ÷ g ≤ 1.1 */
#define REREAD_DEN  10

struct interval {
    int64_t from, to;
};

static int by_from(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static uint64_t cell_length(const struct part_axis *x)
{
    return x->edges ? (x->edges[x->grid] + x->grid - 1) / x->grid : x->cell;
}

static uint64_t saturated(uint64_t a, uint64_t b)
{
    uint64_t n;
    return mul_u64(a, b, &n) ? n : UINT64_MAX;
}

/* Decoded bytes of a part in one cell of the sample axis. */
static uint64_t cell_bytes(const struct plan_array *arrays, const struct plan_part *sel,
                           const struct part *p)
{
    return saturated(arrays[sel->array].decoded, p->combos);
}

static bool heavier(const struct plan_array *arrays, const struct plan_part *sels,
                    const struct part *parts, int a, int b)
{
    unsigned __int128 left = (unsigned __int128)cell_bytes(arrays, &sels[a], &parts[a]) *
                             cell_length(&parts[b].axis[parts[b].sample]);
    unsigned __int128 right = (unsigned __int128)cell_bytes(arrays, &sels[b], &parts[b]) *
                              cell_length(&parts[a].axis[parts[a].sample]);
    return left > right || (left == right && parts[a].count > parts[b].count);
}

/* Cells touched by the boxes of a block of g cells, relative to its first cell; `v` has room for
 * every part. */
static uint64_t cells_touched(const struct anchor *a, const struct plan_part *sels,
                              const struct part *parts, int n_parts, uint64_t g, struct interval *v)
{
    int64_t cell = (int64_t)a->cell;
    int n = 0;
    for (int i = 0; i < n_parts; i++) {
        if (sels[i].array != sels[a->part].array)
            continue;
        int64_t from = parts[i].start - a->start, last = from + (int64_t)parts[i].count - 2;
        v[n++] = (struct interval){floor_div(from, cell), (int64_t)g + floor_div(last, cell) + 1};
    }
    qsort(v, (size_t)n, sizeof *v, by_from);
    uint64_t cells = 0;
    int64_t end = INT64_MIN;
    for (int i = 0; i < n; i++) {
        int64_t from = v[i].from > end ? v[i].from : end;
        if (v[i].to > from) {
            cells += (uint64_t)(v[i].to - from);
            end = v[i].to;
        }
    }
    return cells;
}

static bool long_enough(struct anchor *a, const struct plan_part *sels, const struct part *parts,
                        int n_parts, uint64_t g, uint64_t bytes, struct interval *v)
{
    uint64_t touched = cells_touched(a, sels, parts, n_parts, g, v);
    return saturated(bytes, g) >= BLOCK_BYTES &&
           (unsigned __int128)touched * REREAD_DEN <= (unsigned __int128)g * REREAD_NUM;
}

int anchor_choose(struct anchor *a, const struct plan_array *arrays, const struct plan_part *sels,
                  const struct part *parts, int n_parts, uint64_t block, struct hr_error *e)
{
    *a = (struct anchor){0};
    for (int i = 1; i < n_parts; i++)
        if (heavier(arrays, sels, parts, i, a->part))
            a->part = i;
    const struct part *p = &parts[a->part];
    a->axis = &p->axis[p->sample];
    a->start = p->start;
    a->cell = cell_length(a->axis);
    struct interval *v = mem_array((size_t)n_parts, sizeof *v);
    if (!v)
        return error_nomem(e, (uint64_t)n_parts * sizeof *v, "the views");
    uint64_t bytes = cell_bytes(arrays, &sels[a->part], p), low = 0,
             high = block ? block : a->axis->grid;
    while (!block && high - low > 1) { /* low is too short, high long enough or the whole axis */
        uint64_t middle = low + (high - low) / 2;
        if (long_enough(a, sels, parts, n_parts, middle, bytes, v))
            high = middle;
        else
            low = middle;
    }
    a->g = high;
    a->touched = a->g >= a->axis->grid ? a->g : cells_touched(a, sels, parts, n_parts, a->g, v);
    mem_free(v);
    if (!mul_u64(a->g, a->cell, &a->rows) || a->rows > INT64_MAX / 4)
        return error_set(e, HR_EINVAL, "a block of %llu chunks of %llu samples is too long",
                         (unsigned long long)a->g, (unsigned long long)a->cell);
    return 0;
}

double anchor_reread(const struct anchor *a)
{
    return (double)a->touched / (double)a->g;
}

uint64_t anchor_blocks(const struct anchor *a)
{
    return (a->axis->grid - 1) / a->g + 1;
}

int64_t anchor_block_first(const struct anchor *a, uint64_t block)
{
    if (!a->axis->edges)
        return (int64_t)(block * a->rows) - a->start;
    uint64_t cell = block < anchor_blocks(a) ? block * a->g : a->axis->grid;
    return (int64_t)a->axis->edges[cell] - a->start;
}

uint64_t anchor_block_of(const struct anchor *a, int64_t id)
{
    return part_cell(a->axis, (uint64_t)(id + a->start)) / a->g;
}

int anchor_parts_new(const struct plan_array *arrays, const struct plan_part *sels, int n_parts,
                     struct part **out, struct hr_error *e)
{
    struct part *parts = mem_array((size_t)(n_parts > 0 ? n_parts : 1), sizeof *parts);
    if (!parts)
        return error_nomem(e, (uint64_t)n_parts * sizeof *parts, "the views");
    for (int i = 0; i < n_parts; i++) {
        int rc = part_init(&parts[i], &arrays[sels[i].array], &sels[i], e);
        if (rc < 0) {
            anchor_parts_free(parts, i);
            return error_context(e, rc, "view %d, array %d", sels[i].view, sels[i].array);
        }
    }
    *out = parts;
    return 0;
}

void anchor_parts_free(struct part *parts, int n_parts)
{
    for (int i = 0; parts && i < n_parts; i++)
        part_dispose(&parts[i]);
    mem_free(parts);
}
