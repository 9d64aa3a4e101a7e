/* ObjectsHandle: objects of a store as bytes. headrace.scdl reads its files through it. */
#include "ext.h"

struct objects_object {
    PyObject_HEAD struct hr_objects *objects;
};

static struct hr_objects *of(PyObject *self)
{
    return ((struct objects_object *)self)->objects;
}

PyObject *ext_objects(PyObject *module, PyObject *args)
{
    const char *url, *options;
    struct hr_objects *objects = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "sz:objects", &url, &options))
        return NULL;
    struct ext_state *s = PyModule_GetState(module);
    EXT_WAITS(s, rc = hr_objects_open(url, options, &objects, &e));
    if (rc < 0)
        return ext_raise(s, &e);
    struct objects_object *self = PyObject_New(struct objects_object, s->objects);
    if (self)
        self->objects = objects;
    else
        hr_objects_unref(objects);
    return (PyObject *)self;
}

static void objects_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct hr_objects *objects = of(self);
    Py_BEGIN_ALLOW_THREADS hr_objects_unref(objects);
    Py_END_ALLOW_THREADS PyObject_Free(self);
    Py_DECREF(type);
}

/* read(key, offset, length) -> (bytes, size, version), None where there is no such object */
static PyObject *objects_read(PyObject *self, PyObject *args)
{
    const char *key;
    long long offset;
    unsigned long long length;
    struct hr_object x = {0};
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "sLK:read", &key, &offset, &length))
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_objects_read(of(self), key, offset, length, &x, &e));
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    if (rc == 0)
        Py_RETURN_NONE;
    PyObject *bytes = PyBytes_FromStringAndSize(x.data, (Py_ssize_t)x.n);
    hr_free(x.data);
    return bytes ? Py_BuildValue("(NKK)", bytes, (unsigned long long)x.size,
                                 (unsigned long long)x.version)
                 : NULL;
}

/* read_into(key, offset, buffer) -> (size, version): as many bytes as the buffer has, from there on; None: no such object */
static PyObject *objects_read_into(PyObject *self, PyObject *args)
{
    const char *key;
    long long offset;
    Py_buffer to;
    struct hr_error e = {0};
    int rc = 1;
    if (!PyArg_ParseTuple(args, "sLw*:read_into", &key, &offset, &to))
        return NULL;
    struct hr_object x = {.data = to.buf, .n = (uint64_t)to.len};
    if (to.len)
        EXT_WAITS(ext_state_of(self),
                  rc = hr_objects_read(of(self), key, offset, (uint64_t)to.len, &x, &e));
    PyBuffer_Release(&to);
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    if (rc == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(KK)", (unsigned long long)x.size, (unsigned long long)x.version);
}

/* list(prefix) -> bytes: names ended by NUL, folders by "/" and NUL */
static PyObject *objects_list(PyObject *self, PyObject *args)
{
    const char *prefix;
    char *names = NULL;
    size_t n = 0;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "s:list", &prefix))
        return NULL;
    EXT_WAITS(ext_state_of(self), rc = hr_objects_list(of(self), prefix, &names, &n, &e));
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    PyObject *bytes = PyBytes_FromStringAndSize(names, (Py_ssize_t)n);
    hr_free(names);
    return bytes;
}

static PyObject *objects_reduce(PyObject *self, PyObject *unused)
{
    return ext_unpicklable(self, "a store", "send its path or URL, and open it there");
}

static PyMethodDef objects_methods[] = {
    {"read", objects_read, METH_VARARGS,
     "read(key, offset, length) -> (bytes, size of the object, its version), or None"},
    {"read_into", objects_read_into, METH_VARARGS,
     "read_into(key, offset, buffer) -> (size of the object, its version), or None"},
    {"list", objects_list, METH_VARARGS, "list(prefix) -> bytes: names, each ended by a NUL"},
    {"__reduce__", objects_reduce, METH_NOARGS, NULL},
    {NULL},
};
static PyType_Slot objects_slots[] = {
    {Py_tp_dealloc, objects_dealloc},
    {Py_tp_methods, objects_methods},
    {0, NULL},
};
PyType_Spec ext_objects_spec = {.name = "headrace._headrace.ObjectsHandle",
                                .basicsize = sizeof(struct objects_object),
                                .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                .slots = objects_slots};
