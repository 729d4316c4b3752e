/* How long a block of glibc's malloc is, for a pointer that may be one. */
#ifndef LP_CHUNKS_H
#define LP_CHUNKS_H

#include "base/base.h"

/* Bytes of the block at an address, or 0 if none begins there: its size stands before it, and behind it the next
 * one's with the mark that this one is in use. */
uint64_t lp_chunk_bytes(uint64_t block);
/* The same with the header that stands before it; 0 for NULL too. */
uint64_t lp_chunk_with_header(uint64_t block);

#endif
