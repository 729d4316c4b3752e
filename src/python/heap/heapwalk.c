/* Owns a walk's nodes and rows. Node numbers are in the order of addition, rows in that of nodes; addresses that
 * no object proves are left out. */
#include "python/heap/heapwalk.h"

#include <string.h>

#include "base/rawmem.h"              // lp_raw_realloc
#include "ledger/epoch.h"             // lp_epoch_steps
#include "python/compat/heap.h"       // lp_heap_traverse
#include "python/layouts/dlpack.h"     // lp_dlpack_data
#include "python/layouts/numpy.h"      // lp_numpy_traverse

#define CHUNK 512

static int fail(lp_walk *walk, lp_status status) {
    if (walk->status == LP_OK) {
        walk->status = status;
    }
    return -1;
}

/* ---- nodes ---- */

/* Room for one more element; NULL when out of memory. */
void *lp_walk_reserve(void *array, uint32_t count, uint32_t *capacity, size_t element_bytes) {
    if (count < *capacity) {
        return array;
    }
    uint32_t size = *capacity ? *capacity + *capacity / 2 : 1024;
    void *bigger = lp_raw_realloc(array, size * element_bytes);
    if (bigger != NULL) {
        *capacity = size;
    }
    return bigger;
}

uint32_t lp_walk_append(lp_walk *walk, uint64_t address, uint8_t flag) {
    lp_graph *graph = &walk->graph;
    if (LP_UNLIKELY(graph->node_count == walk->address_capacity || graph->node_count == graph->node_capacity)) {
        lp_status status = lp_graph_reserve_nodes(graph, 1);
        uint64_t *addresses =
            status != LP_OK ? NULL : lp_raw_realloc(walk->address, (size_t)graph->node_capacity * sizeof(*addresses));
        if (addresses == NULL) {
            fail(walk, status != LP_OK ? status : LP_NO_MEMORY);
            return LP_NODE_NONE;
        }
        walk->address = addresses;
        walk->address_capacity = graph->node_capacity;
        walk->index.is_large = graph->node_count >= LP_WALK_LARGE;
    }
    if (LP_UNLIKELY(walk->request->node_budget != 0 && graph->node_count >= walk->request->node_budget)) {
        fail(walk, LP_LIMIT);
        return LP_NODE_NONE;
    }
    walk->address[graph->node_count] = address;
    return lp_graph_add_node(graph, flag);
}

uint32_t lp_walk_add(lp_walk *walk, PyObject *op, uint8_t flag) {
    uint32_t *slot = lp_addresses_slot(&walk->index, (uintptr_t)op);
    if (LP_UNLIKELY(slot == NULL)) {
        fail(walk, LP_NO_MEMORY);
        return LP_NODE_NONE;
    }
    if (*slot != 0) {
        return *slot - 1;
    }
    uint32_t node = lp_walk_append(walk, (uintptr_t)op, flag);
    if (node != LP_NODE_NONE) {
        *slot = node + 1;
    }
    return node;
}

uint32_t lp_walk_find(const lp_walk *walk, const void *op) { return lp_addresses_find(&walk->index, (uintptr_t)op); }

uint32_t lp_walk_find_block(const lp_walk *walk, const void *address_) {
    uint64_t address = (uintptr_t)address_;
    uint32_t low = 0, high = walk->block_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (walk->block[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return LP_NODE_NONE;
    }
    const lp_block *block = &walk->block[low - 1];
    uint64_t bytes = block->bytes != 0 ? block->bytes : 1;
    return address - block->address < bytes ? low - 1 : LP_NODE_NONE;
}

/* ---- members of the groups ---- */

void lp_walk_add_grown(lp_walk *walk, lp_grown grown) {
    lp_grown *array = lp_walk_reserve(walk->grown, walk->grown_count, &walk->grown_capacity, sizeof(*array));
    if (array == NULL) {
        fail(walk, LP_NO_MEMORY);
        return;
    }
    walk->grown = array;
    walk->grown[walk->grown_count++] = grown;
    walk->graph.flag[grown.node] |= LP_NODE_GROWING;
}

int lp_walk_birth(const lp_walk *walk, PyObject *op, lp_site_id *out_site, uint32_t *out_step) {
    lp_stamp stamp = lp_birth_stamp(op);
    *out_site = LP_STAMP_SITE(stamp);
    *out_step = 0;
    if (LP_STAMP_EPOCH(stamp) == 0) {
        return 0;
    }
    lp_epoch_range steps = lp_epoch_steps(LP_STAMP_EPOCH(stamp));
    *out_step = steps.first_step;
    return steps.first_step >= walk->request->first_step && steps.first_step <= walk->request->last_step;
}

static void note_object(lp_walk *walk, uint32_t node, PyObject *op, uint32_t group) {
    lp_site_id site;
    uint32_t step;
    int is_member = lp_walk_birth(walk, op, &site, &step);
    if (site == LP_SITE_UNKNOWN && walk->request->older) {
        site = LP_STAMP_SITE(lp_heap_growth_of_old(op));
        is_member = site != LP_SITE_UNKNOWN;
    }
    if (!is_member) {
        return;
    }
    lp_site_id base = lp_site_base(site);
    for (; group != LP_KINDS_NO_GROUP; group = walk->request->group[group].next) {
        if (walk->request->group[group].site == base) {
            lp_walk_add_grown(walk, (lp_grown){node, group, step, site});
            return;
        }
    }
}

void lp_walk_note_block(lp_walk *walk, uint32_t node) {
    const lp_block *block = &walk->block[node];
    const lp_walk_request *request = walk->request;
    if (block->step < request->first_step || block->step > request->last_step) {
        return;
    }
    lp_site_id base = lp_site_base(block->site);
    for (uint32_t i = 0; i < request->group_count; i++) {
        const lp_traced_group *group = &request->group[i];
        if (group->type == NULL && group->medium == block->medium && group->site == base) {
            lp_walk_add_grown(walk, (lp_grown){node, i, block->step, block->site});
            return;
        }
    }
}

/* ---- references ---- */

static int push(lp_walk *walk, uintptr_t reference) {
    if (LP_UNLIKELY(walk->pending_count == walk->pending_capacity)) {
        size_t size = walk->pending_capacity ? walk->pending_capacity * 2 : 1u << 14;
        uintptr_t *pending = lp_raw_realloc(walk->pending, size * sizeof(*pending));
        if (pending == NULL) {
            return fail(walk, LP_NO_MEMORY);
        }
        walk->pending = pending;
        walk->pending_capacity = size;
    }
    walk->pending[walk->pending_count++] = reference;
    return 0;
}

int lp_walk_push(PyObject *op, void *walk_) {
    lp_walk *walk = walk_;
    if (LP_UNLIKELY(!lp_heap_is_aligned(op))) {
        walk->skipped_count++;
        return 0;
    }
    return push(walk, (uintptr_t)op);
}

static void push_block(lp_walk *walk, const void *address) {
    uint32_t node = address == NULL ? LP_NODE_NONE : lp_walk_find_block(walk, address);
    if (node != LP_NODE_NONE) {
        push(walk, 2 * (uintptr_t)node + 1);
    }
}

/* Types in static memory keep their dict, bases and order of bases too. */
static int traverse_static_type(PyTypeObject *type, visitproc visit, void *arg) {
    Py_VISIT(type->tp_dict);
    Py_VISIT(type->tp_bases);
    Py_VISIT(type->tp_mro);
    Py_VISIT(type->tp_base);
    return 0;
}

static void traverse_array(lp_walk *walk, PyObject *op) {
    lp_numpy_traverse(op, lp_walk_push, walk);
    PyObject *base = lp_numpy_base(op);
    int kind = base == NULL ? LP_KIND_LEAF : lp_kinds_get(&walk->kinds, Py_TYPE(base)).kind;
    /* The buffer of a view is reached through what it is a view of, so that paths show it. */
    if (kind != LP_KIND_ARRAY && !(kind == LP_KIND_TENSOR && walk->request->torch)) {
        push_block(walk, lp_numpy_data(op));
    }
    if (PyObject_IS_GC(op)) {
        lp_heap_traverse(op, lp_walk_push, walk);
    }
}

static void note_torch(lp_walk *walk, uint32_t node) {
    uint32_t *array = lp_walk_reserve(walk->torch_node, walk->torch_count, &walk->torch_capacity, sizeof(*array));
    if (array == NULL) {
        fail(walk, LP_NO_MEMORY);
        return;
    }
    walk->torch_node = array;
    walk->torch_node[walk->torch_count++] = node;
    walk->graph.flag[node] |= LP_NODE_TORCH;
}

/* Whoever finds the part is led to the whole, whose bytes it is counted with. */
static void note_part(lp_walk *walk, uint32_t node, PyObject *part) {
    uint32_t *slot = part == NULL ? NULL : lp_addresses_slot(&walk->index, (uintptr_t)part);
    uint64_t *array = lp_walk_reserve(walk->part, walk->part_count, &walk->part_capacity, sizeof(*array));
    if (array == NULL) {
        fail(walk, LP_NO_MEMORY);
        return;
    }
    walk->part = array;
    if (slot != NULL && *slot == 0) {
        *slot = node + 1;
        walk->part[walk->part_count++] = (uintptr_t)part;
    }
}

/* What is noted of a node by its type alone. */
static inline void note_type(lp_walk *walk, uint32_t node, PyObject *op, lp_type_info info) {
    if (LP_UNLIKELY(info.first_group != LP_KINDS_NO_GROUP) && !(walk->graph.flag[node] & LP_NODE_MADE)) {
        note_object(walk, node, op, info.first_group);
    }
    if (LP_UNLIKELY(info.has_part)) {
        note_part(walk, node, lp_heap_part(op));
    }
}

static void traverse(lp_walk *walk, uint32_t node) {
    PyObject *op = lp_walk_object(walk, node);
    lp_type_info info = lp_kinds_get(&walk->kinds, Py_TYPE(op));
    note_type(walk, node, op, info);
    if (LP_UNLIKELY(walk->graph.flag[node] & LP_NODE_OWN)) {
        return;
    }
    switch (info.kind) {
    case LP_KIND_LEAF:
    case LP_KIND_OWN:
        return;
    case LP_KIND_ARRAY:
        traverse_array(walk, op);
        return;
    case LP_KIND_RECORD:
        lp_numpy_traverse_record(op, lp_walk_push, walk);
        break;
    case LP_KIND_DTYPE:
        lp_numpy_traverse_dtype(op, lp_walk_push, walk);
        break;
    case LP_KIND_CAPSULE:
        push_block(walk, lp_dlpack_data(op));
        break;
    case LP_KIND_CODE:
        /* Only what is made while a watch runs: constants of a program are many, and grow no more. */
        if (lp_birth_stamp(op) != 0) {
            lp_heap_traverse_code(op, lp_walk_push, walk);
        }
        return;
    case LP_KIND_TYPE:
        if (!(((PyTypeObject *)op)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
            traverse_static_type((PyTypeObject *)op, lp_walk_push, walk);
            return;
        }
        break;
    case LP_KIND_TENSOR:
    case LP_KIND_AUTOGRAD:
    case LP_KIND_STORAGE:
        if (walk->request->torch) {
            note_torch(walk, node);
        }
        break;
    default:
        break;
    }
    lp_heap_traverse(op, lp_walk_push, walk);
}

/* ---- rows ---- */

/* The node of a reference that was not met before, or LP_NODE_NONE; walk->status says whether that is a failure. */
static uint32_t meet(lp_walk *walk, uintptr_t reference, uint32_t *slot) {
    if (LP_UNLIKELY(!lp_heap_looks_alive((PyObject *)reference))) {
        walk->skipped_count++;
        return LP_NODE_NONE;
    }
    uint32_t node = lp_walk_append(walk, reference, 0);
    *slot = node == LP_NODE_NONE ? 0 : node + 1;
    return node;
}

/* Turn the pending references [from, to) into edges of the row that is open, and close it. */
static int resolve_row(lp_walk *walk, size_t from, size_t to) {
    const uintptr_t *pending = walk->pending;
    size_t all = walk->pending_count;
    uint32_t *edge = walk->graph.edge + walk->graph.edge_count;
    for (size_t i = from; i < to; i++) {
        if (LP_LIKELY(i + 16 < all)) {
            lp_addresses_prefetch(&walk->index, pending[i + 16]);
        }
        uintptr_t reference = pending[i];
        if (LP_UNLIKELY(reference & 1)) {
            *edge++ = (uint32_t)(reference >> 1);
            continue;
        }
        uint32_t *slot = lp_addresses_slot(&walk->index, reference);
        if (LP_UNLIKELY(slot == NULL)) {
            return fail(walk, LP_NO_MEMORY);
        }
        uint32_t node = LP_LIKELY(*slot != 0) ? *slot - 1 : meet(walk, reference, slot);
        if (LP_LIKELY(node != LP_NODE_NONE)) {
            *edge++ = node;
        } else if (walk->status != LP_OK) {
            return -1;
        }
    }
    walk->graph.edge_count = (uint32_t)(edge - walk->graph.edge);
    LP_ASSERT(walk->graph.edge_count <= walk->graph.edge_capacity);
    lp_graph_close_row(&walk->graph);
    return 0;
}

int lp_walk_resolve(lp_walk *walk, const size_t *row_end, uint32_t rows) {
    lp_status status = walk->status;
    if (status == LP_OK && walk->pending_count > UINT32_MAX) {
        status = LP_LIMIT;
    }
    if (status == LP_OK) {
        status = lp_graph_reserve_edges(&walk->graph, (uint32_t)walk->pending_count);
    }
    if (status != LP_OK) {
        return fail(walk, status);
    }
    size_t from = 0;
    for (uint32_t i = 0; i < rows; i++) {
        if (resolve_row(walk, from, row_end[i]) < 0) {
            return -1;
        }
        from = row_end[i];
    }
    walk->pending_count = 0;
    return 0;
}

lp_status lp_walk_continue(lp_walk *walk) {
    size_t row_end[CHUNK];
    lp_graph *graph = &walk->graph;
    while (graph->row_count < graph->node_count && walk->status == LP_OK) {
        uint32_t first = graph->row_count, rows = graph->node_count - first;
        rows = rows < CHUNK ? rows : CHUNK;
        for (uint32_t i = 0; i < rows; i++) {
            if (first + i + 8 < graph->node_count) {
                __builtin_prefetch((const char *)(uintptr_t)walk->address[first + i + 8]);
            }
            traverse(walk, first + i);
            row_end[i] = walk->pending_count;
        }
        if (LP_UNLIKELY(!lp_walk_fits(walk, 0, 0))) {
            return fail(walk, LP_LIMIT), walk->status;
        }
        lp_walk_resolve(walk, row_end, rows);
    }
    return walk->status;
}
