/* leakprobe._core.QuietCollector: a block in which the collector does not run. */
#include "python/api/methods.h"
#include "python/values/convert.h"  // lp_add_type
#include "python/values/state.h"  // lp_state

/* Its state is put back when the block ends, and at the latest when the object goes: an exception may come at any instruction. */
typedef struct quiet {
    PyObject_HEAD int put_back;
} quiet;

static int open_blocks; /* those that will switch the collector on again; the GIL protects it */

static void put_back(quiet *self) {
    if (self->put_back) {
        self->put_back = 0;
        open_blocks--;
        PyGC_Enable();
    }
}

static PyObject *quiet_enter(PyObject *op, PyObject *unused) {
    (void)unused;
    quiet *self = (quiet *)op;
    int collects = PyGC_Disable();
    self->put_back |= collects;
    open_blocks += collects;
    return Py_NewRef(op);
}

static PyObject *quiet_is_on(PyObject *unused, PyObject *also_unused) {
    (void)unused, (void)also_unused;
    return PyBool_FromLong(open_blocks > 0 || PyGC_IsEnabled());
}

static PyObject *quiet_exit(PyObject *op, PyObject *args) {
    (void)args;
    put_back((quiet *)op);
    Py_RETURN_NONE;
}

static void quiet_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    put_back((quiet *)op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", quiet_enter, METH_NOARGS, NULL},
    {"__exit__", quiet_exit, METH_VARARGS, NULL},
    {"is_on_outside", quiet_is_on, METH_NOARGS | METH_STATIC, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Keeps the collector from running on account of the probe's own objects; its state is put back."},
    {Py_tp_dealloc, quiet_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "leakprobe._core.QuietCollector",
    .basicsize = sizeof(quiet),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int lp_quiet_init(PyObject *module) { return lp_add_type(module, &spec, &lp_state.types.quiet); }
