/* Owns nothing. No call of ctypes is made: its getters crash on an object of a class without fields. */
#include "python/compat/cdata.h"

#include "python/compat/lookups.h"  // lp_lookup_is_named

/* A length beyond any block: another layout. */
#define ABSURD_BYTES ((Py_ssize_t)1 << 40)

/* Of Modules/_ctypes/ctypes.h, 3.10 to 3.15; tests/hooks/test_sizes.py proves it on each. */
typedef struct c_data {
    PyObject_HEAD char *ptr;
    int needs_free;
    PyObject *base;
    Py_ssize_t size;
} c_data;

int lp_cdata_is_type(const PyTypeObject *type) {
    while (type != NULL && !lp_lookup_is_named(type, "_ctypes._CData")) {
        type = type->tp_base;
    }
    return type != NULL && type->tp_basicsize >= (Py_ssize_t)sizeof(c_data);
}

static int is_own_block(PyObject *op, const c_data *data) {
    uintptr_t start = (uintptr_t)op, ptr = (uintptr_t)data->ptr;
    return data->needs_free == 1 && ptr != 0 && data->size > 0 && data->size < ABSURD_BYTES &&
           (ptr < start || ptr >= start + (size_t)Py_TYPE(op)->tp_basicsize);
}

uint64_t lp_cdata_blocks(PyObject *op) {
    const c_data *data = (const c_data *)op;
    return PY_VERSION_HEX < 0x03100000 && is_own_block(op, data) ? (uint64_t)data->size : 0;
}
