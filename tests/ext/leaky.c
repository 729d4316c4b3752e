/* A faulty extension on purpose: each call forgets to give a reference back.
 *
 *   forget(obj)         keeps a reference to obj that nobody knows of
 *   make_bytes(n)       makes a bytes of n and loses it; make_str, make_list alike
 *   Box(obj)            is no fault: it keeps obj in a block of its own, which the collector is not shown
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>

static PyObject *forget(PyObject *module, PyObject *op) {
    (void)module;
    Py_INCREF(op);
    Py_RETURN_NONE;
}

static Py_ssize_t size_of(PyObject *number) {
    Py_ssize_t size = PyNumber_AsSsize_t(number, PyExc_OverflowError);
    return PyErr_Occurred() || size < 1 ? -1 : size;
}

/* The reference to what is made goes nowhere. */
static PyObject *lose(PyObject *made) {
    if (made == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyObject *make_bytes(PyObject *module, PyObject *number) {
    (void)module;
    return lose(PyBytes_FromStringAndSize(NULL, size_of(number)));
}

static PyObject *make_str(PyObject *module, PyObject *number) {
    (void)module;
    return lose(PyUnicode_New(size_of(number), 127));
}

static PyObject *make_list(PyObject *module, PyObject *number) {
    Py_ssize_t size = size_of(number);
    PyObject *list = PyList_New(size);
    (void)module;
    for (Py_ssize_t i = 0; list != NULL && i < size; i++) {
        PyList_SET_ITEM(list, i, Py_NewRef(Py_None));
    }
    return lose(list);
}

typedef struct box {
    PyObject_HEAD PyObject **block;
} box;

#define AT 9 /* obj's place in the block */

static PyObject *box_new(PyTypeObject *type, PyObject *args, PyObject *unused) {
    PyObject *op;
    (void)unused;
    if (!PyArg_ParseTuple(args, "O", &op)) {
        return NULL;
    }
    box *self = (box *)type->tp_alloc(type, 0);
    if (self != NULL && (self->block = calloc(AT + 1, sizeof(op))) != NULL) {
        self->block[AT] = Py_NewRef(op);
    }
    return (PyObject *)self;
}

static void box_dealloc(PyObject *op) {
    PyObject **block = ((box *)op)->block;
    if (block != NULL) {
        Py_DECREF(block[AT]);
        free(block);
    }
    Py_TYPE(op)->tp_free(op);
}

static PyTypeObject box_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "leaky.Box", .tp_basicsize = sizeof(box),
                                .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = box_new, .tp_dealloc = box_dealloc};

static PyMethodDef methods[] = {
    {"forget", forget, METH_O, NULL},
    {"make_bytes", make_bytes, METH_O, NULL},
    {"make_str", make_str, METH_O, NULL},
    {"make_list", make_list, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "leaky", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit_leaky(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL &&
        (PyType_Ready(&box_type) < 0 || PyModule_AddObject(module, "Box", Py_NewRef((PyObject *)&box_type)) < 0)) {
        Py_CLEAR(module);
    }
    return module;
}
