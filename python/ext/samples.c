/* SamplesHandle: building calls and derivations, one to one over hr_samples_* and hr_view_*. headrace.Samples wraps it. */
#include "ext.h"
#include <stdlib.h>

struct samples_object {
    PyObject_HEAD struct hr_samples *samples;
};

PyObject *ext_samples_new(struct ext_state *s, struct hr_samples *x)
{
    ext_lent_drain(s);
    struct samples_object *self = PyObject_New(struct samples_object, s->samples);
    if (self)
        self->samples = x;
    else
        hr_samples_unref(x);
    return (PyObject *)self;
}

static void samples_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct ext_state *state = ext_state_of(self);
    hr_samples_unref(((struct samples_object *)self)->samples);
    ext_lent_drain(state);
    PyObject_Free(self);
    Py_DECREF(type);
}

static struct hr_samples *of(PyObject *self)
{
    return ((struct samples_object *)self)->samples;
}

struct hr_samples *ext_samples_of(PyObject *self)
{
    return of(self);
}

static PyObject *done(PyObject *self, int rc, const struct hr_error *e)
{
    if (rc < 0)
        return ext_raise(ext_state_of(self), e);
    Py_RETURN_NONE;
}

static PyObject *samples_view(PyObject *self, PyObject *args)
{
    const char *name, *stack, *arrays[4096];
    PyObject *list;
    struct hr_error e = {0};
    int rc, constant = 0;
    if (!PyArg_ParseTuple(args, "sOz|p:view", &name, &list, &stack, &constant))
        return NULL;
    Py_ssize_t n = PySequence_Size(list);
    if (n < 0 || n > 4096)
        return n < 0 ? NULL
                     : ext_fail(ext_state_of(self), HR_EINVAL, "a view of more than 4096 arrays");
    PyObject *fixed = PySequence_Tuple(list); /* keeps the texts alive */
    for (Py_ssize_t i = 0; fixed && i < n; i++) {
        PyObject *item = PyTuple_GetItem(fixed, i);
        arrays[i] = item && PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
        if (!arrays[i]) {
            if (!PyErr_Occurred())
                ext_fail(ext_state_of(self), EXT_TYPE, "array names are str, not %R", item);
            Py_CLEAR(fixed);
        }
    }
    if (!fixed)
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = (constant ? hr_samples_constant : hr_samples_view)(
                                      of(self), name, arrays, (int)n, stack, &e));
    Py_DECREF(fixed);
    return done(self, rc, &e);
}

static PyObject *samples_steps(PyObject *self, PyObject *args)
{
    const char *view, *dim;
    long long first, last, step = 1;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ssLL|L:steps", &view, &dim, &first, &last, &step))
        return NULL;
    return done(self, hr_view_steps_every(of(self), view, dim, first, last, step, &e), &e);
}

static PyObject *samples_window(PyObject *self, PyObject *args)
{
    const char *view, *dim;
    long long n;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ssL:window", &view, &dim, &n))
        return NULL;
    return done(self, hr_view_window(of(self), view, dim, n, &e), &e);
}

static PyObject *samples_lag(PyObject *self, PyObject *args)
{
    const char *view, *dim, *duration, *tolerance = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "sss|z:lag", &view, &dim, &duration, &tolerance))
        return NULL;
    EXT_WAITS(ext_state_of(self),
              rc = hr_view_lag_near(of(self), view, dim, duration, tolerance, &e));
    return done(self, rc, &e);
}

static PyObject *samples_gaps(PyObject *self, PyObject *args)
{
    const char *view, *dim, *most;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sss:gaps", &view, &dim, &most))
        return NULL;
    return done(self, hr_view_gaps(of(self), view, dim, most, &e), &e);
}

static PyObject *samples_index(PyObject *self, PyObject *args)
{
    const char *view, *dim;
    long long index;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ssL:isel", &view, &dim, &index))
        return NULL;
    return done(self, hr_view_isel(of(self), view, dim, index, &e), &e);
}

/* None or an integer; -1 with an exception set. */
int ext_optional_int(PyObject *x, int *has, int64_t *value)
{
    *has = x != Py_None;
    *value = *has ? PyLong_AsLongLong(x) : 0;
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *samples_slice(PyObject *self, PyObject *args)
{
    const char *view, *dim;
    PyObject *start, *stop;
    long long step;
    int has_start, has_stop;
    int64_t a, b;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ssOOL:isel_slice", &view, &dim, &start, &stop, &step) ||
        ext_optional_int(start, &has_start, &a) < 0 || ext_optional_int(stop, &has_stop, &b) < 0)
        return NULL;
    return done(self, hr_view_isel_slice(of(self), view, dim, has_start, a, has_stop, b, step, &e),
                &e);
}

static PyObject *samples_list(PyObject *self, PyObject *args)
{
    const char *view, *dim;
    PyObject *list;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ssO:isel_list", &view, &dim, &list))
        return NULL;
    Py_ssize_t n = PySequence_Size(list);
    int64_t *index = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *index);
    if (!index)
        return n < 0 ? NULL : PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        index[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            free(index);
            return NULL;
        }
    }
    int rc = hr_view_isel_list(of(self), view, dim, index, (int)n, &e);
    free(index);
    return done(self, rc, &e);
}

static PyObject *samples_label(PyObject *self, PyObject *args)
{
    const char *view, *dim, *labels;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "sss:sel", &view, &dim, &labels))
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_view_sel(of(self), view, dim, labels, &e));
    return done(self, rc, &e);
}

static PyObject *samples_dtype(PyObject *self, PyObject *args)
{
    const char *view, *dtype;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ss:dtype", &view, &dtype))
        return NULL;
    enum hr_dtype t = hr_dtype_parse(dtype);
    if (!t)
        return ext_fail(ext_state_of(self), HR_EINVAL, "no data type is called %s", dtype);
    return done(self, hr_view_dtype(of(self), view, t, &e), &e);
}

static PyObject *samples_decode(PyObject *self, PyObject *args)
{
    const char *view;
    int decode;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sp:decode", &view, &decode))
        return NULL;
    return done(self, hr_view_decode(of(self), view, decode, &e), &e);
}

static PyObject *samples_index_of(PyObject *self, PyObject *args)
{
    int view;
    const char *dim;
    long long n;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "isL:index", &view, &dim, &n))
        return NULL;
    PyObject *bytes =
        n < 0 ? PyErr_NoMemory() : PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)n * 8);
    if (bytes &&
        hr_samples_index(of(self), view, dim, (int64_t *)PyByteArray_AsString(bytes), n, &e) < 0) {
        Py_DECREF(bytes);
        return ext_raise(ext_state_of(self), &e);
    }
    return bytes;
}

static PyObject *samples_times(PyObject *self, PyObject *args)
{
    const char *array, *calendar = NULL;
    long long n;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "sL:times", &array, &n))
        return NULL;
    PyObject *bytes =
        n < 0 ? PyErr_NoMemory() : PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)n * 8);
    int64_t *us = bytes ? (int64_t *)PyByteArray_AsString(bytes) : NULL;
    if (!us)
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_samples_times(of(self), array, us, n, &calendar, &e));
    if (rc == 1)
        return Py_BuildValue("(Ns)", bytes, calendar);
    Py_DECREF(bytes);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : Py_NewRef(Py_None);
}

static PyObject *samples_count(PyObject *self, PyObject *unused)
{
    int64_t n = 0;
    struct hr_error e = {0};
    return hr_samples_count(of(self), &n, &e) < 0 ? ext_raise(ext_state_of(self), &e)
                                                  : PyLong_FromLongLong(n);
}

static PyObject *samples_ids(PyObject *self, PyObject *args)
{
    long long first, n;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "LL:ids", &first, &n))
        return NULL;
    if (n < 0 || n > PY_SSIZE_T_MAX / 8)
        return ext_fail(ext_state_of(self), HR_EINVAL, "%lld ids", n);
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)n * 8);
    if (bytes &&
        hr_samples_ids(of(self), first, n, (int64_t *)PyByteArray_AsString(bytes), &e) < 0) {
        Py_DECREF(bytes);
        return ext_raise(ext_state_of(self), &e);
    }
    return bytes;
}

static PyObject *samples_json(PyObject *self, PyObject *unused)
{
    char *text = NULL;
    struct hr_error e = {0};
    return hr_samples_json(of(self), &text, &e) < 0 ? ext_raise(ext_state_of(self), &e)
                                                    : ext_take_string(text);
}

static PyObject *samples_loader(PyObject *self, PyObject *args)
{
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    long long n, global_batch, spread, block, streams, rank, world, order;
    unsigned long long seed, memory, explicit_set;
    const char *dtype;
    PyObject *sampling = NULL;
    struct ext_sampling held;
    struct hr_loader *l = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "LLiiKKLLLLLiizLK|O:loader", &n, &global_batch, &o.shuffle,
                          &o.remainder, &seed, &memory, &spread, &block, &streams, &rank, &world,
                          &o.missing, &o.on_error, &dtype, &order, &explicit_set, &sampling))
        return NULL;
    o.n = n;
    o.global_batch = global_batch;
    o.seed = seed;
    o.memory = memory;
    o.spread = spread;
    o.block = block;
    o.streams = streams;
    o.rank = rank;
    o.world = world;
    o.order = order;
    o.explicit_set = explicit_set;
    if (dtype && !(o.dtype = (int)hr_dtype_parse(dtype)))
        return ext_fail(ext_state_of(self), HR_EINVAL, "no data type is called %s", dtype);
    if (ext_sampling(self, sampling, &o, &held) < 0) {
        ext_sampling_done(&held);
        return NULL;
    }
    EXT_WAITS(ext_state_of(self), rc = hr_loader_open(of(self), &o, &l, &e));
    ext_sampling_done(&held);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_loader_new(ext_state_of(self), l);
}

static PyObject *samples_reduce(PyObject *self, PyObject *unused)
{
    return ext_unpicklable(self, "a description of samples",
                           "send the path or URL, and describe the samples there");
}

static PyMethodDef samples_methods[] = {
    {"view", samples_view, METH_VARARGS, "view(name, arrays, stack, constant=False)"},
    {"cells", ext_samples_cells, METH_VARARGS, "cells(view, parts, sets, options)"},
    {"table", ext_samples_table, METH_VARARGS, "table(name, dtype, data, n, items)"},
    {"sentences", ext_samples_sentences, METH_VARARGS,
     "sentences(axis, begin, cells, controls, seed, block)"},
    {"count_codes", ext_samples_count_codes, METH_VARARGS,
     "count_codes(type, codes, groups) -> bytearray of int64"},
    {"sort_codes", ext_samples_sort_codes, METH_VARARGS,
     "sort_codes(type, codes, sizes, out): out gets uint32"},
    {"row_chunks", ext_samples_row_chunks, METH_VARARGS, "row_chunks(view)"},
    {"steps", samples_steps, METH_VARARGS, "steps(view, dim, first, last, step=1)"},
    {"window", samples_window, METH_VARARGS, "window(view, dim, n)"},
    {"lag", samples_lag, METH_VARARGS, "lag(view, dim, duration, tolerance=None)"},
    {"gaps", samples_gaps, METH_VARARGS, "gaps(view, dim, most)"},
    {"isel", samples_index, METH_VARARGS, "isel(view, dim, index)"},
    {"isel_slice", samples_slice, METH_VARARGS, "isel_slice(view, dim, start, stop, step)"},
    {"isel_list", samples_list, METH_VARARGS, "isel_list(view, dim, indices)"},
    {"sel", samples_label, METH_VARARGS, "sel(view, dim, labels_json)"},
    {"dtype", samples_dtype, METH_VARARGS, "dtype(view, name)"},
    {"decode", samples_decode, METH_VARARGS, "decode(view, bool)"},
    {"affine", ext_view_affine, METH_VARARGS, "affine(view, scale, offset)"},
    {"log1p", ext_view_log1p, METH_VARARGS, "log1p(view)"},
    {"clip", ext_view_clip, METH_VARARGS, "clip(view, low, high)"},
    {"normalize", ext_view_normalize, METH_VARARGS,
     "normalize(view, mean, std, shape, dims); mean, std: bytes of float64"},
    {"nan", ext_view_nan, METH_VARARGS, "nan(view, value)"},
    {"mask", ext_view_mask, METH_VARARGS, "mask(view, name)"},
    {"layout", ext_view_layout, METH_VARARGS, "layout(view, name)"},
    {"order", ext_view_order, METH_VARARGS, "order(view, dims)"},
    {"moments", ext_moments, METH_VARARGS,
     "moments(view, by, memory, progress) -> (dims, shape, count, mean, std, min, max)"},
    {"moments_key", ext_moments_key, METH_VARARGS, "moments_key(view, by, memory) -> str"},
    {"along", ext_samples_along, METH_VARARGS, "along(dim)"},
    {"patch", ext_samples_patch, METH_VARARGS, "patch(dim, size, stride, edge)"},
    {"crop", ext_samples_crop, METH_VARARGS, "crop(dim, size, parts)"},
    {"draws", ext_samples_draws, METH_VARARGS, "draws(name, n)"},
    {"pad", ext_samples_pad, METH_VARARGS, "pad(dim, value)"},
    {"join", ext_view_join, METH_VARARGS, "join(view, dim, axis, left, tolerance)"},
    {"scale", ext_view_scale, METH_VARARGS, "scale(view, dim, scale, scale_of)"},
    {"keep", ext_samples_keep, METH_VARARGS,
     "keep(start, stop, step, dim=None) -> SamplesHandle; dim: None, the first axis"},
    {"keep_labels", ext_samples_keep_labels, METH_VARARGS,
     "keep_labels(labels_json, dim=None) -> SamplesHandle"},
    {"split", ext_samples_split, METH_VARARGS,
     "split(fractions, gap, dim=None) -> tuple of SamplesHandle"},
    {"split_blocks", ext_samples_split_blocks, METH_VARARGS,
     "split_blocks(fractions, blocks, keyed, seed, gap, dim=None) -> tuple of SamplesHandle"},
    {"split_groups", ext_samples_split_groups, METH_VARARGS,
     "split_groups(type, groups, fractions, seed, gap, dim=None) -> tuple of SamplesHandle; dim: "
     "None, "
     "groups of ids"},
    {"where", ext_samples_where, METH_VARARGS,
     "where(mask, dim=None) -> SamplesHandle; dim: None, a mask of ids"},
    {"take", ext_samples_take, METH_VARARGS,
     "take(ids, dim=None) -> SamplesHandle; dim: positions on that axis"},
    {"combine", ext_samples_combine, METH_VARARGS, "combine(other, how) -> SamplesHandle"},
    {"apart", ext_samples_apart, METH_VARARGS, "apart(other, gap) -> SamplesHandle"},
    {"shared", ext_samples_shared, METH_O, "shared(other) -> (samples, rows, chunks)"},
    {"duration", ext_samples_duration, METH_VARARGS, "duration(text, dim=None) -> steps"},
    {"index", samples_index_of, METH_VARARGS, "index(view, dim, n) -> bytearray of int64"},
    {"times", samples_times, METH_VARARGS,
     "times(array, n) -> (bytearray of int64, calendar), or None"},
    {"count", samples_count, METH_NOARGS, "count() -> int"},
    {"ids", samples_ids, METH_VARARGS, "ids(first, n) -> bytearray of int64"},
    {"json", samples_json, METH_NOARGS, "json() -> str"},
    {"loader", samples_loader, METH_VARARGS,
     "loader(n, global_batch, shuffle, remainder, seed, memory, spread, block, streams, rank, "
     "world, missing, "
     "on_error, dtype, order, explicit_set, sampling=None) -> LoaderHandle"},
    {"__reduce__", samples_reduce, METH_NOARGS, NULL},
    {NULL},
};
static PyType_Slot samples_slots[] = {
    {Py_tp_dealloc, samples_dealloc},
    {Py_tp_methods, samples_methods},
    {0, NULL},
};
PyType_Spec ext_samples_spec = {.name = "headrace._headrace.SamplesHandle",
                                .basicsize = sizeof(struct samples_object),
                                .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                .slots = samples_slots};
