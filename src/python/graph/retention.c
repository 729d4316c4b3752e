/* Paths to one object and what goes with it; the references of the call itself are left out of the count. */
#include "python/graph/retention.h"

#include <stdlib.h>
#include <string.h>

#include "base/rawmem.h"          // lp_raw_malloc
#include "python/owners/buffers.h"       // lp_buffers_each
#include "python/compat/heap.h"   // lp_heap_is_gc
#include "python/heap/sizes.h"         // lp_size_of

/* ---- the call's own references ---- */

typedef struct own_count {
    const lp_walk *walk;
    PyObject *op;
    int64_t count;
} own_count;

static int count_in_own_frame(const lp_running_frame *frame, void *own_) {
    own_count *own = own_;
    if (!lp_walk_is_own_code(own->walk, frame->code)) {
        return 0;   /* a user's frame: a node of the graph */
    }
    for (uint32_t i = 0; i < frame->local_count; i++) {
        own->count += lp_frames_slot_object(frame->slot[i]) == own->op;
    }
    return 0;
}

/* 1 if the caller's frame still has the argument on its stack. */
static int64_t argument_on_stack(const lp_walk *walk, PyObject *op) {
    for (uint32_t i = 0; lp_frames_keep_arguments() && i < walk->frame_count; i++) {
        const lp_running_frame *frame = &walk->frame[i];
        for (uint32_t s = frame->local_count; s < frame->local_count + frame->stack_count; s++) {
            if (lp_frames_slot_object(frame->slot[s]) == op) {
                return 1;
            }
        }
    }
    return 0;
}

/* The argument of the C function, and the local variables of leakprobe's Python functions. */
static int64_t own_references(const lp_walk *walk, PyObject *op) {
    own_count own = {walk, op, 1};
    lp_frames_each_running(count_in_own_frame, &own);
    return own.count + argument_on_stack(walk, op);
}

/* ---- from the object back to the roots ---- */

static int is_frame(const lp_walk *walk, uint32_t node) {
    return node >= walk->block_count && !lp_walk_is_object(walk, node);
}

static int is_root(const lp_retention *r, uint32_t node) { return r->trace->paths.parent[node] == node; }

/* A root that a reader can name. */
static int is_named(const lp_retention *r, uint32_t node) {
    const lp_walk *walk = r->trace->walk;
    if (is_frame(walk, node)) {
        return 1;
    }
    for (uint32_t i = 0; i < walk->module_count; i++) {
        if (walk->module[i].node == node) {
            return 1;
        }
    }
    return 0;
}

static void add_path(lp_retention *r, uint32_t root, uint32_t first, int outside) {
    if (r->count < LP_RETENTION_MOST) {
        r->path[r->count++] = (lp_found_path){root, first, r->distance[first] + LP_PATH_ENDS, (uint8_t)outside};
    }
}

/* A node that is a root itself, or that a frame has on its stack, ends a path. */
static int end_here(lp_retention *r, uint32_t node) {
    uint32_t parent = r->trace->paths.parent[node];
    if (node == r->object && r->unexplained <= r->own) {
        return 0;   /* nobody but the call */
    }
    if (parent == node) {
        add_path(r, LP_NODE_NONE, node, 1);
        return 1;
    }
    if (parent != LP_NODE_NONE && is_frame(r->trace->walk, parent) && r->trace->refs != NULL &&
        r->trace->refs[node] > 0) {
        add_path(r, parent, node, 0);
    }
    return 0;
}

static lp_status search(lp_retention *r) {
    uint32_t nodes = r->trace->walk->graph.node_count, head = 0, tail = 0;
    uint32_t *queue = lp_raw_malloc(((size_t)nodes + 1) * sizeof(*queue));
    r->toward = lp_raw_malloc(((size_t)nodes + 1) * sizeof(*r->toward));
    r->distance = lp_raw_malloc(((size_t)nodes + 1) * sizeof(*r->distance));
    if (queue == NULL || r->toward == NULL || r->distance == NULL) {
        lp_raw_free(queue);
        return LP_NO_MEMORY;
    }
    memset(r->toward, LP_NODE_NONE_BYTE, ((size_t)nodes + 1) * sizeof(*r->toward));
    r->distance[r->object] = 0;
    r->toward[r->object] = r->object;
    queue[tail++] = r->object;
    while (head < tail && r->count < LP_RETENTION_MOST) {
        uint32_t node = queue[head++];
        if (end_here(r, node)) {
            continue;
        }
        for (uint32_t i = r->reverse.row[node]; i < r->reverse.row[node + 1]; i++) {
            uint32_t source = r->reverse.source[i];
            if (i > r->reverse.row[node] && source == r->reverse.source[i - 1]) {
                continue;
            }
            if (is_root(r, source) && source != r->object && is_named(r, source)) {
                add_path(r, source, node, 0);
            } else if (r->toward[source] == LP_NODE_NONE && (r->trace->walk->graph.flag[source] & LP_NODE_OWN) == 0) {
                r->toward[source] = node;
                r->distance[source] = r->distance[node] + 1;
                queue[tail++] = source;
            }
        }
    }
    lp_raw_free(queue);
    return LP_OK;
}

static int compare_paths(const void *left_, const void *right_) {
    const lp_found_path *left = left_, *right = right_;
    if (left->outside != right->outside) {
        return left->outside ? 1 : -1;
    }
    return left->length < right->length ? -1 : left->length > right->length;
}

lp_status lp_retention_paths(lp_retention *r, lp_trace *trace, const lp_walk_request *request, PyObject *op,
                             uint32_t torch_budget) {
    *r = (lp_retention){.trace = trace};
    lp_status status = lp_trace_open(trace, request, torch_budget);
    if (status != LP_OK) {
        return status;
    }
    r->object = lp_walk_find(trace->walk, op);
    if (r->object == LP_NODE_NONE) {
        return LP_OK;
    }
    r->is_in_graph = 1;
    lp_trace_reach_from_names(trace);
    status = lp_trace_reach_alive(trace, LP_NODE_NONE);
    if (status == LP_OK) {
        r->own = own_references(trace->walk, op);
        r->unexplained = trace->refs[r->object];
        status = !lp_walk_fits(trace->walk, LP_TRACE_NODE_BYTES + LP_RETENTION_NODE_BYTES, LP_RETENTION_EDGE_BYTES)
                     ? LP_LIMIT
                     : lp_reverse_make(&trace->walk->graph, &r->reverse);
    }
    if (status == LP_OK) {
        status = search(r);
    }
    if (status == LP_OK && r->count > 1) {
        qsort(r->path, r->count, sizeof(r->path[0]), compare_paths);
    }
    return status;
}

void lp_retention_release(lp_retention *r) {
    lp_reverse_fini(&r->reverse);
    lp_raw_free(r->toward);
    lp_raw_free(r->distance);
    lp_trace_release(r->trace);
}

uint32_t lp_retention_get(const lp_retention *r, const lp_found_path *path, uint32_t *out_nodes, uint32_t max,
                          uint32_t *out_left_out) {
    uint32_t has_root = path->root != LP_NODE_NONE, all = r->distance[path->first] + 1 + has_root;
    uint32_t count = all < max ? all : max, left_out = all - count, first = count >> 1, node = path->first;
    if (has_root) {
        out_nodes[0] = path->root;
    }
    for (uint32_t i = has_root; i < all; i++, node = r->toward[node]) {
        if (i < first || i >= first + left_out) {
            out_nodes[i < first ? i : i - left_out] = node;
        }
    }
    *out_left_out = left_out;
    return count;
}

/* ---- retained size ---- */

static uint64_t node_bytes(lp_walk *walk, uint32_t node) {
    if (node < walk->block_count) {
        return walk->block[node].bytes;
    }
    if (!lp_walk_is_object(walk, node) || (walk->graph.flag[node] & LP_NODE_MADE)) {
        return 0;
    }
    return lp_size_of(lp_walk_object(walk, node)) + lp_buffers_of_array(walk, node);
}

typedef struct retained {
    const uint32_t *parent;
    uint32_t from;
    uint64_t bytes;
} retained;

static int is_retained(void *retained_, uint32_t node) {
    const retained *r = retained_;
    return r->parent[node] == r->from;
}

static void add_retained(void *retained_, uint32_t node, uint32_t medium, uint64_t bytes) {
    (void)node, (void)medium;
    ((retained *)retained_)->bytes += bytes;
}

/* Sum over what only the object leads to; paths.queue is free for the search by now. */
static uint64_t sum_unreached(lp_trace *trace, uint32_t from) {
    uint32_t *parent = trace->paths.parent, *queue = trace->paths.queue, head = 0, tail = 0, target;
    retained r = {parent, from, 0};
    parent[from] = from;
    queue[tail++] = from;
    while (head < tail) {
        uint32_t node = queue[head++];
        r.bytes += node_bytes(trace->walk, node);
        for (lp_edges it = lp_edges_of(&trace->walk->graph, node); lp_edges_next(&it, &target);) {
            if (parent[target] == LP_NODE_NONE) {
                parent[target] = from;
                queue[tail++] = target;
            }
        }
    }
    if (!trace->is_torch_changing) {
        lp_buffers_each(trace->walk, &trace->torch.lent, is_retained, add_retained, &r);
    }
    return r.bytes;
}

lp_status lp_retention_size(lp_trace *trace, const lp_walk_request *request, PyObject *op, uint32_t torch_budget,
                            uint64_t *out_bytes) {
    lp_status status = lp_trace_open(trace, request, torch_budget);
    *out_bytes = 0;
    if (status != LP_OK) {
        return status;
    }
    uint32_t object = lp_walk_find(trace->walk, op);
    if (object == LP_NODE_NONE) {
        *out_bytes = lp_size_of(op);
        return LP_OK;
    }
    trace->paths.parent[object] = object;
    lp_trace_reach_from_names(trace);
    status = lp_trace_reach_alive(trace, object);
    if (status == LP_OK) {
        *out_bytes = sum_unreached(trace, object);
    }
    return status;
}
