/* Whether what the stamps call alive is met in the heap: before anything is said of a site.
 *
 * A walk of the whole heap, and of each stamp of the asked sites from the steps before: an object that was
 * met; one that is alive, and that nothing in reach refers to; or neither.
 * Under the allocator hook the last is a block of Python that is no object (a bytearray's buffer, a dict's table
 * before 3.13), which dies with its owner.  Under creation events it is a stamp whose block went by unseen: it
 * is erased. */
#ifndef LP_CONFIRM_H
#define LP_CONFIRM_H

#include "python/heap/census.h"

typedef struct lp_confirmed {
    lp_site_id site;
    uint64_t met, unreached, corrected;
} lp_confirmed;

/* sites: as lp_site_base() gives them, in confirmed[i].site; the rest is written.  The census is of the same walk. */
lp_status lp_confirm(PyTypeObject *own_type, lp_confirmed *confirmed, uint32_t count, lp_census **out_census);

#endif
