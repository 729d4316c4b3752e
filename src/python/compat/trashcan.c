/* By the trashcan of CPython up to 3.13; the macros of 3.13 let 10,000 nest, whatever stack the thread has. */
#include "python/compat/trashcan.h"

#if PY_VERSION_HEX < 0x030D0000

void lp_trashcan_free(PyObject *op, destructor own, destructor free_object) {
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, own);
    free_object(op);
    Py_TRASHCAN_END;
}

#elif !LP_TRASHCAN_IS_GENERAL

/* What was put off is freed here unless the interpreter is about to put off itself. */
static int may_free_rest(const PyThreadState *thread) {
    return thread->delete_later != NULL && thread->c_recursion_remaining - Py_TRASHCAN_HEADROOM > Py_TRASHCAN_HEADROOM;
}

void lp_trashcan_free(PyObject *op, destructor own, destructor free_object) {
    (void)own;
    static _Thread_local int nested;
    PyThreadState *thread = PyThreadState_Get();
    PyObject_GC_UnTrack(op);
    if (nested >= Py_TRASHCAN_HEADROOM) {
        _PyTrash_thread_deposit_object(thread, op);
        return;
    }
    nested++;
    free_object(op);
    if (nested == 1 && may_free_rest(thread)) {
        _PyTrash_thread_destroy_chain(thread);
    }
    nested--;
}

#endif
