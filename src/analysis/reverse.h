/* The edges of a graph turned round: node => the nodes that refer to it, late edges too. */
#ifndef LP_REVERSE_H
#define LP_REVERSE_H

#include "analysis/graph.h"

typedef struct lp_reverse {
    uint32_t *row;     /* node_count + 1 */
    uint32_t *source;  /* source[row[n] .. row[n + 1]), rising; one for each edge */
} lp_reverse;

lp_status lp_reverse_make(const lp_graph *graph, lp_reverse *out_reverse);
void lp_reverse_fini(lp_reverse *reverse);

#endif
