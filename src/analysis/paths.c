/* Breadth first from roots that are added one by one. What has a parent keeps it; the queue holds each node
 * once. */
#include "analysis/paths.h"

#include <string.h>

#include "analysis/numbers.h"
#include "base/rawmem.h"  // lp_raw_malloc

lp_status lp_paths_reset(lp_paths *paths, uint32_t node_count) {
    if (node_count > paths->capacity) {
        lp_paths_fini(paths);
        uint32_t size = node_count + node_count / 8;
        paths->parent = lp_raw_malloc((size_t)size * sizeof(*paths->parent));
        paths->queue = lp_raw_malloc((size_t)size * sizeof(*paths->queue));
        if (paths->parent == NULL || paths->queue == NULL) {
            lp_paths_fini(paths);
            return LP_NO_MEMORY;
        }
        paths->capacity = size;
    }
    if (node_count != 0) {
        memset(paths->parent, 0xff, (size_t)node_count * sizeof(*paths->parent));
    }
    paths->head = paths->tail = 0;
    paths->node_count = node_count;
    return LP_OK;
}

void lp_paths_fini(lp_paths *paths) {
    lp_raw_free(paths->parent);
    lp_raw_free(paths->queue);
    *paths = (lp_paths){0};
}

int lp_paths_add_root(lp_paths *paths, uint32_t node) {
    if (paths->parent[node] != LP_NODE_NONE) {
        return 0;
    }
    paths->parent[node] = node;
    paths->queue[paths->tail++] = node;
    return 1;
}

/* Without late edges; what changes is kept in registers. */
static void run_rows(lp_paths *paths, const lp_graph *graph) {
    const uint32_t *row = graph->row, *edge = graph->edge, rows = graph->row_count;
    uint32_t *parent = paths->parent, *queue = paths->queue, head = paths->head, tail = paths->tail;
    while (head < tail) {
        if (head + LP_PATHS_ROW_AHEAD < tail) {
            __builtin_prefetch(&row[queue[head + LP_PATHS_ROW_AHEAD]]);
        }
        if (head + LP_PATHS_EDGES_AHEAD < tail && queue[head + LP_PATHS_EDGES_AHEAD] < rows) {
            __builtin_prefetch(&edge[row[queue[head + LP_PATHS_EDGES_AHEAD]]]);
        }
        uint32_t node = queue[head++];
        uint32_t end = node < rows ? row[node + 1] : 0;
        for (uint32_t i = end == 0 ? 0 : row[node]; i < end; i++) {
            uint32_t target = edge[i];
            if (parent[target] == LP_NODE_NONE) {
                parent[target] = node;
                queue[tail++] = target;
            }
        }
    }
    paths->head = head;
    paths->tail = tail;
}

void lp_paths_run(lp_paths *paths, const lp_graph *graph) {
    uint32_t *parent = paths->parent, *queue = paths->queue, target;
    if (graph->late_count == 0 && graph->edge != NULL) {
        run_rows(paths, graph);
        return;
    }
    while (paths->head < paths->tail) {
        if (paths->head + LP_PATHS_ROW_AHEAD < paths->tail) {
            __builtin_prefetch(&graph->row[queue[paths->head + LP_PATHS_ROW_AHEAD]]);
        }
        if (paths->head + LP_PATHS_EDGES_AHEAD < paths->tail &&
            queue[paths->head + LP_PATHS_EDGES_AHEAD] < graph->row_count && graph->edge != NULL) {
            __builtin_prefetch(&graph->edge[graph->row[queue[paths->head + LP_PATHS_EDGES_AHEAD]]]);
        }
        uint32_t node = queue[paths->head++];
        for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
            if (parent[target] == LP_NODE_NONE) {
                parent[target] = node;
                queue[paths->tail++] = target;
            }
        }
    }
}

uint32_t lp_paths_get(const lp_paths *paths, uint32_t node, uint32_t *out_nodes, uint32_t max) {
    uint32_t count = 0;
    while (node != LP_NODE_NONE && count < max) {
        out_nodes[count++] = node;
        if (paths->parent[node] == node) {
            break;
        }
        node = paths->parent[node];
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t swap = out_nodes[i];
        out_nodes[i] = out_nodes[count - 1 - i];
        out_nodes[count - 1 - i] = swap;
    }
    return count;
}
