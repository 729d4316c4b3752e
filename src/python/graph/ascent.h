/* The way from a node up to its root, by the parents that the search for roots left. */
#ifndef LP_ASCENT_H
#define LP_ASCENT_H

#include <stdint.h>

#include "python/graph/numbers.h"  // LP_DEPTH_MOST
#include "analysis/graph.h"        // LP_NODE_NONE
#include "base/map.h"              // lp_map_mix

typedef struct lp_ascent {
    const uint32_t *parent;
    uint32_t node;   /* where it has come to */
    uint32_t steps;  /* from where it began */
} lp_ascent;

/* The node above, or LP_NODE_NONE at a root. */
static inline uint32_t lp_node_above(const uint32_t *parent, uint32_t node) {
    return parent[node] == node ? LP_NODE_NONE : parent[node];
}

/* 1 for one node in so many, wherever it lies on a chain: it is told where the ways up that pass it end, lest those of
 * all members of one chain take the square of its length. */
static inline int lp_node_remembers(uint32_t node) { return lp_map_mix(node) % LP_ROOT_KNOWN_EACH == 0; }

/* One node up; 0 at the root, and where the way is longer than any that is shown. */
static inline int lp_ascent_next(lp_ascent *ascent) {
    uint32_t above = lp_node_above(ascent->parent, ascent->node);
    if (above == LP_NODE_NONE || ascent->steps == LP_DEPTH_MOST) {
        return 0;
    }
    ascent->node = above;
    ascent->steps++;
    return 1;
}

#endif
