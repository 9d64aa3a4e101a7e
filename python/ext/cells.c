/* SamplesHandle: views over rows of sparse matrices, and tables from memory. */
#include "ext.h"
#include <stdlib.h>

static PyObject *done(PyObject *self, int rc, const struct hr_error *e)
{
    if (rc < 0)
        return ext_raise(ext_state_of(self), e);
    Py_RETURN_NONE;
}

/* ---- parts and sets: what they point to belongs to the caller's lists ---------------------------------------- */

static struct hr_matrix *parts_of(PyObject *list, Py_ssize_t *n)
{
    *n = PyList_Size(list);
    struct hr_matrix *parts = *n < 0 ? NULL : malloc(((size_t)*n + 1) * sizeof *parts);
    if (!parts)
        return (struct hr_matrix *)(PyErr_Occurred() ? NULL : PyErr_NoMemory());
    for (Py_ssize_t i = 0; i < *n; i++) {
        long long columns, set;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "zzsLL:part", &parts[i].indptr,
                              &parts[i].indices, &parts[i].data, &columns, &set)) {
            free(parts);
            return NULL;
        }
        parts[i].columns = columns;
        parts[i].set = set;
    }
    return parts;
}

struct sets {
    Py_ssize_t n;
    struct hr_columns *of;
    Py_buffer *buffers;
};

static void sets_free(struct sets *s)
{
    for (Py_ssize_t i = 0; s->buffers && i < s->n; i++)
        if (s->of[i].to)
            PyBuffer_Release(&s->buffers[i]);
    free(s->buffers);
    free(s->of);
}

static int sets_of(PyObject *list, struct sets *s)
{
    *s = (struct sets){.n = PyList_Size(list)};
    if (s->n < 0)
        return -1;
    s->of = calloc((size_t)s->n + 1, sizeof *s->of);
    s->buffers = calloc((size_t)s->n + 1, sizeof *s->buffers);
    if (!s->of || !s->buffers) {
        PyErr_NoMemory();
        sets_free(s);
        return -1;
    }
    for (Py_ssize_t i = 0; i < s->n; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (item == Py_None)
            continue;
        if (PyObject_GetBuffer(item, &s->buffers[i], PyBUF_C_CONTIGUOUS) < 0) {
            sets_free(s);
            return -1;
        }
        s->of[i].to = s->buffers[i].buf;
        s->of[i].n = s->buffers[i].len / (Py_ssize_t)sizeof(int32_t);
    }
    return 0;
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static int whole(PyObject *dict, const char *name, int64_t *out)
{
    PyObject *x = PyDict_GetItemString(dict, name);
    if (x && x != Py_None)
        *out = PyLong_AsLongLong(x);
    return PyErr_Occurred() ? -1 : 0;
}

static int fraction(PyObject *dict, const char *name, double *out)
{
    PyObject *x = PyDict_GetItemString(dict, name);
    if (x && x != Py_None)
        *out = PyFloat_AsDouble(x);
    return PyErr_Occurred() ? -1 : 0;
}

/* Lives as long as the dict. */
static int name(PyObject *dict, const char *key, const char **out)
{
    PyObject *x = PyDict_GetItemString(dict, key);
    if (x && x != Py_None)
        *out = PyUnicode_AsUTF8AndSize(x, NULL);
    return PyErr_Occurred() ? -1 : 0;
}

/* A buffer of n items, or none. */
static int items(PyObject *dict, const char *name, Py_buffer *b, size_t size, int64_t n)
{
    PyObject *x = PyDict_GetItemString(dict, name);
    if (!x || x == Py_None)
        return 0;
    if (PyObject_GetBuffer(x, b, PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    if ((size_t)b->len == (size_t)n * size)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %zd bytes for %lld columns", name, b->len, (long long)n);
    PyBuffer_Release(b);
    b->buf = NULL;
    return -1;
}

static int options_of(PyObject *dict, struct hr_cells_options *o)
{
    int64_t form = 0, dtype = 0, index = 0, selected = 0, log1p = 0, pick = 0, first = 0, last = 0;
    *o = (struct hr_cells_options)HR_CELLS_OPTIONS;
    if (whole(dict, "form", &form) || whole(dict, "dtype", &dtype) ||
        whole(dict, "index_dtype", &index) || whole(dict, "columns", &o->columns) ||
        whole(dict, "total_selected", &selected) || whole(dict, "log1p", &log1p) ||
        whole(dict, "bins", &o->bins) || whole(dict, "length", &o->length) ||
        whole(dict, "pick", &pick) || whole(dict, "pad", &o->pad) ||
        whole(dict, "first", &o->first) || whole(dict, "last", &o->last) ||
        whole(dict, "has_first", &first) || whole(dict, "has_last", &last) ||
        whole(dict, "row_chunk", &o->row_chunk) || whole(dict, "read_offsets", &o->read_offsets) ||
        fraction(dict, "total", &o->total) || name(dict, "items", &o->items) ||
        name(dict, "values", &o->values) || fraction(dict, "pad_value", &o->pad_value) ||
        fraction(dict, "special_value", &o->special_value))
        return -1;
    o->form = (int)form;
    o->dtype = (int)dtype;
    o->index_dtype = (int)index;
    o->total_selected = selected != 0;
    o->log1p = log1p != 0;
    o->pick = (int)pick;
    o->has_first = first != 0;
    o->has_last = last != 0;
    return 0;
}

PyObject *ext_samples_cells(PyObject *self, PyObject *args)
{
    const char *view;
    PyObject *list, *maps, *dict;
    Py_ssize_t n;
    struct sets sets;
    struct hr_cells_options o;
    Py_buffer factors = {0}, tokens = {0};
    struct hr_error e = {0};
    int rc = -1;
    if (!PyArg_ParseTuple(args, "sO!O!O!:cells", &view, &PyList_Type, &list, &PyList_Type, &maps,
                          &PyDict_Type, &dict) ||
        options_of(dict, &o) < 0 || sets_of(maps, &sets) < 0)
        return NULL;
    struct hr_matrix *parts = parts_of(list, &n);
    bool given = parts && items(dict, "factors", &factors, sizeof(float), o.columns) == 0 &&
                 items(dict, "tokens", &tokens, sizeof(int64_t), o.columns) == 0;
    if (given) {
        o.factors = factors.buf;
        o.tokens = tokens.buf;
        EXT_WAITS(ext_state_of(self), rc = hr_samples_cells(ext_samples_of(self), view, parts,
                                                            (int)n, sets.of, (int)sets.n, &o, &e));
    }
    if (factors.buf)
        PyBuffer_Release(&factors);
    if (tokens.buf)
        PyBuffer_Release(&tokens);
    sets_free(&sets);
    free(parts);
    return given ? done(self, rc, &e) : NULL;
}

PyObject *ext_samples_table(PyObject *self, PyObject *args)
{
    const char *name, *dtype;
    PyObject *given;
    Py_buffer data;
    long long n, count;
    struct hr_lent lent;
    struct hr_error e = {0};
    ext_lent_drain(ext_state_of(self));
    if (!PyArg_ParseTuple(args, "ssOLL:table", &name, &dtype, &given, &n, &count) ||
        ext_lend(ext_state_of(self), given, &data, &lent) < 0)
        return NULL;
    enum hr_dtype t = hr_dtype_parse(dtype);
    bool fits =
        n >= 0 && count >= 0 && (size_t)data.len == (size_t)n * (size_t)count * hr_dtype_size(t);
    int rc =
        fits ? hr_samples_table_lent(ext_samples_of(self), name, t, data.buf, n, count, &lent, &e)
             : -1;
    if (rc < 0)
        ext_lent_back(&lent);
    if (!fits)
        return ext_fail(ext_state_of(self), HR_EINVAL, "table %s: its length does not fit", name);
    return done(self, rc, &e);
}
