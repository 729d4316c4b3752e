#include "python/owners/torch_lent.h"

#include "process/mappings.h"           // lp_peek_words
#include "python/compat/heap.h"         // lp_heap_looks_alive
#include "python/layouts/numpy.h"        // lp_numpy_data
#include "python/owners/torch_more.h"   // lp_torch_call_for_number

/* {data, std::function}: what the function has captured is one of these. */
#define CONTEXT_WORDS 5

static int lies_in(uint64_t data, const void *begin, Py_ssize_t bytes) {
    return (uint64_t)(uintptr_t)begin <= data && data - (uint64_t)(uintptr_t)begin < (uint64_t)bytes;
}

/* 1 if the data is the object's; where its buffer can't be read without a call, the place of the pointer must do. */
static int lends(PyObject *op, uint64_t data, int kind, int is_first) {
    if (kind == LP_KIND_ARRAY) {
        return lp_numpy_is_sane(op) && (uint64_t)(uintptr_t)lp_numpy_data(op) == data;
    }
    if (PyBytes_Check(op)) {
        return lies_in(data, PyBytes_AS_STRING(op), PyBytes_GET_SIZE(op));
    }
    if (PyByteArray_Check(op)) {
        return lies_in(data, PyByteArray_AS_STRING(op), PyByteArray_GET_SIZE(op));
    }
    if (PyMemoryView_Check(op)) {
        const Py_buffer *view = PyMemoryView_GET_BUFFER(op);
        return lies_in(data, view->buf, view->len);
    }
    return is_first && Py_TYPE(op)->tp_as_buffer != NULL && Py_TYPE(op)->tp_as_buffer->bf_getbuffer != NULL;
}

static PyObject *object_at(lp_walk *walk, uint64_t address, uint64_t data, int is_first) {
    PyObject *op = (PyObject *)(uintptr_t)address;
    if (address <= UINT16_MAX || (address & 7) != 0 || address >> LP_ADDRESSES_BITS != 0 || address == data ||
        !lp_mappings_has(&lp_heap_mappings, op, sizeof(PyVarObject)) || !lp_heap_looks_alive(op) ||
        lp_walk_find(walk, Py_TYPE(op)) == LP_NODE_NONE ||
        !lp_mappings_has(&lp_heap_mappings, op, (uint64_t)Py_TYPE(op)->tp_basicsize)) {
        return NULL;
    }
    return lends(op, data, lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind, is_first) ? op : NULL;
}

static PyObject *lender_of(lp_walk *walk, uint64_t storage) {
    uint64_t word[LP_STORAGE_WORDS], context[CONTEXT_WORDS];
    if (!lp_peek_words(storage, word, LP_STORAGE_WORDS) || (word[LP_STORAGE_DEVICE] & 0xff) != 0 ||
        word[LP_STORAGE_DATA] == 0 || word[LP_STORAGE_CONTEXT] == word[LP_STORAGE_DATA] ||
        !lp_peek_words(word[LP_STORAGE_CONTEXT], context, CONTEXT_WORDS) || context[0] != word[LP_STORAGE_DATA]) {
        return NULL;
    }
    PyObject *op = NULL;
    for (int i = 1; i < CONTEXT_WORDS && op == NULL; i++) {
        op = object_at(walk, context[i], word[LP_STORAGE_DATA], i == 1);
    }
    return op;
}

void lp_torch_read_lender(lp_torch *torch, uint32_t node, lp_map *lent) {
    lp_walk *walk = torch->walk;
    PyObject *address_of = lp_torch_module_attribute("torch._C", "_storage_address");
    PyObject *has_storage = lp_torch_module_attribute("torch._C", "_has_storage");
    PyObject *op = lp_walk_object(walk, node);
    if (address_of == NULL || has_storage == NULL || lp_torch_call_for_number(has_storage, op) == 0) {
        return;
    }
    uint64_t storage = lp_torch_call_for_number(address_of, op);
    PyObject *lender = storage == 0 || (storage & 7) != 0 ? NULL : lender_of(walk, storage);
    uint32_t target = lender == NULL ? LP_NODE_NONE : lp_walk_add(walk, lender, 0);
    int is_new;
    if (target == LP_NODE_NONE || lp_map_put(lent, storage, &is_new) == NULL) {
        return;
    }
    /* Tensors that share a storage share its reference. */
    lp_status status =
        lp_graph_add_late(&walk->graph, (lp_late_edge){node, target, "memory", 0, is_new ? LP_LATE_ONE : LP_LATE_NONE});
    walk->status = status == LP_OK ? walk->status : status;
}
