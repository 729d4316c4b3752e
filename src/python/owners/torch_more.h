/* What torch's getters do not give: hooks of autograd nodes, storages with attributes, and how
 * many owners beyond Python a tensor, node or storage has.
 *
 * Hooks are found by reading the node's memory through process_vm_readv(), which fails where
 * a pointer would crash; what is found counts only if it is a dict that the walk knows.  Where
 * that call is missing or forbidden, such hooks stay unexplained references. */
#ifndef LP_OWNERS_TORCH_MORE_H
#define LP_OWNERS_TORCH_MORE_H

#include "python/owners/torch.h"

/* After the getters, before the late edges are sorted; under DisableTorchFunction. */
void lp_torch_read_more(lp_torch *torch);
/* 1 if the node surely has a metadata dict: reading that of another would make one that stays. */
int lp_torch_has_metadata(PyObject *autograd_node);

/* Of torch's modules and types, borrowed; NULL if there is no such thing. */
PyObject *lp_torch_module_attribute(const char *module, const char *name);
PyObject *lp_torch_descriptor(PyTypeObject *type, const char *name);

/* StorageImpl of torch 2.4 to 2.14: vtable, counts, data, deleter, context, device, bytes. */
enum {
    LP_STORAGE_COUNTS = 1,
    LP_STORAGE_DATA = 2,
    LP_STORAGE_CONTEXT = 4,
    LP_STORAGE_DEVICE = 5,
    LP_STORAGE_BYTES = 6,
    LP_STORAGE_WORDS = 8
};

#define LP_TORCH_NODE_WORDS 40
/* The first LP_TORCH_NODE_WORDS words of the C++ node behind the wrapper of a function; its address, 0 where it can't be told. */
uint64_t lp_torch_read_node(PyObject *op, uint64_t *out_words);
/* The number that a call gives, or 0. */
uint64_t lp_torch_call_for_number(PyObject *callable, PyObject *argument);

#endif
