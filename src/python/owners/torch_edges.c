/* Edges that the phase adds, and the wrappers that it holds until lp_torch_release(). */
#include "python/owners/torch_parts.h"

static void hold(lp_torch *torch, PyObject *op_stolen, uint32_t node) {
    lp_walk *walk = torch->walk;
    if (walk->graph.flag[node] & LP_NODE_KEPT) {
        Py_DECREF(op_stolen);
        return;
    }
    PyObject **made = lp_walk_reserve(torch->made, torch->made_count, &torch->made_capacity, sizeof(*made));
    if (made == NULL) {
        Py_DECREF(op_stolen);
        walk->status = LP_NO_MEMORY;
        return;
    }
    torch->made = made;
    torch->made[torch->made_count++] = op_stolen;
    walk->graph.flag[node] |= LP_NODE_KEPT;
}

void lp_torch_keep(lp_torch *torch, uint32_t node) {
    if (!(torch->walk->graph.flag[node] & LP_NODE_KEPT)) {
        hold(torch, Py_NewRef(lp_walk_object(torch->walk, node)), node);
    }
}

void lp_torch_add_late(lp_torch *torch, lp_late_edge edge) {
    lp_status status = lp_graph_add_late(&torch->walk->graph, edge);
    if (status != LP_OK) {
        torch->walk->status = status;
    }
}

static void count_wrapper(lp_torch *torch, PyTypeObject *type) {
    int kind = lp_kinds_get(&torch->walk->kinds, type).kind;
    torch->wrapper_count += kind == LP_KIND_TENSOR || kind == LP_KIND_AUTOGRAD;
    if (kind == LP_KIND_AUTOGRAD) {
        lp_torch_free_in_turn(type);
    }
}

uint32_t lp_torch_add_edge(lp_torch *torch, uint32_t source, PyObject *op_stolen, const char *label, uint32_t order,
                           lp_late_refs refs) {
    lp_walk *walk = torch->walk;
    uint32_t before = walk->graph.node_count;
    uint32_t node = lp_walk_add(walk, op_stolen, LP_NODE_MADE);
    if (node == LP_NODE_NONE) {
        Py_DECREF(op_stolen);
        return node;
    }
    if (node == before) {
        count_wrapper(torch, Py_TYPE(op_stolen));
    }
    if (walk->graph.flag[node] & LP_NODE_MADE) {
        hold(torch, op_stolen, node);
    } else {
        Py_DECREF(op_stolen);
    }
    lp_torch_add_late(torch, (lp_late_edge){source, node, label, order, refs});
    return node;
}
