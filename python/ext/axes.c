/* SamplesHandle: sample axes, one to one over hr_samples_along and its sisters. */
#include "ext.h"

static PyObject *done(PyObject *self, int rc, const struct hr_error *e)
{
    if (rc < 0)
        return ext_raise(ext_state_of(self), e);
    Py_RETURN_NONE;
}

PyObject *ext_samples_along(PyObject *self, PyObject *args)
{
    const char *dim;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "s:along", &dim))
        return NULL;
    return done(self, hr_samples_along(ext_samples_of(self), dim, &e), &e);
}

PyObject *ext_samples_patch(PyObject *self, PyObject *args)
{
    const char *dim;
    long long size, stride;
    int edge;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sLLi:patch", &dim, &size, &stride, &edge))
        return NULL;
    return done(self, hr_samples_patch(ext_samples_of(self), dim, size, stride, edge, &e), &e);
}

PyObject *ext_samples_crop(PyObject *self, PyObject *args)
{
    const char *dim;
    long long size, parts;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sLL:crop", &dim, &size, &parts))
        return NULL;
    return done(self, hr_samples_crop(ext_samples_of(self), dim, size, parts, &e), &e);
}

PyObject *ext_samples_draws(PyObject *self, PyObject *args)
{
    const char *name;
    long long n;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sL:draws", &name, &n))
        return NULL;
    return done(self, hr_samples_draws(ext_samples_of(self), name, n, &e), &e);
}

PyObject *ext_samples_pad(PyObject *self, PyObject *args)
{
    const char *dim;
    double value;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sd:pad", &dim, &value))
        return NULL;
    return done(self, hr_samples_pad(ext_samples_of(self), dim, value, &e), &e);
}

PyObject *ext_view_join(PyObject *self, PyObject *args)
{
    const char *view, *dim, *axis, *tolerance;
    int left;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sszpz:join", &view, &dim, &axis, &left, &tolerance))
        return NULL;
    return done(self, hr_view_join(ext_samples_of(self), view, dim, axis, left, tolerance, &e), &e);
}

PyObject *ext_view_scale(PyObject *self, PyObject *args)
{
    const char *view, *dim;
    long long scale, scale_of;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ssLL:scale", &view, &dim, &scale, &scale_of))
        return NULL;
    return done(self, hr_view_scale(ext_samples_of(self), view, dim, scale, scale_of, &e), &e);
}
