#include "python/path_out.h"

#include <stdio.h>

#include "python/convert.h"  // lp_text_to_str
#include "python/trace.h"    // LP_TRACE_MOST_ELEMENTS

#define KEEP_LAST 10

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

PyObject *lp_element_to_dict(const char *text, const char *edge, const char *type) {
    PyObject *none = type[0] == 0 ? Py_NewRef(Py_None) : lp_text_to_str(type);
    return none == NULL ? NULL
                        : Py_BuildValue("{s:N,s:N,s:N}", "text", lp_text_to_str(text), "edge", lp_text_to_str(edge),
                                        "type", none);
}

int lp_path_append(PyObject *list, const lp_element *elements, uint32_t count) {
    uint32_t first = LP_TRACE_MOST_ELEMENTS - KEEP_LAST - 1;
    for (uint32_t i = 0; i < count; i++) {
        if (count > LP_TRACE_MOST_ELEMENTS && i == first) {
            char text[64];
            snprintf(text, sizeof(text), "... %u more ...", (unsigned int)(count - first - KEEP_LAST));
            if (lp_append_steal(list, lp_element_to_dict(text, "more", "")) < 0) {
                return -1;
            }
            i = count - KEEP_LAST;
        }
        if (lp_append_steal(list, lp_element_to_dict(elements[i].text, elements[i].edge, elements[i].type)) < 0) {
            return -1;
        }
    }
    return 0;
}
