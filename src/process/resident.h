/* Which part of a range of memory has pages behind it. */
#ifndef LP_RESIDENT_H
#define LP_RESIDENT_H

#include "base/base.h"  // uint64_t

/* Bytes of the range that nobody has touched, in whole pages; 0 where the kernel does not tell. */
uint64_t lp_untouched_bytes(uint64_t address, uint64_t bytes);

/* Bytes of pages that the running thread was the first to touch, ever; 0 where the kernel does not tell. */
uint64_t lp_thread_touched_bytes(void);

#endif
