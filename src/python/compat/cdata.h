/* The block behind an object of ctypes, which its size leaves out: an array, a structure, a string buffer. */
#ifndef LP_COMPAT_CDATA_H
#define LP_COMPAT_CDATA_H

#include "python/compat/compat.h"  // Python.h

#include "base/base.h"      // uint64_t

/* 1 for a type of ctypes objects. */
int lp_cdata_is_type(const PyTypeObject *type);

/* Bytes of the block that the object owns; 0 where it lies in the object or in another one's. */
uint64_t lp_cdata_blocks(PyObject *op);

#endif
