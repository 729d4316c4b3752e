/* Strongly connected components of the nodes that were not reached (parent == LP_NODE_NONE). */
#ifndef LP_SCC_H
#define LP_SCC_H

#include "analysis/graph.h"

typedef struct lp_components {
    uint32_t *component;   /* node => component, or LP_NODE_NONE for a node outside of the set */
    uint32_t *first;       /* component => one of its nodes: the one with the smallest number */
    uint32_t *size;        /* component => number of nodes */
    uint8_t *entered;      /* component => 1 if a node of another component refers to it */
    uint32_t count;
} lp_components;

/* Tarjan's algorithm without recursion. */
lp_status lp_components_find(const lp_graph *graph, const uint32_t *parent, lp_components *out_components);
void lp_components_fini(lp_components *components);

/* A shortest cycle through `start` inside its component: start, ..., and start is not repeated.
 * Returns the number of nodes written, 0 if there is none or it is longer than max.
 * scratch: node_count words, all LP_NODE_NONE, and left so. */
uint32_t lp_components_cycle(const lp_graph *graph, const lp_components *components, uint32_t start, uint32_t *scratch,
                             uint32_t *out_nodes, uint32_t max);

/* A shortest way from `from` to `to` inside their component, without `to` itself; else as above. */
uint32_t lp_components_way(const lp_graph *graph, const lp_components *components, uint32_t from, uint32_t to,
                           uint32_t *scratch, uint32_t *out_nodes, uint32_t max);

#endif
