/* A module that keeps its data in that pool: toy.Buffer(bytes). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

void *toy_pool_take(size_t bytes);
void toy_pool_give(void *block);

typedef struct buffer {
    PyObject_HEAD void *block;
} buffer;

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    Py_ssize_t bytes;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "n", &bytes)) {
        return NULL;
    }
    buffer *self = (buffer *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->block = toy_pool_take((size_t)bytes);
    }
    return (PyObject *)self;
}

static void buffer_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    toy_pool_give(((buffer *)op)->block);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_new, buffer_new}, {Py_tp_dealloc, buffer_dealloc}, {0, NULL}};

static PyType_Spec spec = {
    .name = "toy.Buffer", .basicsize = sizeof(buffer), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "toy", .m_size = -1};

PyMODINIT_FUNC PyInit_toy(void) {
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Buffer", type) < 0) {
        Py_CLEAR(module);
    }
    Py_XDECREF(type);
    return module;
}
