/* Which pages of a map of our own have something on them. */
#ifndef LP_PAGES_H
#define LP_PAGES_H

#include "base/base.h"

/* out_filled[i] is odd for a page that is in memory or in swap; for all where the system does not say.
 * address: that of a page. */
void lp_pages_filled(const void *address, size_t pages, unsigned char *out_filled);

#endif
