/* The parts of the second phase of a walk (torch.h): what is looked up once, edges, and who reads what. */
#ifndef LP_TORCH_PARTS_H
#define LP_TORCH_PARTS_H

#include "python/layouts/torch.h"    // lp_torch_storage
#include "python/owners/numbers.h"   // LP_OWNED_SAMPLES
#include "python/owners/torch.h"

/* ---- torch_names.c: what is looked up once ---- */

/* Getters of one autograd type; all borrowed from the type. */
typedef struct lp_node_getters {
    PyObject *saved[LP_TORCH_MOST_SAVED];
    uint32_t saved_count;
    PyObject *next_functions, *variable, *metadata;
} lp_node_getters;

/* Calls for the storage behind a tensor or a storage object; borrowed. */
typedef struct lp_storage_calls {
    PyObject *address_of, *has_storage, *use_count;
    PyObject *cdata; /* C code's own getter: a class may have a property of that name */
} lp_storage_calls;

typedef struct lp_torch_names {
    PyObject *grad, *grad_fn, *base, *nbytes, *data_ptr, *retains_grad, *hooks, *untyped_storage, *is_meta,
        *accumulate_hooks, *use_count, *requires_grad, *version, *cdata;   /* of TensorBase, borrowed */
    PyObject *is_cow;                 /* torch._C._is_cow_tensor, borrowed, or NULL */
    PyTypeObject *exact[LP_TORCH_EXACT];           /* types whose getters run no foreign code */
    PyObject *guard;                  /* owned: DisableTorchFunction */
    lp_storage_calls storage;
    int is_anomaly;
    int tensors_are_coupled; /* an owner beyond Python keeps the wrapper: torch 2.10 and newer */
    lp_map type_number; /* autograd type => index in type + 1 */
    lp_node_getters *type;
    uint32_t type_count, type_capacity;
    uint32_t *work;
    uint32_t work_head, work_tail, work_capacity, taken;
} lp_torch_names;

/* 0, or -1 when torch is not imported or is not as expected. */
int lp_torch_open_names(lp_torch_names *names);
void lp_torch_close_names(lp_torch_names *names);
/* 1 for torch's own types, whose getters run no foreign code. */
int lp_torch_is_exact(const lp_torch_names *names, const PyTypeObject *type);
/* The value of a getter, or NULL (also for None); new reference. */
PyObject *lp_torch_get(PyObject *getter, PyObject *op);
/* The number that a getter gives, or 0. */
uint64_t lp_torch_get_number(PyObject *getter, PyObject *op);
/* The number that a call gives, or 0. */
uint64_t lp_torch_call_for_number(PyObject *callable, PyObject *argument);

/* ---- torch_edges.c ---- */

/* Keep a node until lp_torch_release(), whatever a getter makes torch drop. */
void lp_torch_keep(lp_torch *torch, uint32_t node);
/* An edge to an object that a getter gave; returns its node. */
uint32_t lp_torch_add_edge(lp_torch *torch, uint32_t source, PyObject *op_stolen, const char *label, uint32_t order,
                           lp_late_refs refs);
/* An edge between nodes of the graph. */
void lp_torch_add_late(lp_torch *torch, lp_late_edge edge);

/* torch_dealloc.c: have wrappers of this type that keep one another freed without recursion, for the life of the
 * process. Functions written in Python are left as they are. */
void lp_torch_free_in_turn(PyTypeObject *type);

/* ---- what each kind of node refers to ---- */

void lp_torch_read_tensor(lp_torch *torch, uint32_t node); /* torch_tensors.c */
void lp_torch_read_function(lp_torch *torch, uint32_t node); /* torch_functions.c: a node of an autograd graph */
int lp_torch_has_variable(lp_torch *torch, PyObject *op);    /* 1 for a node that accumulates a gradient */
void lp_torch_read_hooks(lp_torch *torch); /* torch_hooks.c: of all such nodes */
/* torch_lent.c: the edge from a tensor or storage object to what lent it its memory, if something did.
 * block: that of its data, or LP_NODE_NONE. */
void lp_torch_read_lender(lp_torch *torch, uint32_t node, uint32_t block);

/* torch_storages.c: 1 if torch has all of the calls. */
int lp_storage_find_calls(lp_storage_calls *calls);
/* The address of a tensor's StorageImpl, 0 if it has none. */
uint64_t lp_storage_of(const lp_storage_calls *calls, PyObject *tensor);
/* The same for a tensor or a storage object of the graph; 0 for others. */
uint64_t lp_storage_of_node(const lp_storage_calls *calls, lp_walk *walk, uint32_t node);
/* Owners of the StorageImpl at an address that torch gave. */
uint64_t lp_storage_users(const lp_storage_calls *calls, uint64_t address);
/* Read the StorageImpl at such an address; 1 if torch's count of its users proves what was read. */
int lp_storage_read(const lp_storage_calls *calls, uint64_t address, lp_torch_storage *out);
void lp_torch_read_storage_object(lp_torch *torch, uint32_t node); /* its memory */
/* Edges from tensors to storage objects, which a StorageImpl keeps alive for as long as a tensor keeps it. */
void lp_torch_read_storages(lp_torch *torch);

/* torch_owned.c: what tensors that grow have of malloc's beside their data. */
void lp_torch_read_owned(lp_torch *torch);

/* torch_counts.c: turn shared edges into what they stand for, one reference to the wrapper or none, by how many owners
 * beyond Python a tensor, function or storage has. */
void lp_torch_settle_counts(lp_torch *torch);

/* torch_unasked.c: note a view whose function is not asked for; and once all is read, edges to those functions that
 * something else leads to. */
void lp_torch_note_unasked(lp_torch *torch, uint32_t node);
void lp_torch_read_unasked(lp_torch *torch);

/* ---- torch_views.c: how much of a block, or of a tensor, its views show together ---- */

/* The order of the edge to the tensor or block at `address`, of `whole` bytes, that a view of `part` bytes was
 * cut from; 0 where a number is not known. */
uint32_t lp_views_order(lp_torch *torch, uint64_t address, uint64_t part, uint64_t whole);
/* Once all tensors are read: edges to what views show at least half of are no edges of a view. */
void lp_views_settle(lp_torch *torch);

#endif
