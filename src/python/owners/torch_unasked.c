/* A view whose base was written in place is not asked for its function, which torch might replace then. It owns that
 * function all the same, and so would keep it from being garbage: the view's metadata has the function's address. */
#include "python/owners/torch_parts.h"

void lp_torch_note_unasked(lp_torch *torch, uint32_t node) {
    uint32_t *unasked =
        lp_walk_reserve(torch->unasked, torch->unasked_count, &torch->unasked_capacity, sizeof(*unasked));
    if (unasked == NULL) {
        torch->walk->status = LP_NO_MEMORY;
        return;
    }
    torch->unasked = unasked;
    torch->unasked[torch->unasked_count++] = node;
}

/* C++ node => wrapper + 1. That which accumulates a gradient is left out: a leaf knows it without owning it. */
static lp_status map_functions(lp_torch *torch, lp_map *out) {
    lp_walk *walk = torch->walk;
    uint64_t word[LP_TORCH_NODE_WORDS];
    for (uint32_t i = 0; i < walk->torch_count; i++) {
        uint32_t node = walk->torch_node[i];
        PyObject *op = lp_walk_object(walk, node);
        if (lp_walk_kind(walk, node) != LP_KIND_AUTOGRAD || lp_torch_has_variable(torch, op)) {
            continue;
        }
        uint64_t address = lp_torch_read_node(op, word);
        uint32_t *wrapper = address == 0 ? NULL : lp_map_put(out, address, NULL);
        if (address != 0 && wrapper == NULL) {
            return LP_NO_MEMORY;
        }
        if (wrapper != NULL) {
            *wrapper = node + 1;
        }
    }
    return LP_OK;
}

/* The wrapper of the function that a view owns, or LP_NODE_NONE. */
static uint32_t function_of(lp_torch *torch, uint32_t view, const lp_map *functions) {
    uint64_t word[LP_TORCH_META_WORDS];
    uint64_t tensor = lp_torch_get_number(torch->names->cdata, lp_walk_object(torch->walk, view));
    size_t count = lp_torch_read_autograd(tensor, word);
    for (size_t i = 0; i < count; i++) {
        uint32_t wrapper = lp_map_get(functions, word[i], 0);
        if (wrapper != 0) {
            return wrapper - 1;
        }
    }
    return LP_NODE_NONE;
}

void lp_torch_read_unasked(lp_torch *torch) {
    lp_map functions = {0};
    if (torch->unasked_count == 0 || torch->walk->status != LP_OK) {
        return;
    }
    torch->walk->status = map_functions(torch, &functions);
    for (uint32_t i = 0; i < torch->unasked_count && torch->walk->status == LP_OK; i++) {
        uint32_t view = torch->unasked[i], function = function_of(torch, view, &functions);
        if (function != LP_NODE_NONE) {
            lp_torch_add_late(torch, (lp_late_edge){view, function, "grad_fn", 0, LP_LATE_SHARED});
        }
    }
    lp_map_fini(&functions);
}
