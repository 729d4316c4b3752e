/* Memory that the kernel keeps by file: segments of /dev/shm, memfds, System V segments, huge pages, files that
 * are mapped and unlinked.  It outlives the mapping and the descriptor, and /dev/shm the process. */
#ifndef LP_SEGMENTS_H
#define LP_SEGMENTS_H

#include "base/base.h"        // lp_status, uint64_t
#include "process/numbers.h"  // LP_SEGMENT_MAPPED

typedef struct lp_segment {
    uint64_t device, inode, bytes;
    uint64_t from, to;    /* where it is mapped, the last of several mappings; 0, 0 where it is not */
    uint32_t known;       /* LP_SEGMENT_* */
    uint32_t has_size;    /* bytes are those that the file has, not those that are mapped of it */
} lp_segment;

typedef struct lp_segments {
    lp_segment *row;
    size_t count, capacity;
} lp_segments;

/* What all processes together have in /dev/shm and in System V segments: two calls of the kernel.  Zeros where
 * there is neither. */
typedef struct lp_shared_memory {
    uint64_t files, file_bytes, segments, segment_bytes;
} lp_shared_memory;

void lp_shared_memory_read(lp_shared_memory *out_memory);

/* What this process maps beside private memory that can be written: while it stands, so do its mapped segments, mostly. */
uint64_t lp_segments_mapped(void);

/* Each segment once, named semaphores left out; the caller frees `row` with lp_raw_free().  `since`: seconds of
 * the wall clock; what /dev/shm has from before is no business of this process.  A microsecond a mapping and a
 * descriptor.  LP_UNSUPPORTED: no Linux; LP_SYSTEM: no /proc. */
lp_status lp_segments_read(int64_t since, lp_segments *out_segments);

#endif
