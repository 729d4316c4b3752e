/* Sizes of what a scan found, for sites of which only floats, ints, texts, bytes and tuples of these are alive: they
 * have no blocks beside their own, and their size is known without a walk. */
#ifndef LP_LEAVES_H
#define LP_LEAVES_H

#include "ledger/scan.h"  // lp_site_id, lp_status

typedef struct lp_leaves {
    lp_site_id site;
    uint32_t others;        /* what else is alive of it */
    uint32_t is_other;      /* and may grow, as it is more than LP_LEAVES_OTHERS */
    uint64_t count, bytes;  /* of what was looked at */
} lp_leaves;

/* Look at survivors of the complete scan that were born in the step `since` or later, a bounded number of each site.
 * Freed with lp_raw_free().  Reads the blocks that the stamps stand for.  GIL. */
lp_status lp_leaves_find(uint32_t since, lp_leaves **out_leaves, size_t *out_count);

#endif
