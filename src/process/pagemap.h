/* Which pages of another process are still shared with its parent, as the kernel's pagemap tells.
 *
 * After a fork both processes have the same page until one writes to it.  An anonymous page
 * (not bit 61) that only one process maps (bit 56) has been copied, or the other has let it go. */
#ifndef LP_PAGEMAP_H
#define LP_PAGEMAP_H

#include "base/base.h"  // lp_status, uint64_t

/* A page, and what lies on it: bit n of `kinds` is the caller's n-th kind of thing. */
typedef struct lp_page {
    uint64_t number;   /* address / size of a page */
    uint64_t kinds;
} lp_page;

#define LP_PAGE_KINDS 64

typedef struct lp_page_counts {
    uint64_t pages, present, private_pages;
    uint64_t pages_of[LP_PAGE_KINDS], private_of[LP_PAGE_KINDS];   /* by the kinds that lie on them */
} lp_page_counts;

/* Sort by page and join what lies on the same one; the number of pages that are left. */
lp_status lp_pages_merge(lp_page *pages, size_t *count);

/* Count the pages (sorted, each once) as process `pid` has them; a page in swap is private.
 * LP_SYSTEM: its pagemap can't be read; LP_UNSUPPORTED: no Linux. */
lp_status lp_pagemap_count(int pid, const lp_page *pages, size_t count, lp_page_counts *out_counts);

/* How many of the pages have one of `kinds` on them: those that will be copied if all of these are touched. */
uint64_t lp_pages_with(const lp_page *pages, size_t count, uint64_t kinds);

#endif
