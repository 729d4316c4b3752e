/* Names of references that a C type keeps where its struct has no member: by its own getter, or by its kind. */
#include "python/graph/relate.h"

#include <string.h>

#include "python/compat/lookups.h"  // lp_lookup_base

/* Attributes of C types that are no members of their structs, by getters that give what is there: no user's code runs. */
typedef struct known_getter {
    const char *module; /* the first letters of the type's name */
    const char *getter, *text;
} known_getter;

static const known_getter GETTERS[] = {
    {"_asyncio.", "_result", ".result()"},
    {"pandas._libs.internals.", "blocks", ".blocks"},
    {"pandas._libs.internals.", "values", ".values"},
};

static int gives(PyTypeObject *type, const known_getter *known, PyObject *op, const PyObject *held) {
    for (PyGetSetDef *one = type->tp_getset; one != NULL && one->name != NULL; one++) {
        if (strcmp(one->name, known->getter) == 0) {
            PyObject *value = one->get(op, one->closure);
            Py_XDECREF(value); /* the object has it too */
            PyErr_Clear();
            return value != NULL && value == held;
        }
    }
    return 0;
}

/* The name of the attribute that is `held`, or NULL. */
static const char *known_attribute(PyObject *op, const PyObject *held) {
    for (PyTypeObject *type = Py_TYPE(op); type != NULL; type = type->tp_base) {
        for (size_t i = 0; i < sizeof(GETTERS) / sizeof(*GETTERS); i++) {
            if (strncmp(type->tp_name, GETTERS[i].module, strlen(GETTERS[i].module)) == 0 &&
                gives(type, &GETTERS[i], op, held)) {
                return GETTERS[i].text;
            }
        }
    }
    return NULL;
}

int lp_relate_known(PyObject *op, const PyObject *held, lp_text_out *name, const char **out_edge) {
    if (lp_lookup_base(Py_TYPE(op), "_thread._local")) {
        *out_edge = "threads";
        lp_text_add(name, "values by thread");
        return 1;
    }
    const char *text = held == NULL ? NULL : known_attribute(op, held);
    if (text != NULL) {
        *out_edge = "attribute";
        lp_text_add(name, "%s", text);
    }
    return text != NULL;
}
