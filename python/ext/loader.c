/* LoaderHandle: the running loader. Waiting happens without the GIL; about every 50 ms it is taken to let signal handlers
 * run, so that Ctrl-C returns at once. headrace.Loader wraps it. */
#include "ext.h"

struct loader_object {
    PyObject_HEAD struct hr_loader *loader;
};

PyObject *ext_loader_new(struct ext_state *s, struct hr_loader *l)
{
    struct loader_object *self = PyObject_New(struct loader_object, s->loader);
    if (self)
        self->loader = l;
    else
        hr_loader_unref(l);
    return (PyObject *)self;
}

static struct hr_loader *of(PyObject *self)
{
    return ((struct loader_object *)self)->loader;
}

static void loader_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct hr_loader *l = of(self);
    Py_BEGIN_ALLOW_THREADS hr_loader_unref(l);
    Py_END_ALLOW_THREADS PyObject_Free(self);
    Py_DECREF(type);
}

static int interrupted(void *unused)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals();
    PyGILState_Release(gil);
    return stop;
}

static PyObject *loader_next(PyObject *self, PyObject *args)
{
    long long timeout_ms;
    struct hr_batch *b = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "L:next", &timeout_ms))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = hr_loader_poll(of(self), timeout_ms, interrupted, NULL, &b, &e);
    Py_END_ALLOW_THREADS if (rc < 0) return ext_raise(ext_state_of(self), &e);
    PyObject *batch = rc ? ext_batch_new(ext_state_of(self), b) : Py_NewRef(Py_None);
    if (batch && ext_drain_log(ext_state_of(self)) < 0)
        Py_CLEAR(batch);
    return batch;
}

static PyObject *loader_steps(PyObject *self, PyObject *unused)
{
    int64_t n = 0;
    struct hr_error e = {0};
    return hr_loader_steps(of(self), &n, &e) < 0 ? ext_raise(ext_state_of(self), &e)
                                                 : PyLong_FromLongLong(n);
}

static PyObject *loader_set_epoch(PyObject *self, PyObject *args)
{
    long long epoch;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "L:set_epoch", &epoch))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = hr_loader_set_epoch(of(self), epoch, &e);
    Py_END_ALLOW_THREADS if (rc < 0) return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

static PyObject *loader_rewind(PyObject *self, PyObject *unused)
{
    struct hr_error e = {0};
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = hr_loader_rewind(of(self), &e);
    Py_END_ALLOW_THREADS if (rc < 0) return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

static PyObject *text_of(PyObject *self,
                         int (*call)(struct hr_loader *, char **, struct hr_error *))
{
    char *text = NULL;
    struct hr_error e = {0};
    int rc;
    Py_BEGIN_ALLOW_THREADS rc = call(of(self), &text, &e);
    Py_END_ALLOW_THREADS return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_take_string(text);
}

static PyObject *loader_state(PyObject *self, PyObject *unused)
{
    return text_of(self, hr_loader_state);
}

static PyObject *loader_plan(PyObject *self, PyObject *unused)
{
    return text_of(self, hr_loader_plan_json);
}

static PyObject *loader_stats(PyObject *self, PyObject *unused)
{
    return text_of(self, hr_loader_stats_json);
}

static PyObject *loader_load_state(PyObject *self, PyObject *args)
{
    const char *state;
    int allow_batch, rc;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sp:load_state", &state, &allow_batch))
        return NULL;
    Py_BEGIN_ALLOW_THREADS rc = hr_loader_load_state(of(self), state, allow_batch, &e);
    Py_END_ALLOW_THREADS if (rc < 0) return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

static PyObject *loader_close(PyObject *self, PyObject *unused)
{
    Py_BEGIN_ALLOW_THREADS hr_loader_close(of(self));
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyMethodDef loader_methods[] = {
    {"next", loader_next, METH_VARARGS,
     "next(timeout_ms) -> Batch, or None at the end of the epoch"},
    {"steps", loader_steps, METH_NOARGS, "steps() -> int"},
    {"set_epoch", loader_set_epoch, METH_VARARGS, "set_epoch(epoch)"},
    {"rewind", loader_rewind, METH_NOARGS, "rewind()"},
    {"state", loader_state, METH_NOARGS, "state() -> str"},
    {"load_state", loader_load_state, METH_VARARGS, "load_state(state, allow_batch)"},
    {"plan", loader_plan, METH_NOARGS, "plan() -> JSON str"},
    {"stats", loader_stats, METH_NOARGS, "stats() -> JSON str"},
    {"close", loader_close, METH_NOARGS, "close()"},
    {NULL},
};
static PyType_Slot loader_slots[] = {
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_methods, loader_methods},
    {0, NULL},
};
PyType_Spec ext_loader_spec = {.name = "headrace._headrace.LoaderHandle",
                               .basicsize = sizeof(struct loader_object),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = loader_slots};
