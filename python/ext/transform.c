/* SamplesHandle: what happens to a view's values, one to one over hr_view_affine and its sisters. */
#include "ext.h"
#include <stdlib.h>

static PyObject *done(PyObject *self, int rc, const struct hr_error *e)
{
    if (rc < 0)
        return ext_raise(ext_state_of(self), e);
    Py_RETURN_NONE;
}

PyObject *ext_view_affine(PyObject *self, PyObject *args)
{
    const char *view;
    double scale, offset;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sdd:affine", &view, &scale, &offset))
        return NULL;
    return done(self, hr_view_affine(ext_samples_of(self), view, scale, offset, &e), &e);
}

PyObject *ext_view_log1p(PyObject *self, PyObject *args)
{
    const char *view;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "s:log1p", &view))
        return NULL;
    return done(self, hr_view_log1p(ext_samples_of(self), view, &e), &e);
}

PyObject *ext_view_clip(PyObject *self, PyObject *args)
{
    const char *view;
    double low, high;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sdd:clip", &view, &low, &high))
        return NULL;
    return done(self, hr_view_clip(ext_samples_of(self), view, low, high, &e), &e);
}

PyObject *ext_view_nan(PyObject *self, PyObject *args)
{
    const char *view;
    double value;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sd:nan", &view, &value))
        return NULL;
    return done(self, hr_view_nan(ext_samples_of(self), view, value, &e), &e);
}

PyObject *ext_view_mask(PyObject *self, PyObject *args)
{
    const char *view, *name;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ss:mask", &view, &name))
        return NULL;
    return done(self, hr_view_mask(ext_samples_of(self), view, name, &e), &e);
}

PyObject *ext_view_layout(PyObject *self, PyObject *args)
{
    const char *view, *layout;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ss:layout", &view, &layout))
        return NULL;
    return done(self, hr_view_layout(ext_samples_of(self), view, layout, &e), &e);
}

/* The texts of a sequence: how many, or -1 and an exception. They live as long as *keep. */
static int texts(PyObject *sequence, const char **out, PyObject **keep)
{
    *keep = PySequence_Tuple(sequence);
    Py_ssize_t n = *keep ? PyTuple_Size(*keep) : -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(*keep, i);
        if (i == HR_MAX_DIMS)
            PyErr_SetString(PyExc_ValueError, "too many dimensions");
        else
            out[i] = PyUnicode_AsUTF8AndSize(item, NULL);
        if (PyErr_Occurred()) {
            Py_CLEAR(*keep);
            return -1;
        }
    }
    return (int)n;
}

PyObject *ext_view_order(PyObject *self, PyObject *args)
{
    const char *view, *dims[HR_MAX_DIMS];
    PyObject *sequence, *keep;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sO:order", &view, &sequence))
        return NULL;
    int n = texts(sequence, dims, &keep);
    if (n < 0)
        return NULL;
    int rc = hr_view_order(ext_samples_of(self), view, dims, n, &e);
    Py_DECREF(keep);
    return done(self, rc, &e);
}

/* mean and std: bytes of float64, as many as the shape says; dims: names, or None. */
PyObject *ext_view_normalize(PyObject *self, PyObject *args)
{
    const char *view, *dims[HR_MAX_DIMS], *mean, *std;
    Py_ssize_t n_mean, n_std;
    PyObject *shape, *names, *keep = NULL;
    int64_t lengths[HR_MAX_DIMS], items = 1;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sy#y#OO:normalize", &view, &mean, &n_mean, &std, &n_std, &shape,
                          &names))
        return NULL;
    Py_ssize_t ndim = PySequence_Size(shape);
    if (ndim < 0 || ndim >= HR_MAX_DIMS)
        return ndim < 0 ? NULL
                        : ext_fail(ext_state_of(self), HR_EINVAL, "mean of too many dimensions");
    for (Py_ssize_t d = 0; d < ndim; d++) {
        PyObject *length = PySequence_GetItem(shape, d);
        lengths[d] = length ? PyLong_AsLongLong(length) : -1;
        Py_XDECREF(length);
        if (PyErr_Occurred())
            return NULL;
        items *= lengths[d];
    }
    if (n_mean != n_std || n_mean != (Py_ssize_t)(items * 8))
        return ext_fail(ext_state_of(self), HR_EINVAL, "mean and std of different sizes");
    if (names != Py_None && texts(names, dims, &keep) != ndim)
        return keep ? (Py_DECREF(keep),
                       ext_fail(ext_state_of(self), HR_EINVAL, "one name per dimension"))
                    : NULL;
    double *both = malloc((size_t)(n_mean + n_std) + 8); /* bytes need not be aligned */
    int rc;
    if (!both) {
        Py_XDECREF(keep);
        return PyErr_NoMemory();
    }
    memcpy(both, mean, (size_t)n_mean);
    memcpy(both + items, std, (size_t)n_std);
    EXT_WAITS(ext_state_of(self),
              rc = hr_view_normalize(ext_samples_of(self), view, both, both + items, (int)ndim,
                                     lengths, keep ? dims : NULL, &e));
    free(both);
    Py_XDECREF(keep);
    return done(self, rc, &e);
}
