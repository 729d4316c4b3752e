/* Names of types, read without running Python code. */
#ifndef LP_TYPE_NAMES_H
#define LP_TYPE_NAMES_H

#include "python/values/cpython.h"  // PyTypeObject

/* "module.qualname" of a heap type, tp_name of a static one, as UTF-8; freed with
 * lp_raw_free(), NULL when out of memory. */
char *lp_type_name_copy(PyTypeObject *type);

#endif
