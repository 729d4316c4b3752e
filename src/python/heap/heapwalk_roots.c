/* The walk as a whole: blocks, frames, modules, then objects until nothing is new. */
#include <string.h>

#include "python/heap/heapwalk.h"

#include "base/clock.h"          // lp_clock_ns
#include "base/rawmem.h"         // lp_raw_free
#include "native/native.h"       // lp_native_is_active
#include "python/compat/lookups.h"  // lp_lookup_attribute
#include "python/compat/heap.h"  // lp_heap_each_tracked
#include "python/heap/numbers.h"      // LP_KEPT_NODES
#include "python/heap/untracked.h"    // lp_untracked_add

uint32_t lp_walk_keep_nodes = LP_KEPT_NODES;

/* ---- frames ---- */

/* Its demos are programs like a user's. */
int lp_walk_is_own_code(const lp_walk *walk, PyCodeObject *code) {
    PyObject *dir = walk->package_dir, *name = code->co_filename;
    if (dir == NULL || !PyUnicode_Check(name) || PyUnicode_Tailmatch(name, dir, 0, PY_SSIZE_T_MAX, -1) != 1) {
        return 0;
    }
    static const char demo[] = "/demo/";
    const Py_ssize_t all = sizeof(demo) - 1;
    Py_ssize_t from = PyUnicode_GET_LENGTH(dir), length = PyUnicode_GET_LENGTH(name), same = 0;
    while (same < all && from + same < length && PyUnicode_READ_CHAR(name, from + same) == (Py_UCS4)demo[same]) {
        same++;
    }
    return same >= 1 && same < all;
}

static int collect_frame(const lp_running_frame *frame, void *walk_) {
    lp_walk *walk = walk_;
    if (lp_walk_is_own_code(walk, frame->code)) {
        return 0;
    }
    lp_running_frame *array = lp_walk_reserve(walk->frame, walk->frame_count, &walk->frame_capacity, sizeof(*array));
    if (array == NULL) {
        walk->status = LP_NO_MEMORY;
        return -1;
    }
    walk->frame = array;
    walk->frame[walk->frame_count++] = *frame;
    return 0;
}

typedef struct unwound {
    lp_walk *walk;
    uint32_t first;  /* in walk->frame */
} unwound;

/* One exception may be handled by several, each inside of the one before. */
static int collect_unwound(const lp_running_frame *frame, void *unwound_) {
    const unwound *all = unwound_;
    for (uint32_t i = all->first; i < all->walk->frame_count; i++) {
        if (all->walk->frame[i].key == frame->key) {
            return 0;
        }
    }
    return all->walk->frame_count - all->first < LP_UNWOUND_FRAMES ? collect_frame(frame, all->walk) : 1;
}

static void collect_frames(lp_walk *walk) {
    if (lp_frames_each_running(collect_frame, walk) == 0) {
        lp_frames_each_unwound(collect_unwound, &(unwound){walk, walk->frame_count});
    }
}

static void push_if_any(lp_walk *walk, PyObject *op) {
    if (op != NULL) {
        lp_walk_push(op, walk);
    }
}

static void close_frame_row(lp_walk *walk, const lp_running_frame *frame) {
    for (uint32_t i = 0; i < frame->local_count; i++) {
        push_if_any(walk, lp_frames_slot_object(frame->slot[i]));
    }
    push_if_any(walk, frame->locals);
    push_if_any(walk, frame->globals);
    push_if_any(walk, frame->function);
    push_if_any(walk, (PyObject *)frame->code);
    lp_walk_resolve(walk, &walk->pending_count, 1);
}

/* ---- modules ---- */

static void add_module(lp_walk *walk, PyObject *name, PyObject *module) {
    PyObject *root = PyModule_Check(module) ? PyModule_GetDict(module) : module;
    int own = lp_kinds_is_own_name(lp_kinds_ascii(name));
    if (root == Py_None || root == NULL) {
        return;
    }
    uint32_t node = lp_walk_add(walk, root, 0);
    if (node == LP_NODE_NONE) {
        return;
    }
    if (own) {
        walk->graph.flag[node] |= LP_NODE_OWN;
        return;
    }
    lp_module_root *array = lp_walk_reserve(walk->module, walk->module_count, &walk->module_capacity, sizeof(*array));
    if (array == NULL) {
        walk->status = LP_NO_MEMORY;
        return;
    }
    walk->module = array;
    walk->module[walk->module_count++] = (lp_module_root){node, name};
}

/* The folder of leakprobe with a separator at its end, from its first entry of __path__. */
static PyObject *find_package_dir(void) {
    PyObject *path = lp_lookup_attribute("leakprobe", "__path__");
    if (path != NULL && PyList_Check(path) && PyList_GET_SIZE(path) > 0 && PyUnicode_Check(PyList_GET_ITEM(path, 0))) {
        return PyList_GET_ITEM(path, 0);
    }
    return NULL;
}

static void add_modules(lp_walk *walk, PyObject *modules) {
    PyObject *key, *module;
    Py_ssize_t at = 0;
    while (PyDict_Next(modules, &at, &key, &module)) {
        if (PyUnicode_Check(key) && walk->status == LP_OK) {
            add_module(walk, key, module);
        }
    }
}

/* ---- threads ---- */

/* threading._active: number of a thread => its Thread object (borrowed), or NULL. */
static PyObject *active_threads(void) {
    PyObject *active = lp_lookup_attribute("threading", "_active");
    return active != NULL && PyDict_CheckExact(active) ? active : NULL;
}

static uint32_t thread_node(const lp_walk *walk, PyObject *active, unsigned long number) {
    PyObject *key = PyLong_FromUnsignedLong(number);
    PyObject *thread = key == NULL ? NULL : PyDict_GetItemWithError(active, key);
    Py_XDECREF(key);
    PyErr_Clear();
    return thread == NULL ? LP_NODE_NONE : lp_walk_find(walk, thread);
}

/* What a thread beside this one works with is told from its Thread object: names of modules that lead
 * there too are nearer then, and the frames of threads that were left behind lie below what collects them. */
static void tie_frames(lp_walk *walk) {
    unsigned long own = PyThreadState_Get()->thread_id;
    PyObject *active = walk->request->by_thread ? active_threads() : NULL;
    walk->frame_is_tied = active == NULL ? NULL : lp_raw_calloc((size_t)walk->frame_count + 1, 1);
    for (uint32_t i = 0; walk->frame_is_tied != NULL && i < walk->frame_count && walk->status == LP_OK; i++) {
        unsigned long number = walk->frame[i].thread;
        uint32_t thread = number == own ? LP_NODE_NONE : thread_node(walk, active, number);
        if (thread != LP_NODE_NONE) {
            walk->frame_is_tied[i] = 1;
            walk->status = lp_graph_add_late(&walk->graph,
                                             (lp_late_edge){thread, walk->block_count + i, "frame", i, LP_LATE_NONE});
        }
    }
}

/* ---- the walk ---- */

/* Bytes a node and an edge take while they are walked: its address, row and flag, and its place in the index. */
enum {
    NODE_BYTES = sizeof(uint64_t) + sizeof(uint32_t) + 1 + LP_INDEX_NODE_BYTES,
    EDGE_BYTES = sizeof(uint32_t),
    LATE_BYTES = sizeof(lp_late_edge)
};

int lp_walk_fits(const lp_walk *walk, uint32_t per_node, uint32_t per_edge) {
    uint64_t nodes = walk->graph.node_count, edges = walk->graph.edge_count, late = walk->graph.late_count;
    uint64_t bytes = nodes * (NODE_BYTES + per_node) + edges * (EDGE_BYTES + per_edge) +
                     late * (LATE_BYTES + per_edge) + walk->pending_count * sizeof(*walk->pending);
    return walk->request->byte_budget == 0 || bytes <= walk->request->byte_budget;
}

static int add_tracked(PyObject *op, void *walk_) {
    lp_walk *walk = walk_;
    if (LP_UNLIKELY(walk->graph.node_count % LP_BUDGET_NODES == 0 && !lp_walk_fits(walk, 0, 0))) {
        walk->status = LP_LIMIT;
        return -1;
    }
    return lp_walk_add(walk, op, 0) == LP_NODE_NONE ? -1 : 0;
}

static lp_status add_groups(lp_walk *walk) {
    const lp_walk_request *request = walk->request;
    lp_kinds_clear(&walk->kinds);
    for (uint32_t i = 0; i < request->group_count; i++) {
        lp_traced_group *group = &request->group[i];
        group->next = LP_KINDS_NO_GROUP;
        if (group->type != NULL) {
            lp_status status = lp_kinds_set_group(&walk->kinds, group->type, i, &group->next);
            if (status != LP_OK) {
                return status;
            }
        }
    }
    return LP_OK;
}

/* 1 while the deaths of a medium's blocks are seen: what is left of a watch that has ended may be freed by now. */
static int is_served(uint8_t medium) {
    return lp_native_is_active(medium < LP_MEDIUM_CUDA0 ? (lp_medium)medium : LP_MEDIUM_CUDA0);
}

static uint32_t keep_served(lp_block *block, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_served(block[i].medium)) {
            block[kept++] = block[i];
        }
    }
    return kept;
}

static lp_status add_blocks_and_frames(lp_walk *walk) {
    size_t block_count = 0;
    lp_status status = lp_ledger_copy(&walk->block, &block_count);
    if (status != LP_OK) {
        return status;
    }
    if (block_count > LP_WALK_BLOCKS) {
        return LP_LIMIT;
    }
    walk->block_count = keep_served(walk->block, (uint32_t)block_count);
    for (uint32_t i = 0; i < walk->block_count && walk->status == LP_OK; i++) {
        lp_walk_append(walk, walk->block[i].address, 0);
        if (walk->status == LP_OK) {
            lp_walk_note_block(walk, i);
        }
    }
    collect_frames(walk);
    for (uint32_t i = 0; i < walk->frame_count && walk->status == LP_OK; i++) {
        lp_walk_append(walk, (uintptr_t)walk->frame[i].key, 0);
    }
    walk->first_object = walk->graph.node_count;
    return walk->status;
}

static lp_status walk_all(lp_walk *walk, PyObject *modules) {
    lp_status status = add_groups(walk);
    if (status == LP_OK) {
        status = add_blocks_and_frames(walk);
    }
    if (status != LP_OK) {
        return status;
    }
    add_modules(walk, modules);
    if (lp_heap_each_tracked(add_tracked, walk) == LP_UNSUPPORTED) {
        return LP_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < walk->block_count && walk->status == LP_OK; i++) {
        lp_graph_close_row(&walk->graph);
    }
    for (uint32_t i = 0; i < walk->frame_count && walk->status == LP_OK; i++) {
        close_frame_row(walk, &walk->frame[i]);
    }
    if (walk->status == LP_OK && lp_walk_continue(walk) == LP_OK && lp_untracked_add(walk) == LP_OK) {
        tie_frames(walk);
    }
    return walk->status;
}

lp_status lp_walk_take(lp_walk *walk, const lp_walk_request *request) {
    LP_ASSERT_GIL();
    uint64_t began = lp_clock_ns();
    PyObject *modules = PyImport_GetModuleDict();
    walk->request = request;
    walk->status = lp_addresses_init(&walk->index);
    walk->index.is_large = 0;
    if (walk->status != LP_OK) {
        return walk->status;
    }
    lp_heap_begin_walk();
    walk->package_dir = find_package_dir();
    walk->status = walk_all(walk, modules);
    walk->raw_ns = lp_clock_ns() - began;
    return walk->status;
}

static void clear_index(lp_walk *walk) {
    uint32_t nodes = walk->graph.node_count;
    if (walk->index.root == NULL || nodes == 0) {
        return;
    }
    if (nodes > lp_walk_keep_nodes) {
        lp_addresses_discard(&walk->index);
    } else {
        uint32_t first = walk->first_object < nodes ? walk->first_object : nodes;
        lp_addresses_clear(&walk->index, walk->address + first, nodes - first);
        lp_addresses_clear(&walk->index, walk->part, walk->part_count);
    }
    walk->part_count = 0;
}

void lp_walk_drop_index(lp_walk *walk) {
    if (walk->graph.node_count >= LP_INDEX_NODES) {
        lp_addresses_discard(&walk->index);
    }
}

static void *cut(void *array, size_t bytes) {
    void *smaller = lp_raw_realloc(array, bytes);
    return smaller != NULL ? smaller : array;
}

void lp_walk_hand_over(lp_walk *walk, lp_graph *out_graph, uint64_t **out_address) {
    size_t nodes = walk->graph.node_count;
    clear_index(walk);
    *out_graph = walk->graph;
    out_graph->late = NULL;
    out_graph->late_capacity = 0;
    out_graph->row = cut(out_graph->row, (nodes + 1) * sizeof(*out_graph->row));
    out_graph->edge = cut(out_graph->edge, ((size_t)out_graph->edge_count + 1) * sizeof(*out_graph->edge));
    out_graph->flag = cut(out_graph->flag, nodes + 1);
    out_graph->node_capacity = out_graph->node_count;
    out_graph->edge_capacity = out_graph->edge_count;
    *out_address = cut(walk->address, (nodes + 1) * sizeof(**out_address));
    walk->graph = (lp_graph){.late = walk->graph.late, .late_capacity = walk->graph.late_capacity};
    walk->address = NULL;
    walk->address_capacity = 0;
}

void lp_walk_give_back(lp_walk *walk) {
    lp_addresses_discard(&walk->index);
    lp_graph_fini(&walk->graph);
    lp_raw_free(walk->address);
    lp_raw_free(walk->pending);
    lp_raw_free(walk->part);
    walk->address = NULL;
    walk->part = NULL;
    walk->part_capacity = 0;
    walk->pending = NULL;
    walk->address_capacity = 0;
    walk->pending_capacity = 0;
}

/* A few nodes may have had many edges: one long list. */
static void give_edges_back(lp_walk *walk) {
    uint64_t most = (uint64_t)lp_walk_keep_nodes * LP_KEPT_EDGES;
    if (walk->graph.edge_capacity > most) {
        lp_raw_free(walk->graph.edge);
        walk->graph.edge = NULL;
        walk->graph.edge_capacity = 0;
    }
    if (walk->pending_capacity > most) {
        lp_raw_free(walk->pending);
        walk->pending = NULL;
        walk->pending_capacity = 0;
    }
}

void lp_walk_release(lp_walk *walk) {
    uint32_t nodes = walk->graph.node_count;
    clear_index(walk);
    if (nodes > lp_walk_keep_nodes) {
        lp_walk_give_back(walk);
    }
    give_edges_back(walk);
    lp_graph_clear(&walk->graph);
    lp_raw_free(walk->block);
    lp_raw_free(walk->frame_is_tied);
    walk->block = NULL;
    walk->frame_is_tied = NULL;
    walk->block_count = walk->frame_count = walk->first_object = walk->grown_count = walk->module_count = 0;
    walk->torch_count = 0;
    walk->pending_count = 0;
    walk->skipped_count = walk->raw_ns = 0;
    walk->request = NULL;
}
