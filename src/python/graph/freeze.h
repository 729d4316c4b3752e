/* A search for cycles, or a bare walk, as a frozen graph.  See analysis/frozen.h.
 *
 * Buffers that the ledger does not know become nodes of their own: one for each storage of torch,
 * one for each array that owns its data. */
#ifndef LP_FREEZE_H
#define LP_FREEZE_H

#include "analysis/frozen.h"
#include "python/graph/cycles.h"
#include "python/heap/census.h"

/* Nodes, rows, groups, bytes, roots.  cycles: NULL for a bare walk, which has no roots and no census.
 * *out_census: rows and names of all objects, those without a stamp too; freed with lp_census_free().
 * LP_LIMIT beyond the request's byte_budget. */
lp_status lp_freeze(lp_trace *trace, const lp_cycles *cycles, lp_frozen *out_frozen, lp_census **out_census);

#endif
