#include "ext.h"
#include <stdlib.h>
#include <stdarg.h>
#include <unistd.h>

struct ext_state *ext_state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static PyObject *fetch(PyObject **place, const char *module, const char *name)
{
    if (!*place) {
        PyObject *m = PyImport_ImportModule(module);
        if (!m)
            return NULL;
        *place = PyObject_GetAttrString(m, name);
        Py_DECREF(m);
    }
    return *place;
}

/* Takes over `text`. */
static PyObject *raise_text(struct ext_state *s, int code, PyObject *text, int retryable)
{
    PyObject *make = text ? fetch(&s->make_error, "headrace._errors", "make") : NULL;
    PyObject *error = make ? PyObject_CallFunction(make, "iOi", code, text, retryable) : NULL;
    Py_XDECREF(text);
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *ext_raise(struct ext_state *s, const struct hr_error *e)
{
    if (PyErr_Occurred()) /* a signal handler raised while we waited */
        return NULL;
    PyObject *text = PyUnicode_DecodeUTF8(e->text, (Py_ssize_t)strlen(e->text), "replace");
    return raise_text(s, (int)e->code, text, (int)e->retryable);
}

PyObject *ext_fail(struct ext_state *s, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    return raise_text(s, code, text, 0);
}

PyObject *ext_unpicklable(PyObject *self, const char *what, const char *instead)
{
    return ext_fail(ext_state_of(self), EXT_TYPE,
                    "%s lives in the process that made it and cannot be pickled: %s", what,
                    instead);
}

int ext_drain_log(struct ext_state *s)
{
    int level;
    char text[1024];
    while (hr_log_next(&level, text, sizeof text)) {
        PyObject *emit = fetch(&s->emit_log, "headrace._log", "emit");
        PyObject *line =
            emit ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : NULL;
        PyObject *done = line ? PyObject_CallFunction(emit, "iN", level, line) : NULL;
        if (!done)
            return -1;
        Py_DECREF(done);
    }
    return 0;
}

bool ext_ended(const struct ext_state *s)
{
    unsigned long ender = __atomic_load_n(&s->ender, __ATOMIC_RELAXED);
    return ender && ender != PyThread_get_thread_ident();
}

void ext_stay(const struct ext_state *s)
{
    while (ext_ended(s))
        pause();
}

/* By atexit: threads that are left are daemons, which may be in the midst of a call. */
static PyObject *ext_ending(PyObject *module, PyObject *unused)
{
    struct ext_state *s = PyModule_GetState(module);
    __atomic_store_n(&s->ender, PyThread_get_thread_ident(), __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

int ext_interrupted(void *state)
{
    if (ext_ended(state))
        return 1;
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals() || ext_drain_log(state) < 0;
    PyGILState_Release(gil);
    return stop;
}

PyObject *ext_take_string(char *text)
{
    PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    hr_free(text);
    return s;
}

static PyObject *ext_open(PyObject *module, PyObject *args)
{
    const char *url, *options;
    struct hr_archive *a = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "sz:open", &url, &options))
        return NULL;
    EXT_WAITS(PyModule_GetState(module), rc = hr_open(url, options, &a, &e));
    struct ext_state *s = PyModule_GetState(module);
    return rc < 0 ? ext_raise(s, &e) : ext_archive_new(s, a);
}

static PyObject *ext_configure(PyObject *module, PyObject *args)
{
    int workers, net_threads, io_threads;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "iii:configure", &workers, &net_threads, &io_threads))
        return NULL;
    if (hr_configure(workers, net_threads, io_threads, &e) < 0)
        return ext_raise(PyModule_GetState(module), &e);
    Py_RETURN_NONE;
}

static PyObject *ext_version(PyObject *module, PyObject *unused)
{
    return PyUnicode_FromString(hr_version());
}

static PyObject *ext_dtype(PyObject *module, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s:dtype", &name))
        return NULL;
    enum hr_dtype t = hr_dtype_parse(name);
    if (t)
        return PyUnicode_FromString(hr_dtype_name(t));
    Py_RETURN_NONE;
}

static PyObject *ext_drain(PyObject *module, PyObject *unused)
{
    if (ext_drain_log(PyModule_GetState(module)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"open", ext_open, METH_VARARGS, "open(url, options_json) -> ArchiveHandle"},
    {"concat", ext_concat, METH_VARARGS, "concat(handles, along) -> ArchiveHandle"},
    {"combine", ext_combine, METH_VARARGS, "combine(handles, names) -> ArchiveHandle"},
    {"store", ext_store, METH_VARARGS, "store(url, concurrency) -> StoreHandle"},
    {"objects", ext_objects, METH_VARARGS, "objects(url, options_json) -> ObjectsHandle"},
    {"pools_cut", ext_pools_cut, METH_VARARGS,
     "pools_cut(ids, sizes, windows, members, repeat) -> (first, size, count, group)"},
    {"configure", ext_configure, METH_VARARGS, "configure(workers, net_threads, io_threads)"},
    {"dtype", ext_dtype, METH_VARARGS, "dtype(name) -> numpy's name of the type, or None"},
    {"version", ext_version, METH_NOARGS, "version() -> str"},
    {"ending", ext_ending, METH_NOARGS,
     "The interpreter ends: other threads do not come back from calls."},
    {"drain_log", ext_drain, METH_NOARGS, "Hand collected log lines to logging."},
    {NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    *out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *out ? PyModule_AddType(module, *out) : -1;
}

static int exec(PyObject *module)
{
    struct ext_state *s = PyModule_GetState(module);
    /* not freed: a worker may give a buffer back when the module is gone */
    if (!(s->returned = calloc(1, sizeof *s->returned))) {
        PyErr_NoMemory();
        return -1;
    }
    hr_on_wait(ext_interrupted, s);
    return add_type(module, &ext_archive_spec, &s->archive) ||
                   add_type(module, &ext_samples_spec, &s->samples) ||
                   add_type(module, &ext_loader_spec, &s->loader) ||
                   add_type(module, &ext_batch_spec, &s->batch) ||
                   add_type(module, &ext_tensor_spec, &s->tensor) ||
                   add_type(module, &ext_store_spec, &s->store) ||
                   add_type(module, &ext_objects_spec, &s->objects)
               ? -1
               : 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct ext_state *s = PyModule_GetState(module);
    Py_VISIT(s->archive);
    Py_VISIT(s->samples);
    Py_VISIT(s->loader);
    Py_VISIT(s->batch);
    Py_VISIT(s->tensor);
    Py_VISIT(s->store);
    Py_VISIT(s->objects);
    Py_VISIT(s->make_error);
    Py_VISIT(s->emit_log);
    return 0;
}

static int clear(PyObject *module)
{
    struct ext_state *s = PyModule_GetState(module);
    Py_CLEAR(s->archive);
    Py_CLEAR(s->samples);
    Py_CLEAR(s->loader);
    Py_CLEAR(s->batch);
    Py_CLEAR(s->tensor);
    Py_CLEAR(s->store);
    Py_CLEAR(s->objects);
    Py_CLEAR(s->make_error);
    Py_CLEAR(s->emit_log);
    return 0;
}

static void ended(void *module)
{
    (void)module;
    hr_on_wait(NULL, NULL);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "_headrace", .m_size = sizeof(struct ext_state),
    .m_methods = methods,  .m_slots = slots,      .m_traverse = traverse,
    .m_clear = clear,      .m_free = ended,
};

PyMODINIT_FUNC PyInit__headrace(void);
PyMODINIT_FUNC PyInit__headrace(void)
{
    return PyModuleDef_Init(&module_def);
}
