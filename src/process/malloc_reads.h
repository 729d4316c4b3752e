/* The statistics of malloc's implementations, each by the function that it exports for them.
 *
 * lp_bind_*() takes that function, once; lp_read_*() fills in_use, free_bytes, system_bytes and what else it knows, and
 * leaves the rest as it is.  LP_UNSUPPORTED: the library was built without statistics. */
#ifndef LP_MALLOC_READS_H
#define LP_MALLOC_READS_H

#include "process/malloc_info.h"  // lp_malloc_info

void lp_bind_glibc(void *mallinfo2);
lp_status lp_read_glibc(lp_malloc_info *info);

void lp_bind_jemalloc(void *mallctl);
lp_status lp_read_jemalloc(lp_malloc_info *info);

void lp_bind_tcmalloc(void *get_numeric_property);
lp_status lp_read_tcmalloc(lp_malloc_info *info);

void lp_bind_mimalloc(void *process_info);
lp_status lp_read_mimalloc(lp_malloc_info *info);

#endif
