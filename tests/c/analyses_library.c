/* The analyses as a shared library for tests/unit/test_analyses.py: a graph comes as pairs of nodes. */
#include <string.h>

#include "analysis/arrange.h"
#include "analysis/dominators.h"
#include "analysis/paths.h"
#include "analysis/scc.h"
#include "base/rawmem.h"

#define EXPORT __attribute__((visibility("default")))

/* pairs: source and target of each edge, sources rising. */
static int make(lp_graph *graph, uint32_t nodes, const uint32_t *pairs, uint32_t edges) {
    uint32_t at = 0;
    if (lp_graph_reserve_nodes(graph, nodes) != LP_OK || lp_graph_reserve_edges(graph, edges) != LP_OK) {
        return -1;
    }
    for (uint32_t node = 0; node < nodes; node++) {
        lp_graph_add_node(graph, 0);
    }
    for (uint32_t node = 0; node < nodes; node++) {
        for (; at < edges && pairs[2 * at] == node; at++) {
            lp_graph_add_edge(graph, pairs[2 * at + 1]);
        }
        lp_graph_close_row(graph);
    }
    return lp_graph_is_valid(graph) ? LP_OK : LP_BAD_INPUT;
}

EXPORT int analyses_dominators(uint32_t nodes, const uint32_t *pairs, uint32_t edges, const uint32_t *roots,
                               uint32_t root_count, uint32_t *out_idom, uint64_t *inout_bytes) {
    lp_graph graph = {0};
    lp_dominators tree = {0};
    int status = make(&graph, nodes, pairs, edges);
    if (status == LP_OK) {
        status = lp_dominators_find(&graph, roots, root_count, &tree);
    }
    if (status == LP_OK) {
        memcpy(out_idom, tree.idom, nodes * sizeof(*out_idom));
        lp_dominators_sum(&tree, inout_bytes);
    }
    lp_dominators_fini(&tree);
    lp_graph_fini(&graph);
    return status;
}

EXPORT int analyses_components(uint32_t nodes, const uint32_t *pairs, uint32_t edges, uint32_t *out_component) {
    lp_graph graph = {0};
    lp_components parts = {0};
    uint32_t *nothing_reached = out_component;
    memset(nothing_reached, 0xff, nodes * sizeof(*nothing_reached));
    int status = make(&graph, nodes, pairs, edges);
    if (status == LP_OK) {
        status = lp_components_find(&graph, nothing_reached, &parts);
    }
    if (status == LP_OK) {
        memcpy(out_component, parts.component, nodes * sizeof(*out_component));
        lp_components_fini(&parts);
    }
    lp_graph_fini(&graph);
    return status;
}

EXPORT int analyses_distances(uint32_t nodes, const uint32_t *pairs, uint32_t edges, uint32_t root,
                              uint32_t *out_distance) {
    lp_graph graph = {0};
    lp_paths paths = {0};
    int status = make(&graph, nodes, pairs, edges);
    if (status == LP_OK) {
        status = lp_paths_reset(&paths, nodes);
    }
    if (status == LP_OK) {
        lp_paths_add_root(&paths, root);
        lp_paths_run(&paths, &graph);
        memset(out_distance, 0xff, nodes * sizeof(*out_distance));
        out_distance[root] = 0;
        for (uint32_t i = 1; i < paths.tail; i++) {
            out_distance[paths.queue[i]] = out_distance[paths.parent[paths.queue[i]]] + 1;
        }
    }
    lp_paths_fini(&paths);
    lp_graph_fini(&graph);
    return status;
}

/* A frozen graph in which every array tells of which node an entry is. */
static int make_frozen(lp_frozen *frozen, uint32_t nodes, const uint32_t *pairs, uint32_t edges, const uint32_t *roots,
                       uint32_t root_count) {
    int status = make(&frozen->graph, nodes, pairs, edges);
    frozen->address = lp_raw_malloc(nodes * sizeof(*frozen->address));
    frozen->bytes = lp_raw_malloc(nodes * sizeof(*frozen->bytes));
    frozen->group = lp_raw_malloc(nodes * sizeof(*frozen->group));
    frozen->root = lp_raw_malloc((root_count + 1) * sizeof(*frozen->root));
    memcpy(frozen->root, roots, root_count * sizeof(*roots));
    frozen->root_count = root_count;
    frozen->named_count = root_count / 2;
    frozen->alive_count = root_count - root_count / 4;
    for (uint32_t node = 0; node < nodes; node++) {
        frozen->address[node] = frozen->bytes[node] = frozen->group[node] = node;
        frozen->graph.flag[node] = node & 1;
    }
    return status;
}

static int is_in_place(const lp_frozen *frozen, const uint32_t *old, const uint32_t *roots) {
    for (uint32_t node = 0; node < frozen->graph.node_count; node++) {
        if (frozen->address[node] != old[node] || frozen->bytes[node] != old[node] ||
            frozen->group[node] != old[node] || frozen->graph.flag[node] != (old[node] & 1)) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < frozen->root_count; i++) {
        if (old[frozen->root[i]] != roots[i]) {
            return 0;
        }
    }
    return lp_graph_is_valid(&frozen->graph);
}

/* out_pairs: edges under the new numbers, in rows. */
EXPORT int analyses_arrange(uint32_t nodes, const uint32_t *pairs, uint32_t edges, const uint32_t *roots,
                            uint32_t root_count, uint32_t *out_old, uint32_t *out_parent, uint32_t *out_pairs) {
    lp_frozen frozen = {0};
    uint32_t *old = NULL;
    int status = make_frozen(&frozen, nodes, pairs, edges, roots, root_count);
    if (status == LP_OK) {
        status = lp_frozen_arrange(&frozen, &old);
    }
    if (status == LP_OK) {
        status = is_in_place(&frozen, old, roots) ? LP_OK : LP_BAD_INPUT;
        memcpy(out_old, old, nodes * sizeof(*old));
        memcpy(out_parent, frozen.parent, nodes * sizeof(*out_parent));
    }
    for (uint32_t node = 0; node < nodes && status == LP_OK; node++) {
        for (uint32_t e = frozen.graph.row[node]; e < frozen.graph.row[node + 1]; e++) {
            out_pairs[2 * e] = node;
            out_pairs[2 * e + 1] = frozen.graph.edge[e];
        }
    }
    lp_raw_free(old);
    lp_frozen_fini(&frozen);
    return status;
}
