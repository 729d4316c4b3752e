/* Pages that a thread makes the kernel give out. */
#ifndef LP_RESIDENT_H
#define LP_RESIDENT_H

#include "base/base.h"  // uint64_t

/* Bytes of pages that the running thread was the first to touch, ever; 0 where the kernel does not tell. */
uint64_t lp_thread_touched_bytes(void);

#endif
