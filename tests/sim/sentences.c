/* Pools are drawn stretch by stretch: of each stretch of cells, one pool for each group that has some in it. A stretch may be
 * shorter or longer than a block, groups as scattered as they like, and controls lie anywhere near, so that sentences of many
 * batches share chunks. */
#include "sentences.h"

#include <stdio.h>
#include <string.h>

#include "base/keyed.h"

#define MOST_CELLS   260
#define MOST_GROUPS  4
#define MOST_ROWS    (8 * MOST_CELLS) /* of all pools, which may overlap where they are of controls */
#define MOST_MEMBERS 6

struct pools {
    int64_t n, begin[WORLD_PLACES + 1], first[WORLD_PLACES], size[WORLD_PLACES];
    int64_t n_rows;
    uint32_t rows[MOST_ROWS];
};

uint64_t sentences_cells(uint64_t seed)
{
    struct rng r = {.key = keyed_mix(seed, 3)};
    return rng_chance(&r, 15) ? rng_range(&r, 12, rng_chance(&r, 80) ? 90 : MOST_CELLS) : 0;
}

/* Which group every cell is of. */
static void groups_draw(struct world *w, uint8_t *group)
{
    struct rng *r = &w->rng;
    uint64_t groups = rng_range(r, 1, MOST_GROUPS), length = w->cells / groups + 1;
    bool scattered = rng_chance(r, 50);
    for (uint64_t i = 0; i < w->cells; i++)
        group[i] = (uint8_t)(scattered ? rng_below(r, groups) : i / length);
}

static void pool_end(struct pools *p, int64_t n, bool partial)
{
    int64_t size = p->n_rows - p->first[p->n], samples = size / n + (partial && size % n > 0);
    if (!samples) { /* fewer than a sentence: these are in none */
        p->n_rows = p->first[p->n];
        return;
    }
    p->size[p->n] = size;
    p->begin[p->n + 1] = p->begin[p->n] + samples;
    p->n++;
}

static void own_draw(struct world *w, struct pools *p, int64_t n)
{
    struct rng *r = &w->rng;
    uint8_t group[MOST_CELLS];
    bool partial = rng_chance(r, 50);
    uint64_t longest = rng_range(r, 1, w->cells);
    groups_draw(w, group);
    for (uint64_t from = 0, to; from < w->cells; from = to) {
        to = from + rng_range(r, longest / 2 + 1, longest);
        to = to < w->cells ? to : w->cells;
        for (uint8_t g = 0; g < MOST_GROUPS; g++) {
            p->first[p->n] = p->n_rows;
            for (uint64_t i = from; i < to; i++)
                if (group[i] == g)
                    p->rows[p->n_rows++] = (uint32_t)i;
            pool_end(p, n, partial);
        }
    }
}

static int64_t middle_of(const struct pools *p, int64_t pool)
{
    return p->rows[p->first[pool] + p->size[pool] / 2];
}

/* Pools of a stretch come group by group: by their middles they rise, as the planner takes it. */
static void pools_sort(struct pools *p)
{
    struct pools to = {.n = p->n, .n_rows = p->n_rows};
    memcpy(to.rows, p->rows, sizeof to.rows);
    int64_t last = -1;
    for (int64_t k = 0; k < p->n; k++) {
        int64_t next = -1;
        for (int64_t i = 0; i < p->n; i++)
            if (middle_of(p, i) > last && (next < 0 || middle_of(p, i) < middle_of(p, next)))
                next = i;
        last = middle_of(p, next);
        to.first[k] = p->first[next];
        to.size[k] = p->size[next];
        to.begin[k + 1] = to.begin[k] + p->begin[next + 1] - p->begin[next];
    }
    *p = to;
}

/* A pool of controls for each: one cell in so many out of a stretch around the middle. False: too many in all. */
static bool controls_draw(struct world *w, const struct pools *own, struct pools *p)
{
    struct rng *r = &w->rng;
    uint64_t around = rng_range(r, 1, w->cells), percent = rng_range(r, 10, 100);
    *p = (struct pools){.n = own->n};
    memcpy(p->begin, own->begin, sizeof p->begin);
    for (int64_t k = 0; k < own->n; k++) {
        uint64_t middle = (uint64_t)middle_of(own, k), from = middle < around ? 0 : middle - around;
        p->first[k] = p->n_rows;
        for (uint64_t i = from; i < w->cells && i <= middle + around; i++) {
            if (p->n_rows == MOST_ROWS)
                return false;
            if (i == middle || rng_chance(r, (unsigned)percent))
                p->rows[p->n_rows++] = (uint32_t)i;
        }
        p->size[k] = p->n_rows - p->first[k];
    }
    return true;
}

static int set_make(struct world *w, const struct pools *p, int64_t n, bool apart,
                    struct members **out)
{
    const struct members_given g = {.n = n,
                                    .pools = p->n,
                                    .n_rows = p->n_rows,
                                    .begin = p->begin,
                                    .first = p->first,
                                    .size = p->size,
                                    .rows = p->rows,
                                    .apart = apart,
                                    .key = rng_next(&w->rng)};
    return members_new(&g, w->cells, out, NULL) ? 1 : 0;
}

int sentences_draw(struct world *w)
{
    struct rng *r = &w->rng;
    struct pools own = {0}, controls;
    int64_t n = (int64_t)rng_range(r, 1, MOST_MEMBERS);
    own_draw(w, &own, n);
    if (!own.n || own.begin[own.n] > WORLD_PLACES)
        return 1;
    pools_sort(&own);
    TRY(set_make(w, &own, n, false, &w->members[0]));
    if (rng_chance(r, 60) && controls_draw(w, &own, &controls))
        TRY(set_make(w, &controls, (int64_t)rng_range(r, 1, MOST_MEMBERS), true, &w->members[1]));
    for (int64_t k = 0; k < own.n; k++)
        for (int64_t i = own.begin[k]; i < own.begin[k + 1]; i++)
            w->middle[i] = middle_of(&own, k);
    w->axes[0] =
        (struct plan_axis){.n = (uint64_t)own.begin[own.n], .last = (uint64_t)own.begin[own.n]};
    w->unit = rng_chance(r, 50) ? rng_range(r, 1, 6) : 0;
    return 0;
}

void sentences_follow(struct world *w, int part, int d)
{
    struct plan_part *p = &w->parts[part];
    struct plan_dim *dim = &p->dim[d];
    bool beside = w->members[1] && (p->view == 1 || (p->view == 2 && w->members[1]->n % 2));
    dim->count = dim->step = 1;
    dim->table = w->middle;
    p->members = w->members[beside];
    p->unit = w->unit;
}

int64_t sentences_row(const struct members *m, uint64_t epoch, uint64_t id, uint64_t member)
{
    int64_t rows[MOST_MEMBERS];
    members_rows(m, epoch, id, rows);
    return rows[member];
}

void sentences_describe(const struct world *w)
{
    for (int i = 0; i < 2 && w->members[i]; i++)
        printf("# %s: %llu of %llu of %llu cells, in %llu pools of %llu, blocks by %llu\n",
               i ? "controls" : "sentences", (unsigned long long)w->members[i]->samples,
               (unsigned long long)w->members[i]->n, (unsigned long long)w->cells,
               (unsigned long long)w->members[i]->pools, (unsigned long long)w->members[i]->n_rows,
               (unsigned long long)w->unit);
}
