/* Names of values that an instance keeps without a dict. No dict is made for it. */
#include "python/compat/heap_internal.h"

#include "python/compat/heap_names.h"

#if LP_HAS_VALUES_POINTER || LP_HAS_EMBEDDED_VALUES

/* The values of an instance, or NULL if it has a dict or nothing. */
static PyDictValues *values_of(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    if (!lp_heap_has_values(type)) {
        return NULL;
    }
#if LP_HAS_EMBEDDED_VALUES
    PyDictValues *values = lp_heap_embedded_values(op);
    return values->valid ? values : NULL;
#elif PY_VERSION_HEX >= 0x030C0000
    uintptr_t tagged = ((uintptr_t *)op)[-3];
    return (tagged & 1) ? (PyDictValues *)(tagged + 1) : NULL;
#else
    return ((PyDictValues **)op)[-4];
#endif
}

PyObject *lp_heap_value_name(PyObject *op, PyObject *value) {
    PyDictValues *values = values_of(op);
    PyDictKeysObject *keys = values == NULL ? NULL : ((PyHeapTypeObject *)Py_TYPE(op))->ht_cached_keys;
    if (keys == NULL || !DK_IS_UNICODE(keys)) {
        return NULL;
    }
    Py_ssize_t count = keys->dk_nentries;
#if LP_HAS_EMBEDDED_VALUES
    count = count < values->capacity ? count : values->capacity;
#endif
    for (Py_ssize_t i = 0; i < count; i++) {
        if (values->values[i] == value) {
            return DK_UNICODE_ENTRIES(keys)[i].me_key;
        }
    }
    return NULL;
}

PyObject *lp_heap_instance_dict(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) {
        PyObject **dict = _PyObject_GetDictPtr(op);
        return dict == NULL ? NULL : *dict;
    }
    /* The word holds the dict, or on 3.12 the values with bit 0 set. */
    uintptr_t word = ((uintptr_t *)op)[-3];
    return (word & 1) ? NULL : (PyObject *)word;
}

#else

PyObject *lp_heap_value_name(PyObject *op, PyObject *value) {
    (void)op;
    (void)value;
    return NULL;
}

PyObject *lp_heap_instance_dict(PyObject *op) {
    PyObject **dict = _PyObject_GetDictPtr(op);
    return dict == NULL ? NULL : *dict;
}

#endif
