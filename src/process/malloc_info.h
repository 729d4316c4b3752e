/* What malloc has handed out, and what it keeps for later.
 *
 * The numbers are those of the library that serves malloc: glibc (2.33 and newer), jemalloc, tcmalloc or mimalloc,
 * each by the interface it has for this, found when asked for. */
#ifndef LP_MALLOC_INFO_H
#define LP_MALLOC_INFO_H

#include "base/base.h"  // lp_status, uint64_t

typedef struct lp_malloc_info {
    uint64_t in_use;      /* bytes of live blocks, mapped ones too, as malloc rounds them; mimalloc: committed ones */
    uint64_t mapped;      /* of these, blocks with a mapping of their own; glibc only */
    uint64_t free_bytes;  /* freed and kept; 0 of mimalloc, which does not say */
    uint64_t top_bytes;   /* of these, at the top of the main heap; glibc only */
    uint64_t system_bytes; /* address space that it has from the kernel */
    double rounding;      /* blocks take up to this share more than was asked for */
    uint64_t probe_bytes; /* of in_use, the probe's own blocks */
} lp_malloc_info;

/* NULL, or why the numbers can't be had. */
const char *lp_malloc_info_why_not(void);

/* The name of the library that serves malloc, NULL where the numbers can't be had. */
const char *lp_malloc_info_source(void);

/* LP_UNSUPPORTED where lp_malloc_info_why_not() has an answer.  Walks malloc's free lists: from microseconds
 * to milliseconds. */
lp_status lp_malloc_info_read(lp_malloc_info *out_info);

/* Bytes of live blocks without the probe's own: in_use - probe_bytes; 0 where they can't be had. */
uint64_t lp_malloc_info_in_use(void);

#endif
