/* When a node was made, by its number, and the bytes of its chunks, by malloc's own headers. */
#include "python/owners/autograd_births.h"

#include "process/chunks.h"            // lp_chunk_with_header
#include "python/compat/lookups.h"     // lp_lookup_descriptor
#include "python/layouts/torch.h"      // lp_torch_read_node
#include "python/owners/torch_parts.h" // lp_torch_call_for_number

/* ---- bytes ---- */

uint64_t lp_autograd_bytes(PyObject *op) {
    uint64_t word[LP_TORCH_NODE_WORDS];
    uint64_t node = lp_torch_read_node(op, word);
    uint64_t bytes = node == 0 ? 0 : lp_chunk_with_header(node);
    return bytes == 0 ? 0 : bytes + lp_chunk_with_header(lp_torch_edges_of(word));
}

/* ---- births ---- */

/* The step in which the node with this number was made: that of the last mark at or below it; 0 if there is none. */
static uint32_t step_of(const lp_autograd_marks *marks, uint64_t number) {
    uint32_t low = 0, high = marks->count;
    while (low < high) {
        uint32_t middle = low + ((high - low) >> 1);
        if (marks->number[middle] <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? 0 : marks->step[low - 1];
}

lp_status lp_autograd_note_births(lp_torch *torch) {
    lp_walk *walk = torch->walk;
    const lp_autograd_marks *marks = &walk->request->autograd_marks;
    for (uint32_t i = 0; i < walk->torch_count && marks->count > 0 && walk->status == LP_OK; i++) {
        uint32_t node = walk->torch_node[i];
        PyObject *op = lp_walk_object(walk, node);
        if ((walk->graph.flag[node] & LP_NODE_GROWING) || lp_walk_kind(walk, node) != LP_KIND_AUTOGRAD) {
            continue;
        }
        PyObject *getter = lp_lookup_descriptor(Py_TYPE(op), "_sequence_nr");
        uint64_t number = getter == NULL ? 0 : lp_torch_call_for_number(getter, op);
        /* 0: no number; all ones: the node of a leaf, which is made once. */
        uint32_t step = number == 0 || number == UINT64_MAX ? 0 : step_of(marks, number);
        if (step != 0 && step >= walk->request->first_step && step <= walk->request->last_step) {
            lp_walk_add_grown(walk, (lp_grown){node, walk->request->autograd_group, step, 0});
        }
    }
    return walk->status;
}
