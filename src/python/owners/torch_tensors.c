/* What a tensor refers to, by torch's getters: its function, gradient, hooks, base, and the block of its data. */
#include "python/owners/torch_parts.h"

static uint64_t bytes_of(const lp_torch_names *names, PyObject *op) {
    /* Others may dispatch to Python. */
    return lp_torch_is_exact(names, Py_TYPE(op)) ? lp_torch_get_number(names->nbytes, op) : 0;
}

/* ---- its data ---- */

/* Bytes of the storage of a tensor of torch's own, 0 if not known. */
static uint64_t storage_bytes(const lp_torch_names *names, PyObject *op) {
    PyObject *storage = names->untyped_storage == NULL ? NULL : PyObject_CallOneArg(names->untyped_storage, op);
    PyObject *value = storage == NULL ? NULL : PyObject_CallMethod(storage, "nbytes", NULL);
    uint64_t bytes = value != NULL && PyLong_Check(value) ? (uint64_t)PyLong_AsUnsignedLongLongMask(value) : 0;
    Py_XDECREF(value);
    Py_XDECREF(storage);
    PyErr_Clear();
    return bytes;
}

/* How an edge to the block of its data is drawn for a tensor of so many bytes.  CUDA's allocators give more than was asked for
 * (512 bytes for 4): a tensor that shows all of its storage is a part of nothing. */
static uint32_t order_of(lp_torch *torch, uint32_t block, PyObject *op, uint64_t bytes) {
    const lp_block *row = &torch->walk->block[block];
    uint64_t whole = row->bytes;
    if (bytes < whole && bytes < whole - bytes && lp_medium_row_of((lp_medium)row->medium)->on_cuda) {
        uint64_t stored = storage_bytes(torch->names, op);
        whole = stored != 0 && stored < whole ? stored : whole;
    }
    return lp_views_order(torch, torch->walk->address[block], bytes, whole);
}

/* bytes: of the tensor, 0 if not known.  A detached view has no base, but is a part of its block all the same. */
static void add_buffer(lp_torch *torch, uint32_t source, PyObject *address, uint64_t bytes) {
    lp_walk *walk = torch->walk;
    void *pointer = address == NULL || !PyLong_Check(address) ? NULL : PyLong_AsVoidPtr(address);
    if (pointer == NULL) {
        PyErr_Clear();
        return;
    }
    uint32_t block = lp_walk_find_block(walk, pointer);
    if (block != LP_NODE_NONE) {
        uint32_t order = bytes != 0 ? order_of(torch, block, lp_walk_object(walk, source), bytes) : 0;
        lp_graph_add_late(&walk->graph, (lp_late_edge){source, block, "buffer", order, LP_LATE_NONE});
    }
    lp_torch_read_lender(torch, source, block);
}

/* 1 for a copy that shares its data until one of the two is written or asked for its address. */
static int is_lazy_copy(const lp_torch_names *names, PyObject *op) {
    PyObject *answer = names->is_cow == NULL ? NULL : PyObject_CallOneArg(names->is_cow, op);
    int is_lazy = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return is_lazy;
}

static int is_true(PyObject *getter, PyObject *op) {
    PyObject *value = lp_torch_get(getter, op);
    int result = value == Py_True;
    Py_XDECREF(value);
    return result;
}

/* 1 for a storage of the meta device, as fake tensors have too whatever device they name: it has no memory. */
static int is_on_meta(PyObject *storage) {
    PyObject *device = PyObject_GetAttrString(storage, "device");
    PyObject *type = device == NULL ? NULL : PyObject_GetAttrString(device, "type");
    int is_meta = type != NULL && PyUnicode_Check(type) && PyUnicode_CompareWithASCIIString(type, "meta") == 0;
    Py_XDECREF(type);
    Py_XDECREF(device);
    PyErr_Clear();
    return is_meta;
}

/* Other subclasses may dispatch in data_ptr(): their storage is asked, unless it has no address, for torch warns then. */
static PyObject *storage_address(const lp_torch_names *names, PyObject *op) {
    PyObject *storage = names->untyped_storage == NULL ? NULL : PyObject_CallOneArg(names->untyped_storage, op);
    PyObject *address = NULL;
    if (storage != NULL && !is_on_meta(storage)) {
        address = PyObject_CallMethod(storage, "data_ptr", NULL);
    }
    Py_XDECREF(storage);
    return address;
}

/* Where a lazy copy's data lies (new int), without asking for it. */
static PyObject *lazy_address(const lp_torch_names *names, PyObject *op) {
    lp_torch_storage read;
    return lp_storage_read(&names->storage, lp_storage_of(&names->storage, op), &read)
               ? PyLong_FromUnsignedLongLong(read.data)
               : NULL;
}

/* Address of the data (new int), or NULL. */
static PyObject *data_address(const lp_torch_names *names, PyObject *op) {
    PyObject *address = NULL;
    if (is_lazy_copy(names, op)) {
        address = lazy_address(names, op);
    } else if (!lp_torch_is_exact(names, Py_TYPE(op))) {
        address = storage_address(names, op);
    } else if (!is_true(names->is_meta, op)) {
        address = PyObject_CallOneArg(names->data_ptr, op);
    }
    if (address == NULL) {
        PyErr_Clear();
    }
    return address;
}

typedef struct whole {
    lp_torch *torch;
    uint32_t node;
} whole;

static void add_part(void *whole_, uint64_t data) {
    const whole *w = whole_;
    PyObject *address = PyLong_FromUnsignedLongLong(data);
    add_buffer(w->torch, w->node, address, 0);
    Py_XDECREF(address);
}

/* A sparse tensor has the storages of its parts.  Its methods are not asked for them: they let other threads run, and
 * what the walk has met dies. */
static void read_parts(lp_torch *torch, uint32_t node, PyObject *op) {
    const lp_torch_names *names = torch->names;
    if (lp_torch_is_exact(names, Py_TYPE(op)) && !is_lazy_copy(names, op) && !is_true(names->is_meta, op)) {
        whole whole = {torch, node};
        lp_torch_each_part(lp_torch_get_number(names->cdata, op), add_part, &whole);
    }
}

/* The function keeps the dict of the tensor's hooks as well as the tensor does. */
static void read_hooks(lp_torch *torch, uint32_t node, uint32_t function, PyObject *op) {
    PyObject *hooks = lp_torch_get(torch->names->hooks, op);
    if (hooks == NULL) {
        return;
    }
    if (function != LP_NODE_NONE) {
        lp_torch_add_edge(torch, function, Py_NewRef(hooks), "hooks", 0, LP_LATE_ONE);
    }
    lp_torch_add_edge(torch, node, hooks, "_backward_hooks", 0, LP_LATE_NONE); /* a name for what the collector sees */
}

/* Writes in place, which a view and its base count together; in inference mode torch does not count them. */
static int was_written(const lp_torch_names *names, PyObject *op) {
    PyObject *value = lp_torch_get(names->version, op);
    int is_zero = value != NULL && PyLong_Check(value) && PyObject_Not(value) == 1;
    Py_XDECREF(value);
    return !is_zero;
}

/* 1 for a view whose function torch would replace when asked for it: its base may have been written since it was made.
 * It is not asked, for the base leads to the same graph. */
static int is_outdated(const lp_torch_names *names, PyObject *base) {
    return base != NULL && is_true(names->requires_grad, base) && was_written(names, base);
}

/* Edges that a leaf has, and other tensors not, but for the gradient where it is retained. */
static void read_gradient(lp_torch *torch, uint32_t node, PyObject *op, int is_leaf) {
    lp_torch_names *names = torch->names;
    /* torch warns when .grad of another non-leaf is read. */
    PyObject *grad = is_leaf || is_true(names->retains_grad, op) ? lp_torch_get(names->grad, op) : NULL;
    if (grad != NULL) {
        lp_torch_add_edge(torch, node, grad, "grad", 1, LP_LATE_SHARED);
    }
    /* The wrapper keeps the dict, and so does the tensor. */
    PyObject *hooks = is_leaf ? lp_torch_get(names->accumulate_hooks, op) : NULL;
    if (hooks != NULL) {
        lp_torch_add_edge(torch, node, hooks, "_post_accumulate_grad_hooks", 1, LP_LATE_ONE);
    }
    hooks = is_leaf ? lp_torch_get(names->hooks, op) : NULL;
    if (hooks != NULL) { /* a reference of the wrapper, which has no name */
        lp_torch_add_edge(torch, node, hooks, "_backward_hooks", 1, LP_LATE_NONE);
    }
}

void lp_torch_read_tensor(lp_torch *torch, uint32_t node) {
    PyObject *op = lp_walk_object(torch->walk, node);
    lp_torch_names *names = torch->names;
    PyObject *base = lp_torch_get(names->base, op);
    int is_asked = !is_outdated(names, base);
    PyObject *grad_fn = is_asked ? lp_torch_get(names->grad_fn, op) : NULL;
    uint32_t function = LP_NODE_NONE;
    if (!is_asked) {
        lp_torch_note_unasked(torch, node);
    }
    if (grad_fn != NULL) {
        function = lp_torch_add_edge(torch, node, grad_fn, "grad_fn", 0, LP_LATE_SHARED);
    }
    read_hooks(torch, node, function, op);
    read_gradient(torch, node, op, is_asked && grad_fn == NULL);
    if (base != NULL) {
        uint32_t order = lp_views_order(torch, (uintptr_t)base, bytes_of(names, op), bytes_of(names, base));
        lp_torch_add_edge(torch, node, base, "_base", order, LP_LATE_SHARED);
        return;
    }
    PyObject *address = data_address(names, op);
    if (address == NULL) {
        read_parts(torch, node, op);
    } else {
        add_buffer(torch, node, address, bytes_of(names, op));
    }
    Py_XDECREF(address);
}
