/* Resident memory of this process and of others, as the kernel counts it. */
#ifndef LP_PROC_MEMORY_H
#define LP_PROC_MEMORY_H

#include "base/base.h"  // lp_status, uint64_t

typedef struct lp_proc_memory {
    uint64_t mapped;                      /* of all mappings, touched or not */
    uint64_t writable;                    /* of private ones that can be written, touched or not */
    uint64_t rss, shared_rss;             /* statm: a microsecond; shared: pages of files and of shared memory */
    int has_rollup;                       /* the rest is known */
    uint64_t pss, private_bytes, shared_bytes;
    uint64_t anonymous;                   /* resident pages without a file behind them */
} lp_proc_memory;

/* with_rollup: read smaps_rollup too, which walks all pages (up to 10 ms on a large process).
 * LP_UNSUPPORTED: no Linux; LP_SYSTEM: /proc can't be read. */
lp_status lp_proc_memory_read(int with_rollup, lp_proc_memory *out_memory);

/* The same of another process by its smaps_rollup, all but shared_rss.  LP_SYSTEM: it is gone or can't be read. */
lp_status lp_proc_rollup_of(int pid, lp_proc_memory *out_memory);

/* Pages of hugetlbfs that this process has touched, which no other number of it counts; 0 where that is not known. */
uint64_t lp_proc_huge_bytes(void);

/* The text of a file of /proc, cut off at capacity - 1; the length, or -1. */
long lp_proc_read(const char *path, char *text, size_t capacity);

#endif
