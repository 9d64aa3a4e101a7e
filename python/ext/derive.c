/* SamplesHandle: samples derived from others, one to one over hr_samples_*. `dim` names the axis that is meant. */
#include "ext.h"

#define MOST_RUNS 1000 /* of a split */

PyObject *ext_samples_keep(PyObject *self, PyObject *args)
{
    PyObject *start, *stop;
    long long step;
    int has_start, has_stop;
    int64_t a, b;
    struct hr_samples *out = NULL;
    struct hr_error e = {0};
    const char *dim = NULL;
    if (!PyArg_ParseTuple(args, "OOL|z:keep", &start, &stop, &step, &dim) ||
        ext_optional_int(start, &has_start, &a) < 0 || ext_optional_int(stop, &has_stop, &b) < 0)
        return NULL;
    int rc =
        hr_samples_axis_slice(ext_samples_of(self), dim, has_start, a, has_stop, b, step, &out, &e);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_samples_new(ext_state_of(self), out);
}

PyObject *ext_samples_keep_labels(PyObject *self, PyObject *args)
{
    const char *labels, *dim = NULL;
    struct hr_samples *out = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "s|z:keep_labels", &labels, &dim))
        return NULL;
    EXT_WAITS(ext_state_of(self),
              rc = hr_samples_axis_sel(ext_samples_of(self), dim, labels, &out, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_samples_new(ext_state_of(self), out);
}

/* Numbers of a sequence: how many there are, or -1 with an exception set. */
static Py_ssize_t take_fractions(PyObject *self, PyObject *list, double *fractions)
{
    Py_ssize_t n = PySequence_Size(list);
    if (n > MOST_RUNS)
        ext_fail(ext_state_of(self), HR_EINVAL, "a split into more than %d parts", MOST_RUNS);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);
        fractions[i] = item ? PyFloat_AsDouble(item) : -1;
        Py_XDECREF(item);
    }
    return PyErr_Occurred() ? -1 : n;
}

/* A tuple of handles; the samples are taken over. */
static PyObject *tuple_of(PyObject *self, struct hr_samples **out, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item =
            tuple ? ext_samples_new(ext_state_of(self), out[i]) : (hr_samples_unref(out[i]), NULL);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *ext_samples_split(PyObject *self, PyObject *args)
{
    PyObject *list;
    long long gap;
    double fractions[MOST_RUNS];
    struct hr_samples *out[MOST_RUNS];
    struct hr_error e = {0};
    int rc;
    const char *dim = NULL;
    if (!PyArg_ParseTuple(args, "OL|z:split", &list, &gap, &dim))
        return NULL;
    Py_ssize_t n = take_fractions(self, list, fractions);
    if (n < 0)
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_samples_axis_split(ext_samples_of(self), dim, fractions,
                                                             (int)n, gap, out, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : tuple_of(self, out, n);
}

PyObject *ext_samples_split_blocks(PyObject *self, PyObject *args)
{
    PyObject *list;
    int blocks, keyed, rc;
    unsigned long long seed;
    long long gap;
    double fractions[MOST_RUNS];
    struct hr_samples *out[MOST_RUNS];
    struct hr_error e = {0};
    const char *dim = NULL;
    if (!PyArg_ParseTuple(args, "OipKL|z:split_blocks", &list, &blocks, &keyed, &seed, &gap, &dim))
        return NULL;
    Py_ssize_t n = take_fractions(self, list, fractions);
    if (n < 0)
        return NULL;
    EXT_WAITS(ext_state_of(self),
              rc = hr_samples_axis_split_blocks(ext_samples_of(self), dim, blocks, fractions,
                                                (int)n, keyed, seed, gap, out, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : tuple_of(self, out, n);
}

/* Items of `size` bytes of a contiguous buffer. */
static Py_ssize_t take_buffer(PyObject *self, PyObject *x, Py_ssize_t size, Py_buffer *out)
{
    if (PyObject_GetBuffer(x, out, PyBUF_SIMPLE) < 0)
        return -1;
    if (out->len % size == 0)
        return out->len / size;
    PyBuffer_Release(out);
    ext_fail(ext_state_of(self), HR_EINVAL, "a buffer of %zd bytes", out->len);
    return -1;
}

PyObject *ext_samples_split_groups(PyObject *self, PyObject *args)
{
    PyObject *groups, *list;
    Py_buffer buffer;
    unsigned long long seed;
    long long gap;
    double fractions[MOST_RUNS];
    struct hr_samples *out[MOST_RUNS];
    struct hr_error e = {0};
    int rc;
    const char *dim = NULL, *type;
    if (!PyArg_ParseTuple(args, "sOOKL|z:split_groups", &type, &groups, &list, &seed, &gap, &dim))
        return NULL;
    struct hr_codes codes = {.t = hr_dtype_parse(type)};
    size_t size = hr_dtype_size(codes.t);
    if (!size)
        return ext_fail(ext_state_of(self), HR_EINVAL, "groups of type %s", type);
    Py_ssize_t n = take_fractions(self, list, fractions);
    Py_ssize_t length = n < 0 ? -1 : take_buffer(self, groups, (Py_ssize_t)size, &buffer);
    if (length < 0)
        return NULL;
    codes.code = buffer.buf;
    codes.n = length;
    EXT_WAITS(ext_state_of(self),
              rc = hr_samples_axis_split_codes(ext_samples_of(self), dim, &codes, fractions, (int)n,
                                               seed, gap, out, &e));
    PyBuffer_Release(&buffer);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : tuple_of(self, out, n);
}

PyObject *ext_samples_where(PyObject *self, PyObject *args)
{
    PyObject *mask;
    const char *dim = NULL;
    Py_buffer buffer;
    struct hr_samples *out = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "O|z:where", &mask, &dim) ||
        take_buffer(self, mask, 1, &buffer) < 0)
        return NULL;
    struct hr_samples *s = ext_samples_of(self);
    EXT_WAITS(ext_state_of(self),
              rc = dim ? hr_samples_axis_where(s, dim, buffer.buf, buffer.len, &out, &e)
                       : hr_samples_where(s, buffer.buf, buffer.len, &out, &e));
    PyBuffer_Release(&buffer);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_samples_new(ext_state_of(self), out);
}

PyObject *ext_samples_take(PyObject *self, PyObject *args)
{
    PyObject *ids;
    const char *dim = NULL;
    Py_buffer buffer;
    struct hr_samples *out = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "O|z:take", &ids, &dim))
        return NULL;
    Py_ssize_t n = take_buffer(self, ids, 8, &buffer);
    if (n < 0)
        return NULL;
    struct hr_samples *s = ext_samples_of(self);
    EXT_WAITS(ext_state_of(self), rc = dim ? hr_samples_axis_take(s, dim, buffer.buf, n, &out, &e)
                                           : hr_samples_take(s, buffer.buf, n, &out, &e));
    PyBuffer_Release(&buffer);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_samples_new(ext_state_of(self), out);
}

/* The samples of another handle, or NULL with an exception set. */
static struct hr_samples *other_samples(PyObject *self, PyObject *other)
{
    if (Py_TYPE(other) == Py_TYPE(self))
        return ext_samples_of(other);
    ext_fail(ext_state_of(self), EXT_TYPE, "samples are expected, not %R", other);
    return NULL;
}

PyObject *ext_samples_combine(PyObject *self, PyObject *args)
{
    PyObject *other;
    int how, rc;
    struct hr_samples *out = NULL, *b;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "Oi:combine", &other, &how) || !(b = other_samples(self, other)))
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_samples_combine(ext_samples_of(self), b, how, &out, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_samples_new(ext_state_of(self), out);
}

PyObject *ext_samples_apart(PyObject *self, PyObject *args)
{
    PyObject *other;
    long long gap;
    int rc;
    struct hr_samples *out = NULL, *b;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "OL:apart", &other, &gap) || !(b = other_samples(self, other)))
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_samples_apart(ext_samples_of(self), b, gap, &out, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_samples_new(ext_state_of(self), out);
}

PyObject *ext_samples_shared(PyObject *self, PyObject *other)
{
    struct hr_samples *b = other_samples(self, other);
    struct hr_shared shared = {0};
    struct hr_error e = {0};
    int rc;
    if (!b)
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_samples_shared(ext_samples_of(self), b, &shared, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e)
                  : Py_BuildValue("LLL", (long long)shared.samples, (long long)shared.rows,
                                  (long long)shared.chunks);
}

PyObject *ext_samples_duration(PyObject *self, PyObject *args)
{
    const char *duration, *dim = NULL;
    int64_t steps = 0;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "s|z:duration", &duration, &dim))
        return NULL;
    EXT_WAITS(ext_state_of(self),
              rc = hr_samples_axis_steps(ext_samples_of(self), dim, duration, &steps, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : PyLong_FromLongLong(steps);
}
