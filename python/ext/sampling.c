/* How often samples come: buffers of a caller → options of a loader, and the order that they lead to. */
#include "ext.h"

/* A contiguous buffer of items of `size` bytes, or None: *items, and their number. */
static int take(PyObject *self, PyObject *x, Py_ssize_t size, Py_buffer *buffer, const void **items,
                int64_t *n)
{
    buffer->obj = NULL;
    if (x == Py_None)
        return 0;
    if (PyObject_GetBuffer(x, buffer, PyBUF_SIMPLE) < 0)
        return -1;
    *items = buffer->buf;
    *n = buffer->len / size;
    if (buffer->len % size == 0)
        return 0;
    ext_fail(ext_state_of(self), HR_EINVAL, "a buffer of %zd bytes", buffer->len);
    return -1;
}

int ext_sampling(PyObject *self, PyObject *given, struct hr_loader_options *o,
                 struct ext_sampling *s)
{
    PyObject *weights, *classes, *of_class;
    const void *items[3] = {NULL};
    int64_t n[3] = {0};
    memset(s, 0, sizeof *s);
    if (!given || given == Py_None)
        return 0;
    if (!PyArg_ParseTuple(given, "OOO:sampling", &weights, &classes, &of_class))
        return -1;
    if (take(self, weights, 8, &s->buffer[0], &items[0], &n[0]) < 0 ||
        take(self, classes, 2, &s->buffer[1], &items[1], &n[1]) < 0 ||
        take(self, of_class, 8, &s->buffer[2], &items[2], &n[2]) < 0)
        return -1;
    o->weights = items[0];
    o->classes = items[1];
    o->class_weights = items[2];
    o->n_positions = n[0] ? n[0] : n[1];
    o->n_classes = n[2];
    return 0;
}

void ext_sampling_done(struct ext_sampling *s)
{
    for (int i = 0; i < EXT_SAMPLING; i++)
        if (s->buffer[i].obj)
            PyBuffer_Release(&s->buffer[i]);
}
