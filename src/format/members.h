/* Arrays that are one behind the other along a dimension, as one array (hr_archive_concat).
 *
 * The joined array has the grid of its members' chunks. Its edges are where those begin and end, so the last chunk of a
 * member ends early: stored whole, but the array goes on with the next member. Everything about a chunk (key, codecs,
 * shard index, fill value) is asked of the member that has it. Members may be joined arrays themselves; those that are
 * not are called leaves.
 *
 * To live in one store, members are *moved* first: keys get a prefix that names the member's store, and shard indexes an
 * owner of their own. All of it is arena memory. */
#ifndef FORMAT_MEMBERS_H
#define FORMAT_MEMBERS_H
#include "format/reader.h"

struct array_members {
    int dim, n;
    bool units_differ; /* times counted from different moments */
    const struct array **of;
    const char **names;     /* n: of the members, for messages */
    const uint64_t *at;     /* n + 1: the first position of each along dim */
    const uint64_t *cell;   /* n + 1: the first chunk of each along dim */
    const uint64_t *number; /* n: chunks of those before */
    const int *leaf;        /* n + 1: leaves of those before */
};

/* A copy of x whose keys begin with `prefix`; *owner is raised by the leaves it has. */
int array_move(struct arena *a, const struct array *x, const char *prefix, int *owner,
               struct array **out, struct hr_error *e);
/* n ≥ 1 arrays joined along `dim`. Names of the members (n of them) are for errors: HR_EINVAL says which two differ, in
 * what. Attributes are those of the first. */
int array_concat(struct arena *a, const struct array *const *members, const char *const *names,
                 int n, int dim, struct array **out, struct hr_error *e);
/* Do two arrays hold items of one kind? *what: a text for errors otherwise. */
bool array_same_type(const struct array *x, const struct array *y);
/* "time", or "dim_0" where dimensions have no names. */
#define ARRAY_DIM_NAME 128
const char *array_dim_name(const struct array *x, int d, char *room);

/* The leaf that chunk *chunk is in, and its number there. */
const struct array *array_leaf(const struct array *x, uint64_t *chunk);
int array_leaf_number(const struct array *x, uint64_t chunk); /* which of … */
int array_leaves(const struct array *x);                      /* 1 unless joined */
const struct array *array_leaf_at(const struct array *x, int leaf);
const char *array_leaf_name(const struct array *x, int leaf); /* of the member that it is */
/* Positions [*from, *to) along dimension d that leaf number `leaf` has. */
void array_leaf_range(const struct array *x, int leaf, int d, uint64_t *from, uint64_t *to);

/* layout.c's part of the look-ups. */
int members_locate(const struct array *x, struct shard_cache *cache, uint64_t chunk,
                   struct where *out, struct hr_error *e);
void members_box(const struct array *x, uint64_t chunk, uint64_t *origin, uint64_t *shape);

#endif
