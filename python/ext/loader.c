/* LoaderHandle: the running loader. Waiting happens without the GIL; about every 50 ms it is taken to let signal handlers
 * run, so that Ctrl-C returns at once. headrace.Loader wraps it.
 *
 * headrace.h lets one thread at a time use a loader; Python programs do not all know that, and must not crash. So calls
 * take turns here. A thread may enter again: a signal handler runs inside a waiting next() and may ask for the state. An
 * iterator names the `round` it was made in, so that the end of an epoch that one thread meets ends it for all. */
#include "ext.h"
#include <stdbool.h>

#define PATIENCE_MS 50

struct loader_object {
    PyObject_HEAD struct hr_loader *loader;
    PyThread_type_lock turn;
    unsigned long owner;      /* atomic: the thread that has the turn, or 0 */
    int depth;                /* under `turn`, as is the rest: of calls in calls */
    unsigned long long round; /* how often the position was moved, or an epoch ended */
};

PyObject *ext_loader_new(struct ext_state *s, struct hr_loader *l)
{
    struct loader_object *self = PyObject_New(struct loader_object, s->loader);
    if (!self) {
        hr_loader_unref(l);
        return NULL;
    }
    self->loader = l;
    self->turn = PyThread_allocate_lock();
    self->owner = 0;
    self->depth = 0;
    self->round = 0;
    if (!self->turn) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
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
    Py_END_ALLOW_THREADS if (((struct loader_object *)self)->turn)
        PyThread_free_lock(((struct loader_object *)self)->turn);
    ext_lent_drain(ext_state_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- turns ----------------------------------------------------------------------------------------------------- */

/* Without the GIL. In a forked child the thread that has the turn may not exist: there the library
 * says so. */
static int wait_turn(struct loader_object *l, struct ext_state *s, int64_t *timeout_ms,
                     struct hr_error *e)
{
    int64_t unused;
    while (hr_loader_steps(l->loader, &unused, e) == 0) {
        int64_t part = *timeout_ms < 0 || *timeout_ms > PATIENCE_MS ? PATIENCE_MS : *timeout_ms;
        if (PyThread_acquire_lock_timed(l->turn, part * 1000, 0) == PY_LOCK_ACQUIRED)
            return 0;
        if (*timeout_ms >= 0)
            *timeout_ms -= part;
        if (*timeout_ms == 0)
            *e = (struct hr_error){HR_ETIMEOUT, 1,
                                   "no batch within the time given: another thread waits for one"};
        else if (ext_interrupted(s))
            e->code = HR_ECANCELED;
        if (e->code)
            break;
    }
    return e->code;
}

static int enter(PyObject *self, int64_t *timeout_ms, struct hr_error *e)
{
    struct loader_object *l = (struct loader_object *)self;
    unsigned long me = PyThread_get_thread_ident();
    int rc = 0;
    if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) != me) {
        if (!PyThread_acquire_lock(l->turn, NOWAIT_LOCK)) {
            EXT_WAITS(ext_state_of(self), rc = wait_turn(l, ext_state_of(self), timeout_ms, e));
        }
        if (rc < 0)
            return rc;
        __atomic_store_n(&l->owner, me, __ATOMIC_RELAXED);
    }
    l->depth++;
    return 0;
}

static void leave(PyObject *self, bool moved)
{
    struct loader_object *l = (struct loader_object *)self;
    l->round += moved;
    if (--l->depth)
        return;
    __atomic_store_n(&l->owner, 0, __ATOMIC_RELAXED);
    PyThread_release_lock(l->turn);
}

/* Is another thread in a call? */
static PyObject *loader_busy(PyObject *self, PyObject *unused)
{
    unsigned long owner = __atomic_load_n(&((struct loader_object *)self)->owner, __ATOMIC_RELAXED);
    return PyBool_FromLong(owner && owner != PyThread_get_thread_ident());
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

static PyObject *loader_next(PyObject *self, PyObject *args)
{
    long long timeout_ms;
    unsigned long long round = 0;
    struct hr_batch *b = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "L|K:next", &timeout_ms, &round))
        return NULL;
    int64_t left = timeout_ms;
    if (enter(self, &left, &e) < 0)
        return ext_raise(ext_state_of(self), &e);
    if (PyTuple_Size(args) > 1 && round != ((struct loader_object *)self)->round) {
        leave(self, false);
        Py_RETURN_NONE;
    }
    struct ext_state *s = ext_state_of(self);
    EXT_WAITS(ext_state_of(self), rc = hr_loader_poll(of(self), left, ext_interrupted, s, &b, &e));
    leave(self, rc == 0);
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    PyObject *batch = rc ? ext_batch_new(ext_state_of(self), b) : Py_NewRef(Py_None);
    if (batch && ext_drain_log(ext_state_of(self)) < 0)
        Py_CLEAR(batch);
    return batch;
}

static PyObject *loader_round(PyObject *self, PyObject *unused)
{
    int64_t for_ever = -1;
    struct hr_error e = {0};
    if (enter(self, &for_ever, &e) < 0)
        return ext_raise(ext_state_of(self), &e);
    unsigned long long round = ((struct loader_object *)self)->round;
    leave(self, false);
    return PyLong_FromUnsignedLongLong(round);
}

static PyObject *loader_steps(PyObject *self, PyObject *unused)
{
    int64_t n = 0;
    struct hr_error e = {0};
    return hr_loader_steps(of(self), &n, &e) < 0 ? ext_raise(ext_state_of(self), &e)
                                                 : PyLong_FromLongLong(n);
}

/* A call in its turn. */
struct call {
    int (*run)(struct hr_loader *l, const struct call *c, struct hr_error *e);
    long long epoch;
    const char *text;
    int allow_batch;
    char **out;
    bool moves; /* the position, when it succeeds */
};

static int in_turn(PyObject *self, const struct call *c)
{
    int64_t for_ever = -1;
    struct hr_error e = {0};
    int rc = enter(self, &for_ever, &e);
    if (rc >= 0) {
        EXT_WAITS(ext_state_of(self), rc = c->run(of(self), c, &e));
        leave(self, c->moves && rc >= 0);
    }
    if (rc >= 0)
        return 0;
    ext_raise(ext_state_of(self), &e);
    return -1;
}

static int run_set_epoch(struct hr_loader *l, const struct call *c, struct hr_error *e)
{
    return hr_loader_set_epoch(l, c->epoch, e);
}

static int run_rewind(struct hr_loader *l, const struct call *c, struct hr_error *e)
{
    return hr_loader_rewind(l, e);
}

static int run_load_state(struct hr_loader *l, const struct call *c, struct hr_error *e)
{
    return hr_loader_load_state(l, c->text, c->allow_batch, e);
}

static int run_state(struct hr_loader *l, const struct call *c, struct hr_error *e)
{
    return hr_loader_state(l, c->out, e);
}

static PyObject *loader_set_epoch(PyObject *self, PyObject *args)
{
    struct call c = {.run = run_set_epoch, .moves = true};
    if (!PyArg_ParseTuple(args, "L:set_epoch", &c.epoch) || in_turn(self, &c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *loader_rewind(PyObject *self, PyObject *unused)
{
    struct call c = {.run = run_rewind, .moves = true};
    if (in_turn(self, &c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *loader_load_state(PyObject *self, PyObject *args)
{
    struct call c = {.run = run_load_state, .moves = true};
    if (!PyArg_ParseTuple(args, "sp:load_state", &c.text, &c.allow_batch) || in_turn(self, &c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *loader_state(PyObject *self, PyObject *unused)
{
    char *text = NULL;
    struct call c = {.run = run_state, .out = &text};
    return in_turn(self, &c) < 0 ? NULL : ext_take_string(text);
}

static PyObject *text_of(PyObject *self,
                         int (*call)(struct hr_loader *, char **, struct hr_error *))
{
    char *text = NULL;
    struct hr_error e = {0};
    int rc;
    EXT_WAITS(ext_state_of(self), rc = call(of(self), &text, &e));
    return rc < 0 ? ext_raise(ext_state_of(self), &e) : ext_take_string(text);
}

static PyObject *loader_order(PyObject *self, PyObject *args)
{
    int64_t for_ever = -1;
    struct hr_error e = {0};
    if (enter(self, &for_ever, &e) < 0)
        return ext_raise(ext_state_of(self), &e);
    PyObject *out = ext_loader_order(ext_state_of(self), of(self), args);
    leave(self, false);
    return out;
}

static PyObject *loader_plan(PyObject *self, PyObject *unused)
{
    return text_of(self, hr_loader_plan_json);
}

static PyObject *loader_stats(PyObject *self, PyObject *unused)
{
    return text_of(self, hr_loader_stats_json);
}

static PyObject *loader_close(PyObject *self, PyObject *unused)
{
    Py_BEGIN_ALLOW_THREADS hr_loader_close(of(self));
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *loader_hook(PyObject *self, PyObject *args)
{
    unsigned long long address;
    struct hr_error e = {0};
    if (!PyArg_ParseTuple(args, "K:hook", &address))
        return NULL;
    if (hr_loader_hook(of(self), (hr_hook)(uintptr_t)address, NULL, &e) < 0)
        return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

static PyObject *loader_reduce(PyObject *self, PyObject *unused)
{
    return ext_unpicklable(self, "a loader",
                           "open it where it is used; for torch's DataLoader use num_workers=0, "
                           "as the loader decodes on threads of its own");
}

static PyMethodDef loader_methods[] = {
    {"next", loader_next, METH_VARARGS,
     "next(timeout_ms, round=now) -> Batch, or None at the end of the epoch or when the round is "
     "over"},
    {"round", loader_round, METH_NOARGS, "round() -> int; another one when the position was moved"},
    {"steps", loader_steps, METH_NOARGS, "steps() -> int"},
    {"set_epoch", loader_set_epoch, METH_VARARGS, "set_epoch(epoch)"},
    {"rewind", loader_rewind, METH_NOARGS, "rewind()"},
    {"state", loader_state, METH_NOARGS, "state() -> str"},
    {"load_state", loader_load_state, METH_VARARGS, "load_state(state, allow_batch)"},
    {"order", loader_order, METH_VARARGS,
     "order(epoch, step, n, room) -> (ids, valid), bytes of int64 and of bool"},
    {"plan", loader_plan, METH_NOARGS, "plan() -> JSON str"},
    {"stats", loader_stats, METH_NOARGS, "stats() -> JSON str"},
    {"hook", loader_hook, METH_VARARGS, "hook(address of a hr_hook)"},
    {"busy", loader_busy, METH_NOARGS, "busy() -> whether another thread is in a call"},
    {"close", loader_close, METH_NOARGS, "close()"},
    {"__reduce__", loader_reduce, METH_NOARGS, NULL},
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
