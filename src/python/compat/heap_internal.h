/* CPython's own structs behind compat/heap.h; included by compat/heap*.c only, and first. */
#ifndef LP_COMPAT_HEAP_INTERNAL_H
#define LP_COMPAT_HEAP_INTERNAL_H

#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif

#include "python/compat/heap.h"  // Python.h

#include <frameobject.h>              // PyFrame_Type on 3.10

/* 3.13's own headers have unused parameters. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include "internal/pycore_interp.h"   // gc
#include "internal/pycore_pystate.h"  // _PyInterpreterState_GET

#if PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_dict.h"     // PyDictKeysObject, PyDictValues
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe.h"
#endif
#include "internal/pycore_frame.h"    // _PyInterpreterFrame, PyFrameObject
#if PY_VERSION_HEX >= 0x030D0000
#include "internal/pycore_runtime.h"  // _Py_DebugOffsets
#endif
#else
/* Objects/dict-common.h is not installed; this layout is the one of every 3.10. */
struct _dictkeysobject {
    Py_ssize_t dk_refcnt;
    Py_ssize_t dk_size;
    void *dk_lookup;
    Py_ssize_t dk_usable;
    Py_ssize_t dk_nentries;
    char dk_indices[];
};
#endif
#pragma GCC diagnostic pop

/* Features by name: what the versions do differently. */
/* The lists of the collector are walked as they are: that writes nothing, where PyUnstable_GC_VisitObjects (3.12+) raises
 * each reference count and so un-shares the pages of a forked worker, and leaves frozen objects out before 3.13.5.
 * Releases of 3.14 differ in what a list means, and in a flag in its links: all are walked, and no age is read from them. */
#define LP_HAS_AGES_IN_LISTS (PY_VERSION_HEX < 0x030E0000)
#define LP_HAS_DEBUG_OFFSETS (PY_VERSION_HEX >= 0x030D0000)     /* _PyRuntime.debug_offsets */
#define LP_HAS_BORROWED_STACKREFS (PY_VERSION_HEX >= 0x030E0000)
#define LP_HAS_TRACKED_INTERNED (PY_VERSION_HEX >= 0x030E0000)  /* all dicts are tracked, CPython's own too */
#define LP_HAS_UNICODE_TABLES (PY_VERSION_HEX >= 0x030B0000)    /* entries without a hash for str keys */
#define LP_HAS_VALUES_POINTER (PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000)
#define LP_HAS_EMBEDDED_VALUES (PY_VERSION_HEX >= 0x030D0000)   /* values inside the instance's block */
#define LP_HAS_BYTES_IN_BYTEARRAY (PY_VERSION_HEX >= 0x030F0000) /* its buffer is a bytes object of its own */

/* 1 if the collector's lists are where the headers say, each end of each points back to its head, or CPython's own
 * enumeration can be called instead (from 3.14 on). */
int lp_heap_lists_are_known(void);

/* The table belongs to this dict alone; a shared one belongs to its type. */
static inline int lp_heap_owns_keys(const PyDictObject *dict) { return dict->ma_keys->dk_refcnt == 1; }

#if LP_HAS_EMBEDDED_VALUES
/* Of an instance whose type has them. */
static inline PyDictValues *lp_heap_embedded_values(PyObject *op) {
    return (PyDictValues *)((char *)op + Py_TYPE(op)->tp_basicsize);
}
#endif

#endif
