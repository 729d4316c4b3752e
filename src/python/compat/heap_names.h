/* Names of attribute values that instances keep without a dict (3.11 and later). */
#ifndef LP_COMPAT_HEAP_NAMES_H
#define LP_COMPAT_HEAP_NAMES_H

#include "python/compat/compat.h"  // PyObject

/* The name (borrowed str) under which op itself keeps value, or NULL: no such value, or op
 * keeps its attributes in a dict.  Makes no dict, runs no Python code. */
PyObject *lp_heap_value_name(PyObject *op, PyObject *value);

/* The dict of an instance if it exists, else NULL (borrowed); never makes one. */
PyObject *lp_heap_instance_dict(PyObject *op);

#endif
