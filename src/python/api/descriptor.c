/* leakprobe._core.Descriptor: a descriptor that is closed only while it is still the probe's.
 *
 * A program may close descriptors by number (os.closerange, daemons), and what it opens next gets the number.  So device
 * and inode are kept with it, and compared right before it is closed: no thread of Python runs in between. */
#include "python/api/methods.h"
#include "python/values/convert.h"  // lp_add_type
#include "python/values/state.h"  // lp_state

#ifndef _WIN32

#include <sys/stat.h>
#include <unistd.h>

typedef struct descriptor {
    PyObject_HEAD int number; /* -1: closed */
    dev_t device;
    ino_t inode;
} descriptor;

static int is_same(const descriptor *self) {
    struct stat now;
    return self->number >= 0 && fstat(self->number, &now) == 0 && now.st_dev == self->device &&
           now.st_ino == self->inode;
}

static void close_own(descriptor *self) {
    if (is_same(self)) {
        close(self->number);
    }
    self->number = -1;
}

static PyObject *descriptor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    int number;
    struct stat now;
    if (!PyArg_ParseTuple(args, "i:Descriptor", &number)) {
        return NULL;
    }
    if (fstat(number, &now) != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    descriptor *self = (descriptor *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->number = number;
        self->device = now.st_dev;
        self->inode = now.st_ino;
    }
    return (PyObject *)self;
}

static PyObject *descriptor_is_own(PyObject *op, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(is_same((descriptor *)op));
}

static PyObject *descriptor_close(PyObject *op, PyObject *unused) {
    (void)unused;
    close_own((descriptor *)op);
    Py_RETURN_NONE;
}

static PyObject *descriptor_forget(PyObject *op, PyObject *unused) {
    (void)unused;
    ((descriptor *)op)->number = -1;
    Py_RETURN_NONE;
}

static PyObject *descriptor_fileno(PyObject *op, PyObject *unused) {
    (void)unused;
    return PyLong_FromLong(((descriptor *)op)->number);
}

static void descriptor_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    close_own((descriptor *)op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"is_own", descriptor_is_own, METH_NOARGS, PyDoc_STR("True while the number still is the file that it was.")},
    {"close", descriptor_close, METH_NOARGS,
     PyDoc_STR("Close it if it still is that file; again as often as one likes.")},
    {"forget", descriptor_forget, METH_NOARGS, PyDoc_STR("Leave it to whoever has it.")},
    {"fileno", descriptor_fileno, METH_NOARGS, PyDoc_STR("The number, or -1.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Descriptor(number): a descriptor that is closed only while it is still the same file."},
    {Py_tp_new, descriptor_new},
    {Py_tp_dealloc, descriptor_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "leakprobe._core.Descriptor",
    .basicsize = sizeof(descriptor),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int lp_descriptor_init(PyObject *module) { return lp_add_type(module, &spec, &lp_state.types.descriptor); }

#else

int lp_descriptor_init(PyObject *module) {
    (void)module;
    return 0;
}

#endif
