/* A type's name from its own slots and dict. Looks nothing up that could call __eq__. */
#include "python/values/type_names.h"

#include <string.h>

#include "base/rawmem.h"             // lp_raw_malloc
#include "python/values/text_out.h"  // lp_text_add_character

#define NAME_BYTES 512    /* longer names are cut */

static int add_str(lp_text_out *out, PyObject *str) {
    if (str == NULL || !PyUnicode_CheckExact(str) || PyUnicode_READY(str) < 0) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(str); i++) {
        lp_text_add_character(out, PyUnicode_READ_CHAR(str, i));
    }
    return 1;
}

/* The key is walked to, not looked up: a lookup could call __eq__ of an odd key. */
static PyObject *module_of(PyTypeObject *type) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    if (type->tp_dict == NULL) {
        return NULL;
    }
    while (PyDict_Next(type->tp_dict, &position, &key, &value)) {
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, "__module__") == 0) {
            return value;
        }
    }
    return NULL;
}

char *lp_type_name_copy(PyTypeObject *type) {
    char bytes[NAME_BYTES];
    lp_text_out out = lp_text_begin(bytes, sizeof(bytes));
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && add_str(&out, module_of(type))) {
        lp_text_add_character(&out, '.');
    }
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !add_str(&out, ((PyHeapTypeObject *)type)->ht_qualname)) {
        lp_text_add(&out, "%s", type->tp_name);
    }
    char *copy = lp_raw_malloc(out.length + 1);
    if (copy != NULL) {
        memcpy(copy, out.bytes, out.length + 1);
    }
    return copy;
}
