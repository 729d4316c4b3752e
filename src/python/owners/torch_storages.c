/* The storages behind tensors. */
#include "python/owners/torch_parts.h"

#include "python/compat/heap_names.h"  // lp_heap_has_attributes
#include "python/compat/lookups.h"     // lp_lookup_attribute

int lp_storage_find_calls(lp_storage_calls *calls) {
    *calls = (lp_storage_calls){
        .address_of = lp_lookup_attribute("torch._C", "_storage_address"),
        .has_storage = lp_lookup_attribute("torch._C", "_has_storage"),
        .use_count = lp_lookup_attribute("torch._C", "_storage_Use_Count"),
    };
    return calls->address_of != NULL && calls->has_storage != NULL && calls->use_count != NULL;
}

uint64_t lp_storage_of(const lp_storage_calls *calls, PyObject *tensor) {
    return calls->has_storage == NULL || lp_torch_call_for_number(calls->has_storage, tensor) == 0
               ? 0
               : lp_torch_call_for_number(calls->address_of, tensor);
}

uint64_t lp_storage_behind(PyObject *storage) {
    PyObject *cdata = PyObject_GetAttrString(storage, "_cdata");
    uint64_t address = cdata != NULL && PyLong_Check(cdata) ? (uint64_t)PyLong_AsUnsignedLongLongMask(cdata) : 0;
    Py_XDECREF(cdata);
    PyErr_Clear();
    return address;
}

uint64_t lp_storage_users(const lp_storage_calls *calls, uint64_t address) {
    PyObject *number = calls->use_count == NULL ? NULL : PyLong_FromUnsignedLongLong(address);
    uint64_t users = number == NULL ? 0 : lp_torch_call_for_number(calls->use_count, number);
    Py_XDECREF(number);
    return users;
}

/* StorageImpl => node, of those with attributes. */
static uint32_t find_storages(lp_torch *torch, lp_map *out_node_of) {
    for (uint32_t i = 0; i < torch->walk->torch_count; i++) {
        uint32_t node = torch->walk->torch_node[i];
        PyObject *op = lp_walk_object(torch->walk, node);
        uint64_t address = lp_walk_kind(torch->walk, node) == LP_KIND_STORAGE && lp_heap_has_attributes(op)
                               ? lp_storage_behind(op)
                               : 0;
        uint32_t *slot = address == 0 ? NULL : lp_map_put(out_node_of, address, NULL);
        if (slot != NULL) {
            *slot = node;
        }
    }
    return (uint32_t)out_node_of->count;
}

void lp_torch_read_storages(lp_torch *torch) {
    const lp_walk *walk = torch->walk;
    lp_map node_of = {0};
    uint32_t count = find_storages(torch, &node_of) == 0 ? 0 : walk->torch_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = walk->torch_node[i];
        if (lp_walk_kind(torch->walk, node) != LP_KIND_TENSOR) {
            continue;
        }
        uint64_t address = lp_storage_of(&torch->names->storage, lp_walk_object(walk, node));
        uint32_t storage = address == 0 ? LP_NODE_NONE : lp_map_get(&node_of, address, LP_NODE_NONE);
        if (storage != LP_NODE_NONE) {
            lp_torch_add_late(torch,
                              (lp_late_edge){node, storage, "untyped_storage()", LP_ORDER_STORAGE, LP_LATE_SHARED});
        }
    }
    lp_map_fini(&node_of);
}
