/* Memory of the probe's own: from libc or mmap, never through an allocator that
 * the probe hooks, and counted, so that a report can state the overhead.
 * Any thread may call any of these; there is no lock that a fork could leave held. */
#ifndef LP_RAWMEM_H
#define LP_RAWMEM_H

#include "base/base.h"  // size_t, uint64_t

/* NULL when out of memory; never aborts. */
void *lp_raw_malloc(size_t bytes);
void *lp_raw_calloc(size_t count, size_t bytes);
void *lp_raw_realloc(void *block, size_t bytes);
void lp_raw_free(void *block);

/* Zeroed pages that cost memory only where touched (MAP_NORESERVE). */
void *lp_raw_map(size_t bytes);
void lp_raw_unmap(void *address, size_t bytes);
/* The same, far larger than what is ever touched of it: its pages are counted again only after lp_raw_wrote_sparse(),
 * which whoever wrote to one calls. */
void *lp_raw_map_sparse(size_t bytes);
void lp_raw_wrote_sparse(void);
/* The same, filled from its beginning on: the pages behind the first MiB without any are not counted. */
void *lp_raw_map_filled(size_t bytes);

/* Ask for large pages, where the system has them, from now on. */
void lp_raw_map_in_large_pages(void *address, size_t bytes);

/* Give the touched pages back; they read as zero afterwards. */
void lp_raw_map_discard(void *address, size_t bytes);

/* Bytes of the blocks in use that malloc serves, as asked for: neither maps nor blocks that have a map of their own. */
uint64_t lp_raw_block_bytes(void);

/* Bytes of all maps, those that blocks have of their own too, by the pages that are resident. */
uint64_t lp_raw_map_bytes(void);
/* The same by their length. */
uint64_t lp_raw_map_length(void);

/* Bytes in use: blocks as asked for, maps by the pages that are resident. */
uint64_t lp_raw_overhead_bytes(void);

#ifdef LP_FAULT_INJECTION
/* For tests: so many more requests succeed, then lp_raw_fail_most fail, then all succeed again; -1: none fails. */
extern _Atomic long lp_raw_fail_after;
extern _Atomic long lp_raw_fail_most;
/* Requests made, and requests that were made to fail. */
extern _Atomic unsigned long lp_raw_request_count, lp_raw_failed_count;
#endif

#endif
