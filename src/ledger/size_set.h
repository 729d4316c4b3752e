/* Which sizes of blocks were met: a set of bits, in which two sizes share a bit now and then. */
#ifndef LP_SIZE_SET_H
#define LP_SIZE_SET_H

#include "base/base.h"
#include "base/numbers.h"  // LP_HASH_FACTOR

#define LP_SIZE_SET_BITS 16

typedef struct lp_size_set {
    uint64_t word[(1 << LP_SIZE_SET_BITS) / 64];
    uint64_t count;   /* bits that are set */
} lp_size_set;

static inline void lp_size_set_add(lp_size_set *set, uint64_t bytes) {
    uint64_t bit = bytes * LP_HASH_FACTOR >> (LP_HASH_BITS - LP_SIZE_SET_BITS);
    uint64_t mask = (uint64_t)1 << (bit & 63);
    set->count += (set->word[bit >> 6] & mask) == 0;
    set->word[bit >> 6] |= mask;
}

#endif
