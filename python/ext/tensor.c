/* Tensor: typed memory of a batch, handed on without a copy.
 *
 * Three ways out: the buffer protocol (writable, any numpy), DLPack (versioned and legacy) and the .numpy/.torch/.jax
 * conveniences over them. What a consumer keeps is a reference to the *batch*, whose release needs no Python: safe on any
 * thread, in any order, after interpreter exit. */
#include "ext.h"
#include "dlpack.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What owns the memory: a batch, or a block of hr_free. Counted apart from Python objects. */
struct owner {
    atomic_int refs;
    struct hr_batch *batch;
    void *data;
};

static void owner_unref(struct owner *o)
{
    if (o && atomic_fetch_sub(&o->refs, 1) == 1) {
        if (o->batch)
            hr_batch_release(o->batch);
        else
            hr_free(o->data);
        free(o);
    }
}

struct tensor_object {
    PyObject_HEAD struct owner *owner;
    void *data;
    enum hr_dtype dtype;
    Py_ssize_t item;
    int ndim;
    Py_ssize_t bytes;
    Py_ssize_t shape[HR_MAX_DIMS + 1], strides[HR_MAX_DIMS + 1];
    char name[64], unit[16], format[16];
};

static const char *buffer_format(enum hr_dtype t)
{
    static const char *const formats[] = {
        [HR_BOOL] = "?",        [HR_I8] = "b",   [HR_I16] = "h",   [HR_I32] = "i",
        [HR_I64] = "q",         [HR_U8] = "B",   [HR_U16] = "H",   [HR_U32] = "I",
        [HR_U64] = "Q",         [HR_F16] = "e",  [HR_BF16] = "H",  [HR_F32] = "f",
        [HR_F64] = "d",         [HR_C64] = "Zf", [HR_C128] = "Zd", [HR_DATETIME64] = "q",
        [HR_TIMEDELTA64] = "q",
    };
    return t > HR_NONE && t <= HR_TIMEDELTA64 ? formats[t] : NULL;
}

PyObject *ext_tensor_new(struct ext_state *s, struct hr_batch *batch, void *data,
                         enum hr_dtype dtype, size_t item, const char *name, const char *unit,
                         int ndim, const int64_t *shape)
{
    struct owner *o = calloc(1, sizeof *o);
    struct tensor_object *self = o ? PyObject_New(struct tensor_object, s->tensor) : NULL;
    if (!self) {
        free(o);
        if (!batch)
            hr_free(data);
        return PyErr_NoMemory();
    }
    atomic_init(&o->refs, 1);
    o->batch = batch ? hr_batch_ref(batch) : NULL;
    o->data = data;
    self->owner = o;
    self->data = data;
    self->dtype = dtype;
    self->item = (Py_ssize_t)item;
    self->ndim = ndim;
    self->bytes = (Py_ssize_t)item;
    for (int d = ndim - 1; d >= 0; d--) {
        self->shape[d] = (Py_ssize_t)shape[d];
        self->strides[d] = self->bytes;
        self->bytes *= self->shape[d];
    }
    PyOS_snprintf(self->name, sizeof self->name, "%s", name ? name : "");
    PyOS_snprintf(self->unit, sizeof self->unit, "%s", unit ? unit : "");
    if (buffer_format(dtype))
        PyOS_snprintf(self->format, sizeof self->format, "%s", buffer_format(dtype));
    else
        PyOS_snprintf(self->format, sizeof self->format, dtype == HR_UTF32 ? "%zdw" : "%zds",
                      dtype == HR_UTF32 ? self->item / 4 : self->item);
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    owner_unref(((struct tensor_object *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    struct tensor_object *t = (struct tensor_object *)self;
    view->buf = t->data;
    view->obj = Py_NewRef(self);
    view->len = t->bytes;
    view->itemsize = t->item;
    view->readonly = 0;
    view->ndim = t->ndim;
    view->format = flags & PyBUF_FORMAT ? t->format : NULL;
    view->shape = flags & PyBUF_ND ? t->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? t->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

/* ---- DLPack ---------------------------------------------------------------------------------------------------- */

struct managed {
    union {
        DLManagedTensor legacy;
        DLManagedTensorVersioned versioned;
    };
    struct owner *owner;
    void *copy;
    int64_t shape[HR_MAX_DIMS + 1], strides[HR_MAX_DIMS + 1];
};

static void managed_free(struct managed *m)
{
    owner_unref(m->owner);
    free(m->copy);
    free(m);
}

static void delete_legacy(DLManagedTensor *t)
{
    managed_free(t->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *t)
{
    managed_free(t->manager_ctx);
}

static void capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *t = PyCapsule_GetPointer(capsule, "dltensor");
        t->deleter(t);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DLManagedTensorVersioned *t = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        t->deleter(t);
    } /* otherwise a consumer took it over and renamed it */
}

static int dlpack_type(const struct tensor_object *t, DLDataType *out)
{
    static const uint8_t codes[] = {
        [HR_BOOL] = 6, [HR_I8] = 0,  [HR_I16] = 0, [HR_I32] = 0, [HR_I64] = 0,
        [HR_U8] = 1,   [HR_U16] = 1, [HR_U32] = 1, [HR_U64] = 1, [HR_F16] = 2,
        [HR_BF16] = 4, [HR_F32] = 2, [HR_F64] = 2, [HR_C64] = 5, [HR_C128] = 5,
    };
    if (t->dtype > HR_C128) {
        PyErr_Format(PyExc_BufferError, "DLPack has no type %s: use .numpy()",
                     hr_dtype_name(t->dtype));
        return -1;
    }
    *out = (DLDataType){.code = codes[t->dtype], .bits = (uint8_t)(t->item * 8), .lanes = 1};
    return 0;
}

static int fill_dltensor(struct tensor_object *t, struct managed *m, DLTensor *dl, int copy)
{
    if (dlpack_type(t, &dl->dtype) < 0)
        return -1;
    dl->data = t->bytes ? t->data : NULL;
    if (copy && t->bytes) {
        if (posix_memalign(&m->copy, 256, (size_t)t->bytes)) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(m->copy, t->data, (size_t)t->bytes);
        dl->data = m->copy;
    }
    dl->device = (DLDevice){1, 0};
    dl->ndim = t->ndim;
    for (int d = 0; d < t->ndim; d++) {
        m->shape[d] = t->shape[d];
        m->strides[d] = t->strides[d] / t->item;
    }
    dl->shape = m->shape;
    dl->strides = m->strides;
    if (!copy) {
        m->owner = t->owner;
        atomic_fetch_add(&m->owner->refs, 1);
    }
    return 0;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
                                     &max_version, &device, &copy))
        return NULL;
    if (stream != Py_None)
        return PyErr_Format(PyExc_BufferError, "stream must be None for memory on the CPU");
    if (device != Py_None) {
        int type, id;
        if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id) || type != 1 ||
            id != 0) {
            PyErr_Clear();
            return PyErr_Format(PyExc_BufferError, "this tensor lives on the CPU, device (1, 0)");
        }
    }
    int major = 0, minor = 0;
    if (max_version != Py_None &&
        (!PyTuple_Check(max_version) || !PyArg_ParseTuple(max_version, "ii", &major, &minor)))
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_TypeError, "max_version is a tuple of two integers");
    int do_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (do_copy < 0)
        return NULL;
    struct managed *m = calloc(1, sizeof *m);
    if (!m)
        return PyErr_NoMemory();
    DLTensor *dl = major >= 1 ? &m->versioned.dl_tensor : &m->legacy.dl_tensor;
    if (fill_dltensor((struct tensor_object *)self, m, dl, do_copy) < 0) {
        managed_free(m);
        return NULL;
    }
    PyObject *capsule;
    if (major >= 1) {
        m->versioned.version = (DLPackVersion){1, 0};
        m->versioned.manager_ctx = m;
        m->versioned.deleter = delete_versioned;
        m->versioned.flags = do_copy ? 2 : 0;
        capsule = PyCapsule_New(&m->versioned, "dltensor_versioned", capsule_free);
    } else {
        m->legacy.manager_ctx = m;
        m->legacy.deleter = delete_legacy;
        capsule = PyCapsule_New(&m->legacy, "dltensor", capsule_free);
    }
    if (!capsule)
        managed_free(m);
    return capsule;
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    return Py_BuildValue("(ii)", 1, 0);
}

/* ---- conveniences ------------------------------------------------------------------------------------------------ */

static PyObject *call_module(const char *module, const char *function, PyObject *arg)
{
    PyObject *m = PyImport_ImportModule(module);
    PyObject *result = m ? PyObject_CallMethod(m, function, "O", arg) : NULL;
    Py_XDECREF(m);
    return result;
}

static PyObject *tensor_numpy(PyObject *self, PyObject *unused)
{
    return call_module("headrace._arrays", "numpy", self);
}

static PyObject *tensor_torch(PyObject *self, PyObject *unused)
{
    return call_module("headrace._arrays", "torch", self);
}

static PyObject *tensor_jax(PyObject *self, PyObject *unused)
{
    return call_module("headrace._arrays", "jax", self);
}

static PyObject *tensor_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    PyObject *array = tensor_numpy(self, NULL);
    int want_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (!array || want_copy < 0 || (dtype == Py_None && !want_copy))
        return array;
    PyObject *changed = dtype != Py_None ? PyObject_CallMethod(array, "astype", "O", dtype)
                                         : PyObject_CallMethod(array, "copy", NULL);
    Py_DECREF(array);
    return changed;
}

static PyObject *tensor_shape(PyObject *self, void *unused)
{
    struct tensor_object *t = (struct tensor_object *)self;
    PyObject *shape = PyTuple_New(t->ndim);
    for (int d = 0; shape && d < t->ndim; d++)
        PyTuple_SetItem(shape, d, PyLong_FromSsize_t(t->shape[d]));
    return shape;
}

static PyObject *tensor_dtype(PyObject *self, void *unused)
{
    struct tensor_object *t = (struct tensor_object *)self;
    if (t->unit[0])
        return PyUnicode_FromFormat("%s[%s]", hr_dtype_name(t->dtype), t->unit);
    if (t->dtype == HR_RAW)
        return PyUnicode_FromFormat("V%zd", t->item);
    if (t->dtype == HR_UTF32)
        return PyUnicode_FromFormat("U%zd", t->item / 4);
    return PyUnicode_FromString(hr_dtype_name(t->dtype));
}

static PyObject *tensor_nbytes(PyObject *self, void *unused)
{
    return PyLong_FromSsize_t(((struct tensor_object *)self)->bytes);
}

static PyObject *tensor_ndim(PyObject *self, void *unused)
{
    return PyLong_FromLong(((struct tensor_object *)self)->ndim);
}

static PyObject *tensor_name(PyObject *self, void *unused)
{
    return PyUnicode_FromString(((struct tensor_object *)self)->name);
}

static Py_ssize_t tensor_len(PyObject *self)
{
    struct tensor_object *t = (struct tensor_object *)self;
    if (t->ndim)
        return t->shape[0];
    PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
    return -1;
}

static PyObject *tensor_subscript(PyObject *self, PyObject *key)
{
    PyObject *array = tensor_numpy(self, NULL);
    PyObject *item = array ? PyObject_GetItem(array, key) : NULL;
    Py_XDECREF(array);
    return item;
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = tensor_shape(self, NULL), *dtype = tensor_dtype(self, NULL);
    PyObject *text = shape && dtype
                         ? PyUnicode_FromFormat("<Tensor %s %S %U>",
                                                ((struct tensor_object *)self)->name, shape, dtype)
                         : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return text;
}

static PyObject *tensor_reduce(PyObject *self, PyObject *unused)
{
    return ext_unpicklable(self, "a tensor", "send the array of tensor.numpy()");
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the batch's memory."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
    {"__array__", (PyCFunction)(void (*)(void))tensor_array, METH_VARARGS | METH_KEYWORDS,
     "As numpy asks for it."},
    {"numpy", tensor_numpy, METH_NOARGS, "A writable numpy array over the same memory."},
    {"torch", tensor_torch, METH_NOARGS, "A torch tensor over the same memory."},
    {"jax", tensor_jax, METH_NOARGS,
     "A jax array over the same memory (CPU), read-only as jax has it."},
    {"__reduce__", tensor_reduce, METH_NOARGS, NULL},
    {NULL},
};

static PyGetSetDef tensor_getset[] = {
    {"shape", tensor_shape, NULL, "Tuple of int.", NULL},
    {"dtype", tensor_dtype, NULL, "numpy's name of the type, a str.", NULL},
    {"ndim", tensor_ndim, NULL, "Number of dimensions.", NULL},
    {"nbytes", tensor_nbytes, NULL, "Size in bytes.", NULL},
    {"name", tensor_name, NULL, "Name of the view.", NULL},
    {NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_repr, tensor_repr},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_mp_length, tensor_len},
    {Py_mp_subscript, tensor_subscript},
    {Py_bf_getbuffer, tensor_getbuffer},
    {Py_tp_doc,
     "Typed memory of a batch: C-contiguous, 256-byte aligned, writable, shared without a copy."},
    {0, NULL},
};
PyType_Spec ext_tensor_spec = {.name = "headrace.Tensor",
                               .basicsize = sizeof(struct tensor_object),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = tensor_slots};
