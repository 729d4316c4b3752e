/* A faulty extension on purpose: each call forgets to give a reference back.
 *
 *   forget(obj)         keeps a reference to obj that nobody knows of
 *   make_bytes(n)       makes a bytes of n and loses it; make_str, make_list alike
 *   keep(obj), drop()   a reference in a C variable, and its end: held, but not lost for ever
 *   owe(obj)            gives back a reference that it was not given: for tests of broken counts */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

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

static PyMethodDef methods[] = {
    {"forget", forget, METH_O, NULL},
    {"make_bytes", make_bytes, METH_O, NULL},
    {"make_str", make_str, METH_O, NULL},
    {"make_list", make_list, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "leaky", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit_leaky(void) { return PyModule_Create(&definition); }
