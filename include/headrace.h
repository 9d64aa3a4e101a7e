/* Headrace: ready-to-train batches, streamed from scientific archives where they lie.
 *
 *     struct hr_error e;
 *     struct hr_archive *a;  struct hr_samples *s;  struct hr_loader *l;  struct hr_batch *b;
 *     hr_open("era5.zarr", NULL, &a, &e);
 *     hr_samples_new(a, "time", &s, &e);
 *     const char *x[] = {"t2m", "u10"}, *y[] = {"t2m"};
 *     hr_samples_view(s, "x", x, 2, "channel", &e);        hr_view_steps(s, "x", "time", -6, 0, &e);
 *     hr_samples_view(s, "y", y, 1, NULL, &e);             hr_view_steps(s, "y", "time", 6, 6, &e);
 *     struct hr_loader_options o = HR_LOADER_OPTIONS;  o.n = 8;  o.shuffle = HR_SHUFFLE_SPREAD;
 *     hr_loader_open(s, &o, &l, &e);
 *     while (hr_loader_next(l, -1, &b, &e) == 1) {
 *         struct hr_tensor t;  hr_batch_tensor(b, 0, &t);   // t.data: (8, 7, 2, 721, 1440) float32
 *         hr_batch_release(b);
 *     }
 *
 * Errors: calls return 0 (or what they say) or a negative enum hr_code and fill *e, which may be NULL.
 * Ownership: archives, samples, loaders and batches are reference counted; *_unref/_release accept NULL. A child object
 *   keeps its parents alive. Strings returned with "free with hr_free" belong to the caller, all others to their object.
 * Threads: archives and frozen samples may be used from any thread; a loader by one thread at a time, except
 *   hr_loader_close, _steps, _plan_json and _stats_json, which may be called from any thread at any time; a batch by many.
 * Fork: in a forked child every existing object answers HR_EFORK; new ones can be opened.
 * The library never exits or aborts, and never prints, but where the environment has HEADRACE_LOG
 * (debug: each request over a network, too); log lines are collected by hr_log_next. */
#ifndef HEADRACE_H
#define HEADRACE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HR_API __attribute__((visibility("default")))
#else
#define HR_API
#endif

#define HR_VERSION_MAJOR 0
#define HR_VERSION_MINOR 1
#define HR_VERSION_PATCH 0

/* ---- errors ------------------------------------------------------------------------------------------------ */

enum hr_code {
    HR_OK = 0,
    HR_ENOMEM = -1,  /* the system gave no memory */
    HR_EINVAL = -2,  /* an argument that makes no sense: Python ValueError */
    HR_ENOENT = -3,  /* no such archive, array, dimension, label: Python KeyError */
    HR_EFORMAT = -4, /* metadata or chunk that breaks its format: hr.FormatError */
    HR_EUNSUPPORTED =
        -5,          /* a codec, data type, grid or URL that is not read: hr.UnsupportedError */
    HR_ESTORE = -6,  /* the store failed or refused: Python OSError */
    HR_EDATA = -7,   /* a chunk of wrong size or checksum: hr.DataError */
    HR_EBUDGET = -8, /* the memory budget is too small: Python MemoryError and ValueError */
    HR_ESTATE =
        -9, /* a state that does not fit the loader; a call in the wrong order: Python ValueError */
    HR_EFORK = -10,     /* the object belongs to the parent process: Python RuntimeError */
    HR_ECLOSED = -11,   /* closed while waiting, or already closed: Python RuntimeError */
    HR_ETIMEOUT = -12,  /* no batch within the time given: Python TimeoutError */
    HR_ECANCELED = -13, /* cancelled by the caller */
    HR_EINTERNAL = -14  /* a fault of this library: please report */
};

struct hr_error {
    int32_t code;      /* enum hr_code */
    int32_t retryable; /* 1: the same call may succeed later */
    char text[512];    /* what, where, what to do; UTF-8, NUL-terminated, no secrets */
};

/* ---- library ----------------------------------------------------------------------------------------------- */

HR_API const char *hr_version(void); /* "0.1.0" */
HR_API void hr_free(void *p);        /* strings documented as "free with hr_free" */

/* Process-wide, before the first hr_open; 0 keeps the default. workers: threads that decode (default: the cores this
 * process may use ÷ local ranks); net_threads: 1…4; io_threads: extra readers for network file systems. */
HR_API int hr_configure(int workers, int net_threads, int io_threads, struct hr_error *e);

/* Process-wide; NULL: none. Asked every ~50 ms by threads that wait for a network in hr_open, hr_archive_*, hr_view_*,
 * hr_samples_* or hr_loader_open, so that a program can react to signals and hand out log lines meanwhile; nonzero ends
 * the call with HR_ECANCELED. It must not call what waits. Stores of the caller's own have hr_store_options.interrupted. */
HR_API void hr_on_wait(int (*interrupted)(void *arg), void *arg);

/* Next log line, or 0 when there is none. level: 10 debug, 20 info, 30 warning. Thread-safe. */
HR_API int hr_log_next(int *level, char *text, size_t n);

/* ---- data types -------------------------------------------------------------------------------------------- */

/* Element types of arrays and tensors. Multi-byte values in tensors are native-endian. */
enum hr_dtype {
    HR_NONE = 0, /* "as the array has it" where a type is asked for */
    HR_BOOL,
    HR_I8,
    HR_I16,
    HR_I32,
    HR_I64,
    HR_U8,
    HR_U16,
    HR_U32,
    HR_U64,
    HR_F16,
    HR_BF16,
    HR_F32,
    HR_F64,
    HR_C64,
    HR_C128,
    HR_DATETIME64, /* int64 counts of a unit since 1970-01-01; NaT = INT64_MIN */
    HR_TIMEDELTA64,
    HR_RAW,    /* opaque items of item_size bytes: S, V, structs, float8…, not convertible */
    HR_UTF32,  /* fixed-length UTF-32, item_size bytes */
    HR_STRING, /* variable-length UTF-8: cat, inspect and coordinates only */
    HR_BYTES   /* variable-length bytes: likewise */
};
HR_API const char *hr_dtype_name(enum hr_dtype t); /* numpy's name: "float32", "bfloat16", … */
HR_API enum hr_dtype
hr_dtype_parse(const char *name);             /* also "f4", "<f4", "bf16"; HR_NONE if unknown */
HR_API size_t hr_dtype_size(enum hr_dtype t); /* bytes; 0 for types whose size varies */

/* ---- archive ----------------------------------------------------------------------------------------------- */

struct hr_archive;

/* Open the archive at a path or URL (file, http, https, s3, gs, az). `options`: JSON object of storage options, or NULL.
 * Reads metadata only. A hierarchy in which one array is unreadable still opens; using that array is the error. */
HR_API int hr_open(const char *url, const char *options, struct hr_archive **out,
                   struct hr_error *e);
HR_API struct hr_archive *hr_archive_ref(struct hr_archive *a);
HR_API void hr_archive_unref(struct hr_archive *a);

/* Several archives as one, for everything that takes an archive; chunks are read from where they lie. Members are
 * referenced. At most 4095.
 *
 * concat: arrays with dimension `along` are the members' one behind the other; they agree in name, type and all other
 * dimensions, their chunks may differ in length along `along`, in codecs and in packing. Times may count from another
 * moment in each. Other arrays are the first member's, and attributes too. Members that overlap or are out of order along
 * the coordinate `along` are HR_EINVAL here; what differs in one array, or its coordinates, when it is used.
 * combine: the arrays of member i as "<names[i]>/…". Names have no slash. */
HR_API int hr_archive_concat(struct hr_archive *const *members, int n, const char *along,
                             struct hr_archive **out, struct hr_error *e);
HR_API int hr_archive_combine(struct hr_archive *const *members, const char *const *names, int n,
                              struct hr_archive **out, struct hr_error *e);

/* The whole archive as JSON, for trees, reports and --json: {"url", "format", "attributes", "consolidated", "complete":
 * false where a store that cannot list may hold more, "nodes": [{"path", "kind": "group" | "array", "attributes", "error":
 * text or null, and for arrays: "shape", "dims" (null where unnamed), "dtype", "numpy_dtype", "decoded_dtype" (after CF
 * decoding), "chunks" (the largest where "rectilinear" is true), "shards" (or null), "codecs": text, "fill_value",
 * "bytes": decoded (null for strings), "n_chunks"}]}, in order of path. Free with hr_free. */
HR_API int hr_archive_json(struct hr_archive *a, char **json, struct hr_error *e);
/* One of those nodes, an array looked up by name: also in a store that cannot list, and without reading all the others.
 * HR_ENOENT names near matches. Free with hr_free. */
HR_API int hr_archive_array_json(struct hr_archive *a, const char *array, char **json,
                                 struct hr_error *e);

/* Read a region of one array through the same decoders: start, count, step per dimension (step ≠ 0); ndim 0 and NULL
 * for the whole array. dtype HR_NONE and decode 0: stored numbers, little-endian, C order. decode 1: CF packing decoded,
 * in `dtype` (HR_NONE: as xarray would choose). Strings: items joined by NUL. *data: hr_free; *n: bytes. */
HR_API int hr_archive_read(struct hr_archive *a, const char *array, int ndim, const int64_t *start,
                           const int64_t *count, const int64_t *step, enum hr_dtype dtype,
                           int decode, void **data, size_t *n, struct hr_error *e);

/* The same, whole, to a file descriptor, chunk row by chunk row in bounded memory. The one string of a 0-d array is
 * written as numpy would hold it, in UTF-32. */
HR_API int hr_archive_cat(struct hr_archive *a, const char *array, enum hr_dtype dtype, int decode,
                          int fd, struct hr_error *e);

/* ---- objects as they lie ------------------------------------------------------------------------------------- */

/* Bytes of what is no array: files beside and around archives, at any path or URL that hr_open takes. Reads are made from
 * any thread, each blocks its own; large objects come in parts, and what fails is tried again, as for chunks. In a forked
 * child: HR_EFORK. */
struct hr_objects;
HR_API int hr_objects_open(const char *url, const char *options, struct hr_objects **out,
                           struct hr_error *e);
HR_API void hr_objects_unref(struct hr_objects *o);

struct hr_object {
    void *data;    /* where the bytes go; NULL: to memory of the library's own (hr_free) */
    uint64_t n;    /* how many fit there; afterwards: how many came */
    uint64_t size; /* of the whole object; 0: not known */
    uint64_t
        version; /* tells it from what lies there at another time: of its ETag, else its date; 0: not known */
};
/* `length` bytes from `offset` on, the last -offset (all, if it is shorter) where offset < 0, the whole where both are 0.
 * 1; 0: there is no such object. A place of the caller's that is too small is HR_EINVAL. Ranges of one object that was
 * replaced meanwhile are HR_EDATA, where its versions can be told apart. */
HR_API int hr_objects_read(struct hr_objects *o, const char *key, int64_t offset, uint64_t length,
                           struct hr_object *out, struct hr_error *e);
/* What lies directly below `prefix` ("": the root): names, each ended by a NUL, folders by "/" and a NUL, in *names
 * (hr_free), *n bytes. HR_EUNSUPPORTED where the store cannot list. */
HR_API int hr_objects_list(struct hr_objects *o, const char *prefix, char **names, size_t *n,
                           struct hr_error *e);

/* ---- a store of the caller's own ----------------------------------------------------------------------------- */

/* For archives that no URL leads to: the library leaves tasks, the caller takes and answers them, on any thread and in
 * any order. One hr_store serves one archive (and its loaders).
 *
 *     wake() ─► hr_store_take ─► … the caller reads … ─► hr_store_answer | _missing | _fail ─► hr_store_take …
 */
struct hr_store;

enum hr_task_kind {
    HR_TASK_READ =
        1, /* bytes of object `key`: `length` from `offset` on, all of it where both are 0, or the last
                         -offset (all, if it is shorter) where offset < 0 */
    HR_TASK_LIST, /* names directly below `key` ("": the root), each ended by a NUL, folders by "/" and a NUL */
    HR_TASK_CANCEL /* nobody waits for `id` any more; it is to be answered all the same, with anything, when its work
                         has ended, and counts as under way until then */
};
struct hr_task {
    int kind; /* enum hr_task_kind */
    uint64_t id;
    const char *key; /* until the task is answered */
    int64_t offset;
    uint64_t length;
};
struct hr_store_options {
    size_t size;         /* sizeof(struct hr_store_options): set by HR_STORE_OPTIONS */
    const char *url;     /* how messages call the store; copied. No secrets */
    int64_t concurrency; /* tasks taken and not answered, at most; 0: 64 */
    /* There are tasks to take, or the archive is closed. On any thread; it must not block or call this library. Called
     * once until the next hr_store_take. */
    void (*wake)(void *arg);
    /* NULL, or asked every ~50 ms by threads that wait for a read in hr_open_store or hr_archive_*; nonzero ends the wait
     * with HR_ECANCELED. */
    int (*interrupted)(void *arg);
    void (*release)(void *arg); /* NULL, or called after the last use of `arg`, on any thread */
    void *arg;
};
#define HR_STORE_OPTIONS                                                                           \
    {                                                                                              \
        .size = sizeof(struct hr_store_options)                                                    \
    }

/* On failure `release` is not called. */
HR_API int hr_store_new(const struct hr_store_options *o, struct hr_store **out,
                        struct hr_error *e);
/* Fails what is and what will be asked with HR_ECLOSED. Idempotent. */
HR_API void hr_store_close(struct hr_store *s);
HR_API void hr_store_unref(struct hr_store *s); /* closes too; the archive may outlive it */

/* As hr_open. While it runs another thread has to answer. Once per hr_store. */
HR_API int hr_open_store(struct hr_store *s, struct hr_archive **out, struct hr_error *e);

/* Up to n tasks: their number; 0 when there are none now; HR_ECLOSED when the archive and its loaders are closed, so that
 * there will be none. Take again after answering: more may fit `concurrency`. */
HR_API int hr_store_take(struct hr_store *s, struct hr_task *tasks, int n);
/* Each task is answered once; unknown ids are ignored. The data is copied. A wrong byte count becomes an error here. */
HR_API void hr_store_answer(struct hr_store *s, uint64_t id, const void *data, uint64_t size);
HR_API void hr_store_missing(struct hr_store *s, uint64_t id); /* there is no such object */
/* code: HR_ESTORE as a rule; HR_EUNSUPPORTED for HR_TASK_LIST where the store cannot list. */
HR_API void hr_store_fail(struct hr_store *s, uint64_t id, int code, int retryable,
                          const char *why);

/* ---- samples: what one sample is ---------------------------------------------------------------------------- */

struct hr_samples;

/* Samples run over dimension `along`, a role given by the user; NULL: over the axes that the next calls add. Build with the
 * calls below, then derive or open loaders; the first such use freezes it (later building calls are HR_ESTATE). */
HR_API int hr_samples_new(struct hr_archive *a, const char *along, struct hr_samples **out,
                          struct hr_error *e);
HR_API struct hr_samples *hr_samples_ref(struct hr_samples *s);
HR_API void hr_samples_unref(struct hr_samples *s);

/* Further sample axes, before the first view; at most 8 in all. Samples are their product; an id is row-major over the
 * positions of all axes, in the order they were added. What an array has no dimension of, it does not depend on.
 *     along    each position of dimension `dim`
 *     patch    boxes of `size` every `stride` positions. edge: what becomes of the last ones where they do not come out
 *              even; HR_EDGE_NONE: they have to
 *     crop     boxes of `size` at a place drawn by (seed, epoch, sample); `parts` even parts of the axis, one sample in
 *              each (1: one anywhere)
 *     draws    `n` samples of what the other axes make; crops are drawn for each of them
 * Sizes are in positions of the finest array along the axis: see hr_view_scale. */
enum hr_edge {
    HR_EDGE_NONE = 0,
    HR_EDGE_VALID,   /* what is left over belongs to no sample */
    HR_EDGE_PAD,     /* a constant: hr_samples_pad, by default what a missing chunk is */
    HR_EDGE_REFLECT, /* mirrored at the first and last element, which are not repeated */
    HR_EDGE_CLIP     /* the last box is moved inside */
};
HR_API int hr_samples_along(struct hr_samples *s, const char *dim, struct hr_error *e);
HR_API int hr_samples_patch(struct hr_samples *s, const char *dim, int64_t size, int64_t stride,
                            int edge, struct hr_error *e);
HR_API int hr_samples_crop(struct hr_samples *s, const char *dim, int64_t size, int64_t parts,
                           struct hr_error *e);
HR_API int hr_samples_draws(struct hr_samples *s, const char *name, int64_t n, struct hr_error *e);
/* What HR_EDGE_PAD puts outside along `dim`, in units of the tensors, after all transforms. Where a view pads along several
 * axes, one value is for all; two that differ are refused. */
HR_API int hr_samples_pad(struct hr_samples *s, const char *dim, double value, struct hr_error *e);

/* Add view `name` of one or more arrays. Several arrays need `stack`, the name of the new dimension they are stacked on
 * (its place: after the steps of the sample axis). */
HR_API int hr_samples_view(struct hr_samples *s, const char *name, const char *const *arrays,
                           int n_arrays, const char *stack, struct hr_error *e);
/* A view that is the same for all samples: fetched once, in every row of a batch. */
HR_API int hr_samples_constant(struct hr_samples *s, const char *name, const char *const *arrays,
                               int n_arrays, const char *stack, struct hr_error *e);
/* On a sample axis: the steps first…last (inclusive) around the sample; one step drops the dimension. A view without
 * this call takes step 0. hr_view_window(n) = the n steps ending at the sample, dimension kept. Steps of a patch or crop
 * count from where it begins: 0 … size - 1 without this call. */
HR_API int hr_view_steps(struct hr_samples *s, const char *view, const char *dim, int64_t first,
                         int64_t last, struct hr_error *e);
/* … only every step-th: first, first + step, …, last. */
HR_API int hr_view_steps_every(struct hr_samples *s, const char *view, const char *dim,
                               int64_t first, int64_t last, int64_t step, struct hr_error *e);
/* The view's arrays are coarser along a sample axis: `scale` / `scale_of` positions of the axis are one of theirs (a label
 * at half the resolution: 2 / 1; daily fields beside hourly ones: 24 / 1). Before steps. A patch's size, its stride and the
 * places of crops are multiples of it, so that all views show the same region. */
HR_API int hr_view_scale(struct hr_samples *s, const char *view, const char *dim, int64_t scale,
                         int64_t scale_of, struct hr_error *e);
HR_API int hr_view_window(struct hr_samples *s, const char *view, const char *dim, int64_t n,
                          struct hr_error *e);
/* The view's arrays are of another archive (hr_archive_combine), and `dim` of them is found by the values of its coordinate:
 * `tolerance` NULL: those equal to the coordinate of sample axis `axis` (NULL: the one called `dim`); else the nearest at most
 * so far off ("3h"; a number). Positions without a counterpart are no samples (left 0), or NaN in the view (left 1). Before
 * steps, which count in the array's own positions. Resolved when the samples are first used. */
HR_API int hr_view_join(struct hr_samples *s, const char *view, const char *dim, const char *axis,
                        int left, const char *tolerance, struct hr_error *e);
/* By coordinate: the step `duration` ("6h", "-1D", "30min", or a plain number in the coordinate's unit) *before* the
 * sample. Where the coordinate is not uniformly spaced it has to be sorted, and is looked into: positions without a value
 * there are no samples. hr_view_lag_near: or the nearest value at most `tolerance` (NULL: 0) off, of two the greater. */
HR_API int hr_view_lag(struct hr_samples *s, const char *view, const char *dim,
                       const char *duration, struct hr_error *e);
HR_API int hr_view_lag_near(struct hr_samples *s, const char *view, const char *dim,
                            const char *duration, const char *tolerance, struct hr_error *e);
/* Positions whose steps (with what lies between them and the sample) run over a gap of the coordinate are no samples. most:
 * "drop": a gap is what is off the usual distance of neighbours (the median) by more than half; else the largest distance
 * that is none ("6h"; a number). Before hr_view_steps or hr_view_window; without this call steps run over gaps. */
HR_API int hr_view_gaps(struct hr_samples *s, const char *view, const char *dim, const char *most,
                        struct hr_error *e);
/* Elsewhere, by index: one index (drops the dimension), a slice (Python rules, step > 0), or a list. */
HR_API int hr_view_isel(struct hr_samples *s, const char *view, const char *dim, int64_t index,
                        struct hr_error *e);
HR_API int hr_view_isel_slice(struct hr_samples *s, const char *view, const char *dim,
                              int has_start, int64_t start, int has_stop, int64_t stop,
                              int64_t step, struct hr_error *e);
HR_API int hr_view_isel_list(struct hr_samples *s, const char *view, const char *dim,
                             const int64_t *index, int n, struct hr_error *e);
/* By label, as xarray's .sel: `labels` is JSON, a scalar, a list, or {"start": …, "stop": …, "step": …} (inclusive).
 * Numbers match numeric coordinates exactly; strings match string coordinates or ISO 8601 times and their prefixes. */
HR_API int hr_view_sel(struct hr_samples *s, const char *view, const char *dim, const char *labels,
                       struct hr_error *e);
HR_API int hr_view_dtype(struct hr_samples *s, const char *view, enum hr_dtype t,
                         struct hr_error *e);
HR_API int hr_view_decode(struct hr_samples *s, const char *view, int decode,
                          struct hr_error *e); /* default 1 */

/* What happens to a view's values after decoding, in this order whatever the order of the calls: affine, log1p, clip,
 * normalise, NaN, cast. It is computed in double and rounded once to the tensor's type, which is a float: where none is
 * asked for, the decoded type, or for integers float32 (up to 16 bits) or float64. docs/transforms.md. */
HR_API int hr_view_affine(struct hr_samples *s, const char *view, double scale, double offset,
                          struct hr_error *e); /* value · scale + offset */
HR_API int hr_view_log1p(struct hr_samples *s, const char *view, struct hr_error *e);
HR_API int hr_view_clip(struct hr_samples *s, const char *view, double low, double high,
                        struct hr_error *e); /* infinite: no limit */
/* (value - mean) / std. Both are arrays of `shape` in C order (ndim 0: one number each), copied. dims: the names of their
 * dimensions; NULL: one-dimensional ones run along the stack, or a dimension called channel, c, band or variable, where the
 * length fits, and all others are broadcast against the tensor without its samples as in numpy. */
HR_API int hr_view_normalize(struct hr_samples *s, const char *view, const double *mean,
                             const double *std, int ndim, const int64_t *shape,
                             const char *const *dims, struct hr_error *e);
HR_API int
hr_view_nan(struct hr_samples *s, const char *view, double value,
            struct hr_error *e); /* what NaN becomes, in units of the result; NaN: keep */
/* A second view `name` of type bool: 1 where the view has a value, 0 where it is NaN (before hr_view_nan). */
HR_API int hr_view_mask(struct hr_samples *s, const char *view, const char *name,
                        struct hr_error *e);
/* The order of the tensor's dimensions after the sample: "channels_first" or "channels_last"; or all of them by name. No
 * extra pass. */
HR_API int hr_view_layout(struct hr_samples *s, const char *view, const char *layout,
                          struct hr_error *e);
HR_API int hr_view_order(struct hr_samples *s, const char *view, const char *const *dims, int n,
                         struct hr_error *e);

/* ---- single cells: rows of sparse matrices ------------------------------------------------------------------- */

/* A view over the rows of a sparse matrix (CSR: AnnData's csr_matrix, SCDL): sample i is row i. Samples have one axis, step
 * by step. The matrix is one part, or several, one behind the other: the chunk directories of SCDL, the data sets of a union
 * (hr_archive_combine). Rows are read in runs of neighbours; see docs/cells.md. */
struct hr_matrix {
    /* Paths of three arrays of one dimension; of dense rows `data` alone, of two, whose zeros are as if not stored */
    const char *indptr, *indices, *data;
    int64_t columns; /* ids in `indices` are below */
    int64_t set;     /* which of the data sets it belongs to, from 0 */
};
/* How the columns of a data set map to those of the view: n numbers, -1: left out. NULL: as they are. */
struct hr_columns {
    const int32_t *to;
    int64_t n;
};
enum hr_cells_form {
    HR_CELLS_CSR, /* tensors <view>.data, <view>.indices (one an item), <view>.indptr (rows + 1) */
    HR_CELLS_DENSE,  /* <view>: (rows, columns) */
    HR_CELLS_PADDED, /* <view>.genes, <view>.values, <view>.mask: (rows, length) each */
    HR_CELLS_RANKED  /* <view>.tokens, <view>.mask: (rows, length), by falling value */
};
enum hr_cells_pick {
    HR_PICK_FIRST,  /* of a row with more than fit: the first ones by column, … */
    HR_PICK_TOP,    /* … those with the largest values, … */
    HR_PICK_RANDOM, /* … a draw by (seed, epoch, row), … */
    HR_PICK_WEIGHTED /* … or such a draw by value: the first with a chance in proportion, and so on */
};
struct hr_cells_options {
    size_t size; /* sizeof(struct hr_cells_options): set by HR_CELLS_OPTIONS */
    int form;
    int dtype; /* of values; HR_NONE: as stored, float32 where something is done to them */
    int index_dtype; /* HR_I32 or HR_I64, of columns, offsets and tokens; HR_NONE: HR_I32, of tokens HR_I64 */
    int64_t columns; /* of the view; 0: those of the matrix */
    double
        total; /* values are scaled to this sum of their row; 0: not. Over all columns of the row, … */
    int total_selected;    /* … or only those that are kept */
    int log1p;             /* then log(1 + value) */
    const float *factors;  /* … divided by this, one a column; 0 or NaN leave it out; NULL: not */
    int64_t bins;          /* … as one of so many quantiles of the row's own values; 0: not */
    int64_t length;        /* padded, ranked: with special tokens */
    int pick;              /* padded */
    const int64_t *tokens; /* what stands for each column, -1: leaves it out; NULL: its number */
    int64_t pad, first, last; /* tokens where there is no gene; before and after the genes, if … */
    int has_first, has_last;
    double pad_value, special_value; /* padded: the values there */
    int64_t row_chunk;               /* rows that are read together; 0: chosen */
    const char *items,
        *values; /* padded: what the first two tensors are called; NULL: "genes" and "values" */
    /* Bytes of indptr, 8 a row, that are read when the view is made, at most; of more it is read along the way. 0: 16 MiB,
     * below 0: none. */
    int64_t read_offsets;
};
#define HR_CELLS_OPTIONS                                                                           \
    {                                                                                              \
        .size = sizeof(struct hr_cells_options)                                                    \
    }
/* `sets`: one for each data set, NULL: all as they are. Everything is copied. Reads where rows begin, where that is little. */
HR_API int hr_samples_cells(struct hr_samples *s, const char *view, const struct hr_matrix *parts,
                            int n_parts, const struct hr_columns *sets, int n_sets,
                            const struct hr_cells_options *o, struct hr_error *e);
/* A tensor out of memory: `data` holds, for each of n positions of the sample axis (of the product of several axes,
 * row-major), `items` numbers of type t; copied. Of what is added before the first sel, split or loader. */
HR_API int hr_samples_table(struct hr_samples *s, const char *name, enum hr_dtype t,
                            const void *data, int64_t n, int64_t items, struct hr_error *e);
/* Memory of the caller's that is used where it lies: it stays as it is until done(arg) is called, once, by whatever thread
 * lets go of it last, which must not wait there. A call that fails has not taken it. */
struct hr_lent {
    void (*done)(void *arg);
    void *arg;
};
/* The same, of numbers that are lent (their address is a multiple of their size). */
HR_API int hr_samples_table_lent(struct hr_samples *s, const char *name, enum hr_dtype t,
                                 const void *data, int64_t n, int64_t items,
                                 const struct hr_lent *lent, struct hr_error *e);

/* Sentences: samples of several cells each, after all views and tables have been added by cell (what is added afterwards is
 * by sentence). In order of their numbers, sentences begin[k] … begin[k + 1] - 1 belong to pool k, whose cells are
 * cells.cells[first[k] … first[k] + size[k] - 1], ascending. In each epoch they share the pool out, in an order keyed by
 * (seed, epoch, pool): a cell comes twice only where there are too few. Pools are to be numbered by their middle cell.
 * Tensors of views and tables get a second dimension, `members` long (rows of CSR: one cell after another), and there is a
 * table "cells" (int64) of their numbers. With controls (members above 0) there is "control.<name>" of each: cells drawn by
 * (seed, epoch, sentence) from the sentence's pool of these, none twice where there are enough. */
struct hr_pools {
    int64_t members; /* cells of a sentence */
    const int64_t *first, *size;
    const uint32_t *cells;
    int64_t n_cells;
    struct hr_lent lent; /* `cells` are, and not copied; done NULL: they are copied */
};
struct hr_sentences {
    size_t size;          /* sizeof(struct hr_sentences): set by HR_SENTENCES */
    const char *axis;     /* what their axis is called */
    const int64_t *begin; /* n_pools + 1 */
    int64_t n_pools;
    struct hr_pools cells, controls;
    uint64_t seed;
    int64_t block; /* blocks have a multiple of so many row chunks; 0: chosen */
};
#define HR_SENTENCES                                                                               \
    {                                                                                              \
        .size = sizeof(struct hr_sentences), .axis = "sentence"                                    \
    }
/* Everything else is copied. */
HR_API int hr_samples_sentences(struct hr_samples *s, const struct hr_sentences *o,
                                struct hr_error *e);
/* Where the chunks of a view begin along its sample axis, and where the last one ends: *n numbers, of which `most` at most are
 * written. While samples are built. */
HR_API int hr_samples_row_chunks(struct hr_samples *s, const char *view, int64_t *edges,
                                 int64_t most, int64_t *n, struct hr_error *e);

/* Groups of samples along one axis: the integer at position i is the number of its group, from 0 on; others are in none. */
struct hr_codes {
    enum hr_dtype t; /* of 8 to 64 bits */
    const void *code;
    int64_t n;
};
/* How many samples each of n_groups has. */
HR_API int hr_samples_count_codes(struct hr_samples *s, const struct hr_codes *codes,
                                  int64_t n_groups, int64_t *sizes, struct hr_error *e);
/* Their ids by group, ascending in each, one group behind another: `sizes` as they were counted, ids the sum of them long.
 * A counting sort: one pass, and no memory but 8 bytes a group. */
HR_API int hr_samples_sort_codes(struct hr_samples *s, const struct hr_codes *codes,
                                 int64_t n_groups, const int64_t *sizes, uint32_t *ids,
                                 struct hr_error *e);
/* Ids in that order, cut into pools of sentences of `members`, at the least for two where a group has two: where windows
 * (that begin at window[0], window[1], …, ascending) begin, moved to the nearest second sentence. What a group has beyond
 * whole sentences is in its last pool; repeat != 0: makes a sentence of its own. *n_pools are there, of which `most` at
 * most are written: their first cell in `ids`, their size, their sentences, their group. */
struct hr_cut {
    const uint32_t *ids;
    const int64_t *sizes;
    int64_t n_groups, members;
    const int64_t *window;
    int64_t n_windows;
    int repeat;
};
HR_API int hr_pools_cut(const struct hr_cut *c, int64_t most, int64_t *first, int64_t *size,
                        int64_t *count, int64_t *group, int64_t *n_pools, struct hr_error *e);

/* Derive: keep the samples whose own position on the first axis lies in the slice / whose coordinate there fits `labels` (as
 * hr_view_sel). */
HR_API int hr_samples_isel_slice(struct hr_samples *s, int has_start, int64_t start, int has_stop,
                                 int64_t stop, int64_t step, struct hr_samples **out,
                                 struct hr_error *e);
HR_API int hr_samples_sel(struct hr_samples *s, const char *labels, struct hr_samples **out,
                          struct hr_error *e);
/* … on the axis called `dim`; positions is a list of n, in any order. */
HR_API int hr_samples_axis_slice(struct hr_samples *s, const char *dim, int has_start,
                                 int64_t start, int has_stop, int64_t stop, int64_t step,
                                 struct hr_samples **out, struct hr_error *e);
HR_API int hr_samples_axis_sel(struct hr_samples *s, const char *dim, const char *labels,
                               struct hr_samples **out, struct hr_error *e);
HR_API int hr_samples_axis_take(struct hr_samples *s, const char *dim, const int64_t *positions,
                                int64_t n, struct hr_samples **out, struct hr_error *e);
/* … where the byte of the position in `mask` is not 0; n is the number of positions of the axis. */
HR_API int hr_samples_axis_where(struct hr_samples *s, const char *dim, const uint8_t *mask,
                                 int64_t n, struct hr_samples **out, struct hr_error *e);
/* Cut into n contiguous runs of the first axis in archive order, at block borders nearest the fractions (which add up to
 * ≤ 1). gap: positions dropped between runs; -1 drops the fewest such that no two runs' boxes share a row. */
HR_API int hr_samples_split(struct hr_samples *s, const double *fractions, int n, int64_t gap,
                            struct hr_samples **out, struct hr_error *e);

/* … by groups that stay whole: group[i] is that of position i of the sample axis, n_group its length. Sizes end within the
 * largest group of the fractions; which group goes where is keyed by `seed`. gap as in hr_samples_apart; 0: none. The part
 * named earlier gives way. */
HR_API int hr_samples_split_groups(struct hr_samples *s, const int64_t *group, int64_t n_group,
                                   const double *fractions, int n, uint64_t seed, int64_t gap,
                                   struct hr_samples **out, struct hr_error *e);
/* … by n_blocks runs of about equal length, dealt in turn; keyed != 0: in an order keyed by `seed`. */
HR_API int hr_samples_split_blocks(struct hr_samples *s, int n_blocks, const double *fractions,
                                   int n, int keyed, uint64_t seed, int64_t gap,
                                   struct hr_samples **out, struct hr_error *e);
/* The same along the axis called `dim` (NULL: the first; groups: one for each id). */
HR_API int hr_samples_axis_split(struct hr_samples *s, const char *dim, const double *fractions,
                                 int n, int64_t gap, struct hr_samples **out, struct hr_error *e);
HR_API int hr_samples_axis_split_groups(struct hr_samples *s, const char *dim, const int64_t *group,
                                        int64_t n_group, const double *fractions, int n,
                                        uint64_t seed, int64_t gap, struct hr_samples **out,
                                        struct hr_error *e);
/* … where groups are integers of any size, each value one of its own, also those below 0. */
HR_API int hr_samples_axis_split_codes(struct hr_samples *s, const char *dim,
                                       const struct hr_codes *codes, const double *fractions, int n,
                                       uint64_t seed, int64_t gap, struct hr_samples **out,
                                       struct hr_error *e);
HR_API int hr_samples_axis_split_blocks(struct hr_samples *s, const char *dim, int n_blocks,
                                        const double *fractions, int n, int keyed, uint64_t seed,
                                        int64_t gap, struct hr_samples **out, struct hr_error *e);

/* Keep the samples whose byte in `mask` is not 0 (one for each of the n ids there are) / whose id is listed, in any order.
 * Kept as bits: 12.5 MB for 10^8 ids. */
HR_API int hr_samples_where(struct hr_samples *s, const uint8_t *mask, int64_t n,
                            struct hr_samples **out, struct hr_error *e);
HR_API int hr_samples_take(struct hr_samples *s, const int64_t *ids, int64_t n,
                           struct hr_samples **out, struct hr_error *e);
/* Samples in both, in either, in a but not in b; both derived from one description. */
enum hr_set { HR_SET_AND = 0, HR_SET_OR, HR_SET_WITHOUT };
HR_API int hr_samples_combine(struct hr_samples *a, struct hr_samples *b, int how,
                              struct hr_samples **out, struct hr_error *e);
/* Drop from s the samples at most `gap` positions away from one of `other` along every axis; -1: those whose boxes share a
 * row with one, or along several axes, whose boxes meet one in some array. */
HR_API int hr_samples_apart(struct hr_samples *s, struct hr_samples *other, int64_t gap,
                            struct hr_samples **out, struct hr_error *e);
/* What two sets of samples have in common. */
struct hr_shared {
    int64_t samples;
    int64_t
        rows; /* along the sample axis, taken by boxes of both, summed over arrays; along several axes: samples of
                       a whose boxes meet one of b's */
    int64_t chunks; /* read by both */
};
HR_API int hr_samples_shared(struct hr_samples *a, struct hr_samples *b, struct hr_shared *out,
                             struct hr_error *e);
/* Steps of the first sample axis that `duration` ("6h", "30D", or a number in the coordinate's unit) is. Uniform spacing is
 * checked. */
HR_API int hr_samples_steps(struct hr_samples *s, const char *duration, int64_t *steps,
                            struct hr_error *e);
HR_API int hr_samples_axis_steps(struct hr_samples *s, const char *dim, const char *duration,
                                 int64_t *steps, struct hr_error *e);

HR_API int hr_samples_count(struct hr_samples *s, int64_t *n, struct hr_error *e);
HR_API int hr_samples_ids(struct hr_samples *s, int64_t first, int64_t n, int64_t *ids,
                          struct hr_error *e);
/* The indices along its array that dimension `dim` (of length n) of the tensor of view number `view` shows; for the steps of
 * the sample axis: relative to the sample. */
HR_API int hr_samples_index(struct hr_samples *s, int view, const char *dim, int64_t *index,
                            int64_t n, struct hr_error *e);
/* A 1-D array along the first sample axis that holds times (CF units, or datetime64), as microseconds since 1970-01-01 of its
 * calendar; n is the length of the axis; *calendar as CF has it. 1: done; 0: it holds no times. */
HR_API int hr_samples_times(struct hr_samples *s, const char *array, int64_t *us, int64_t n,
                            const char **calendar, struct hr_error *e);
/* {"along", "count", "first_id", "last_id", "views": [{"name", "arrays", "dims", "shape" (without the sample),
 * "dtype", "bytes"}]}. Free with hr_free. */
HR_API int hr_samples_json(struct hr_samples *s, char **json, struct hr_error *e);

/* ---- moments: what the values of a split come to ------------------------------------------------------------------- */

/* One pass over the samples in archive order: each chunk is read once, each value at the samples' own positions counts once
 * (windows and steps are left aside), after decoding and the view's affine, log1p and clip. NaN is no value. The result
 * does not depend on threads or memory. */
enum hr_by {
    HR_BY_ARRAY = 0, /* one number for each array of the stack */
    HR_BY_CHANNEL, /* … for each position along the stack, or a dimension called channel, c, band or variable */
    HR_BY_GRID /* … for each place of a sample */
};
struct hr_moments;
struct hr_moments_result { /* all of it belongs to the moments */
    int ndim;              /* of the arrays below, which hold `groups` numbers each */
    const int64_t *shape;
    const char *const *dims;
    int64_t groups;
    const double *count, *mean, *std, *min, *max; /* std: of the population; NaN where count is 0 */
};
/* view NULL: the first. memory: as for loaders. Reads no chunk. */
HR_API int hr_moments_open(struct hr_samples *s, const char *view, int by, uint64_t memory,
                           struct hr_moments **out, struct hr_error *e);
HR_API void hr_moments_free(struct hr_moments *m);
/* What identifies the result, but for where the archive lies and what its chunks hold: fingerprints. Free with hr_free. */
HR_API int hr_moments_key(struct hr_moments *m, char **key, struct hr_error *e);
/* Go on by some rows: 1; 0 when the pass is finished. *rows of *total are done. interrupted: as for hr_loader_poll. */
HR_API int hr_moments_step(struct hr_moments *m, int (*interrupted)(void *), void *arg,
                           int64_t *rows, int64_t *total, struct hr_error *e);
HR_API int hr_moments_result(struct hr_moments *m, struct hr_moments_result *out,
                             struct hr_error *e);

/* ---- loader ------------------------------------------------------------------------------------------------- */

enum hr_shuffle { HR_SHUFFLE_NONE = 0, HR_SHUFFLE_SPREAD = 1, HR_SHUFFLE_GLOBAL = 2 };
enum hr_remainder { HR_REMAINDER_DEFAULT = 0, HR_DROP, HR_PAD, HR_SHORT, HR_WRAP };
enum hr_missing { HR_MISSING_FILL = 0, HR_MISSING_NAN, HR_MISSING_ERROR };
enum hr_on_error { HR_ON_ERROR_RAISE = 0, HR_ON_ERROR_MASK };

/* Run by a worker on each complete batch before it is handed over: batches go out in order all the same, several may be
 * at work. data: the tensors, in the order of the views; index: sample ids. 0: fine; anything else fails the batch. It must
 * return: a worker waits for it, and it may still run shortly after hr_loader_close. */
typedef int (*hr_hook)(void *const *data, int64_t rows, const int64_t *index, int64_t epoch,
                       void *arg);

struct hr_loader_options {
    size_t size;          /* sizeof(struct hr_loader_options): set by HR_LOADER_OPTIONS */
    int64_t n;            /* rows per rank and batch, or … */
    int64_t global_batch; /* … rows over all ranks; exactly one of the two */
    int shuffle;          /* enum hr_shuffle */
    int remainder;        /* enum hr_remainder */
    uint64_t seed;
    uint64_t
        memory; /* budget in bytes; 0: min(25 % of what the process may use ÷ local ranks, 4 GiB) */
    int64_t spread;      /* k, blocks open at once over all streams; 0: 16, of cells up to 40 */
    int64_t block;       /* g, anchor chunk cells a block; 0: chosen from geometry */
    int64_t streams;     /* C; 0: world */
    int64_t rank, world; /* world 0: rank 0 of 1 */
    int missing;         /* enum hr_missing */
    int on_error;        /* enum hr_on_error */
    int dtype;           /* enum hr_dtype for views without their own; HR_NONE: as decoded */
    int64_t order;       /* order version; 0: newest */
    hr_hook hook;        /* NULL, or … */
    void *hook_arg;
    uint64_t
        explicit_set; /* bit i: field i was given by the caller (for loading a state); 0 is fine otherwise */
    /* How often each sample appears in an epoch, on average: one number from 0 on for each of n_positions positions of the
     * sample axis (of the product of several axes, row-major). All are copied when the loader opens. A fraction is a
     * chance, drawn anew in each epoch; rows of an epoch: the sum, rounded down. docs/weights.md. */
    const double *weights; /* one a position; or … */
    const uint16_t *
        classes; /* … the class of each position, and the weight of each of n_classes; all NULL: once */
    const double *class_weights;
    int64_t n_positions, n_classes;
    /* The bin (month, hour, label) of each position, below n_strata: with HR_SHUFFLE_SPREAD each batch gets close to the
     * split's share of every bin, from the blocks that are open. NULL: none. */
    const uint16_t *strata;
    int64_t n_strata;
};
#define HR_LOADER_OPTIONS                                                                          \
    {                                                                                              \
        .size = sizeof(struct hr_loader_options)                                                   \
    }
/* bits of explicit_set */
#define HR_SET_SEED      1u
#define HR_SET_SPREAD    2u
#define HR_SET_BLOCK     4u
#define HR_SET_STREAMS   8u
#define HR_SET_REMAINDER 16u
#define HR_SET_SHUFFLE   32u
#define HR_SET_ORDER     64u

struct hr_loader;
struct hr_batch;

/* Plans; reads no chunk before the first hr_loader_next. */
HR_API int hr_loader_open(struct hr_samples *s, const struct hr_loader_options *o,
                          struct hr_loader **out, struct hr_error *e);
/* The hook of a loader that has given out no batch yet; HR_ESTATE later. */
HR_API int hr_loader_hook(struct hr_loader *l, hr_hook hook, void *arg, struct hr_error *e);
HR_API struct hr_loader *hr_loader_ref(struct hr_loader *l);
HR_API void hr_loader_unref(struct hr_loader *l); /* closes at the last reference */
HR_API void hr_loader_close(struct hr_loader *l); /* idempotent, any thread, within 100 ms */

/* 1: *out is a batch (hr_batch_release it); 0: end of the epoch (the next call starts the next epoch); < 0: error.
 * timeout_ms < 0 waits for ever. `interrupted` of hr_loader_poll is asked every ~50 ms while waiting; nonzero returns
 * HR_ECANCELED (the loader stays usable). */
HR_API int hr_loader_next(struct hr_loader *l, int64_t timeout_ms, struct hr_batch **out,
                          struct hr_error *e);
HR_API int hr_loader_poll(struct hr_loader *l, int64_t timeout_ms, int (*interrupted)(void *),
                          void *arg, struct hr_batch **out, struct hr_error *e);
HR_API int hr_loader_steps(struct hr_loader *l, int64_t *steps,
                           struct hr_error *e); /* of a whole epoch */
HR_API int hr_loader_set_epoch(struct hr_loader *l, int64_t epoch,
                               struct hr_error *e); /* from its first batch */
HR_API int hr_loader_rewind(struct hr_loader *l,
                            struct hr_error *e); /* abandon the epoch: next call starts the next */

/* What the consumer has received, as ~220 bytes of JSON text; free with hr_free. Loading checks version and
 * fingerprints; allow_batch: the global batch may differ. */
HR_API int hr_loader_state(struct hr_loader *l, char **state, struct hr_error *e);
HR_API int hr_loader_load_state(struct hr_loader *l, const char *state, int allow_batch,
                                struct hr_error *e);

/* Which samples make up the global batches [step, step + n) of an epoch, by the plan alone: ids and validity of *rows rows, n times the
 * global batch at most (room for as many is needed), rank after rank. */
HR_API int hr_loader_order(struct hr_loader *l, int64_t epoch, int64_t step, int64_t n,
                           int64_t *ids, uint8_t *valid, int64_t *rows, struct hr_error *e);

/* JSON reports (docs/reports.md has the members); free with hr_free. The plan is made from geometry alone: no chunk is
 * fetched. */
HR_API int hr_loader_plan_json(struct hr_loader *l, char **json, struct hr_error *e);
HR_API int hr_loader_stats_json(struct hr_loader *l, char **json, struct hr_error *e);

/* ---- batch -------------------------------------------------------------------------------------------------- */

#define HR_MAX_DIMS 32
struct hr_tensor {
    const char *name; /* of the view */
    enum hr_dtype dtype;
    int ndim;
    const int64_t *shape; /* (sample, steps, stack, other dimensions in the array's order) */
    void *data;           /* C-contiguous, 256-byte aligned, writable */
    size_t bytes;
    const char *unit; /* datetime64, timedelta64: "ns", "10us", …; "" otherwise */
};

HR_API struct hr_batch *hr_batch_ref(struct hr_batch *b);
HR_API void hr_batch_release(struct hr_batch *b); /* any thread; also after the loader is closed */
HR_API int hr_batch_count(const struct hr_batch *b); /* tensors: one per view */
HR_API int hr_batch_tensor(const struct hr_batch *b, int i,
                           struct hr_tensor *out); /* 0, or HR_EINVAL */
HR_API int64_t hr_batch_rows(const struct hr_batch *b);
HR_API const int64_t *
hr_batch_index(const struct hr_batch *b); /* sample ids, hr_batch_rows of them */
/* Where crops lie: row-major over the axes like the ids, with the places of a crop axis instead of its positions; hr_batch_rows
 * of them. NULL without crops. */
HR_API const int64_t *hr_batch_places(const struct hr_batch *b);
HR_API const uint8_t *
hr_batch_valid(const struct hr_batch *b);               /* 0: padding, or masked by on_error */
HR_API int64_t hr_batch_step(const struct hr_batch *b); /* of the epoch, from 0 */
HR_API int64_t hr_batch_epoch(const struct hr_batch *b);
HR_API int64_t hr_batch_filled(const struct hr_batch *b); /* chunks that were missing and filled */

#ifdef __cplusplus
}
#endif
#endif
