/* Values and exceptions from the core's. Each gives a new reference, or NULL with an exception set. */
#include "python/values/convert.h"

#include <stdarg.h>

#include "base/rawmem.h"  // lp_raw_malloc
#include "python/values/rows.h"  // lp_rows_new

PyObject *lp_raise(const char *code, const char *format, ...) {
    PyObject *module = NULL, *type = NULL, *text = NULL, *error = NULL;
    va_list args;
    va_start(args, format);
    text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (text == NULL) {
        goto done;
    }
    module = PyImport_ImportModule("leakprobe.errors");
    if (module == NULL) {
        goto done;
    }
    type = PyObject_GetAttrString(module, "LeakprobeError");
    if (type == NULL) {
        goto done;
    }
    error = PyObject_CallFunction(type, "Os", text, code);
    if (error != NULL) {
        PyErr_SetObject(type, error);
    }
done:
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(module);
    Py_XDECREF(text);
    return NULL;
}

PyObject *lp_raise_status(lp_status status, const char *doing) {
    if (status == LP_NO_MEMORY) {
        return lp_raise("no_memory", "%s: %s", doing, lp_status_text(status));
    }
    return lp_raise("internal", "%s: %s", doing, lp_status_text(status));
}

int lp_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    if (*type == NULL) {
        *type = (PyTypeObject *)PyType_FromSpec(spec);
    }
    return *type == NULL ? -1 : module == NULL ? 0 : PyModule_AddType(module, *type);
}

PyObject *lp_text_to_str(const char *text) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"); }

int lp_set_steal(PyObject *dict, const char *key, PyObject *value) {
    int result = value == NULL ? -1 : PyDict_SetItemString(dict, key, value);
    Py_XDECREF(value);
    return result;
}

int lp_append_steal(PyObject *list, PyObject *value) {
    int result = value == NULL ? -1 : PyList_Append(list, value);
    Py_XDECREF(value);
    return result;
}

PyObject *lp_frame_to_row(const lp_frame_text *frame) {
    PyObject *filename = lp_text_to_str(frame->filename);
    PyObject *function = filename == NULL ? NULL : lp_text_to_str(frame->function);
    if (function == NULL) {
        Py_XDECREF(filename);
        return NULL;
    }
    return lp_rows_new(LP_ROWS_FRAME, "NIN", filename, (unsigned int)frame->lineno, function);
}

static int read_site(PyObject *number, lp_site_id *out_site) {
    unsigned long site = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred() || site == LP_SITE_UNKNOWN || site >= (unsigned long)lp_site_count() + LP_SITE_FIRST) {
        PyErr_Clear();
        lp_raise("bad_argument", "%R is not the number of a site.", number);
        return -1;
    }
    *out_site = lp_site_base((lp_site_id)site);
    return 0;
}

lp_site_id *lp_sites_from_sequence(PyObject *sequence, uint32_t *out_count) {
    PyObject *fast = PySequence_Fast(sequence, "sites must be a sequence of numbers");
    Py_ssize_t count = fast == NULL ? 0 : PySequence_Fast_GET_SIZE(fast);
    lp_site_id *sites = fast == NULL ? NULL : lp_raw_malloc((size_t)(count + 1) * sizeof(*sites));
    for (Py_ssize_t i = 0; sites != NULL && i < count; i++) {
        if (read_site(PySequence_Fast_GET_ITEM(fast, i), &sites[i]) < 0) {
            lp_raw_free(sites);
            sites = NULL;
        }
    }
    if (sites == NULL && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    Py_XDECREF(fast);
    *out_count = (uint32_t)count;
    return sites;
}
