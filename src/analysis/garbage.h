/* What nothing outside holds: internal references subtracted from reference counts. */
#ifndef LP_GARBAGE_H
#define LP_GARBAGE_H

#include "analysis/graph.h"

/* Subtract from refs[n], for every node with parent[n] == LP_NODE_NONE (parent NULL: every node), the edges
 * that other such nodes have to it.  Late edges count as their lp_late_refs says.  What is left above 0
 * is held by something that the graph does not know. */
lp_status lp_garbage_subtract(const lp_graph *graph, const uint32_t *parent, int64_t *refs);

#endif
