/* Owns what is known of the layout: the buffer of the first object that is asked proves it, or all are left alone. */
#include "python/compat/cdata.h"

#include <string.h>

/* Of Modules/_ctypes/ctypes.h, 3.10 to 3.15. */
typedef struct c_data {
    PyObject_HEAD char *ptr;
    int needs_free;
    PyObject *base;
    Py_ssize_t size;
} c_data;

static enum { LAYOUT_UNKNOWN, LAYOUT_PROVED, LAYOUT_OTHER } layout;

int lp_cdata_is_type(const PyTypeObject *type) {
    while (type != NULL && strcmp(type->tp_name, "_ctypes._CData") != 0) {
        type = type->tp_base;
    }
    return type != NULL && type->tp_basicsize >= (Py_ssize_t)sizeof(c_data);
}

/* No Python code runs: the getter of ctypes is C. */
static void learn_layout(PyObject *op) {
    const c_data *data = (const c_data *)op;
    Py_buffer view;
    if (PyObject_GetBuffer(op, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return;
    }
    layout = view.buf == data->ptr && view.len == data->size ? LAYOUT_PROVED : LAYOUT_OTHER;
    PyBuffer_Release(&view);
}

static int is_own_block(PyObject *op, const c_data *data) {
    uintptr_t start = (uintptr_t)op, ptr = (uintptr_t)data->ptr;
    return data->needs_free == 1 && ptr != 0 && data->size > 0 &&
           (ptr < start || ptr >= start + (size_t)Py_TYPE(op)->tp_basicsize);
}

uint64_t lp_cdata_blocks(PyObject *op) {
    if (layout == LAYOUT_UNKNOWN) {
        learn_layout(op);
    }
    const c_data *data = (const c_data *)op;
    return layout == LAYOUT_PROVED && is_own_block(op, data) ? (uint64_t)data->size : 0;
}
