/* SamplesHandle: samples of several cells. */
#include "ext.h"
#include <stdlib.h>
#include <string.h>

static int64_t items(const Py_buffer *b)
{
    return (int64_t)(b->len / (Py_ssize_t)sizeof(int64_t));
}

static bool whole(const Py_buffer *b)
{
    return !(b->len % (Py_ssize_t)sizeof(int64_t)) && !((uintptr_t)b->buf % sizeof(int64_t));
}

struct pools { /* and the buffers they lie in */
    struct hr_pools of;
    Py_buffer first, size, cells;
};

static void pools_free(struct pools *p)
{
    if (p->first.obj)
        PyBuffer_Release(&p->first);
    if (p->size.obj)
        PyBuffer_Release(&p->size);
    if (p->cells.obj)
        PyBuffer_Release(&p->cells);
}

static int pools_of(PyObject *tuple, Py_ssize_t n, struct pools *p)
{
    long long members;
    if (tuple == Py_None)
        return 0;
    if (!PyArg_ParseTuple(tuple, "Ly*y*y*:pools", &members, &p->first, &p->size, &p->cells))
        return -1;
    p->of = (struct hr_pools){.members = members,
                              .first = p->first.buf,
                              .size = p->size.buf,
                              .cells = p->cells.buf,
                              .n_cells = items(&p->cells)};
    if (whole(&p->first) && whole(&p->size) && whole(&p->cells) && items(&p->first) == n &&
        items(&p->size) == n)
        return 0;
    PyErr_SetString(PyExc_ValueError, "sentences: pools are int64, as many of each");
    return -1;
}

PyObject *ext_samples_sentences(PyObject *self, PyObject *args)
{
    struct hr_sentences o = HR_SENTENCES;
    struct pools cells = {0}, controls = {0};
    PyObject *own, *other;
    Py_buffer begin;
    unsigned long long seed;
    long long block;
    struct hr_error e = {0};
    int rc = 0;
    if (!PyArg_ParseTuple(args, "sy*OOKL:sentences", &o.axis, &begin, &own, &other, &seed, &block))
        return NULL;
    o.begin = begin.buf;
    o.n_pools = items(&begin) - 1;
    o.seed = seed;
    o.block = block;
    if (!whole(&begin)) {
        PyBuffer_Release(&begin);
        PyErr_SetString(PyExc_ValueError, "sentences: int64 are expected");
        return NULL;
    }
    int bad = pools_of(own, (Py_ssize_t)o.n_pools, &cells) < 0 ||
              pools_of(other, (Py_ssize_t)o.n_pools, &controls) < 0;
    if (!bad) {
        o.cells = cells.of;
        o.controls = controls.of;
        EXT_WAITS(ext_state_of(self), rc = hr_samples_sentences(ext_samples_of(self), &o, &e));
    }
    pools_free(&cells);
    pools_free(&controls);
    PyBuffer_Release(&begin);
    if (bad)
        return NULL;
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

PyObject *ext_samples_row_chunks(PyObject *self, PyObject *args)
{
    const char *view;
    int64_t n = 0, most = 0;
    struct hr_error e = {0};
    int rc = 0;
    if (!PyArg_ParseTuple(args, "s:row_chunks", &view))
        return NULL;
    EXT_WAITS(ext_state_of(self),
              rc = hr_samples_row_chunks(ext_samples_of(self), view, NULL, 0, &most, &e));
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)most * (Py_ssize_t)sizeof(int64_t));
    if (!out)
        return NULL;
    int64_t *edges = (int64_t *)(void *)PyBytes_AsString(out);
    EXT_WAITS(ext_state_of(self),
              rc = hr_samples_row_chunks(ext_samples_of(self), view, edges, most, &n, &e));
    if (rc < 0) {
        Py_DECREF(out);
        return ext_raise(ext_state_of(self), &e);
    }
    return out;
}
