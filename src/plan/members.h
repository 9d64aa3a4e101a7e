/* Samples of several rows, such as sentences of cells: which rows, in which epoch.
 *
 * Rows lie in *pools*, each of which belongs to a run of neighbouring samples. In each epoch a pool is put into a keyed
 * order. Its samples either share it out (sample j of the pool takes the rows n j … n j + n - 1 of that order, so that none
 * is taken twice but where the pool has fewer than they want), or each draws its n from all of it. What is drawn is a pure
 * function of (key, epoch, sample). Immutable, reference counted. See docs/internals/sentences.md. */
#ifndef PLAN_MEMBERS_H
#define PLAN_MEMBERS_H
#include <stdbool.h>
#include "base/error.h"

struct members_lent { /* rows that are the caller's until done(arg), if `done` is not NULL */
    void (*done)(void *arg);
    void *arg;
};
struct members {
    int refs;
    uint64_t n;       /* rows of a sample */
    uint64_t samples; /* all of them */
    uint64_t pools, n_rows;
    uint64_t *begin;        /* pools + 1: the first sample of each */
    uint64_t *first, *size; /* of each pool, in `rows` */
    const uint32_t *rows;   /* of the arrays; ascending within a pool; pools may overlap */
    uint32_t *own;          /* the same, or NULL where they are lent */
    struct members_lent lent;
    bool apart; /* each sample draws from all of its pool */
    uint64_t key, hash;
};
/* What they are made of, in the caller's numbers. */
struct members_given {
    int64_t n, pools, n_rows;
    const int64_t *begin, *first, *size;
    const uint32_t *rows;
    struct members_lent lent;
    bool apart;
    uint64_t key;
};
/* Rows lie below `most`. Everything but lent rows is copied; they are taken if nothing fails. HR_EINVAL says what is wrong with the numbers. */
int members_new(const struct members_given *g, uint64_t most, struct members **out,
                struct hr_error *e);
struct members *members_ref(struct members *m);
void members_unref(struct members *m); /* NULL allowed */
uint64_t members_bytes(const struct members *m);

uint64_t members_pool(const struct members *m, uint64_t sample);
/* The n rows of a sample in an epoch. */
void members_rows(const struct members *m, uint64_t epoch, uint64_t sample, int64_t *out);

#endif
