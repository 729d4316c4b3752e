/* Shortest paths from roots: breadth first over a graph.
 *
 *   parent[n]   the node that n was reached from; n itself for a root; LP_NODE_NONE if not reached
 *   queue       all reached nodes, in the order they were reached
 *
 * Roots may be added and the search continued as often as wanted: what was
 * reached before keeps its parent. */
#ifndef LP_PATHS_H
#define LP_PATHS_H

#include "analysis/graph.h"

typedef struct lp_paths {
    uint32_t *parent, *queue;
    uint32_t head, tail;       /* queue[head..tail) is still to be expanded */
    uint32_t node_count, capacity;
} lp_paths;

/* Start over for a graph of this many nodes; memory is kept between uses. */
lp_status lp_paths_reset(lp_paths *paths, uint32_t node_count);
void lp_paths_fini(lp_paths *paths);
/* 1 if the node was not reached before. */
int lp_paths_add_root(lp_paths *paths, uint32_t node);
void lp_paths_run(lp_paths *paths, const lp_graph *graph);

/* Nodes from the root down to `node`, at most max (the root end is cut); returns their number. */
uint32_t lp_paths_get(const lp_paths *paths, uint32_t node, uint32_t *out_nodes, uint32_t max);

#endif
