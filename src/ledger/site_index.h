/* An index of sites: open addressing over hashes that its owner works out, giving site ids.
 *
 * The caller holds the lock of the sites.  Nothing is taken out of it, but what is no longer kept
 * is left behind when it grows. */
#ifndef LP_SITE_INDEX_H
#define LP_SITE_INDEX_H

#include "ledger/site.h"  // lp_site_id

typedef struct lp_site_index {
    uint32_t (*hash_of)(lp_site_id id);
    int (*is_kept)(lp_site_id id);  /* NULL: all are */
    uint32_t *slots;                /* a site id, 0: none */
    size_t mask, used;
} lp_site_index;

/* Room for one more; 0, or -1 when out of memory (what is there can be found as long as a slot is left). */
int lp_site_index_reserve(lp_site_index *index);
/* 1 if the slots in use are counted and have sites below `end`, and, with `all_reached`, their hashes lead to them. */
int lp_site_index_is_valid(const lp_site_index *index, lp_site_id end, int all_reached);

#endif
