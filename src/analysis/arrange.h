/* Numbers the nodes of a graph anew, so that what belongs together lies together: each node before what its shortest
 * path leads on to, whole branches one after the other.  Whatever follows references then meets its cache, in a
 * heap whose objects lie anywhere in memory too. */
#ifndef LP_ARRANGE_H
#define LP_ARRANGE_H

#include "analysis/frozen.h"

/* Nodes, rows and roots under new numbers, and the shortest paths.  *out_old: new number => old one, freed with
 * lp_raw_free().  pre: every edge is in a row, and every node has one; roots are nodes. */
lp_status lp_frozen_arrange(lp_frozen *frozen, uint32_t **out_old);

#endif
