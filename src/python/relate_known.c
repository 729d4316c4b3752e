#include <string.h>

#include "python/relate.h"

/* The result of a task or future of asyncio's C code, read by the getter of that type itself: no user's code runs. */
static int is_result(PyObject *op, const PyObject *held) {
    for (PyTypeObject *type = Py_TYPE(op); type != NULL; type = type->tp_base) {
        int is_asyncio = strncmp(type->tp_name, "_asyncio.", 9) == 0;
        for (PyGetSetDef *getter = type->tp_getset; is_asyncio && getter != NULL && getter->name != NULL; getter++) {
            if (strcmp(getter->name, "_result") == 0) {
                PyObject *result = getter->get(op, getter->closure);
                Py_XDECREF(result);   /* the task has it too */
                PyErr_Clear();
                return result != NULL && result == held;
            }
        }
    }
    return 0;
}

int lp_relate_known(PyObject *op, const PyObject *held, lp_text_out *name, const char **out_edge) {
    if (lp_kinds_has_base(Py_TYPE(op), "_thread._local")) {
        *out_edge = "threads";
        lp_text_add(name, "values by thread");
        return 1;
    }
    if (held != NULL && is_result(op, held)) {
        *out_edge = "attribute";
        lp_text_add(name, ".result()");
        return 1;
    }
    return 0;
}
