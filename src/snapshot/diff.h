/* The difference of two snapshots: newer minus older, by (medium, type, site). */
#ifndef LP_DIFF_H
#define LP_DIFF_H

#include "snapshot/snapshot.h"  // lp_snapshot

typedef struct lp_diff_row {
    uint64_t type_id;
    int64_t count_diff, size_diff;
    lp_site_id site;
    uint8_t medium;
} lp_diff_row;

/* The rows that differ, in the order of the snapshots; *out_rows is freed with lp_raw_free(). */
lp_status lp_diff(const lp_snapshot *older, const lp_snapshot *newer, lp_diff_row **out_rows, size_t *out_count);

#endif
