/* concat and combine: archives made of archives. */
#include "ext.h"
#include <stdbool.h>
#include <stdlib.h>

/* The archives of a list of handles; the list keeps them alive. NULL with an exception set. */
static struct hr_archive **take_archives(struct ext_state *s, PyObject *list, Py_ssize_t n)
{
    struct hr_archive **of = calloc((size_t)n + 1, sizeof(struct hr_archive *));
    if (!of)
        return (struct hr_archive **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        of[i] = ext_archive_of(s, PyList_GetItem(list, i));
        if (!of[i]) {
            free((void *)of);
            return NULL;
        }
    }
    return of;
}

PyObject *ext_concat(PyObject *module, PyObject *args)
{
    struct ext_state *s = PyModule_GetState(module);
    const char *along;
    PyObject *list;
    struct hr_archive *a = NULL;
    struct hr_error e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "O!s:concat", &PyList_Type, &list, &along))
        return NULL;
    int n = (int)PyList_Size(list);
    struct hr_archive **of = take_archives(s, list, n);
    if (!of)
        return NULL;
    EXT_WAITS(s, rc = hr_archive_concat(of, n, along, &a, &e));
    free((void *)of);
    return rc < 0 ? ext_raise(s, &e) : ext_archive_new(s, a);
}

PyObject *ext_combine(PyObject *module, PyObject *args)
{
    struct ext_state *s = PyModule_GetState(module);
    PyObject *list, *names;
    struct hr_archive *a = NULL;
    struct hr_error e = {0};
    int rc = 0;
    if (!PyArg_ParseTuple(args, "O!O!:combine", &PyList_Type, &list, &PyList_Type, &names))
        return NULL;
    int n = (int)PyList_Size(list);
    struct hr_archive **of = take_archives(s, list, n);
    const char **texts = of ? calloc((size_t)n + 1, sizeof *texts) : NULL;
    for (int i = 0; texts && i < n && rc == 0; i++) {
        PyObject *name = PyList_GetItem(names, i);
        texts[i] = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        rc = texts[i] ? 0 : -1;
    }
    if (texts && rc == 0) {
        EXT_WAITS(s, rc = hr_archive_combine(of, texts, n, &a, &e));
        if (rc < 0)
            ext_raise(s, &e);
    }
    bool fine = texts && rc >= 0;
    free((void *)of);
    free((void *)texts);
    if (!fine && !PyErr_Occurred())
        PyErr_NoMemory();
    return fine ? ext_archive_new(s, a) : NULL;
}
