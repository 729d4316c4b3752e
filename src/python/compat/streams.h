/* What the types of _io and array keep that their tp_traverse does not show. */
#ifndef LP_COMPAT_STREAMS_H
#define LP_COMPAT_STREAMS_H

#include "python/compat/compat.h"  // Python.h

#include "base/base.h"      // uint64_t

/* Find the types and check their layout; a type that is laid out otherwise is left alone.  0, or -1 with an exception set. */
int lp_streams_init(void);

extern traverseproc lp_streams_bytes_traverse, lp_streams_text_traverse; /* NULL where not known */

/* 1 for a BytesIO or StringIO; an instance of a subclass is none. */
static inline int lp_streams_is_one(const PyTypeObject *type) {
    return type->tp_traverse == lp_streams_bytes_traverse || type->tp_traverse == lp_streams_text_traverse;
}

/* Visit what the stream has collected: the bytes of a BytesIO, the parts of a StringIO that was only written to. */
int lp_streams_traverse(PyObject *stream, visitproc visit, void *arg);

/* The block behind an array.array, and its bytes. */
const void *lp_streams_array_items(PyObject *array);
uint64_t lp_streams_array_blocks(PyObject *array);

#endif
