/* Which member of a bucket the path is shown for: of the largest the one nearest to a root.  Where most of them lie
 * behind several links of a chain, the nearest of those: what is nearer is the end that each step replaces. */
#ifndef LP_EXAMPLES_H
#define LP_EXAMPLES_H

#include "python/graph/trace.h"

void lp_examples_begin(lp_bucket *bucket);
/* Take a member into account, and choose anew.  `parent`: of each node the one above it. */
void lp_examples_add(lp_walk *walk, const uint32_t *parent, lp_bucket *bucket, uint32_t node, uint64_t bytes);

#endif
