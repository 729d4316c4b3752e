/* A frozen copy of what is alive: rows sorted by (medium, type, site), each key once. */
#ifndef LP_SNAPSHOT_H
#define LP_SNAPSHOT_H

#include "ledger/medium.h"  // lp_medium
#include "ledger/site.h"    // lp_site_id

typedef struct lp_row {
    uint64_t type_id;            /* 0: not a Python object */
    uint64_t count, bytes;
    lp_site_id site;             /* the base site */
    uint32_t first_step, last_step;
    uint8_t medium;
} lp_row;

typedef struct lp_snapshot {
    lp_row *rows;
    size_t count;
} lp_snapshot;

/* The ledger's groups and the rows of the caller, in any order; rows of one key are joined. */
lp_status lp_snapshot_take(const lp_row *more_rows, size_t more_count, lp_snapshot *out_snapshot);
void lp_snapshot_fini(lp_snapshot *snapshot);

/* -1, 0 or 1, by medium, type and site. */
int lp_snapshot_compare(const lp_row *a, const lp_row *b);
/* LP_BAD_INPUT if the rows do not rise. */
lp_status lp_snapshot_check(const lp_snapshot *snapshot);

#endif
