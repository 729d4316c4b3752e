/* How wrappers of autograd nodes are freed. From torch 2.13 on a wrapper lives as long as its node, and a node that has
 * one frees the next by recursion: a chain that a walk has read would overflow the stack. */
#include "python/owners/torch_parts.h"

#include "python/compat/trashcan.h" // lp_trashcan_free

#if LP_TRASHCAN_IS_GENERAL

void lp_torch_free_in_turn(PyTypeObject *type) { (void)type; }

#else

static destructor of_torch; /* one for all of its types of nodes; the GIL protects it */

static void free_in_turn(PyObject *op) { lp_trashcan_free(op, free_in_turn, of_torch); }

void lp_torch_free_in_turn(PyTypeObject *type) {
    if (type->tp_dealloc == free_in_turn || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !PyType_IS_GC(type)) {
        return;
    }
    if (of_torch == NULL) {
        of_torch = type->tp_dealloc;
    }
    if (type->tp_dealloc == of_torch) {
        type->tp_dealloc = free_in_turn;
    }
}

#endif
