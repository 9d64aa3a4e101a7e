/* SCDL's part of the reader's rounds. Private to the format room. */
#ifndef FORMAT_SCDL_ROUND_H
#define FORMAT_SCDL_ROUND_H
#include "format/round.h"
#include "format/scdl.h"

/* What one look at three raw arrays finds out, by requests that do not wait for each other. */
struct scdl_probe {
    const char *folder; /* "", "chunk_00042" */
    const char *group;  /* path of the arrays: "X", "chunk_00042", "obsp/neighbors" */
    const char *key[SCDL_PARTS];
    const struct dtype *type; /* SCDL_PARTS of them */
    uint64_t chunk;           /* its number; */
    bool optional;            /* may well be absent: neighbours */
    bool rows_known, nnz_known;
    uint64_t rows, nnz; /* as the header says */
    int left;           /* answers still to come */
    uint64_t first, last;
    const char *rows_problem; /* what is wrong with row_ptr, or NULL */
    struct {
        bool there, measured;
        uint64_t size; /* of the object, where measured */
    } found[SCDL_PARTS];
};

struct scdl {
    struct scdl_header header; /* types are given without one, too */
    struct scdl_shape shape;
    bool rows_known; /* n_rows, chunk_rows and n_chunks are */
    bool opened;     /* root and first arrays stand in the hierarchy */
    bool neighbors;  /* have been looked for */
};

/* Nothing of Zarr is at the root: begin with what the store lists there, or (NULL) with guesses. *begun: there may be an
 * SCDL archive. */
int scdl_begin(struct reader *r, const struct answer *names, bool *begun, struct hr_error *e);
/* A task of phase ≥ SCDL_HEADER. */
int scdl_feed(struct reader *r, struct task *t, const struct answer *answer, struct hr_error *e);
void scdl_need(const struct task *t, struct need *need);
/* Rounds of an archive that is one: r->scdl. `must`: absence is an error. */
int scdl_want(struct reader *r, const char *path, bool must, struct hr_error *e);
int scdl_walk(struct reader *r, struct hr_error *e);

/* scdl_tree.c */
const char *scdl_format(const struct reader *r);
bool scdl_knows_chunk(const struct reader *r, uint64_t k);
/* All of a look's arrays are kept: its group, and the root after the first look. `rows`: of the group. */
int scdl_ended(struct reader *r, const struct scdl_probe *p, uint64_t rows, struct hr_error *e);
int scdl_opened_empty(struct reader *r, struct hr_error *e); /* no rows, so no look */

/* scdl_array.c: one array that is an object. `number`: its place among the reader's arrays. */
struct scdl_place {
    const char *path, *key, *document; /* of memory that lives as long as the array */
    const struct dtype *type;
    uint64_t length;
    int number;
};
int scdl_array_begin(struct arena *a, const struct scdl_place *p, struct array **out,
                     struct array_layout **layout, struct hr_error *e);
int scdl_array_raw(struct arena *a, const struct scdl_place *p, struct array **out,
                   struct hr_error *e);

/* scdl_npz.c: the three arrays of a chunk that is one zip. */
int scdl_npz_begin(struct reader *r, struct scdl_probe *p, struct hr_error *e);
int scdl_npz_feed(struct reader *r, const struct task *t, const struct answer *answer,
                  struct hr_error *e);

/* What begins and ends a look. */
int scdl_push(struct reader *r, enum phase phase, struct scdl_probe *p, int part, const char *key,
              int64_t offset, uint64_t length, struct hr_error *e);
/* Keep an array, with what is wrong with it if rc < 0 (`why`). */
int scdl_keep(struct reader *r, struct array *x, int rc, const struct hr_error *why,
              struct hr_error *e);
const char *scdl_part_name(int part); /* "data", "indices", "indptr" */

#endif
