/* SCDL: cells × genes as raw arrays in files, with a small binary header (`header.sch`).
 *
 * *Plain*: one CSR matrix in `data.npy`, `col_ptr.npy` (its indices) and `row_ptr.npy` (its indptr), all without an NPY
 * header. *Chunked*: the same three for every run of `chunk_rows` rows, in `chunk_00000/`, …; each row_ptr begins with 0.
 * Some writers left one `chunk.npz` there instead: a zip of three real NPY files, deflated.
 *
 * To other rooms the three are 1-D arrays named as AnnData names them: "X/indptr", "X/indices", "X/data" of a plain archive,
 * "chunk_00042/indptr", … of a chunked one, "obsp/neighbors/…" where there are neighbours. What lies in one object of its
 * own has array->object, its key, and its items are the object's bytes from the first on; what lies in an npz is one
 * chunk, found by array_locate and decoded by array->chain.
 *
 * The header is not believed: sizes of objects and both ends of row_ptr are held against it, in requests of some bytes,
 * when an archive is opened (plain) or a chunk is first asked for. What does not fit is the problem of an array, not of
 * its siblings. That row_ptr ascends is for whoever reads it to check. */
#ifndef FORMAT_SCDL_H
#define FORMAT_SCDL_H
#include "format/reader.h"

enum scdl_backend { SCDL_PLAIN = 1, SCDL_CHUNKED = 2 };
enum scdl_part { SCDL_DATA, SCDL_INDICES, SCDL_INDPTR, SCDL_PARTS };

/* Files that describe rows or columns: NPY and parquet, for others to read. */
struct scdl_features {
    const char *name; /* "var_features" */
    uint64_t rows; /* cells they speak for, also of var: columns are counted in the parquet alone */
    uint32_t n_files;
    const char *const *files; /* keys */
};

/* `header.sch`, or what stands in for it. */
struct scdl_header {
    uint8_t version[3];
    enum scdl_backend backend;
    bool given[SCDL_PARTS];
    uint64_t length[SCDL_PARTS]; /* of a chunked archive: of the plain one it was made from */
    struct dtype type[SCDL_PARTS];
    const struct scdl_features *var, *obs; /* or NULL */
    bool has_chunks;
    uint64_t chunk_rows, n_chunks, n_rows; /* 0 unless has_chunks */
};
/* HR_EDATA says what is wrong at which byte; other versions and backends are HR_EUNSUPPORTED. All memory is the arena's. */
int scdl_header_parse(struct arena *a, const void *data, size_t n, const char *where,
                      struct scdl_header *out, struct hr_error *e);

/* What is known of an opened archive without reading further. */
struct scdl_shape {
    enum scdl_backend backend;
    bool has_header;
    uint64_t n_rows;
    uint64_t nnz; /* plain: as row_ptr ends; chunked: the header's, not to be believed */
    uint64_t chunk_rows, n_chunks;         /* plain: all rows, 1 */
    const struct dtype *type;              /* SCDL_PARTS of them */
    const struct scdl_features *var, *obs; /* or NULL: the header names none */
};
/* 1: an SCDL archive, *out is filled; 0: it is not. */
int scdl_describe(const struct reader *r, struct scdl_shape *out);

/* Rows of chunk k; the first of them in *first. k < n_chunks. */
uint64_t scdl_chunk_rows(const struct scdl_shape *s, uint64_t k, uint64_t *first);
#define SCDL_NAME 40
/* "chunk_00042" → 42; or, of a whole path, what stands behind the slash in *rest ("" without). False: no such name. */
bool scdl_chunk_number(const char *path, uint64_t *k, const char **rest);

/* One array of chunk k (0 of a plain archive) without asking the store, in memory of `a`: of the raw layout, as most are.
 * `nnz` is what the chunk's row_ptr ends with (not needed for SCDL_INDPTR). reader_want of "chunk_00042/data" gives the
 * same with the checks made, and reads the npz layout, too. */
int scdl_chunk_array(const struct scdl_shape *s, uint64_t k, enum scdl_part part, uint64_t nnz,
                     struct arena *a, struct array **out, struct hr_error *e);
/* Its object has as many bytes as it should. UINT64_MAX: nobody knows, and it passes. */
int scdl_check_size(const struct array *x, uint64_t object_size, struct hr_error *e);
/* Both ends of a row_ptr: the first is 0 and, where `nnz` is not UINT64_MAX, the last is nnz. */
int scdl_check_ends(const struct array *indptr, uint64_t first, uint64_t last, uint64_t nnz,
                    struct hr_error *e);

#endif
