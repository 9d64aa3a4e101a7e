/* SamplesHandle.moments: the whole pass in one call, without the GIL but for `progress` and signals. */
#include "ext.h"

static int interrupted(void *unused)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals();
    PyGILState_Release(gil);
    return stop;
}

static PyObject *bytes_of(const double *values, int64_t n)
{
    return PyBytes_FromStringAndSize((const char *)values, (Py_ssize_t)(n * 8));
}

static PyObject *result_of(PyObject *self, struct hr_moments *m)
{
    struct hr_moments_result r;
    struct hr_error e = {0};
    if (hr_moments_result(m, &r, &e) < 0)
        return ext_raise(ext_state_of(self), &e);
    PyObject *dims = PyTuple_New(r.ndim), *shape = PyTuple_New(r.ndim);
    for (int d = 0; dims && shape && d < r.ndim; d++) {
        PyTuple_SetItem(dims, d, PyUnicode_FromString(r.dims[d]));
        PyTuple_SetItem(shape, d, PyLong_FromLongLong(r.shape[d]));
    }
    return Py_BuildValue("(NNNNNNN)", dims, shape, bytes_of(r.count, r.groups),
                         bytes_of(r.mean, r.groups), bytes_of(r.std, r.groups),
                         bytes_of(r.min, r.groups), bytes_of(r.max, r.groups));
}

/* 0 at the end, or -1 with an exception. */
static int pass(PyObject *self, struct hr_moments *m, PyObject *progress)
{
    for (;;) {
        struct hr_error e = {0};
        int64_t rows = 0, total = 0;
        int rc;
        EXT_WAITS(ext_state_of(self),
                  rc = hr_moments_step(m, interrupted, NULL, &rows, &total, &e));
        if (rc < 0)
            ext_raise(ext_state_of(self), &e);
        if (rc < 0 || PyErr_CheckSignals() < 0 || ext_drain_log(ext_state_of(self)) < 0)
            return -1;
        if (rc && progress != Py_None) {
            PyObject *said =
                PyObject_CallFunction(progress, "LL", (long long)rows, (long long)total);
            if (!said)
                return -1;
            Py_DECREF(said);
        }
        if (!rc)
            return 0;
    }
}

static struct hr_moments *opened(PyObject *self, const char *view, int by,
                                 unsigned long long memory)
{
    struct hr_moments *m = NULL;
    struct hr_error e = {0};
    int rc;
    EXT_WAITS(ext_state_of(self),
              rc = hr_moments_open(ext_samples_of(self), view, by, memory, &m, &e));
    if (rc < 0)
        ext_raise(ext_state_of(self), &e);
    return rc < 0 ? NULL : m;
}

static void closed(struct hr_moments *m)
{
    Py_BEGIN_ALLOW_THREADS hr_moments_free(m);
    Py_END_ALLOW_THREADS
}

PyObject *ext_moments(PyObject *self, PyObject *args)
{
    const char *view;
    int by;
    unsigned long long memory;
    PyObject *progress;
    if (!PyArg_ParseTuple(args, "ziKO:moments", &view, &by, &memory, &progress))
        return NULL;
    struct hr_moments *m = opened(self, view, by, memory);
    if (!m)
        return NULL;
    PyObject *result = pass(self, m, progress) < 0 ? NULL : result_of(self, m);
    closed(m);
    return result;
}

PyObject *ext_moments_key(PyObject *self, PyObject *args)
{
    const char *view;
    char *key = NULL;
    int by;
    unsigned long long memory;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "ziK:moments_key", &view, &by, &memory))
        return NULL;
    struct hr_moments *m = opened(self, view, by, memory);
    if (!m)
        return NULL;
    int rc = hr_moments_key(m, &key, &e);
    closed(m);
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_take_string(key);
}
