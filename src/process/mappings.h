/* Which addresses of this process can be read: for pointers that somebody else hands out. */
#ifndef LP_MAPPINGS_H
#define LP_MAPPINGS_H

#include "base/base.h"

typedef struct lp_range {
    uint64_t from, to;
} lp_range;

/* Readable ranges, rising, neighbours joined.  All zero: nothing known yet. */
typedef struct lp_mappings {
    lp_range *range;
    uint32_t count, capacity;
    lp_range last;          /* where the last address lay */
} lp_mappings;

/* Read them anew (half a millisecond for a process with torch).  LP_UNSUPPORTED: no Linux, or no /proc. */
lp_status lp_mappings_read(lp_mappings *mappings);
/* The same for an address outside of `last`; asks the kernel where the ranges do not have it. */
int lp_mappings_find(lp_mappings *mappings, uint64_t address, uint64_t bytes);

/* 1 if the bytes can be read.  Without Linux it is always 1. */
static inline int lp_mappings_has(lp_mappings *mappings, const void *pointer, uint64_t bytes) {
    uint64_t address = (uintptr_t)pointer;
    if (LP_LIKELY(address - mappings->last.from < mappings->last.to - mappings->last.from &&
                  mappings->last.to - address >= bytes)) {
        return 1;
    }
    return lp_mappings_find(mappings, address, bytes);
}

/* 1 for the fields "rw-s" and "/dev/nvidia0" of a mapping of a device; shared memory is none. */
int lp_mappings_is_device(const char *rights, const char *path);

/* Read words that may not be there; 1 if all were. */
int lp_peek_words(uint64_t from, uint64_t *out, size_t count);
/* The same of words that could be read when the ranges were: another thread may have unmapped them since.  Read as they
 * are where the kernel copies nothing for us (a sandbox). */
int lp_copy_words(uint64_t from, uint64_t *out, size_t count);

#endif
