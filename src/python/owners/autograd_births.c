#include "python/owners/autograd_births.h"

#include "process/mappings.h"          // lp_peek_words
#include "python/owners/torch_more.h"  // lp_torch_read_node

/* glibc keeps the size of a chunk in the word before it; its last three bits are flags. */
#define CHUNK_FLAGS 7u
#define LEAST_CHUNK 32u
#define MOST_CHUNK (64u * 1024)
/* An edge is {pointer to the node, number of the input}, with a count of owners before torch 2.10. */
#define EDGES_MOST 4096u

/* ---- bytes ---- */

/* Bytes of the chunk that begins at an address, with its header; 0 if it does not look like one. */
static uint64_t chunk_bytes(uint64_t address) {
    uint64_t header;
    if (address == 0 || (address & 15) != 0 || !lp_peek_words(address - sizeof(header), &header, 1)) {
        return 0;
    }
    uint64_t bytes = header & ~(uint64_t)CHUNK_FLAGS;
    return bytes >= LEAST_CHUNK && bytes <= MOST_CHUNK && (bytes & 15) == 0 ? bytes : 0;
}

/* The vector of edges: three words {begin, end, end of room}; 16 or 24 bytes an edge. */
static uint64_t edges_bytes(const uint64_t *word) {
    for (int i = 2; i + 2 < LP_TORCH_NODE_WORDS; i++) {
        uint64_t bytes = word[i + 1] - word[i];
        if (word[i] != 0 && (word[i] & 15) == 0 && word[i + 1] > word[i] && word[i + 2] >= word[i + 1] &&
            bytes <= EDGES_MOST && (bytes % 16 == 0 || bytes % 24 == 0)) {
            return chunk_bytes(word[i]);
        }
    }
    return 0;
}

uint64_t lp_autograd_bytes(PyObject *op) {
    uint64_t word[LP_TORCH_NODE_WORDS];
    uint64_t node = lp_torch_read_node(op, word);
    uint64_t bytes = node == 0 ? 0 : chunk_bytes(node);
    return bytes == 0 ? 0 : bytes + edges_bytes(word);
}

/* ---- births ---- */

/* The step in which the node with this number was made: that of the last mark at or below it; 0 if there is none. */
static uint32_t step_of(const lp_autograd_marks *marks, uint64_t number) {
    uint32_t low = 0, high = marks->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
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
        if ((walk->graph.flag[node] & LP_NODE_GROWING) ||
            lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind != LP_KIND_AUTOGRAD) {
            continue;
        }
        PyObject *getter = lp_torch_descriptor(Py_TYPE(op), "_sequence_nr");
        uint64_t number = getter == NULL ? 0 : lp_torch_call_for_number(getter, op);
        /* 0: no number; all ones: the node of a leaf, which is made once. */
        uint32_t step = number == 0 || number == UINT64_MAX ? 0 : step_of(marks, number);
        if (step != 0 && step >= walk->request->first_step && step <= walk->request->last_step) {
            lp_walk_add_grown(walk, (lp_grown){node, walk->request->autograd_group, step, 0});
        }
    }
    return walk->status;
}
