/* What a plan is made of; for this room alone. */
#ifndef PLAN_IMPL_H
#define PLAN_IMPL_H
#include "base/arena.h"
#include "plan/anchor.h"
#include "plan/block.h"
#include "plan/members.h"
#include "plan/plan.h"

#define PLAN_WARNINGS 6
#define PLAN_MAX_SETS 4

struct plan {
    int refs;
    struct arena arena; /* config's arrays, lists, names */
    struct plan_config config;
    struct plan_axis axes[PLAN_MAX_AXES]; /* config.axes */
    struct space space;
    struct bitmap
        filter;       /* config.filter, if any: over slots, which are ids where there is one axis */
    uint64_t skipped; /* samples of the filter before the first */
    struct part *parts;
    struct part *look; /* for look-ups: the same, but by row where samples have several */
    uint64_t *
        part_members; /* of each part: where its rows begin in those of a sample; NULL: places are all */
    struct members *sets[PLAN_MAX_SETS]; /* that parts have */
    int n_sets;
    uint64_t members; /* rows of a sample, of all sets */
    struct anchor anchor;
    struct tiles tiles;
    struct blocks blocks; /* counted in samples, also where there are weights */
    struct repeats repeats;
    struct strata strata;
    uint64_t most; /* rows of the largest block in any epoch, at most */
    struct plan_facts facts;
    int n_warnings;
    char warnings[PLAN_WARNINGS][256];
};

/* config.c: copy and check the geometry and the split; then, when the tiles are made, bring a filter
 * into their order. */
int config_copy(struct plan *p, const struct plan_config *c, struct hr_error *e);
int config_filter(struct plan *p, const struct bitmap *given, struct hr_error *e);
/* plan_members.c: look-ups by row */
int config_members(struct plan *p, struct hr_error *e);
void members_dispose(struct plan *p);
uint64_t plan_members_bytes(const struct plan *p);
/* options.c: ranks, streams, batch, remainder: everything of facts that needs no blocks. */
int options_resolve(struct plan *p, struct hr_error *e);
/* The blocks of the epoch of that key, counted in rows; `epoch` must outlive them. */
struct blocks plan_blocks(const struct plan *p, uint64_t key, struct repeats_epoch *epoch);
/* horizon.c: facts.horizon and facts.open_blocks. */
int horizon_find(struct plan *p, struct hr_error *e);
void plan_warn(struct plan *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Rows of the epoch, laid end to end, that stream c gives out: [*from, *to). */
void plan_stream_range(const struct plan *p, uint64_t c, uint64_t *from, uint64_t *to);
/* Ids of n ranks from `rank` on: for less than plan_id of each. */
void plan_ids(const struct plan *p, uint64_t rank, uint64_t n, uint64_t *ids);
/* Sample id of a rank (number of samples of the split before it, counted tile by tile). */
static inline int64_t plan_id(const struct plan *p, uint64_t rank)
{
    bool one = p->space.n == 1;
    uint64_t slot = p->config.filter ? bitmap_select(&p->filter, p->skipped + rank)
                                     : rank + (one ? p->axes[0].first : 0);
    return (int64_t)(one ? slot : tiles_id(&p->tiles, slot));
}

#endif
