/* What numpy's arrays, rows and types of items refer to; their types tell the collector nothing.
 *
 * Read through the layout that numpy's own headers fix for extensions
 * (PyArrayObject_fields); numpy is neither included nor imported. */
#ifndef LP_OWNERS_NUMPY_H
#define LP_OWNERS_NUMPY_H

#include "python/compat/compat.h"  // PyObject

/* Visit the base, the descriptor and the objects in the items, fields of records too, if the array owns them.
 * pre: op is an instance of numpy.ndarray. */
int lp_numpy_traverse(PyObject *op, visitproc visit, void *arg);
/* Visit that array, or the objects that a row with data of its own has. */
int lp_numpy_traverse_record(PyObject *op, visitproc visit, void *arg);
/* Visit the names and fields of an instance of numpy.dtype. */
int lp_numpy_traverse_dtype(PyObject *op, visitproc visit, void *arg);
/* The array that a row, an instance of numpy.void, was taken from, or NULL (borrowed). */
PyObject *lp_numpy_record_base(PyObject *op);
/* The object that the array is a view of, or NULL (borrowed). */
PyObject *lp_numpy_base(PyObject *op);
/* The start of its data. */
const void *lp_numpy_data(PyObject *op);
/* 1 if an array that refers to `target` can do so by its items only. */
int lp_numpy_keeps_as_item(PyObject *op, PyObject *target);
/* The number of the item that is `target` or has it in a field, the last dimension fastest; or -1. */
Py_ssize_t lp_numpy_find_item(PyObject *op, PyObject *target);

/* 1 if the fields of what should be an array are those of one; reads nothing that may not be there. */
int lp_numpy_is_sane(PyObject *op);

/* Bytes of the data if the array owns them, else 0. */
uint64_t lp_numpy_owned_bytes(PyObject *op);
/* Bytes of an array without gaps; 0 for one with. */
uint64_t lp_numpy_contiguous_bytes(PyObject *op);

#endif
