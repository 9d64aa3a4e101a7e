/* ArchiveHandle: an opened archive. headrace.Archive wraps it. */
#include "ext.h"

struct archive_object {
    PyObject_HEAD struct hr_archive *archive;
};

PyObject *ext_archive_new(struct ext_state *s, struct hr_archive *a)
{
    struct archive_object *self = PyObject_New(struct archive_object, s->archive);
    if (self)
        self->archive = a;
    else
        hr_archive_unref(a);
    return (PyObject *)self;
}

static void archive_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    hr_archive_unref(((struct archive_object *)self)->archive);
    PyObject_Free(self);
    Py_DECREF(type);
}

static struct hr_archive *of(PyObject *self)
{
    return ((struct archive_object *)self)->archive;
}

struct hr_archive *ext_archive_of(struct ext_state *s, PyObject *x)
{
    if (x && PyObject_TypeCheck(x, s->archive))
        return of(x);
    ext_fail(s, EXT_TYPE, "an opened archive is expected");
    return NULL;
}

static PyObject *archive_json(PyObject *self, PyObject *unused)
{
    char *text = NULL;
    struct hr_error e = {0};
    int rc;
    EXT_WAITS(ext_state_of(self), rc = hr_archive_json(of(self), &text, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_take_string(text);
}

static PyObject *archive_array(PyObject *self, PyObject *args)
{
    const char *path;
    char *text = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "s:array", &path))
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_archive_array_json(of(self), path, &text, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_take_string(text);
}

/* A tuple of integers into at most HR_MAX_DIMS places; the count, or -1. */
static int take_ints(PyObject *tuple, int64_t *out)
{
    Py_ssize_t n = PySequence_Size(tuple);
    if (n > HR_MAX_DIMS) {
        PyErr_SetString(PyExc_ValueError, "too many dimensions");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(tuple, i);
        out[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return (int)n;
}

static PyObject *archive_read(PyObject *self, PyObject *args)
{
    const char *path, *dtype, *unit;
    PyObject *start, *count, *step;
    int decode, shown, item;
    if (!PyArg_ParseTuple(args, "sOOOzpiz:read", &path, &start, &count, &step, &dtype, &decode,
                          &item, &unit))
        return NULL;
    int64_t a[HR_MAX_DIMS], n[HR_MAX_DIMS], by[HR_MAX_DIMS];
    int ndim = take_ints(start, a);
    if (ndim < 0 || take_ints(count, n) != ndim || take_ints(step, by) != ndim)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_ValueError, "start, count and step differ in length");
    enum hr_dtype t = dtype ? hr_dtype_parse(dtype) : HR_NONE;
    if (dtype && !t)
        return ext_fail(ext_state_of(self), HR_EINVAL, "no data type is called %s", dtype);
    void *data = NULL;
    size_t size = 0;
    struct hr_error e = {0};
    EXT_WAITS(ext_state_of(self),
              shown = hr_archive_read(of(self), path, ndim, a, n, by, t, decode, &data, &size, &e));
    if (shown < 0)
        return ext_raise(ext_state_of(self), &e);
    if (!item) { /* strings: joined by NUL */
        PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
        hr_free(data);
        return bytes;
    }
    return ext_tensor_new(ext_state_of(self), NULL, data, t ? t : HR_RAW, (size_t)item, path, unit,
                          ndim, n);
}

static PyObject *archive_samples(PyObject *self, PyObject *args)
{
    const char *along;
    struct hr_samples *x = NULL;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "z:samples", &along))
        return NULL;
    if (hr_samples_new(of(self), along, &x, &e) < 0)
        return ext_raise(ext_state_of(self), &e);
    return ext_samples_new(ext_state_of(self), x);
}

static PyObject *archive_reduce(PyObject *self, PyObject *unused)
{
    return ext_unpicklable(self, "an archive", "send its path or URL, and open it there");
}

static PyMethodDef archive_methods[] = {
    {"json", archive_json, METH_NOARGS, "The whole hierarchy as JSON text."},
    {"array", archive_array, METH_VARARGS, "array(path) -> JSON text of one array."},
    {"read", archive_read, METH_VARARGS,
     "read(path, start, count, step, dtype, decode, item_size, unit): a region as a tensor, or as "
     "bytes when "
     "item_size is 0"},
    {"samples", archive_samples, METH_VARARGS, "samples(along) -> SamplesHandle"},
    {"__reduce__", archive_reduce, METH_NOARGS, NULL},
    {NULL},
};
static PyType_Slot archive_slots[] = {
    {Py_tp_dealloc, archive_dealloc},
    {Py_tp_methods, archive_methods},
    {0, NULL},
};
PyType_Spec ext_archive_spec = {.name = "headrace._headrace.ArchiveHandle",
                                .basicsize = sizeof(struct archive_object),
                                .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                .slots = archive_slots};
