/* By the trashcan of CPython up to 3.12; on 3.13, whose macros let 10,000 nest whatever stack the thread has, by a list
 * of the objects put off.  The interpreter's own would not do: whoever ends freeing some other object empties it, and
 * what is still nested too deep would be put back, for ever. */
#include "python/compat/heap_internal.h" // PyGC_Head

#include "python/compat/trashcan.h"

#if PY_VERSION_HEX < 0x030D0000

void lp_trashcan_free(PyObject *op, destructor own, destructor free_object) {
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, own);
    free_object(op);
    Py_TRASHCAN_END;
}

#elif !LP_TRASHCAN_IS_GENERAL

#define MOST_NESTED Py_TRASHCAN_HEADROOM

/* What one thread is freeing, and has put off: linked through the collector's links, which an untracked object has no
 * other use for. */
static _Thread_local struct {
    int nested;
    PyObject *first;
} freeing;

static void put_off(PyObject *op) {
    _Py_AS_GC(op)->_gc_prev = (uintptr_t)freeing.first;
    freeing.first = op;
}

static PyObject *take_first(void) {
    PyObject *op = freeing.first;
    freeing.first = (PyObject *)_Py_AS_GC(op)->_gc_prev;
    _Py_AS_GC(op)->_gc_prev = 0;
    return op;
}

void lp_trashcan_free(PyObject *op, destructor own, destructor free_object) {
    (void)own;
    PyObject_GC_UnTrack(op);
    if (freeing.nested >= MOST_NESTED) {
        put_off(op);
        return;
    }
    freeing.nested++;
    free_object(op);
    while (freeing.nested == 1 && freeing.first != NULL) {
        free_object(take_first());
    }
    freeing.nested--;
}

#endif
