/* SamplesHandle: samples of several cells. */
#include "ext.h"
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
    Py_buffer first, size, cells; /* of the cells, that which is lent */
};

static void pools_free(struct pools *p, bool taken)
{
    if (p->first.obj)
        PyBuffer_Release(&p->first);
    if (p->size.obj)
        PyBuffer_Release(&p->size);
    if (p->of.lent.done && !taken)
        ext_lent_back(&p->of.lent);
}

static int pools_of(PyObject *self, PyObject *tuple, Py_ssize_t n, struct pools *p)
{
    long long members;
    PyObject *cells;
    if (tuple == Py_None)
        return 0;
    if (!PyArg_ParseTuple(tuple, "Ly*y*O:pools", &members, &p->first, &p->size, &cells) ||
        ext_lend(ext_state_of(self), cells, &p->cells, &p->of.lent) < 0)
        return -1;
    p->of.members = members;
    p->of.first = p->first.buf;
    p->of.size = p->size.buf;
    p->of.cells = p->cells.buf;
    p->of.n_cells = (int64_t)(p->cells.len / (Py_ssize_t)sizeof(uint32_t));
    if (whole(&p->first) && whole(&p->size) && items(&p->first) == n && items(&p->size) == n &&
        !((uintptr_t)p->cells.buf % sizeof(uint32_t)))
        return 0;
    PyErr_SetString(PyExc_ValueError, "sentences: pools are int64, as many of each, and uint32");
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
    int rc = -1;
    if (!PyArg_ParseTuple(args, "sy*OOKL:sentences", &o.axis, &begin, &own, &other, &seed, &block))
        return NULL;
    o.begin = begin.buf;
    o.n_pools = items(&begin) - 1;
    o.seed = seed;
    o.block = block;
    bool bad = !whole(&begin);
    if (bad)
        PyErr_SetString(PyExc_ValueError, "sentences: int64 are expected");
    bad = bad || pools_of(self, own, (Py_ssize_t)o.n_pools, &cells) < 0 ||
          pools_of(self, other, (Py_ssize_t)o.n_pools, &controls) < 0;
    if (!bad) {
        o.cells = cells.of;
        o.controls = controls.of;
        EXT_WAITS(ext_state_of(self), rc = hr_samples_sentences(ext_samples_of(self), &o, &e));
    }
    pools_free(&cells, rc >= 0);
    pools_free(&controls, rc >= 0);
    PyBuffer_Release(&begin);
    if (bad)
        return NULL;
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

/* ---- groups --------------------------------------------------------------------------------------------------- */

/* codes(type, buffer) → *c, whose buffer is to be released unless this fails. */
static int codes_of(PyObject *self, const char *type, Py_buffer *buffer, struct hr_codes *c)
{
    c->t = hr_dtype_parse(type);
    size_t size = hr_dtype_size(c->t);
    c->code = buffer->buf;
    c->n = size ? (int64_t)((size_t)buffer->len / size) : 0;
    if (size && !((uintptr_t)buffer->buf % size))
        return 0;
    PyBuffer_Release(buffer);
    ext_fail(ext_state_of(self), HR_EINVAL, "codes of type %s", type);
    return -1;
}

PyObject *ext_samples_count_codes(PyObject *self, PyObject *args)
{
    const char *type;
    Py_buffer buffer;
    long long groups;
    struct hr_codes codes;
    struct hr_error e = {0};
    int rc = 0;
    if (!PyArg_ParseTuple(args, "sy*L:count_codes", &type, &buffer, &groups) ||
        codes_of(self, type, &buffer, &codes) < 0)
        return NULL;
    PyObject *out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)groups * 8);
    int64_t *sizes = out ? (int64_t *)(void *)PyByteArray_AsString(out) : NULL;
    if (out)
        EXT_WAITS(ext_state_of(self),
                  rc = hr_samples_count_codes(ext_samples_of(self), &codes, groups, sizes, &e));
    PyBuffer_Release(&buffer);
    if (rc < 0) {
        Py_DECREF(out);
        return ext_raise(ext_state_of(self), &e);
    }
    return out;
}

PyObject *ext_samples_sort_codes(PyObject *self, PyObject *args)
{
    const char *type;
    Py_buffer buffer, sizes, out;
    struct hr_codes codes;
    struct hr_error e = {0};
    int rc = HR_EINVAL;
    if (!PyArg_ParseTuple(args, "sy*y*w*:sort_codes", &type, &buffer, &sizes, &out))
        return NULL;
    if (codes_of(self, type, &buffer, &codes) < 0) {
        PyBuffer_Release(&sizes);
        PyBuffer_Release(&out);
        return NULL;
    }
    int64_t sum = 0;
    for (int64_t g = 0; whole(&sizes) && g < items(&sizes); g++)
        sum += ((const int64_t *)sizes.buf)[g];
    bool fits = whole(&sizes) && out.len == (Py_ssize_t)sum * 4 && !((uintptr_t)out.buf % 4);
    if (fits)
        EXT_WAITS(ext_state_of(self),
                  rc = hr_samples_sort_codes(ext_samples_of(self), &codes, items(&sizes), sizes.buf,
                                             out.buf, &e));
    PyBuffer_Release(&buffer);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&out);
    if (!fits)
        return ext_fail(ext_state_of(self), HR_EINVAL, "sort_codes: room for %lld ids is expected",
                        (long long)sum);
    if (rc < 0)
        return ext_raise(ext_state_of(self), &e);
    Py_RETURN_NONE;
}

/* pools_cut(ids, sizes, windows, members, repeat) -> (first, size, count, group), bytes of int64 */
PyObject *ext_pools_cut(PyObject *module, PyObject *args)
{
    Py_buffer ids, sizes, windows;
    PyObject *part[4] = {NULL}, *out = NULL;
    int64_t *to[4], n = 0;
    long long members;
    struct hr_cut c = {0};
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "y*y*y*Lp:pools_cut", &ids, &sizes, &windows, &members, &c.repeat))
        return NULL;
    c.ids = ids.buf;
    c.sizes = sizes.buf;
    c.n_groups = items(&sizes);
    c.members = members;
    c.window = windows.buf;
    c.n_windows = items(&windows);
    Py_BEGIN_ALLOW_THREADS rc = hr_pools_cut(&c, 0, NULL, NULL, NULL, NULL, &n, &e);
    Py_END_ALLOW_THREADS bool made = rc >= 0;
    for (int i = 0; i < 4 && made; i++) {
        part[i] = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)n * 8);
        made = part[i];
        to[i] = part[i] ? (int64_t *)(void *)PyByteArray_AsString(part[i]) : NULL;
    }
    if (made) {
        Py_BEGIN_ALLOW_THREADS rc = hr_pools_cut(&c, n, to[0], to[1], to[2], to[3], &n, &e);
        Py_END_ALLOW_THREADS out = PyTuple_Pack(4, part[0], part[1], part[2], part[3]);
    }
    for (int i = 0; i < 4; i++)
        Py_XDECREF(part[i]);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&windows);
    if (rc < 0)
        return ext_raise(PyModule_GetState(module), &e);
    return out;
}

/* ---- row chunks ----------------------------------------------------------------------------------------------- */

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
