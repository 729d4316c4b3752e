/* Memory that Python lent to torch: torch.from_numpy(), torch.frombuffer(), torch.from_dlpack().
 *
 * The storage holds a reference to the array or buffer, in a function that is to let go of it, or DLPack's tensor, whose
 * maker holds it. No getter tells, so the storage's memory is read; what is found counts only if its data is the
 * storage's. */
#include "python/owners/torch_parts.h"

#include "process/mappings.h"      // lp_mappings_has
#include "python/compat/heap.h"    // lp_heap_looks_alive
#include "python/layouts/dlpack.h" // lp_dlpack_context
#include "python/layouts/numpy.h"  // lp_numpy_data
#include "python/layouts/torch.h"  // lp_torch_read_captured

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
    uint64_t head[sizeof(PyObject) / sizeof(uint64_t)];
    if (address <= UINT16_MAX || !lp_is_word_aligned(address) || address >> LP_ADDRESSES_BITS != 0 || address == data ||
        !lp_mappings_has(&lp_heap_mappings, op, sizeof(PyVarObject)) ||
        !lp_copy_words(address, head, sizeof(head) / sizeof(*head)) || !lp_heap_looks_alive(op) ||
        lp_walk_find(walk, Py_TYPE(op)) == LP_NODE_NONE ||
        !lp_mappings_has(&lp_heap_mappings, op, (uint64_t)Py_TYPE(op)->tp_basicsize)) {
        return NULL;
    }
    return lends(op, data, lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind, is_first) ? op : NULL;
}

/* The array that made DLPack's tensor at an address. */
static PyObject *maker_at(lp_walk *walk, uint64_t address, uint64_t data) {
    uint64_t words[LP_DLPACK_WORDS];
    if (!lp_is_word_aligned(address) || !lp_peek_words(address, words, LP_DLPACK_WORDS)) {
        return NULL;
    }
    return object_at(walk, lp_dlpack_context(words, data), data, 0);
}

static PyObject *lender_of(lp_walk *walk, uint64_t address) {
    lp_torch_storage storage;
    uint64_t captured[LP_TORCH_CAPTURED_WORDS];
    if (!lp_torch_read_storage(address, &storage) || storage.device != 0 ||
        !lp_torch_read_captured(&storage, captured)) {
        return NULL;
    }
    PyObject *op = NULL;
    for (int i = 0; i < LP_TORCH_CAPTURED_WORDS && op == NULL; i++) {
        op = object_at(walk, captured[i], storage.data, i == 0);
    }
    return op != NULL ? op : maker_at(walk, captured[0], storage.data);
}

/* Memory of torch's own that no array shows was lent by none. */
static int may_be_lent(const lp_torch *torch, uint32_t block) {
    return block == LP_NODE_NONE || torch->arrays_grow || torch->walk->block[block].medium == LP_MEDIUM_NUMPY;
}

void lp_torch_read_lender(lp_torch *torch, uint32_t node, uint32_t block) {
    lp_walk *walk = torch->walk;
    uint64_t storage = may_be_lent(torch, block) ? lp_storage_of_node(&torch->names->storage, walk, node) : 0;
    PyObject *lender = storage == 0 || !lp_is_word_aligned(storage) ? NULL : lender_of(walk, storage);
    uint32_t target = lender == NULL ? LP_NODE_NONE : lp_walk_add(walk, lender, 0);
    int is_new;
    uint32_t *lent = target == LP_NODE_NONE ? NULL : lp_map_put(&torch->lent, storage, &is_new);
    if (lent == NULL) {
        return;
    }
    *lent = target;
    /* Tensors and the object of one storage share its reference. */
    lp_torch_add_late(torch, (lp_late_edge){node, target, "memory", 0, is_new ? LP_LATE_ONE : LP_LATE_NONE});
}
