/* Objects that free one another, as CPython frees its own: without nesting deep. */
#ifndef LP_TRASHCAN_H
#define LP_TRASHCAN_H

#include "python/values/cpython.h" // PyObject

/* 1 where the interpreter itself puts off what would overflow the stack, whatever a type's dealloc does: 3.14 and newer. */
#define LP_TRASHCAN_IS_GENERAL (PY_VERSION_HEX >= 0x030E0000)

#if !LP_TRASHCAN_IS_GENERAL
/* Free an object of a type with the collector whose tp_dealloc is `own`, by `free_object`; later, where many are being
 * freed, one by another. */
void lp_trashcan_free(PyObject *op, destructor own, destructor free_object);
#endif

#endif
