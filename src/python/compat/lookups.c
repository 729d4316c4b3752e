/* Dicts of modules and types, read and never written. */
#include "python/compat/lookups.h"

#include <string.h>

PyObject *lp_lookup_attribute(const char *module, const char *name) {
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
    return found != NULL && PyModule_Check(found) ? PyDict_GetItemString(PyModule_GetDict(found), name) : NULL;
}

PyObject *lp_lookup_descriptor(PyTypeObject *type, const char *name) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *found = base->tp_dict == NULL ? NULL : PyDict_GetItemString(base->tp_dict, name);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

/* A class statement gives its own name to both, as does an assignment to __name__. */
int lp_lookup_is_named(const PyTypeObject *type, const char *tp_name) {
    if (strcmp(type->tp_name, tp_name) != 0) {
        return 0;
    }
    PyObject *name = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) ? ((const PyHeapTypeObject *)type)->ht_name : NULL;
    return name == NULL || PyUnicode_CompareWithASCIIString(name, tp_name) != 0;
}

PyTypeObject *lp_lookup_base(PyTypeObject *type, const char *tp_name) {
    while (type != NULL && !lp_lookup_is_named(type, tp_name)) {
        type = type->tp_base;
    }
    return type;
}
