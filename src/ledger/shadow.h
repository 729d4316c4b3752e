/* Birth stamps: one 32-bit stamp {epoch:12, site:20} per 16-byte granule of the
 * address space, in lazily mapped leaves of 64 MiB of addresses each.
 *
 * A stamp is written at birth and never cleared at death: what is alive is known
 * from the heap itself, and the next birth at an address overwrites.  Writes are
 * single aligned 32-bit stores by the owner of the address: no lock.  Leaves are
 * created by compare-and-swap.  0 means: no birth was seen at this address. */
#ifndef LP_SHADOW_H
#define LP_SHADOW_H

#include "base/base.h"

typedef uint32_t lp_stamp;

#define LP_SITE_BITS 20
#define LP_EPOCH_BITS 12
#define LP_EPOCH_MAX ((1u << LP_EPOCH_BITS) - 1)
#define LP_STAMP(site, epoch) ((lp_stamp)(((uint32_t)(epoch) << LP_SITE_BITS) | (uint32_t)(site)))
#define LP_STAMP_SITE(stamp) ((stamp) & ((1u << LP_SITE_BITS) - 1))
#define LP_STAMP_EPOCH(stamp) ((stamp) >> LP_SITE_BITS)

#define LP_SHADOW_LEAF_LG 26           /* lg(bytes of address space per leaf) */
#define LP_SHADOW_ADDRESS_BITS 48
#define LP_SHADOW_GRANULES (1u << (LP_SHADOW_LEAF_LG - 4))

extern LP_HIDDEN lp_stamp **lp_shadow_root;      /* NULL until lp_shadow_init() */

/* Map the root. */
lp_status lp_shadow_init(void);
/* Forget every stamp, keep the mappings. */
void lp_shadow_reset(void);
/* The leaf of an address, NULL if there is none.  pre: lp_shadow_init(). */
static inline lp_stamp *lp_shadow_leaf(const void *pointer) {
    uintptr_t index = (uintptr_t)pointer >> LP_SHADOW_LEAF_LG;
    int is_in_range = LP_LIKELY(index < (uintptr_t)1 << (LP_SHADOW_ADDRESS_BITS - LP_SHADOW_LEAF_LG));
    return is_in_range ? lp_shadow_root[index] : NULL;
}

/* Where the stamp of an address lies in its leaf. */
static inline size_t lp_shadow_index(const void *pointer) {
    return ((uintptr_t)pointer >> 4) & (LP_SHADOW_GRANULES - 1);
}

/* Stamp an address, and make its leaf if need be.  pre: lp_shadow_init(). */
void lp_shadow_set(const void *pointer, lp_stamp stamp);

static inline lp_stamp lp_shadow_get(const void *pointer) {
    const lp_stamp *leaf = lp_shadow_root == NULL ? NULL : lp_shadow_leaf(pointer);
    return leaf == NULL ? 0 : leaf[lp_shadow_index(pointer)];
}

/* Replace the epoch of every stamp by new_epoch[old epoch]. */
void lp_shadow_remap_epochs(const uint16_t new_epoch[LP_EPOCH_MAX + 1]);

/* Stamps that could not be written for want of memory. */
uint64_t lp_shadow_dropped_count(void);

#endif
