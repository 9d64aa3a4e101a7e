/* Batch: what one step of a loader gives. Not a Mapping on purpose: collate functions take those apart. */
#include "ext.h"
#include <structmember.h>
#include <stddef.h>

struct batch_object {
    PyObject_HEAD struct hr_batch *batch;
    PyObject *samples; /* set by the loader of the package, as is the rest */
    PyObject *source;
};

PyObject *ext_batch_new(struct ext_state *s, struct hr_batch *b)
{
    struct batch_object *self = PyObject_New(struct batch_object, s->batch);
    if (!self) {
        hr_batch_release(b);
        return NULL;
    }
    self->batch = b;
    self->samples = self->source = NULL;
    return (PyObject *)self;
}

static void batch_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct batch_object *b = (struct batch_object *)self;
    hr_batch_release(b->batch);
    ext_lent_drain(ext_state_of(self));
    Py_XDECREF(b->samples);
    Py_XDECREF(b->source);
    PyObject_Free(self);
    Py_DECREF(type);
}

static struct hr_batch *of(PyObject *self)
{
    return ((struct batch_object *)self)->batch;
}

static PyObject *tensor_at(PyObject *self, int i)
{
    struct hr_tensor t;
    if (hr_batch_tensor(of(self), i, &t) < 0)
        return PyErr_Format(PyExc_IndexError, "the batch has %d tensors", hr_batch_count(of(self)));
    size_t items = 1;
    for (int d = 0; d < t.ndim; d++)
        items *= (size_t)t.shape[d];
    size_t item = hr_dtype_size(t.dtype);
    if (!item)
        item = items ? t.bytes / items : 1;
    return ext_tensor_new(ext_state_of(self), of(self), t.data, t.dtype, item, t.name, t.unit,
                          t.ndim, t.shape);
}

static PyObject *delegate(PyObject *self, const char *name, PyObject *args, PyObject *kwargs);

/* Length of the name of the sparse view whose tensors NAME.data, NAME.indices, NAME.indptr begin at i; 0: another view.
 * Without its samples a batch does not know how wide it is. */
static size_t sparse_at(PyObject *self, int i)
{
    static const char *const parts[] = {".data", ".indices", ".indptr"};
    struct hr_tensor t;
    const char *view = NULL;
    size_t n = 0;
    if (!((struct batch_object *)self)->samples || i + 3 > hr_batch_count(of(self)))
        return 0;
    for (int k = 0; k < 3; k++) {
        size_t length;
        hr_batch_tensor(of(self), i + k, &t);
        length = strlen(t.name);
        if (length <= strlen(parts[k]) || strcmp(t.name + length - strlen(parts[k]), parts[k]))
            return 0;
        length -= strlen(parts[k]);
        if (k && (length != n || memcmp(t.name, view, n)))
            return 0;
        view = t.name;
        n = length;
    }
    return n;
}

/* The view at tensor i: (name, Tensor | headrace._sparse.Sparse), and in *next where the next one begins. */
static PyObject *view_at(PyObject *self, int i, PyObject **name, int *next)
{
    struct hr_tensor t;
    size_t n = sparse_at(self, i);
    hr_batch_tensor(of(self), i, &t);
    *next = i + (n ? 3 : 1);
    *name = n ? PyUnicode_FromStringAndSize(t.name, (Py_ssize_t)n) : PyUnicode_FromString(t.name);
    if (!*name)
        return NULL;
    if (!n)
        return tensor_at(self, i);
    PyObject *args = PyTuple_Pack(1, *name);
    PyObject *sparse = args ? delegate(self, "sparse", args, NULL) : NULL;
    Py_XDECREF(args);
    return sparse;
}

static PyObject *batch_keys(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < hr_batch_count(of(self));) {
        struct hr_tensor t;
        size_t n = sparse_at(self, i);
        hr_batch_tensor(of(self), i, &t);
        PyObject *name =
            n ? PyUnicode_FromStringAndSize(t.name, (Py_ssize_t)n) : PyUnicode_FromString(t.name);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
        i += n ? 3 : 1;
    }
    return list;
}

static PyObject *batch_subscript(PyObject *self, PyObject *key)
{
    Py_ssize_t n;
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &n) : NULL;
    if (!name)
        return PyErr_Occurred() ? NULL
                                : ext_fail(ext_state_of(self), EXT_TYPE,
                                           "a batch is indexed by the name of a view, not %R", key);
    for (int i = 0; i < hr_batch_count(of(self)); i++) {
        struct hr_tensor t;
        hr_batch_tensor(of(self), i, &t);
        if (!strcmp(t.name, name))
            return tensor_at(self, i);
        size_t length = sparse_at(self, i);
        if (length && length == (size_t)n && !memcmp(t.name, name, length)) {
            PyObject *args = PyTuple_Pack(1, key);
            PyObject *sparse = args ? delegate(self, "sparse", args, NULL) : NULL;
            Py_XDECREF(args);
            return sparse;
        }
    }
    PyObject *keys = batch_keys(self, NULL);
    if (keys) {
        ext_fail(ext_state_of(self), HR_ENOENT, "no view %R in this batch; it has %R", key, keys);
        Py_DECREF(keys);
    }
    return NULL;
}

static int batch_contains(PyObject *self, PyObject *key)
{
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
    for (int i = 0; name && i < hr_batch_count(of(self)); i++) {
        struct hr_tensor t;
        hr_batch_tensor(of(self), i, &t);
        if (!strcmp(t.name, name))
            return 1;
    }
    PyErr_Clear(); /* a text that is no UTF-8 names no view */
    PyObject *keys = batch_keys(self, NULL);
    int found = keys ? PySequence_Contains(keys, key) : -1;
    Py_XDECREF(keys);
    return found;
}

static PyObject *batch_items(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < hr_batch_count(of(self));) {
        PyObject *name = NULL;
        PyObject *view = view_at(self, i, &name, &i);
        PyObject *pair = view ? PyTuple_Pack(2, name, view) : NULL;
        if (!pair || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
        Py_XDECREF(view);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *batch_iter(PyObject *self)
{
    PyObject *keys = batch_keys(self, NULL);
    PyObject *it = keys ? PyObject_GetIter(keys) : NULL;
    Py_XDECREF(keys);
    return it;
}

static Py_ssize_t batch_len(PyObject *self)
{
    return (Py_ssize_t)hr_batch_rows(of(self));
}

static PyObject *batch_index(PyObject *self, void *unused)
{
    int64_t rows = hr_batch_rows(of(self));
    return ext_tensor_new(ext_state_of(self), of(self), (void *)hr_batch_index(of(self)), HR_I64, 8,
                          "index", "", 1, &rows);
}

static PyObject *batch_places(PyObject *self, void *unused)
{
    int64_t rows = hr_batch_rows(of(self));
    void *places = (void *)hr_batch_places(of(self));
    if (!places)
        Py_RETURN_NONE;
    return ext_tensor_new(ext_state_of(self), of(self), places, HR_I64, 8, "places", "", 1, &rows);
}

static PyObject *batch_valid(PyObject *self, void *unused)
{
    int64_t rows = hr_batch_rows(of(self));
    return ext_tensor_new(ext_state_of(self), of(self), (void *)hr_batch_valid(of(self)), HR_BOOL,
                          1, "valid", "", 1, &rows);
}

static PyObject *batch_step(PyObject *self, void *unused)
{
    return PyLong_FromLongLong(hr_batch_step(of(self)));
}

static PyObject *batch_epoch(PyObject *self, void *unused)
{
    return PyLong_FromLongLong(hr_batch_epoch(of(self)));
}

static PyObject *batch_filled(PyObject *self, void *unused)
{
    return PyLong_FromLongLong(hr_batch_filled(of(self)));
}

static PyObject *batch_repr(PyObject *self)
{
    char text[1024];
    size_t k = (size_t)PyOS_snprintf(
        text, sizeof text,
        "<Batch step %lld of epoch %lld, %lld row%s:", (long long)hr_batch_step(of(self)),
        (long long)hr_batch_epoch(of(self)), (long long)hr_batch_rows(of(self)),
        hr_batch_rows(of(self)) == 1 ? "" : "s");
    for (int i = 0; i < hr_batch_count(of(self)) && k < sizeof text - 200; i++) {
        struct hr_tensor t;
        hr_batch_tensor(of(self), i, &t);
        k += (size_t)PyOS_snprintf(text + k, sizeof text - k, "%s %.60s (", i ? "," : "", t.name);
        for (int d = 0; d < t.ndim && k < sizeof text - 60; d++)
            k += (size_t)PyOS_snprintf(text + k, sizeof text - k, d ? ", %lld" : "%lld",
                                       (long long)t.shape[d]);
        k += (size_t)PyOS_snprintf(text + k, sizeof text - k, ") %s", hr_dtype_name(t.dtype));
    }
    if (hr_batch_filled(of(self)) && k < sizeof text - 60)
        k += (size_t)PyOS_snprintf(text + k, sizeof text - k, "; %lld missing chunk%s filled",
                                   (long long)hr_batch_filled(of(self)),
                                   hr_batch_filled(of(self)) == 1 ? "" : "s");
    return PyUnicode_FromFormat("%s>", text);
}

/* {"name": view.<how>()} for the framework adapters. */
static PyObject *convert_all(PyObject *self, const char *how)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < hr_batch_count(of(self));) {
        PyObject *name = NULL;
        PyObject *view = view_at(self, i, &name, &i);
        PyObject *value = view ? PyObject_CallMethod(view, how, NULL) : NULL;
        if (!value || PyDict_SetItem(dict, name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
        Py_XDECREF(view);
        Py_XDECREF(name);
    }
    return dict;
}

static PyObject *batch_numpy(PyObject *self, PyObject *unused)
{
    return convert_all(self, "numpy");
}

static PyObject *batch_torch(PyObject *self, PyObject *unused)
{
    return convert_all(self, "torch");
}

static PyObject *batch_jax(PyObject *self, PyObject *unused)
{
    return convert_all(self, "jax");
}

/* What headrace._batch does: `name` of it, with the batch before the other arguments. */
static PyObject *delegate(PyObject *self, const char *name, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("headrace._batch");
    PyObject *call = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_ssize_t n = args ? PyTuple_Size(args) : 0;
    PyObject *all = call ? PyTuple_New(n + 1) : NULL;
    if (all) {
        PyTuple_SetItem(all, 0, Py_NewRef(self));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
    }
    PyObject *result = all ? PyObject_Call(call, all, kwargs) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(call);
    Py_XDECREF(module);
    return result;
}

static PyObject *batch_starts(PyObject *self, void *unused)
{
    return delegate(self, "starts", NULL, NULL);
}

static PyObject *batch_coords(PyObject *self, void *unused)
{
    return delegate(self, "coords", NULL, NULL);
}

static PyObject *batch_xarray(PyObject *self, PyObject *unused)
{
    return delegate(self, "xarray", NULL, NULL);
}

static PyObject *batch_obs(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return delegate(self, "obs", args, kwargs);
}

static PyObject *batch_write(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return delegate(self, "write", args, kwargs);
}

static PyObject *batch_reduce(PyObject *self, PyObject *unused)
{
    return ext_unpicklable(self, "a batch", "send the arrays of batch.numpy()");
}

static PyMethodDef batch_methods[] = {
    {"keys", batch_keys, METH_NOARGS, "Names of the views."},
    {"items", batch_items, METH_NOARGS, "(name, tensor) of every view."},
    {"numpy", batch_numpy, METH_NOARGS,
     "A dict of numpy arrays over the batch's memory, without a copy."},
    {"torch", batch_torch, METH_NOARGS,
     "A dict of torch tensors over the batch's memory, without a copy."},
    {"jax", batch_jax, METH_NOARGS,
     "A dict of jax arrays over the batch's memory, without a copy on CPU."},
    {"xarray", batch_xarray, METH_NOARGS,
     "An xarray.Dataset over the batch's memory, with the coordinates of its samples and of the "
     "other dimensions."},
    {"obs", (PyCFunction)(void (*)(void))batch_obs, METH_VARARGS | METH_KEYWORDS,
     "obs(name)\n\nA column of obs for the cells of the batch, as a numpy array: categories and "
     "texts as texts, None where missing."},
    {"write", (PyCFunction)(void (*)(void))batch_write, METH_VARARGS | METH_KEYWORDS,
     "write(array, values, step=0)\n\nWrite one value (of any shape) per row into a zarr-python "
     "array whose first axis is the sample axis, at the place of the row's sample plus `step`; "
     "padding and masked rows are left out."},
    {"__reduce__", batch_reduce, METH_NOARGS, NULL},
    {NULL},
};

static PyMemberDef batch_members[] = {
    {"samples", T_OBJECT, offsetof(struct batch_object, samples), 0,
     "The Samples that the batch was drawn from."},
    {"source", T_OBJECT, offsetof(struct batch_object, source), 0,
     "In a mix: the name of the loader that the batch is of."},
    {NULL},
};

static PyGetSetDef batch_getset[] = {
    {"index", batch_index, NULL, "Sample ids: int64 tensor of shape (rows,).", NULL},
    {"valid", batch_valid, NULL,
     "bool tensor of shape (rows,): False where a row is padding or masked.", NULL},
    {"_places", batch_places, NULL, NULL, NULL},
    {"starts", batch_starts, NULL,
     "Where each row's box begins: a dict by sample axis of int64 arrays, in positions of the "
     "axis.",
     NULL},
    {"coords", batch_coords, NULL,
     "Coordinates of the batch's samples: a dict of numpy arrays, one value per row.", NULL},
    {"step", batch_step, NULL, "Step of the epoch, from 0.", NULL},
    {"epoch", batch_epoch, NULL, "Epoch, from 0.", NULL},
    {"filled", batch_filled, NULL, "Chunks that were missing and filled.", NULL},
    {NULL},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_repr, batch_repr},
    {Py_tp_iter, batch_iter},
    {Py_tp_methods, batch_methods},
    {Py_tp_getset, batch_getset},
    {Py_tp_members, batch_members},
    {Py_mp_subscript, batch_subscript},
    {Py_mp_length, batch_len},
    {Py_sq_contains, batch_contains},
    {Py_tp_doc,
     "One step of a loader: finished tensors, one per view, by name.\n\n"
     "The memory belongs to the batch and lives as long as any tensor or array made from it."},
    {0, NULL},
};
PyType_Spec ext_batch_spec = {.name = "headrace.Batch",
                              .basicsize = sizeof(struct batch_object),
                              .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              .slots = batch_slots};
