/* Where a tile begins is arithmetic for strided starts over chunks of one length: the lowest
 * position with start + ⌊p · mul ÷ div⌋ ≥ k · span. Rectilinear chunks, tables and crops have a
 * table of borders, made by walking the cells or the positions once. */
#include "plan/tile.h"

#include "base/mem.h"
#include "plan/reach.h"

static uint64_t clamp(int64_t x, uint64_t low, uint64_t high)
{
    return x < (int64_t)low ? low : x > (int64_t)high ? high : (uint64_t)x;
}

uint64_t tile_axis_border(const struct tile_axis *x, uint64_t k)
{
    if (!k)
        return x->first;
    if (k >= x->n)
        return x->last;
    if (x->borders)
        return x->borders[k];
    if (!x->span)
        return x->first + k;
    return clamp(reach_invert(x->dim, (x->low + (int64_t)k) * x->span), x->first, x->last);
}

uint64_t tile_axis_find(const struct tile_axis *x, uint64_t position)
{
    uint64_t low = 0, high = x->n;
    int64_t start = 0;
    if (x->n == 1)
        return 0;
    if (!x->borders && !x->span)
        return position - x->first;
    if (!x->borders) {
        reach_start(x->dim, position, &start);
        return (uint64_t)(reach_floor(start, x->span) - x->low);
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (x->borders[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool tile_axis_even(const struct tile_axis *x, uint64_t *size)
{
    *size = x->n == 1 ? x->last - x->first : 1;
    if (x->n == 1 || (!x->borders && !x->span))
        return true;
    if (x->borders)
        return false;
    __int128 positions = (__int128)x->span * x->dim->div;
    *size = (uint64_t)(positions / x->dim->mul);
    return positions % x->dim->mul == 0;
}

/* ---- tables of borders ----------------------------------------------------------------------- */

struct borders {
    uint64_t *items;
    size_t n, cap;
};

static int border_add(struct borders *b, uint64_t position, struct hr_error *e)
{
    if (mem_grow((void **)&b->items, &b->cap, b->n + 1, sizeof *b->items) < 0)
        return error_nomem(e, (b->n + 1) * sizeof *b->items, "the table of blocks");
    b->items[b->n++] = position;
    return 0;
}

/* Rectilinear chunks, strided starts: one look a tile. */
static int walk_edges(const struct tile_axis *x, const struct part_axis *dim, uint64_t t,
                      struct borders *b, struct hr_error *e)
{
    TRY(border_add(b, x->first, e));
    for (uint64_t cell = t; cell < dim->grid; cell += t) {
        uint64_t at = clamp(reach_invert(dim, (int64_t)dim->edges[cell]), x->first, x->last);
        if (at > b->items[b->n - 1] && at < x->last)
            TRY(border_add(b, at, e));
    }
    return 0;
}

struct starts { /* the cell in which position after position starts */
    const struct part_axis *dim;
    const struct space *space;
    int axis;
    uint64_t cell; /* of the position before, for those that start nowhere */
};

static uint64_t start_cell(struct starts *s, uint64_t j)
{
    int64_t start = 0;
    uint64_t low = j, high;
    if (s->space->axis[s->axis].places)
        space_places(s->space, s->axis, j, &low, &high);
    if (reach_start(s->dim, low, &start))
        s->cell = part_cell(s->dim, clamp(start, 0, (uint64_t)s->dim->size - 1));
    return s->cell;
}

/* Do later positions never start in earlier cells? */
static bool starts_rise(struct starts s, const struct tile_axis *x)
{
    uint64_t before = 0;
    for (uint64_t j = x->first; j < x->last; j++) {
        uint64_t cell = start_cell(&s, j);
        if (cell < before)
            return false;
        before = cell;
    }
    return true;
}

/* Tables and crops: position by position. Where a table jumps to and fro, even runs. */
static int walk_positions(const struct tile_axis *x, struct starts s, uint64_t t, struct borders *b,
                          struct hr_error *e)
{
    uint64_t length = x->last - x->first, before = 0, tiles = (s.dim->grid - 1) / t + 1;
    bool rise = starts_rise(s, x);
    for (uint64_t j = x->first; j < x->last; j++) {
        uint64_t tile = rise ? start_cell(&s, j) / t
                             : (uint64_t)((unsigned __int128)(j - x->first) * tiles / length);
        if (j == x->first || tile != before)
            TRY(border_add(b, j, e));
        before = tile;
    }
    return 0;
}

static int borders_make(struct tile_axis *x, const struct anchor_axis *a, const struct space *s,
                        int axis, struct hr_error *e)
{
    struct borders b = {0};
    struct starts starts = {a->dim, s, axis, 0};
    bool positions = s->axis[axis].places || a->dim->table;
    int rc =
        positions ? walk_positions(x, starts, a->t, &b, e) : walk_edges(x, a->dim, a->t, &b, e);
    if (!rc)
        rc = border_add(&b, x->last, e);
    if (rc < 0) {
        mem_free(b.items);
        return rc;
    }
    x->n = b.n - 1;
    x->borders = b.items;
    if (x->n == 1) {
        mem_free(b.items);
        x->borders = NULL;
    }
    return 0;
}

/* ---- all axes -------------------------------------------------------------------------------- */

static void axis_each(struct tile_axis *x)
{
    x->n = x->last - x->first;
    x->span = 0;
}

static int axis_make(struct tile_axis *x, const struct anchor_axis *a, const struct space *s,
                     int axis, struct hr_error *e)
{
    int64_t first = 0, last = 0;
    x->n = 1;
    if (!a->dim || a->t >= a->dim->grid)
        return 0;
    if (s->axis[axis].places || a->dim->table || a->dim->edges)
        return borders_make(x, a, s, axis, e);
    x->dim = a->dim;
    x->span = (int64_t)(a->t * a->cell);
    if (x->span < (a->dim->mul - 1) / a->dim->div + 1) { /* no two start in one tile */
        axis_each(x);
        return 0;
    }
    reach_start(x->dim, x->first, &first);
    reach_start(x->dim, x->last - 1, &last);
    x->low = reach_floor(first, x->span);
    x->n = (uint64_t)(reach_floor(last, x->span) - x->low) + 1;
    return 0;
}

static uint64_t axis_largest(const struct tile_axis *x)
{
    uint64_t most = 0;
    if (tile_axis_even(x, &most))
        return most < x->last - x->first ? most : x->last - x->first;
    if (!x->borders)
        return most + 1;
    for (uint64_t k = 0; k < x->n; k++)
        most = x->borders[k + 1] - x->borders[k] > most ? x->borders[k + 1] - x->borders[k] : most;
    return most;
}

int tiles_init(struct tiles *t, const struct anchor *a, const struct space *s, bool rows,
               struct hr_error *e)
{
    *t = (struct tiles){.n = s->n, .count = 1, .slots = 1, .largest = 1};
    for (int i = s->n - 1; i >= 0; i--) {
        struct tile_axis *x = &t->axis[i];
        const struct anchor_axis whole = {0};
        x->first = s->axis[i].first;
        x->last = s->axis[i].last;
        t->id_stride[i] = s->id_stride[i];
        t->after[i] = t->slots;
        t->slots *= x->last - x->first;
        int rc = axis_make(x, rows && i ? &whole : &a->axis[i], s, i, e);
        if (rc < 0) {
            tiles_dispose(t);
            return rc;
        }
        if (rows && !i && s->n > 1 && !a->axis[0].dim)
            axis_each(x);
        t->count *= x->n;
        t->largest *= axis_largest(x);
    }
    return 0;
}

void tiles_dispose(struct tiles *t)
{
    for (int i = 0; i < t->n; i++)
        mem_free(t->axis[i].borders);
    *t = (struct tiles){0};
}

uint64_t tiles_bytes(const struct tiles *t)
{
    uint64_t n = 0;
    for (int i = 0; i < t->n; i++)
        n += t->axis[i].borders ? (t->axis[i].n + 1) * 8 : 0;
    return n;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* A tile by its borders along each axis. */
struct box {
    uint64_t from[PLAN_MAX_AXES], length[PLAN_MAX_AXES];
};

static uint64_t box_size(const struct tiles *t, const struct box *b)
{
    uint64_t n = 1;
    for (int i = 0; i < t->n; i++)
        n *= b->length[i];
    return n;
}

static void box_axis(const struct tiles *t, int i, uint64_t k, struct box *b)
{
    b->from[i] = tile_axis_border(&t->axis[i], k);
    b->length[i] = tile_axis_border(&t->axis[i], k + 1) - b->from[i];
}

/* The box of a tile; how many slots are before it. */
static uint64_t box_of_tile(const struct tiles *t, uint64_t tile, struct box *b)
{
    uint64_t below = t->count, before = 0, wide = 1;
    for (int i = 0; i < t->n; i++) {
        below /= t->axis[i].n;
        box_axis(t, i, tile / below, b);
        tile %= below;
        before += (b->from[i] - t->axis[i].first) * wide * t->after[i];
        wide *= b->length[i];
    }
    return before;
}

/* The box of the tile that holds a slot; which of its samples the slot is, and the tile's number. */
static uint64_t box_of_slot(const struct tiles *t, uint64_t slot, struct box *b, uint64_t *tile)
{
    uint64_t wide = 1;
    *tile = 0;
    for (int i = 0; i < t->n; i++) {
        const struct tile_axis *x = &t->axis[i];
        uint64_t row = wide * t->after[i], k = tile_axis_find(x, x->first + slot / row);
        box_axis(t, i, k, b);
        slot -= (b->from[i] - x->first) * row;
        *tile = *tile * x->n + k;
        wide *= b->length[i];
    }
    return slot;
}

uint64_t tiles_id(const struct tiles *t, uint64_t slot)
{
    struct box b;
    uint64_t tile, at = box_of_slot(t, slot, &b, &tile), id = 0;
    for (int i = t->n - 1; i >= 0; i--) {
        id += (b.from[i] + at % b.length[i]) * t->id_stride[i];
        at /= b.length[i];
    }
    return id;
}

uint64_t tiles_first(const struct tiles *t, uint64_t tile)
{
    struct box b;
    return tile < t->count ? box_of_tile(t, tile, &b) : t->slots;
}

uint64_t tiles_size(const struct tiles *t, uint64_t tile)
{
    struct box b;
    box_of_tile(t, tile, &b);
    return box_size(t, &b);
}

uint64_t tiles_find(const struct tiles *t, uint64_t slot)
{
    struct box b;
    uint64_t tile;
    box_of_slot(t, slot, &b, &tile);
    return tile;
}

static void walk_axis(struct tile_walk *w, int i, uint64_t k)
{
    const struct tile_axis *x = &w->tiles->axis[i];
    w->from[i] = k ? w->from[i] + w->length[i] : x->first;
    w->length[i] = tile_axis_border(x, k + 1) - w->from[i];
    w->k[i] = k;
}

static void walk_size(struct tile_walk *w)
{
    w->size = 1;
    for (int i = 0; i < w->tiles->n; i++)
        w->size *= w->length[i];
}

void tile_walk_start(struct tile_walk *w, const struct tiles *t)
{
    *w = (struct tile_walk){.tiles = t};
    for (int i = 0; i < t->n; i++)
        walk_axis(w, i, 0);
    walk_size(w);
}

bool tile_walk_next(struct tile_walk *w)
{
    if (++w->tile == w->tiles->count)
        return false;
    w->slot += w->size;
    for (int i = w->tiles->n - 1; i >= 0; i--) {
        bool wraps = w->k[i] + 1 == w->tiles->axis[i].n;
        walk_axis(w, i, wraps ? 0 : w->k[i] + 1);
        if (!wraps)
            break;
    }
    walk_size(w);
    return true;
}
