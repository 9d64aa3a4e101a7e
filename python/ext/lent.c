/* Buffers of Python's that the library uses where they lie. Whichever thread lets go of one last must not wait for the GIL,
 * whose holder may wait for that thread: it only notes the buffer, which is released at the next occasion. */
#include "ext.h"
#include <stdlib.h>

struct ext_lent {
    struct ext_lent *next;
    struct ext_lent **to;
    Py_buffer buffer;
};

static void done(void *arg)
{
    struct ext_lent *l = arg;
    struct ext_lent **head = l->to;
    l->next = __atomic_load_n(head, __ATOMIC_RELAXED);
    while (
        !__atomic_compare_exchange_n(head, &l->next, l, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static void release(struct ext_lent *l)
{
    PyBuffer_Release(&l->buffer);
    free(l);
}

int ext_lend(struct ext_state *s, PyObject *x, Py_buffer *seen, struct hr_lent *out)
{
    struct ext_lent *l = malloc(sizeof *l);
    if (!l) {
        PyErr_NoMemory();
        return -1;
    }
    l->to = s->returned;
    if (PyObject_GetBuffer(x, &l->buffer, PyBUF_SIMPLE) < 0) {
        free(l);
        return -1;
    }
    *seen = l->buffer; /* to look at, not to release */
    *out = (struct hr_lent){done, l};
    return 0;
}

void ext_lent_back(const struct hr_lent *lent)
{
    release(lent->arg);
}

void ext_lent_drain(struct ext_state *s)
{
    if (!__atomic_load_n(s->returned, __ATOMIC_RELAXED))
        return;
    struct ext_lent *l = __atomic_exchange_n(s->returned, NULL, __ATOMIC_ACQUIRE);
    while (l) {
        struct ext_lent *next = l->next;
        release(l);
        l = next;
    }
}
