/* What import slots and the shim do for each block while blocks are sampled: count bytes down, and look at one counter.
 * Only where the count runs out, or a sample may be known at the address, is the sampler called. */
#ifndef LP_SAMPLING_H
#define LP_SAMPLING_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/numbers.h" // LP_SAMPLING_FILTER_LG

#define LP_SAMPLING_FILTER_SLOTS ((size_t)1 << LP_SAMPLING_FILTER_LG)

/* Of each thread: bytes until the next sample, or, where `goes_on`, until the rest of the way is drawn anew, as the mean
 * may be another one by then; the state of its random numbers (0: none yet), and whether the sampler runs. */
typedef struct lp_sampling {
    int64_t left;
    uint64_t random;
    int is_inside, goes_on;
} lp_sampling;

/* Neighbours have neighbouring counters; what is as far apart as all counters reach is spread. */
static inline size_t lp_sampling_slot(uint64_t address) {
    uint64_t grain = address >> LP_SAMPLING_GRAIN_LG;
    uint64_t spread = (grain >> LP_SAMPLING_FILTER_LG) * LP_HASH_FACTOR >> (LP_HASH_BITS - LP_SAMPLING_FILTER_LG);
    return (size_t)((grain ^ spread) & (LP_SAMPLING_FILTER_SLOTS - 1));
}

static inline int lp_sampling_may_know(const _Atomic uint8_t *filter, const void *block) {
    return atomic_load_explicit(&filter[lp_sampling_slot((uint64_t)(uintptr_t)block)], memory_order_relaxed) != 0;
}

/* What cannot be given out, since no allocator has so much, counts for less. */
static inline int64_t lp_sampling_bytes(uint64_t bytes) { return (int64_t)(bytes & INT64_MAX); }

/* Count a block; 1 if the sampler has to look at it. */
static inline int lp_sampling_is_due(lp_sampling *mine, const _Atomic uint8_t *filter, const void *block,
                                     uint64_t bytes) {
    mine->left -= lp_sampling_bytes(bytes);
    return mine->left <= 0 || lp_sampling_may_know(filter, block);
}

#endif
