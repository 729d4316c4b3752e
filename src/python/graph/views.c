/* What a view shows of the pinned block that it keeps. Calls torch once, under DisableTorchFunction. */
#include "python/graph/views.h"

#include <string.h>

#include "python/values/convert.h"            // lp_text_to_str
#include "python/layouts/numpy.h"       // lp_numpy_base
#include "python/compat/lookups.h"  // lp_lookup_attribute
#include "python/graph/path_out.h"           // LP_PATH_MOST_NODES

#define MOST_BASES 8

/* The pinned block below a tensor or array, or LP_NODE_NONE. */
static uint32_t pinned_below(lp_walk *walk, uint32_t node) {
    int kind = lp_walk_kind(walk, node);
    uint32_t target;
    if (kind != LP_KIND_TENSOR && kind != LP_KIND_ARRAY) {
        return LP_NODE_NONE;
    }
    for (lp_edges it = lp_edges_of(&walk->graph, node); lp_edges_next(&it, &target);) {
        if (target < walk->block_count && walk->block[target].medium == LP_MEDIUM_PINNED) {
            return target;
        }
    }
    return LP_NODE_NONE;
}

/* 1 if `node` was cut from `base`. */
static int is_view_of(lp_walk *walk, uint32_t node, uint32_t base) {
    int kind = lp_walk_kind(walk, node);
    if (kind != LP_KIND_TENSOR) {
        return kind == LP_KIND_ARRAY && lp_walk_is_object(walk, base) &&
               lp_numpy_base(lp_walk_object(walk, node)) == lp_walk_object(walk, base);
    }
    const lp_late_edge *edge = lp_graph_first_late(&walk->graph, node),
                       *end = walk->graph.late + walk->graph.late_count;
    for (; edge != NULL && edge < end && edge->source == node; edge++) {
        if (edge->target == base && strcmp(edge->label, "_base") == 0) {
            return 1;
        }
    }
    return 0;
}

/* Subclasses may run code of their own in a getter. */
static int is_plain(PyObject *op) {
    PyObject *type = (PyObject *)Py_TYPE(op);
    return type == lp_lookup_attribute("torch", "Tensor") || type == lp_lookup_attribute("numpy", "ndarray") ||
           type == lp_lookup_attribute("torch.nn.parameter", "Parameter");
}

static PyObject *bytes_of(PyObject *op) {
    PyObject *getter = is_plain(op) ? lp_lookup_descriptor(Py_TYPE(op), "nbytes") : NULL;
    PyObject *value = getter == NULL || Py_TYPE(getter)->tp_descr_get == NULL
                          ? NULL
                          : Py_TYPE(getter)->tp_descr_get(getter, op, (PyObject *)Py_TYPE(op));
    PyErr_Clear();
    return value != NULL ? value : Py_NewRef(Py_None);
}

/* The tensor that an array was made of; the tensor itself; or NULL (borrowed). */
static PyObject *tensor_of(lp_walk *walk, PyObject *op) {
    for (int i = 0; i < MOST_BASES && op != NULL; i++) {
        int kind = lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind;
        if (kind == LP_KIND_TENSOR && is_plain(op)) {
            return op;
        }
        op = kind == LP_KIND_ARRAY ? lp_numpy_base(op) : NULL;
    }
    return NULL;
}

static PyObject *storage_bytes(PyObject *tensor) {
    PyObject *getter = tensor == NULL ? NULL : lp_lookup_descriptor(Py_TYPE(tensor), "untyped_storage");
    PyObject *storage = getter == NULL ? NULL : PyObject_CallOneArg(getter, tensor);
    PyObject *value = storage == NULL ? NULL : PyObject_CallMethod(storage, "nbytes", NULL);
    Py_XDECREF(storage);
    PyErr_Clear();
    return value != NULL ? value : Py_NewRef(Py_None);
}

/* Enter torch's guard against function modes: the guard, or NULL without torch or where that failed. */
static PyObject *enter_guard(void) {
    PyObject *type = lp_lookup_attribute("torch._C", "DisableTorchFunction");
    PyObject *guard = type == NULL ? NULL : PyObject_CallNoArgs(type);
    PyObject *entered = guard == NULL ? NULL : PyObject_CallMethod(guard, "__enter__", NULL);
    if (entered == NULL) {
        Py_CLEAR(guard);
    }
    Py_XDECREF(entered);
    PyErr_Clear();
    return guard;
}

static void leave_guard(PyObject *guard) {
    PyObject *left = guard == NULL ? NULL : PyObject_CallMethod(guard, "__exit__", "OOO", Py_None, Py_None, Py_None);
    PyErr_Clear();
    Py_XDECREF(left);
    Py_XDECREF(guard);
}

static PyObject *to_dict(lp_walk *walk, uint32_t node, uint32_t block) {
    char name[LP_NAME_BYTES];
    PyObject *op = lp_walk_object(walk, node), *tensor = tensor_of(walk, op), *guard = enter_guard();
    int is_safe = tensor == NULL || guard != NULL;
    PyObject *viewed = is_safe ? bytes_of(op) : Py_NewRef(Py_None);
    PyObject *stored = is_safe ? storage_bytes(tensor) : Py_NewRef(Py_None);
    leave_guard(guard);
    lp_names_type_of(Py_TYPE(op), name, sizeof(name));
    return Py_BuildValue("{s:N,s:N,s:N,s:K}", "type", lp_text_to_str(name), "viewed_bytes", viewed, "storage_bytes",
                         stored, "block_bytes", (unsigned long long)walk->block[block].bytes);
}

PyObject *lp_view_to_dict(const lp_trace *trace, const lp_bucket *bucket) {
    uint32_t node[LP_PATH_MOST_NODES];
    uint32_t count = bucket->top == LP_NODE_NONE || trace->is_torch_changing
                         ? 0
                         : lp_paths_get(&trace->paths, bucket->sample, node, LP_PATH_MOST_NODES);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t block = pinned_below(trace->walk, node[i]);
        if (block != LP_NODE_NONE) {
            while (i > 0 && is_view_of(trace->walk, node[i - 1], node[i])) {
                i--;
            }
            return to_dict(trace->walk, node[i], block);
        }
    }
    return Py_NewRef(Py_None);
}
