/* Objects of torch as they lie in memory, 2.4 to 2.14: for what no getter gives.
 *
 * Words are read through lp_peek_words(), which fails where a pointer would crash; where that call is missing or
 * forbidden, nothing is found.  What is found counts only once it is proved: a node points back to its wrapper, and
 * callers know the objects that hooks lead to and the users of a storage. */
#ifndef LP_LAYOUT_TORCH_H
#define LP_LAYOUT_TORCH_H

#include "python/layouts/numbers.h"  // LP_TORCH_META_WORDS
#include "python/values/cpython.h"   // PyObject

#include <stdint.h>

/* ---- storages ---- */

typedef struct lp_torch_storage {
    uint64_t users, data, context, bytes;
    uint8_t device, device_index;   /* c10::DeviceType: 0 CPU, 1 CUDA */
} lp_torch_storage;

/* Read the StorageImpl at an address; 1 if all of it was there. */
int lp_torch_read_storage(uint64_t address, lp_torch_storage *out);

#define LP_TORCH_CAPTURED_WORDS 4
/* What the function that lets go of a storage's lent memory has captured, in its own words; 1 if there is one. */
int lp_torch_read_captured(const lp_torch_storage *storage, uint64_t out_words[LP_TORCH_CAPTURED_WORDS]);

/* ---- tensors ---- */

/* Bytes that malloc gave for a tensor beside its data, by malloc's own headers: its TensorImpl, and what only that refers
 * to.  0 where they can't be told. */
uint64_t lp_torch_tensor_bytes(uint64_t tensor, uint64_t storage);

/* The first words of a tensor's metadata of autograd, where the address of its function is; how many, 0 if it has none. */
size_t lp_torch_read_autograd(uint64_t tensor, uint64_t out_words[LP_TORCH_META_WORDS]);

/* Addresses of the data of what a tensor without a storage consists of: indices and values of a sparse one. */
void lp_torch_each_part(uint64_t tensor, void (*visit)(void *arg, uint64_t data), void *arg);

/* ---- nodes of autograd graphs ---- */

#define LP_TORCH_NODE_WORDS 40
/* The first LP_TORCH_NODE_WORDS words of the C++ node behind the wrapper of a function; its address, 0 where it can't be told. */
uint64_t lp_torch_read_node(PyObject *op, uint64_t *out_words);
/* Owners of a node beyond its wrapper, or -1 if they can't be counted; whether they hold a reference to the wrapper. */
int64_t lp_torch_node_owners(PyObject *op, int *out_holds_wrapper);
/* 1 if the node surely has a metadata dict: reading that of another would make one that stays. */
int lp_torch_has_metadata(PyObject *op);
/* Where the vector of edges of a node lies, from its words; 0 if there is none. */
uint64_t lp_torch_edges_of(const uint64_t *word);

/* Addresses of what may be the dicts of hooks of a node, from its words. */
void lp_torch_each_hook(const uint64_t *word, void (*visit)(void *arg, uint64_t dict), void *arg);
/* Addresses of what may be the hooks of a tensor that the node saved; pack may be 0. */
void lp_torch_each_saved_hook(PyObject *op, void (*visit)(void *arg, uint64_t pack, uint64_t unpack), void *arg);

#endif
