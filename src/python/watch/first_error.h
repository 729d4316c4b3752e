/* The first of several exceptions, kept while what must be done after it is done. */
#ifndef LP_FIRST_ERROR_H
#define LP_FIRST_ERROR_H

#include "python/compat/compat.h"  // Python.h

/* Owns its references; all NULL: none yet. */
typedef struct lp_first_error {
    PyObject *type, *value, *traceback;
} lp_first_error;

/* Take the exception that is set, if any: the first one stays, a later one is dropped. */
static inline void lp_keep_first(lp_first_error *first) {
    if (first->type == NULL) {
        PyErr_Fetch(&first->type, &first->value, &first->traceback);
    } else {
        PyErr_Clear();
    }
}

/* Set it again; 0 if there was none, else -1. */
static inline int lp_raise_first(lp_first_error *first) {
    if (first->type == NULL) {
        return 0;
    }
    PyErr_Restore(first->type, first->value, first->traceback);
    *first = (lp_first_error){0};
    return -1;
}

#endif
