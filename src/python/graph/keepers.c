/* The way up from each member, by the parents that the search for roots left. */
#include "python/graph/keepers.h"

#include "python/graph/ascent.h"  // lp_ascent_next

/* The least birth step in the window of the objects above a node, or `otherwise`. */
static uint32_t oldest_above(const lp_trace *trace, uint32_t node, uint32_t otherwise) {
    const lp_walk *walk = trace->walk;
    uint32_t least = otherwise, step;
    lp_site_id site;
    for (lp_ascent up = {trace->paths.parent, node, 0}; lp_ascent_next(&up);) {
        int is_object = lp_walk_is_object(walk, up.node);
        if (is_object && lp_walk_birth(walk, lp_walk_object(walk, up.node), &site, &step)) {
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
