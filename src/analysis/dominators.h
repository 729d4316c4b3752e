/* Dominator tree of what a set of roots reaches: which node, if it went, would take which others along.
 *
 * Semi-NCA without recursion: L. Georgiadis, R. E. Tarjan, R. F. Werneck, "Finding Dominators in
 * Practice", Journal of Graph Algorithms and Applications 10 (2006).  Quadratic at worst, linear on
 * the graphs of real programs.  A root above all roots is understood. */
#ifndef LP_DOMINATORS_H
#define LP_DOMINATORS_H

#include "analysis/graph.h"

typedef struct lp_dominators {
    uint32_t
        *idom; /* node => its nearest dominator; itself if only the root above all is; LP_NODE_NONE if not reached */
    uint32_t *order; /* the reached nodes; each after its dominator */
    uint32_t count; /* of order */
} lp_dominators;

/* pre: the graph has no late edges (lp_graph_join_late()).  A root may be given twice. */
lp_status lp_dominators_find(const lp_graph *graph, const uint32_t *roots, uint32_t root_count,
                             lp_dominators *out_dominators);
void lp_dominators_fini(lp_dominators *dominators);

/* In: bytes (or 1) of each node.  Out: with those of all that it dominates, that is its retained size. */
void lp_dominators_sum(const lp_dominators *dominators, uint64_t *inout_bytes);

#endif
