/* Storages: those behind tensors, and the objects that Python has of them. */
#include "python/owners/torch_parts.h"

#include "python/compat/lookups.h"     // lp_lookup_attribute

/* The getter of C code's own type: it gives the address of what the object holds, or 0, whatever its class defines. */
static PyObject *find_cdata(void) {
    static const char name[] = "torch._C.StorageBase";
    PyObject *base = lp_lookup_attribute("torch._C", "StorageBase");
    PyObject *getter = base != NULL && PyType_Check(base) && lp_lookup_is_named((PyTypeObject *)base, name)
                           ? lp_lookup_descriptor((PyTypeObject *)base, "_cdata")
                           : NULL;
    return getter != NULL && Py_IS_TYPE(getter, &PyGetSetDescr_Type) ? getter : NULL;
}

int lp_storage_find_calls(lp_storage_calls *calls) {
    *calls = (lp_storage_calls){
        .address_of = lp_lookup_attribute("torch._C", "_storage_address"),
        .has_storage = lp_lookup_attribute("torch._C", "_has_storage"),
        .use_count = lp_lookup_attribute("torch._C", "_storage_Use_Count"),
        .cdata = find_cdata(),
    };
    return calls->address_of != NULL && calls->has_storage != NULL && calls->use_count != NULL;
}

uint64_t lp_storage_of(const lp_storage_calls *calls, PyObject *tensor) {
    return calls->has_storage == NULL || lp_torch_call_for_number(calls->has_storage, tensor) == 0
               ? 0
               : lp_torch_call_for_number(calls->address_of, tensor);
}

uint64_t lp_storage_of_node(const lp_storage_calls *calls, lp_walk *walk, uint32_t node) {
    int kind = lp_walk_kind(walk, node);
    return kind == LP_KIND_TENSOR    ? lp_storage_of(calls, lp_walk_object(walk, node))
           : kind == LP_KIND_STORAGE ? lp_torch_get_number(calls->cdata, lp_walk_object(walk, node))
                                     : 0;
}

uint64_t lp_storage_users(const lp_storage_calls *calls, uint64_t address) {
    PyObject *number = calls->use_count == NULL || address == 0 ? NULL : PyLong_FromUnsignedLongLong(address);
    uint64_t users = number == NULL ? 0 : lp_torch_call_for_number(calls->use_count, number);
    Py_XDECREF(number);
    return users;
}

int lp_storage_read(const lp_storage_calls *calls, uint64_t address, lp_torch_storage *out) {
    uint64_t users = lp_is_word_aligned(address) ? lp_storage_users(calls, address) : 0;
    return users != 0 && lp_torch_read_storage(address, out) && out->users == users;
}

/* Its data is read where it lies: data_ptr() would make a lazy copy a real one. */
void lp_torch_read_storage_object(lp_torch *torch, uint32_t node) {
    const lp_storage_calls *calls = &torch->names->storage;
    lp_walk *walk = torch->walk;
    lp_torch_storage storage;
    if (!lp_storage_read(calls, lp_storage_of_node(calls, walk, node), &storage) || storage.data == 0) {
        return;
    }
    uint32_t block = lp_walk_find_block(walk, (const void *)(uintptr_t)storage.data);
    if (block != LP_NODE_NONE) {
        lp_torch_add_late(torch, (lp_late_edge){node, block, "buffer", LP_ORDER_ALIAS, LP_LATE_NONE});
    }
    lp_torch_read_lender(torch, node, block);
}

/* StorageImpl => node of its object. */
static uint32_t find_storages(const lp_torch *torch, lp_map *out_node_of) {
    lp_walk *walk = torch->walk;
    for (uint32_t i = 0; i < walk->torch_count; i++) {
        uint32_t node = walk->torch_node[i];
        uint64_t address =
            lp_walk_kind(walk, node) == LP_KIND_STORAGE ? lp_storage_of_node(&torch->names->storage, walk, node) : 0;
        uint32_t *slot = address == 0 ? NULL : lp_map_put(out_node_of, address, NULL);
        if (slot != NULL) {
            *slot = node;
        }
    }
    return (uint32_t)out_node_of->count;
}

void lp_torch_read_storages(lp_torch *torch) {
    lp_walk *walk = torch->walk;
    lp_map node_of = {0};
    uint32_t count = find_storages(torch, &node_of) == 0 ? 0 : walk->torch_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = walk->torch_node[i];
        uint64_t address = lp_walk_kind(walk, node) == LP_KIND_TENSOR
                               ? lp_storage_of(&torch->names->storage, lp_walk_object(walk, node))
                               : 0;
        uint32_t storage = address == 0 ? LP_NODE_NONE : lp_map_get(&node_of, address, LP_NODE_NONE);
        if (storage != LP_NODE_NONE) {
            lp_torch_add_late(torch,
                              (lp_late_edge){node, storage, "untyped_storage()", LP_ORDER_STORAGE, LP_LATE_SHARED});
        }
    }
    lp_map_fini(&node_of);
}
