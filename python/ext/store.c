/* StoreHandle: the serving side of a store of Python's. headrace._store runs it on an event loop.
 *
 * Threads of the engine never take the GIL: they write to an eventfd, once for any number of new
 * tasks, that the loop watches. Answers come back many at a time, and the GIL is given up once for
 * all their copies. */
#include "ext.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define AT_ONCE 64

struct store_object {
    PyObject_HEAD struct hr_store *store;
    int fd; /* belongs to the hr_store */
};

struct wakened { /* what the library's calls are given; belongs to the hr_store */
    int fd;
    struct ext_state *state;
};

static struct store_object *of(PyObject *self)
{
    return (struct store_object *)self;
}

/* ---- called by the library, without the GIL ------------------------------------------------------ */

static void wake(void *arg)
{
    uint64_t one = 1;
    if (write(((struct wakened *)arg)->fd, &one, sizeof one) < 0)
        return; /* the counter is full: the loop has been woken already */
}

/* By a thread that waits in a call from Python, which has given up the GIL. */
static int interrupted(void *arg)
{
    if (ext_ended(((struct wakened *)arg)->state))
        return 1;
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals();
    PyGILState_Release(gil);
    return stop;
}

static void release(void *arg)
{
    close(((struct wakened *)arg)->fd);
    free(arg);
}

/* ---- made and ended ------------------------------------------------------------------------------ */

PyObject *ext_store(PyObject *module, PyObject *args)
{
    struct hr_store_options o = HR_STORE_OPTIONS;
    long long concurrency;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "sL:store", &o.url, &concurrency))
        return NULL;
    struct ext_state *s = PyModule_GetState(module);
    struct store_object *self = PyObject_New(struct store_object, s->store);
    if (!self)
        return NULL;
    struct wakened *w = malloc(sizeof *w);
    self->store = NULL;
    self->fd = w ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (!w || self->fd < 0) {
        free(w);
        Py_DECREF(self);
        return w ? PyErr_SetFromErrno(PyExc_OSError) : PyErr_NoMemory();
    }
    *w = (struct wakened){self->fd, s};
    o.concurrency = concurrency;
    o.wake = wake;
    o.interrupted = interrupted;
    o.release = release;
    o.arg = w;
    if (hr_store_new(&o, &self->store, &e) < 0) {
        release(w);
        Py_DECREF(self);
        return ext_raise(s, &e);
    }
    return (PyObject *)self;
}

static void store_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    hr_store_unref(of(self)->store);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *store_close(PyObject *self, PyObject *unused)
{
    Py_BEGIN_ALLOW_THREADS hr_store_close(of(self)->store);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *store_open(PyObject *self, PyObject *unused)
{
    struct hr_archive *a = NULL;
    struct hr_error e = {0};
    int rc;
    EXT_WAITS(ext_state_of(self), rc = hr_open_store(of(self)->store, &a, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_archive_new(ext_state_of(self), a);
}

static PyObject *store_fileno(PyObject *self, PyObject *unused)
{
    return PyLong_FromLong(of(self)->fd);
}

/* ---- tasks and answers --------------------------------------------------------------------------- */

static int add_task(PyObject *list, const struct hr_task *t)
{
    PyObject *key = PyUnicode_DecodeUTF8(t->key, (Py_ssize_t)strlen(t->key), "surrogateescape");
    PyObject *item = key ? Py_BuildValue("iKNLK", t->kind, (unsigned long long)t->id, key,
                                         (long long)t->offset, (unsigned long long)t->length)
                         : NULL;
    int rc = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return rc;
}

static PyObject *store_take(PyObject *self, PyObject *unused)
{
    struct hr_task tasks[AT_ONCE];
    uint64_t count;
    PyObject *list = PyList_New(0);
    if (read(of(self)->fd, &count, sizeof count) < 0)
        count = 0; /* not woken: taken again after answers */
    for (int n = AT_ONCE; list && n == AT_ONCE;) {
        n = hr_store_take(of(self)->store, tasks, AT_ONCE);
        if (n < 0 && PyList_Size(list) == 0) {
            Py_DECREF(list);
            Py_RETURN_NONE;
        }
        for (int i = 0; i < n; i++)
            if (add_task(list, &tasks[i]) < 0) { /* whoever waits for it must not wait for ever */
                PyErr_Clear();
                hr_store_fail(of(self)->store, tasks[i].id, HR_ENOMEM, 0, "no memory for a task");
            }
    }
    return list;
}

struct answer {
    uint64_t id;
    bool given; /* `data` is held */
    bool missing;
    int code, retryable;
    char why[208];
    Py_buffer data;
};

static void read_failure(PyObject *what, struct answer *a)
{
    const char *why = "";
    if (!PyArg_ParseTuple(what, "isp:failure", &a->code, &why, &a->retryable)) {
        PyErr_Clear(); /* as a store may return a tuple: an answer there must be */
        a->code = HR_ESTORE;
        a->retryable = 0;
        why = "the store returned a tuple, which holds no bytes";
    }
    PyOS_snprintf(a->why, sizeof a->why, "%s", why);
}

/* What a store returned that is no bytes is its failure, not ours. */
static int read_answer(PyObject *pair, struct answer *a)
{
    unsigned long long id;
    PyObject *what;
    if (!PyArg_ParseTuple(pair, "KO:answer", &id, &what))
        return -1;
    a->id = id;
    a->missing = what == Py_None;
    a->given = false;
    a->code = 0;
    if (a->missing)
        return 0;
    if (PyTuple_Check(what)) {
        read_failure(what, a);
        return 0;
    }
    if (PyObject_GetBuffer(what, &a->data, PyBUF_SIMPLE) == 0) {
        a->given = true;
        return 0;
    }
    PyErr_Clear();
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(what), "__name__");
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    a->code = HR_ESTORE;
    a->retryable = 0;
    PyOS_snprintf(a->why, sizeof a->why, "the store returned %.60s, which holds no bytes",
                  text ? text : "something");
    Py_XDECREF(name);
    PyErr_Clear();
    return 0;
}

static void give(struct hr_store *s, const struct answer *a)
{
    if (a->given)
        hr_store_answer(s, a->id, a->data.buf, (uint64_t)a->data.len);
    else if (a->missing)
        hr_store_missing(s, a->id);
    else
        hr_store_fail(s, a->id, a->code, a->retryable, a->why);
}

static int answer_some(PyObject *self, PyObject *list, Py_ssize_t first, Py_ssize_t n)
{
    struct answer some[AT_ONCE];
    Py_ssize_t got = 0;
    while (got < n && read_answer(PyList_GetItem(list, first + got), &some[got]) == 0)
        got++;
    struct hr_store *s = of(self)->store;
    Py_BEGIN_ALLOW_THREADS for (Py_ssize_t i = 0; i < got; i++) give(s, &some[i]);
    Py_END_ALLOW_THREADS for (Py_ssize_t i = 0; i < got; i++) if (some[i].given)
        PyBuffer_Release(&some[i].data);
    return got == n ? 0 : -1;
}

static PyObject *store_answer(PyObject *self, PyObject *list)
{
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "answers are a list, not %R", list);
    Py_ssize_t n = PyList_Size(list);
    for (Py_ssize_t i = 0; i < n; i += AT_ONCE)
        if (answer_some(self, list, i, n - i < AT_ONCE ? n - i : AT_ONCE) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef store_methods[] = {
    {"open", store_open, METH_NOARGS, "open() -> ArchiveHandle; another thread has to answer"},
    {"close", store_close, METH_NOARGS, "Fail what is and what will be asked."},
    {"fileno", store_fileno, METH_NOARGS, "Becomes readable when there are tasks."},
    {"take", store_take, METH_NOARGS,
     "take() -> list of (kind, id, key, offset, length), or None when there will be no more"},
    {"answer", store_answer, METH_O,
     "answer(list of (id, bytes-like | None | (code, text, retryable)))"},
    {NULL},
};
static PyType_Slot store_slots[] = {
    {Py_tp_dealloc, store_dealloc},
    {Py_tp_methods, store_methods},
    {0, NULL},
};
PyType_Spec ext_store_spec = {.name = "headrace._headrace.StoreHandle",
                              .basicsize = sizeof(struct store_object),
                              .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              .slots = store_slots};
