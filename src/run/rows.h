/* Private to the room: row chunks of sparse matrices, from stored bytes to rows of batches.
 *
 *     indptr ─► which items ─► pieces of data and indices ─► a record of rows ─► each wanted row, in its form
 *
 * A record has the rows of one row chunk decoded, with their offsets (format/sparse.h). It lies in the job's scratch, or in
 * memory of its own when it is to be held. */
#ifndef RUN_ROWS_H
#define RUN_ROWS_H
#include "format/sparse.h"
#include "run/job.h"

struct rows_flow;

/* The matrix that chunk i of a job is of, or NULL. */
static inline const struct sparse *rows_matrix(const struct job *j, uint32_t i)
{
    return j->driver->fixed.c.arrays[j->chunks[i].array]->sparse;
}
/* Local and blocking stores: read, decode, scatter. 1: the ticket is too small. */
int rows_read(struct job *j, struct worker *w, uint32_t i, struct hr_error *e);
/* What is wanted of a record goes to its batches. */
int rows_scatter(struct job *j, struct worker *w, uint32_t i, const struct sparse_record *r,
                 struct hr_error *e);
/* The wanted rows become empty ones. */
int rows_empty(struct job *j, struct worker *w, uint32_t i, struct hr_error *e);
/* "rows 640 … 1279 of X" */
void rows_name(const struct job *j, uint32_t i, char *out, size_t n);

/* rows_span.c. What of one of the three arrays is to be had: all items [from, to), or only some rows, of which n begin at
 * rows[0 … n]. */
enum rows_part { ROWS_DATA, ROWS_INDICES, ROWS_INDPTR };
struct rows_wanted {
    const struct array *of;
    enum rows_part part;
    uint64_t from, to;
    const uint64_t *rows; /* only those that are marked are wanted */
    uint64_t n;
};
/* Of values and columns of these rows, which begin there; how many arrays these are. */
uint32_t rows_wanted(const struct sparse_rows *r, const uint64_t *offsets, bool some,
                     struct rows_wanted out[2]);
/* The rows that the job has pieces of are marked, to be read alone (chunk_state.wanted); false: no memory for it. */
bool rows_mark(struct job *j, uint32_t i);
/* Is so little of chunk i wanted that they are? Then they are marked. */
bool rows_few(struct job *j, uint32_t i);
/* The pieces of that, each stored chunk once, in rising order. */
struct rows_cursor {
    struct rows_wanted of;
    uint64_t row, from, to; /* where to go on; items of the run of rows it is at … */
    uint64_t piece, pieces; /* … whose next piece is this, of so many */
};
bool rows_piece_next(struct job *j, uint32_t i, struct rows_cursor *c, struct sparse_piece *out);

/* rows_emit.c. Rows go to their batches while their record is filled: after each piece, those of each array coming in rising
 * order. They lie in memory of the worker until the end. */
struct rows_flow {
    struct job *job;
    struct worker *worker;
    uint32_t index;
    const struct sparse_record *record;
    const uint32_t *order; /* pieces of the job's chunk, by their rows */
    uint32_t next;
    uint64_t done[2]; /* columns and values are there before these items */
    bool direct;      /* values go from the decoder to their rows, not into the record */
    uint32_t next_values;
};
/* The row of the record that a piece of the job wants. */
static inline uint64_t rows_row(const struct rows_flow *f, const struct engine_piece *p)
{
    return (uint64_t)p->place - f->record->segment->first - f->record->first;
}
int rows_flow_open(struct rows_flow *f, struct job *j, struct worker *w, uint32_t i,
                   const struct sparse_record *r, struct hr_error *e);
int rows_flow_piece(struct rows_flow *f, const struct sparse_piece *p, enum rows_part part,
                    struct hr_error *e);
int rows_flow_end(struct rows_flow *f, struct hr_error *e);
/* rows_values.c. May they? In order, so that the rows are known. */
bool rows_values_direct(const struct rows_flow *f);
/* Where the values of a row go. */
int rows_values_room(const struct rows_flow *f, const struct engine_piece *p, char **to,
                     struct hr_error *e);
/* A piece of the values, as it was stored, to the rows that have some of it; or from the record at `to`, its first item. */
int rows_values_decode(struct rows_flow *f, const struct sparse_piece *p, const void *data,
                       uint64_t n, char *to, struct hr_error *e);
int rows_values_copy(struct rows_flow *f, const struct sparse_piece *p, const char *to,
                     struct hr_error *e);

/* A batch that opens, and of samples of several rows these (plan_members_rows): room for the rows that differ in length; when all of it is there, bring them into order. */
int rows_open(struct driver *d, struct hr_batch *b, const int64_t *members, struct hr_error *e);

/* A record for items [from, to) of the segment, in memory of the job or to be held; its offsets are set, NULL: no memory. */
struct sparse_record *rows_record(struct job *j, uint32_t i, const uint64_t *offsets,
                                  struct hr_error *e);
/* Stored bytes that the ticket has to cover for these rows. */
uint64_t rows_stored(const struct job *j, uint32_t i, const uint64_t *offsets);
/* Where the rows of chunk i begin: known, or read for this job; else NULL. */
const uint64_t *rows_offsets_of(struct job *j, uint32_t i);
/* They have been read, with the one before them if there is a lead (sparse_lead): checked, without it, for the job to keep. */
int rows_offsets_check(struct job *j, uint32_t i, const void *stored, uint64_t *offsets,
                       struct hr_error *e);
void rows_free(struct job *j);
/* HR_EDATA for a stored size that no chunk of the piece's array has. */
int rows_check_size(const struct sparse_piece *p, uint64_t stored, struct hr_error *e);
/* The object that a piece was read from has that size (0: not known): HR_EDATA where rows and object do not fit. */
int rows_check_object(struct job *j, uint32_t i, const struct sparse_piece *p, uint64_t object_size,
                      struct hr_error *e);
/* A piece as it was stored into items at `to`, its array's first wanted one; of values that go elsewhere: `f`, else NULL. */
int rows_piece(struct job *j, struct worker *w, const struct sparse_piece *p, const void *data,
               uint64_t n, char *to, struct rows_flow *f, struct hr_error *e);
/* The same of dense rows (rows_dense.c), `to` being the place of the piece's first item: of stored bytes that are its items; of
 * others; of none. Whole: the rows it has of the chunk lie in the record as they do there. */
bool rows_recall(const struct sparse *m, uint64_t chunk, uint64_t *offsets); /* or sparse_recall */
void rows_dense_raw(const struct sparse_piece *p, const void *data, char *to);
int rows_dense_decode(struct job *j, struct worker *w, const struct sparse_piece *p,
                      const void *data, uint64_t n, char *to, struct hr_error *e);
void rows_dense_fill(const struct sparse_piece *p, char *to);
bool rows_dense_whole(const struct sparse_piece *p);
/* A piece that does not exist becomes fill values, or an error. */
int rows_missing(const struct job *j, const struct sparse_piece *p, char *to, struct rows_flow *f,
                 struct hr_error *e);

#endif
