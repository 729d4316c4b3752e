/* A set of object addresses: one bit per 16-byte granule, in lazily mapped leaves of
 * 64 MiB of addresses each.  Objects are at least 16 bytes, so no two share a bit. */
#ifndef LP_CENSUS_SEEN_H
#define LP_CENSUS_SEEN_H

#include "base/base.h"  // uintptr_t, LP_LIKELY

#define LP_SEEN_LEAF_LG 26
#define LP_SEEN_ADDRESS_BITS 48
#define LP_SEEN_LEAF_WORDS ((1u << (LP_SEEN_LEAF_LG - 4)) / 64)

extern uint64_t **lp_seen_root;   /* NULL until lp_seen_init() */

/* Map the root; again does no harm. */
lp_status lp_seen_init(void);
/* Empty the set, keep the mappings. */
void lp_seen_clear(void);
/* 1 if an address could not be stored since the set was emptied, for want of memory. */
int lp_seen_is_short(void);
/* Create the leaf of an address; NULL when that is not possible. */
uint64_t *lp_seen_add_leaf(uintptr_t address);

static inline uint64_t *lp_seen_word(uintptr_t address) {
    uint64_t *leaf = lp_seen_root[address >> LP_SEEN_LEAF_LG];
    if (LP_UNLIKELY(leaf == NULL)) {
        leaf = lp_seen_add_leaf(address);
        if (leaf == NULL) {
            return NULL;
        }
    }
    return leaf + ((address >> 10) & (LP_SEEN_LEAF_WORDS - 1));
}

/* 1 if the address is in the set. */
static inline int lp_seen_has(uintptr_t address) {
    const uint64_t *leaf = address >> LP_SEEN_ADDRESS_BITS ? NULL : lp_seen_root[address >> LP_SEEN_LEAF_LG];
    return leaf != NULL && (leaf[(address >> 10) & (LP_SEEN_LEAF_WORDS - 1)] >> ((address >> 4) & 63) & 1);
}

/* 1 if the address is new to the set, 0 if it was in it or can't be stored. */
static inline int lp_seen_add(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    if (LP_UNLIKELY(address >> LP_SEEN_ADDRESS_BITS)) {
        return 0;
    }
    uint64_t *word = lp_seen_word(address);
    uint64_t bit = (uint64_t)1 << ((address >> 4) & 63);
    if (word == NULL || (*word & bit)) {
        return 0;
    }
    *word |= bit;
    return 1;
}

#endif
