/* A made-up archive with views, splits and an order, drawn from a seed, and the naive reader that says what every tensor
 * element must be.
 *
 * Nothing has bytes: an element of an array is known by a number (array and row-major index), a decoded chunk is the
 * function from offsets to such numbers, a tensor is an array of them. The sizes that the engine accounts are free to be
 * anything. The naive reader knows boxes only; it shares no code with the planner's pieces. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H
#include "plan/plan.h"

struct rng {
    uint64_t key, at;
};
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);                  /* [0, n) */
uint64_t rng_range(struct rng *r, uint64_t low, uint64_t high); /* [low, high] */
bool rng_chance(struct rng *r, unsigned percent);

#define WORLD_ARRAYS 3
#define WORLD_VIEWS  3
#define WORLD_PARTS  6
#define WORLD_PLACES 700
struct world {
    struct rng rng;
    struct plan_config config;
    struct plan_array arrays[WORLD_ARRAYS];
    struct plan_view views[WORLD_VIEWS];
    struct plan_part parts[WORLD_PARTS];
    struct plan_axis axes[PLAN_MAX_AXES];
    uint64_t edges[WORLD_ARRAYS][64];
    int64_t lists[WORLD_PARTS][PLAN_MAX_DIMS][8];
    bool general;                 /* more than one axis whose samples are neighbours */
    int axis_of[WORLD_ARRAYS][3]; /* sample axis that a dimension is made for, or -1 */
    uint64_t stride[WORLD_ARRAYS][3];
    bool edged[WORLD_ARRAYS]; /* `edges` is taken */
    bool partial;             /* of all arrays single samples can be fetched */
    int64_t tables[WORLD_PARTS][3][WORLD_PLACES];
    uint64_t cells;               /* samples are sentences of these (sentences.h); 0: no */
    struct members *members[2];   /* … their own, and controls or NULL */
    int64_t middle[WORLD_PLACES]; /* … where they count as lying */
    uint64_t unit;                /* … and what blocks are multiples of */
    struct bitmap filter;
    struct plan *plan;
    uint64_t view_at[WORLD_VIEWS],
        row_items; /* a row of the model: the samples of all views end to end */
    uint64_t chunks[WORLD_ARRAYS], first_chunk[WORLD_ARRAYS], all_chunks;
};

int world_init(struct world *w, uint64_t seed,
               struct hr_error *e); /* 0, or 1: this seed gives no valid plan */
void world_dispose(struct world *w);
uint64_t world_places(const struct plan_axis *x); /* how many there are of an axis */
#define WORLD_OUTSIDE UINT64_MAX /* what the model writes where a sample leaves the array */
/* The number of the element at `offset` of a decoded chunk; 0 when it lies outside the array. */
uint64_t world_chunk_item(const struct world *w, uint32_t array, uint64_t chunk, uint64_t offset);
/* Rows of a tensor that a sample has of a part, and where one of them lies: a place, or of a sentence a row of the array. */
uint64_t world_members(const struct world *w, int part);
int64_t world_place(const struct world *w, int part, uint64_t epoch, int64_t id, uint64_t member);
/* Where in a row of the model a part's member begins. */
uint64_t world_member_at(const struct world *w, int part, uint64_t member);
/* Does the row hold what the boxes of the sample say? Else a sentence in e. */
int world_row_check(const struct world *w, uint64_t epoch, int64_t id, const uint64_t *row,
                    struct hr_error *e);
void world_describe(const struct world *w);

#endif
