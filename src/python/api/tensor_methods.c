/* tensor_blocks: which tensors lie on which blocks of the ledger, and what the graphs say of them. */
#include "python/api/methods.h"

#include <string.h>

#include "base/rawmem.h"      // lp_raw_calloc
#include "python/values/convert.h"   // lp_raise_status
#include "python/births/hooks.h"     // lp_hooks_verify
#include "python/values/rows.h"      // lp_rows_new
#include "python/graph/trace.h"     // lp_trace_open

#define TORCH_BUDGET 100000

static lp_trace the_trace;

/* What the edges that torch's getters gave say of their targets. */
static void read_late_edges(uint8_t *bits) {
    const lp_graph *graph = &the_trace.walk->graph;
    for (uint32_t i = 0; i < graph->late_count; i++) {
        const lp_late_edge *edge = &graph->late[i];
        int from = lp_walk_kind(the_trace.walk, edge->source), to = lp_walk_kind(the_trace.walk, edge->target);
        if (from == LP_KIND_TENSOR && strcmp(edge->label, "grad_fn") == 0) {
            bits[edge->source] |= LP_TENSOR_HAS_GRAPH;
        } else if (from == LP_KIND_TENSOR && strcmp(edge->label, "grad") == 0) {
            bits[edge->target] |= LP_TENSOR_IS_GRAD;
        } else if (from == LP_KIND_AUTOGRAD && to == LP_KIND_TENSOR && strcmp(edge->label, "variable") != 0) {
            bits[edge->target] |= LP_TENSOR_IS_SAVED;
        }
    }
}

static uint32_t block_of(uint32_t node) {
    uint32_t target;
    for (lp_edges it = lp_edges_of(&the_trace.walk->graph, node); lp_edges_next(&it, &target);) {
        if (target < the_trace.walk->block_count) {
            return target;
        }
    }
    return LP_NODE_NONE;
}

static int add_row(PyObject *list, uint32_t node, uint8_t bits) {
    const lp_walk *walk = the_trace.walk;
    uint32_t block = lp_walk_kind(the_trace.walk, node) == LP_KIND_TENSOR ? block_of(node) : LP_NODE_NONE;
    if (block == LP_NODE_NONE) {
        return 0;
    }
    bits |= walk->graph.flag[node] & LP_NODE_MADE ? LP_TENSOR_IS_INNER : 0;
    PyObject *row = lp_rows_new(LP_ROWS_TENSOR_BLOCK, "KKI", (unsigned long long)walk->address[node],
                                (unsigned long long)walk->block[block].address, (unsigned)bits);
    int failed = row == NULL || PyList_Append(list, row) < 0;
    Py_XDECREF(row);
    return failed ? -1 : 0;
}

static PyObject *rows_of_trace(void) {
    const lp_walk *walk = the_trace.walk;
    uint8_t *bits = lp_raw_calloc((size_t)walk->graph.node_count + 1, 1);
    PyObject *list = bits == NULL ? PyErr_NoMemory() : PyList_New(0);
    if (list != NULL) {
        read_late_edges(bits);
    }
    for (uint32_t i = 0; list != NULL && i < walk->torch_count; i++) {
        if (add_row(list, walk->torch_node[i], bits[walk->torch_node[i]]) < 0) {
            Py_CLEAR(list);
        }
    }
    lp_raw_free(bits);
    return list;
}

static PyObject *tensor_blocks(PyObject *module, PyObject *noargs) {
    lp_walk_request request = {.torch = 1};
    PyObject *result = NULL;
    (void)module, (void)noargs;
    int collects = lp_trace_begin(request.torch);
    if (collects < 0) {
        return NULL;
    }
    lp_hooks_verify();
    lp_status status = lp_trace_open(&the_trace, &request, TORCH_BUDGET);
    if (status == LP_OK) {
        result = rows_of_trace();
    } else {
        lp_trace_raise(status, &request);
    }
    lp_trace_release(&the_trace);
    lp_trace_end(collects);
    return result;
}

PyMethodDef lp_tensor_methods[] = {
    {"tensor_blocks", tensor_blocks, METH_NOARGS,
     "tensor_blocks($module, /)\n--\n\n"
     "[TensorBlock] of tensors on blocks of the ledger.  TENSOR_HAS_GRAPH: has a grad_fn; TENSOR_IS_GRAD: is some "
     "tensor's .grad; TENSOR_IS_SAVED: saved by a graph; TENSOR_IS_INNER: no Python object before, only a graph or "
     "another tensor has it."},
    {NULL, NULL, 0, NULL},
};
