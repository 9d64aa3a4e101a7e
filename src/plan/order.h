/* The sequence in which an epoch opens its blocks (docs/internals/order.md, steps 1 and 2): strata
 * of neighbouring blocks, each permuted, visited in turn. Integers only. Immutable once made; one
 * per epoch and cursor.
 *
 * Memory: 136 bytes a stratum and, where blocks differ in size, one byte a block; with weights eight
 * bytes a block, unless there are more than 2^20. */
#ifndef PLAN_ORDER_H
#define PLAN_ORDER_H
#include "base/keyed.h"
#include "plan/block.h"

#define ORDER_ONE       (INT64_C(1) << 62) /* 1 in the fixed point of places and keys */
#define ORDER_HALF_MOVE (INT64_C(1) << 23)

enum order_tag { /* of the keys derived from an epoch's; frozen with the order version */
                 ORDER_MOVE = 1,
                 ORDER_TURN,
                 ORDER_STRATUM = 4,
                 ORDER_SHIFT,
                 ORDER_JITTER,
                 ORDER_ROWS,
                 ORDER_GLOBAL,
                 ORDER_PLACE,
                 ORDER_WEIGHTS
};

struct stratum {
    uint64_t cut, n; /* its blocks: [cut, cut + n) */
    uint64_t turn;   /* phase of its visits: (turn + 1/2) / strata */
    uint64_t rows;
    uint64_t short_at[2]; /* when the first and the last block of the epoch come, n if elsewhere */
    uint64_t *sums;       /* rows before some blocks as permuted, where blocks differ; else NULL */
    struct keyed_perm perm;
};
struct order {
    const struct blocks *blocks;
    uint64_t key; /* of the epoch */
    uint64_t n;   /* strata */
    struct stratum *strata;
    uint64_t *sums; /* of all strata */
    uint64_t every; /* … for every 8th block; for each, where asking a block costs more */
};

uint64_t order_epoch_key(uint64_t seed, uint64_t epoch);
/* How far the cuts move in this epoch: [-2^23, 2^23) parts of 2^-24 of a stratum. */
int64_t order_move(uint64_t key);
/* Cut i of k in so many blocks. */
uint64_t order_cut_place(uint64_t i, uint64_t k, uint64_t blocks, int64_t move);
/* The strata. Where blocks differ in size, order_sum makes the calls below fast; they are right,
 * but walk, without it. The blocks must outlive it. */
int order_init(struct order *o, const struct blocks *blocks, uint64_t spread, uint64_t key,
               int64_t move, struct hr_error *e);
int order_sum(struct order *o, struct hr_error *e);
void order_dispose(struct order *o);

/* Stratum g as permuted: the t-th block (archive number), the rows before it, and which one row r
 * falls into. */
uint64_t order_block(const struct order *o, uint64_t g, uint64_t t);
uint64_t order_rows(const struct order *o, uint64_t g, uint64_t t);
uint64_t order_find(const struct order *o, uint64_t g, uint64_t row);

/* Where row r of the whole sequence lies: the blocks of each stratum that come before (t, one per
 * stratum), and the rows before it in block t[at] of stratum `at` (offset 0: between blocks, and
 * `at` says nothing). r = all rows: the end. */
struct order_cut {
    uint64_t at, offset;
    uint64_t *t;
};
void order_cut(const struct order *o, uint64_t row, struct order_cut *out);

#endif
