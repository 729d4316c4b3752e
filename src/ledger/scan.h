/* Who is alive of some sites, by the step of birth: a pass over all stamps in slices.
 *
 * A slice visits leaves of the shadows page by page, skips pages that are not resident, and notes where
 * a stamp of an asked site lies.  What was born since the scan began is left out; so a place that still
 * holds a stamp of an older step when the result is asked for holds the same one as when the cursor came
 * by, and what died meanwhile has none.  The result is therefore exact as of the step at which it is
 * asked for, for all births before the step in which the scan began.
 *
 * Only tables of the probe are read: no object, no memory of the interpreter.  GIL. */
#ifndef LP_SCAN_H
#define LP_SCAN_H

#include "ledger/site.h"  // lp_site_id

/* One (base site, birth steps); the steps are the same, but where they share an epoch. */
typedef struct lp_scan_row {
    lp_site_id site;
    uint32_t first_step, last_step;
    uint64_t count;
} lp_scan_row;

/* Where a stamp lies: a block starts in the 32 bytes from here, or, a small one, in the 16 bytes. */
typedef struct lp_scan_place {
    uintptr_t start;
    int is_small;
    lp_stamp *stamp;
    lp_site_id site;               /* as it was asked for */
} lp_scan_place;

/* Ask for sites as lp_site_base() gives them; what counts under them is included, for which the frames of sites with
 * something alive may be decoded.  Ends a scan that runs. */
lp_status lp_scan_begin(const lp_site_id *sites, uint32_t count);
/* Go on for about so long; 1 when the last stamp was visited, 0 before, or a status. */
int lp_scan_slice(uint64_t budget_ns);
/* Steps before this one are in the result. */
uint32_t lp_scan_begun_step(void);
/* Rows, in no order, freed with lp_raw_free().  LP_NOT_FOUND: no scan is complete.  LP_LIMIT: it took so many
 * steps that those of its beginning are no more told apart. */
lp_status lp_scan_rows(lp_scan_row **out_rows, size_t *out_count);
/* Visit the places of the result, in order of address within a leaf, until nonzero, which is returned. */
int lp_scan_each(int (*visit)(const lp_scan_place *place, void *arg), void *arg);
/* Give the memory back. */
void lp_scan_end(void);

#endif
