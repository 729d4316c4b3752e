/* Sizes of what a scan found, for sites of which only floats, ints, texts and bytes are alive: these have no blocks
 * beside their own, and their size is known without a walk. */
#ifndef LP_LEAVES_H
#define LP_LEAVES_H

#include "ledger/scan.h"  // lp_site_id, lp_status

typedef struct lp_leaves {
    lp_site_id site;
    uint32_t is_other;      /* something else is alive of it too */
    uint64_t count, bytes;  /* of what was looked at */
} lp_leaves;

/* Look at survivors of the complete scan, a bounded number of each site.  Freed with lp_raw_free().  Reads the blocks
 * that the stamps stand for.  GIL. */
lp_status lp_leaves_find(lp_leaves **out_leaves, size_t *out_count);

#endif
