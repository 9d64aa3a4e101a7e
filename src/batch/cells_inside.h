/* Between the files of cells.h: a row on its way.
 *
 *     cells_select (cells_select.c)  stored row → output columns that rise, and the stored values of these
 *     cells_values (cells_values.c)  stored values → what the form makes of them
 *     cells_order, cells_subset (cells_order.c)  which of them, and in which order
 *     cells_rank_counts (cells_counts.c)  the same where stored values are counts
 *     cells.c  into place */
#ifndef BATCH_CELLS_INSIDE_H
#define BATCH_CELLS_INSIDE_H
#include "batch/cells.h"
#include "batch/kernels.h"

/* Of 32-bit keys: the least, the most, and the bits that are set, or not set, in any. */
struct cells_range {
    uint32_t least, most, ones, zeros;
};

/* Counts that are ranked as they are stored (cells_counts.c). */
#define CELLS_COUNT_MOST 16383
#define CELLS_BUCKETS    64

struct cells_kernels {                                               /* indexed by stored type */
    bool (*rising[KERNEL_TYPES])(const void *columns, uint64_t n);   /* each above the one before */
    uint64_t (*most[KERNEL_TYPES])(const void *columns, uint64_t n); /* as if without sign */
    bool (*zeros[KERNEL_TYPES])(const void *values, uint64_t n);     /* any value is 0 */
    /* the places of those that are not, ascending; room for n */
    uint64_t (*others[KERNEL_TYPES])(uint32_t *places, const void *values, uint64_t n);
    /* whole numbers from 1 to CELLS_COUNT_MOST; false: others are among them. NULL: not for this type */
    bool (*counts[KERNEL_TYPES])(uint32_t *to, const void *values, uint64_t n);
    void (*buckets)(uint8_t *to, const uint32_t *counts, uint64_t n);
    /* by the type of genes or tokens: those of columns[places[i]], and n times the same */
    void (*columns[KERNEL_TYPES])(void *to, const int32_t *columns, const uint32_t *places,
                                  uint64_t n);
    void (*tokens[KERNEL_TYPES])(void *to, const int32_t *columns, const uint32_t *places,
                                 uint64_t n, const int64_t *tokens);
    void (*fill[KERNEL_TYPES])(void *to, uint64_t n, int64_t token);
    uint64_t (*others_count[KERNEL_TYPES])(const void *values, uint64_t n); /* how many */
    double (*sum)(const double *values, uint64_t n);
    void (*scale)(double *values, uint64_t n, double factor);
    void (*weigh)(double *values, const int32_t *columns, uint64_t n, const double *weights);
    /* -log(u) of words as numbers in (0, 1], by arithmetic alone, so that it is the same everywhere; to about 1e-12 */
    void (*times)(double *to, const uint64_t *words, uint64_t n);
    /* value order in the upper half, place in the lower */
    struct cells_range (*keys)(uint64_t *keys, const float *values, uint64_t n);
};
const struct cells_kernels *cells_kernels_base(void);
#if defined(__x86_64__)
const struct cells_kernels *cells_kernels_avx2(void);
#endif

struct cells_made {
    const struct kernels *kernels;
    const struct cells_kernels *own;
    double *weights;   /* 1 / factor; NULL: none */
    int64_t *tokens;   /* NULL: the column */
    uint8_t *left_out; /* by output column: no gene of the form; NULL: none */
    uint64_t places;   /* for genes, of `length` */
    bool plain;        /* nothing is done to values */
};

/* The arrays of a scratch, each of `cap` items. */
struct cells_room {
    int32_t *columns;
    uint32_t *places;
    uint64_t *raw; /* stored values, of any type */
    double *wide;
    float *single;
    uint64_t *keys, *spare;
};
int cells_reserve(struct cells_scratch *s, uint64_t n, struct cells_room *room, struct hr_error *e);
int cells_reserve_row(struct cells_scratch *s, uint64_t bytes, struct hr_error *e);
int cells_reserve_line(struct cells_scratch *s, uint64_t bytes, struct hr_error *e);

/* The part of a row that is in the output. */
struct cells_part {
    const int32_t *columns; /* strictly rising */
    const void *values;     /* as stored */
    enum hr_dtype value;
    uint64_t n;
    double sum; /* where the form normalises */
};
/* `genes_only`: without stored zeros. `to`: if not NULL, columns may be written there, room for n. */
int cells_select(const struct cells_form *f, const struct cells_genes *g, const struct cells_row *r,
                 struct cells_scratch *s, struct cells_room *room, bool genes_only, int32_t *to,
                 struct cells_part *p, struct hr_error *e);

/* p->sum: of values of type `type`. */
void cells_sum(const struct cells_form *f, enum hr_dtype type, const void *values, uint64_t n,
               struct cells_room *room, struct cells_part *p);

/* What values are multiplied with. */
double cells_factor(const struct cells_form *f, const struct cells_part *p);
/* Values of the form, as float32 in room->single, or as `f->value` at `to`. */
void cells_singles(const struct cells_form *f, const struct cells_part *p, struct cells_room *room);
int cells_values(const struct cells_form *f, const struct cells_part *p, struct cells_room *room,
                 void *to, struct hr_error *e);
/* Values of the form in room->single → bins; changes wide, keys and spare. */
void cells_bins(const struct cells_form *f, const struct cells_part *p, struct cells_room *room);
/* float32 values to the form's type. */
void cells_narrow(const struct cells_form *f, void *to, const float *values, uint64_t n);

/* Sort keys by the upper half, then the lower; equal upper halves must come with rising lower ones. Only
 * the first `want` are put in place. Returns keys or spare, whichever holds them. */
uint64_t *cells_sort(uint64_t *keys, uint64_t *spare, uint64_t n, uint64_t want,
                     struct cells_range range);
/* The first `want` places by falling value of the form, with room for all; false: the stored values are no counts or
 * something is done to them that may change their order. Changes keys, spare and n / 2 of wide. */
bool cells_rank_counts(const struct cells_form *f, const struct cells_part *p,
                       struct cells_room *room, uint32_t *places, uint64_t want);
struct cells_range cells_range_of(const uint64_t *keys, uint64_t n);
/* How the values fare in a draw: the highest was drawn first. How many can be drawn. */
uint64_t cells_scores(const struct cells_kernels *k, float *to, const float *values, uint64_t n,
                      uint64_t key);
/* `want` of 0 … n-1, rising, each subset as likely as any other. `to` has room for one
 * more, `room` for n bytes in whole words. */
void cells_subset(uint32_t *to, uint64_t n, uint64_t want, uint64_t key, uint64_t *room);

#endif
