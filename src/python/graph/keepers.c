/* The way up from each member, by the parents that the search for roots left. */
#include "python/graph/keepers.h"

#include "python/graph/numbers.h"  // LP_DEPTH_MOST

/* The least birth step in the window of the objects above a node, or `otherwise`. */
static uint32_t oldest_above(const lp_trace *trace, uint32_t node, uint32_t otherwise) {
    const lp_walk *walk = trace->walk;
    const uint32_t *parent = trace->paths.parent;
    uint32_t least = otherwise, step;
    lp_site_id site;
    for (uint32_t depth = 0; depth < LP_DEPTH_MOST && parent[node] != node && parent[node] != LP_NODE_NONE; depth++) {
        node = parent[node];
        if (lp_walk_is_object(walk, node) && lp_walk_birth(walk, lp_walk_object(walk, node), &site, &step)) {
            least = step < least ? step : least;
        }
    }
    return least;
}

void lp_keepers_date(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    for (uint32_t i = 0; i < walk->grown_count; i++) {
        walk->grown[i].step = oldest_above(trace, walk->grown[i].node, walk->grown[i].step);
    }
}
