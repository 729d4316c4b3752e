#include "python/layouts/numpy.h"

#include "python/compat/heap.h"  // lp_heap_looks_alive

/* PyArrayObject_fields of numpy/ndarraytypes.h, the same since 1.7. */
typedef struct array {
    PyObject_HEAD char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
    PyObject *weakreflist;
} array;

/* PyVoidScalarObject of numpy/arrayscalars.h. */
typedef struct record {
    PyObject_VAR_HEAD char *data;
    PyObject *descr;
    int flags;
    PyObject *base;
} record;

/* The beginning of PyArray_Descr, the same in 1.x and 2.x. */
typedef struct descriptor {
    PyObject_HEAD PyTypeObject *typeobj;
    char kind, type;
} descriptor;

enum { C_CONTIGUOUS = 1, F_CONTIGUOUS = 2, OWN_DATA = 4 };

/* Items of an array of objects that owns them, else 0. */
static Py_ssize_t owned_items(const array *a) {
    if (a->descr == NULL || ((descriptor *)a->descr)->kind != 'O' || a->data == NULL || !(a->flags & OWN_DATA) ||
        !(a->flags & (C_CONTIGUOUS | F_CONTIGUOUS))) {
        return 0;
    }
    Py_ssize_t count = 1;
    for (int i = 0; i < a->nd; i++) {
        count *= a->dimensions[i];
    }
    return count;
}

int lp_numpy_traverse(PyObject *op, visitproc visit, void *arg) {
    const array *a = (const array *)op;
    Py_VISIT(a->base);
    Py_VISIT(a->descr);
    Py_ssize_t count = owned_items(a);
    PyObject **item = (PyObject **)a->data;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_VISIT(item[i]);
    }
    return 0;
}

PyObject *lp_numpy_record_base(PyObject *op) { return ((const record *)op)->base; }

int lp_numpy_traverse_record(PyObject *op, visitproc visit, void *arg) {
    Py_VISIT(((const record *)op)->base);
    return 0;
}

/* Where names and fields lie differs between 1.x and 2.x: they are the only dict and tuple that it points to. */
int lp_numpy_traverse_dtype(PyObject *op, visitproc visit, void *arg) {
    PyObject *const *word = (PyObject *const *)op;
    size_t count = (size_t)Py_TYPE(op)->tp_basicsize / sizeof(*word);
    for (size_t i = sizeof(PyObject) / sizeof(*word); i < count; i++) {
        if (lp_heap_looks_alive(word[i]) && (PyDict_CheckExact(word[i]) || PyTuple_CheckExact(word[i]))) {
            Py_VISIT(word[i]);
        }
    }
    return 0;
}

#define MOST_DIMENSIONS 64

int lp_numpy_is_sane(PyObject *op) {
    const array *a = (const array *)op;
    uint64_t bytes = (uint64_t)a->nd * sizeof(*a->dimensions);
    if (a->nd < 0 || a->nd > MOST_DIMENSIONS || a->descr == NULL || !lp_heap_looks_alive(a->descr)) {
        return 0;
    }
    return a->nd == 0 || (lp_mappings_has(&lp_heap_mappings, a->dimensions, bytes) &&
                          lp_mappings_has(&lp_heap_mappings, a->strides, bytes));
}

PyObject *lp_numpy_base(PyObject *op) { return ((const array *)op)->base; }

const void *lp_numpy_data(PyObject *op) { return ((const array *)op)->data; }

Py_ssize_t lp_numpy_find_item(PyObject *op, PyObject *target) {
    const array *a = (const array *)op;
    Py_ssize_t count = owned_items(a);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (((PyObject **)a->data)[i] == target) {
            return i;
        }
    }
    return -1;
}

/* Contiguous: the longest reach of a dimension is the whole. */
static uint64_t reach(const array *a) {
    uint64_t most = 0;
    for (int i = 0; i < a->nd; i++) {
        uint64_t reach = a->strides[i] > 0 ? (uint64_t)a->dimensions[i] * (uint64_t)a->strides[i] : 0;
        most = reach > most ? reach : most;
    }
    return most;
}

uint64_t lp_numpy_owned_bytes(PyObject *op) {
    const array *a = (const array *)op;
    return (a->flags & OWN_DATA) && a->data != NULL ? reach(a) : 0;
}

uint64_t lp_numpy_contiguous_bytes(PyObject *op) {
    const array *a = (const array *)op;
    return (a->flags & (C_CONTIGUOUS | F_CONTIGUOUS)) ? reach(a) : 0;
}
