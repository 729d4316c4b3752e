/* Types and sizes of what a scan found, by site: read from the objects themselves, without a walk. */
#ifndef LP_FOUND_TYPES_H
#define LP_FOUND_TYPES_H

#include "ledger/scan.h"  // lp_site_id, lp_status

typedef struct lp_found_type {
    lp_site_id site;
    uintptr_t type;         /* an address that is not to be read; 0: blocks in which no object was found */
    char *name;             /* "module.qualname", or NULL without a type */
    uint64_t count, bytes;  /* of what was looked at, and what that stands for */
} lp_found_type;

/* Look at survivors of the complete scan: all of a site that has few, a sample of one that has many.  Freed with
 * lp_found_types_free().  GIL. */
lp_status lp_found_types(lp_found_type **out_found, size_t *out_count);
void lp_found_types_free(lp_found_type *found, size_t count);

#endif
