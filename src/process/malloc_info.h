/* What the C library's malloc has handed out, and what it keeps for later.
 *
 * The numbers are glibc's mallinfo2(), found when asked for (glibc 2.33 and newer), and only where glibc
 * serves malloc: with jemalloc, tcmalloc or mimalloc in its place they would be those of a heap at rest. */
#ifndef LP_MALLOC_INFO_H
#define LP_MALLOC_INFO_H

#include "base/base.h"  // lp_status, uint64_t

typedef struct lp_malloc_info {
    uint64_t in_use;      /* bytes of live blocks, mapped ones too, with malloc's headers */
    uint64_t mapped;      /* of these, blocks with a mapping of their own */
    uint64_t free_bytes;  /* freed and kept */
    uint64_t top_bytes;   /* of these, at the top of the main heap */
    uint64_t probe_bytes; /* of in_use, the probe's own blocks */
} lp_malloc_info;

/* NULL, or why the numbers can't be had. */
const char *lp_malloc_info_why_not(void);

/* LP_UNSUPPORTED where lp_malloc_info_why_not() has an answer.  Walks malloc's free lists: from microseconds
 * to milliseconds. */
lp_status lp_malloc_info_read(lp_malloc_info *out_info);

/* Bytes of live blocks without the probe's own: in_use - probe_bytes; 0 where they can't be had. */
uint64_t lp_malloc_info_in_use(void);

#endif
