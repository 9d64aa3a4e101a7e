/* The Python extension: argument checking, lifetimes and the GIL, over headrace.h alone. No algorithms.
 *
 * Limited API of 3.11, multi-phase init, heap types, no static objects: one binary for 3.11 and later, and the same
 * sources without the limited API for free-threaded builds. Python-level classes (of the headrace package) wrap the handles made
 * here; Batch and Tensor are handed to users as they are. */
#ifndef PYTHON_EXT_H
#define PYTHON_EXT_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>
#include "headrace.h"

struct ext_state {
    unsigned long ender; /* atomic: the thread that ends the interpreter; 0: nobody does */
    PyTypeObject *archive, *samples, *loader, *batch, *tensor, *store, *objects;
    PyObject *make_error; /* headrace._errors.make, fetched at the first error */
    PyObject *emit_log;   /* headrace._log.emit, fetched at the first line */
    struct ext_lent *
        *returned; /* atomic: buffers that the library has done with; it outlives the module */
};
struct ext_state *ext_state_of(PyObject *self); /* of any object of this module's types */

/* Set the Python exception for *e and return NULL. */
PyObject *ext_raise(struct ext_state *s, const struct hr_error *e);
/* The same for a code of headrace.h, or EXT_TYPE, and a text as PyUnicode_FromFormat makes it. */
PyObject *ext_fail(struct ext_state *s, int code, const char *format, ...);
#define EXT_TYPE 1 /* InvalidTypeError, which C has no use for */
/* For __reduce__: an InvalidTypeError that says what to send to another process instead. */
PyObject *ext_unpicklable(PyObject *self, const char *what, const char *instead);
/* Hand collected log lines to Python's logging. 0, or -1 with an exception set. */
int ext_drain_log(struct ext_state *s);
/* The interpreter is ending, and not by this thread: it must not be asked for the GIL any more, which may be gone. */
bool ext_ended(const struct ext_state *s);
/* Without the GIL. A daemon thread stays here for the moment until the process is gone. */
void ext_stay(const struct ext_state *s);
/* A statement that may take long, without the GIL. */
#define EXT_WAITS(s, statement)                                                                    \
    do {                                                                                           \
        struct ext_state *ext_s = (s);                                                             \
        Py_BEGIN_ALLOW_THREADS statement;                                                          \
        ext_stay(ext_s);                                                                           \
        Py_END_ALLOW_THREADS                                                                       \
    } while (0)
/* For whoever waits without the GIL: log lines are handed on and signal handlers run. Nonzero: an exception is set. `state`
 * is a struct ext_state. */
int ext_interrupted(void *state);
/* A JSON string of the library as str; frees it. */
PyObject *ext_take_string(char *text);

extern PyType_Spec ext_archive_spec, ext_samples_spec, ext_loader_spec, ext_batch_spec,
    ext_tensor_spec, ext_store_spec, ext_objects_spec;

PyObject *ext_store(PyObject *module, PyObject *args);   /* store(url, concurrency) */
PyObject *ext_objects(PyObject *module, PyObject *args); /* objects(url, options) */
PyObject *ext_archive_new(struct ext_state *s,
                          struct hr_archive *a); /* these take over the reference */
PyObject *ext_samples_new(struct ext_state *s, struct hr_samples *x);
PyObject *ext_loader_new(struct ext_state *s, struct hr_loader *l);
struct hr_samples *ext_samples_of(PyObject *self);
struct hr_archive *ext_archive_of(struct ext_state *s, PyObject *x); /* NULL: x is none; raises */
PyObject *ext_concat(PyObject *module, PyObject *args);              /* joined.c */
PyObject *ext_combine(PyObject *module, PyObject *args);
PyObject *ext_batch_new(struct ext_state *s, struct hr_batch *b);

/* A tensor over memory that `batch` (a new reference is taken) or, when NULL, `data` itself (hr_free'd at the end) owns.
 * shape has ndim entries and is copied. */
PyObject *ext_tensor_new(struct ext_state *s, struct hr_batch *batch, void *data,
                         enum hr_dtype dtype, size_t item, const char *name, const char *unit,
                         int ndim, const int64_t *shape);

/* A whole number or None: has, value; -1 with an exception set. */
int ext_optional_int(PyObject *x, int *has, int64_t *value);

/* sampling.c: (weights, classes, weights of classes, bins: buffers or None; number of bins) → *o. What the options point to lives until
 * ext_sampling_done, which is to follow, also on failure (-1 with an exception set). */
#define EXT_SAMPLING 4
struct ext_sampling {
    Py_buffer buffer[EXT_SAMPLING];
};
int ext_sampling(PyObject *self, PyObject *given, struct hr_loader_options *o,
                 struct ext_sampling *s);
void ext_sampling_done(struct ext_sampling *s);
PyObject *ext_loader_order(struct ext_state *s, struct hr_loader *l, PyObject *args);

/* Methods of SamplesHandle that live in transform.c. */
PyObject *ext_view_affine(PyObject *self, PyObject *args);
PyObject *ext_view_log1p(PyObject *self, PyObject *args);
PyObject *ext_view_clip(PyObject *self, PyObject *args);
PyObject *ext_view_normalize(PyObject *self, PyObject *args);
PyObject *ext_view_nan(PyObject *self, PyObject *args);
PyObject *ext_view_mask(PyObject *self, PyObject *args);
PyObject *ext_view_layout(PyObject *self, PyObject *args);
PyObject *ext_view_order(PyObject *self, PyObject *args);
/* … in axes.c */
PyObject *ext_samples_along(PyObject *self, PyObject *args);
PyObject *ext_samples_patch(PyObject *self, PyObject *args);
PyObject *ext_samples_crop(PyObject *self, PyObject *args);
PyObject *ext_samples_draws(PyObject *self, PyObject *args);
PyObject *ext_samples_pad(PyObject *self, PyObject *args);
PyObject *ext_view_scale(PyObject *self, PyObject *args);
PyObject *ext_view_join(PyObject *self, PyObject *args);
/* … in cells.c */
PyObject *ext_samples_cells(PyObject *self, PyObject *args);
PyObject *ext_samples_table(PyObject *self, PyObject *args);
/* … in sentences.c */
PyObject *ext_samples_sentences(PyObject *self, PyObject *args);
PyObject *ext_samples_count_codes(PyObject *self, PyObject *args);
PyObject *ext_samples_sort_codes(PyObject *self, PyObject *args);
PyObject *ext_pools_cut(PyObject *module, PyObject *args);
/* lent.c: a buffer that the library uses where it lies. 0; -1 with an exception set. ext_lent_back: it was not taken. */
int ext_lend(struct ext_state *s, PyObject *x, Py_buffer *seen, struct hr_lent *out);
void ext_lent_back(const struct hr_lent *lent);
/* Buffers that the library has done with are let go of. With the GIL, whenever something may have ended. */
void ext_lent_drain(struct ext_state *s);
PyObject *ext_samples_row_chunks(PyObject *self, PyObject *args);
/* … in derive.c */
PyObject *ext_samples_keep(PyObject *self, PyObject *args);
PyObject *ext_samples_keep_labels(PyObject *self, PyObject *args);
PyObject *ext_samples_split(PyObject *self, PyObject *args);
PyObject *ext_samples_split_blocks(PyObject *self, PyObject *args);
PyObject *ext_samples_split_groups(PyObject *self, PyObject *args);
PyObject *ext_samples_where(PyObject *self, PyObject *args);
PyObject *ext_samples_take(PyObject *self, PyObject *args);
PyObject *ext_samples_combine(PyObject *self, PyObject *args);
PyObject *ext_samples_apart(PyObject *self, PyObject *args);
PyObject *ext_samples_duration(PyObject *self, PyObject *args);
PyObject *ext_samples_shared(PyObject *self, PyObject *other);
PyObject *ext_moments(PyObject *self, PyObject *args); /* moments.c */
PyObject *ext_moments_key(PyObject *self, PyObject *args);

#endif
