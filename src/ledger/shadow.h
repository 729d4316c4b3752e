/* Birth stamps of blocks: 32 bits {growth:1, epoch:12, site:19}, in two shadows of the address
 * space made of lazily mapped leaves.
 *
 * A block of more than 16 bytes has its stamp in lp_shadow_blocks, one for 32 bytes of
 * addresses: blocks are aligned to 16 bytes, so no two of that size start in one granule.
 * A smaller one has it in lp_shadow_small, one for 16 bytes.  It is for callers to tell
 * the two by the same rule when they write and when they read.
 *
 * A stamp is written at birth and erased at death (ledger/alive.h), so that the stamps say who is
 * alive of what was born since the hooks.  A growth stamp is of no object, but of a container's
 * backing block: the line that last grew it; it is overwritten, and erased only by chance.
 * Writes are single aligned 32-bit stores by the owner of the address: no lock.  Leaves are
 * created by compare-and-swap.  0 means: no birth was seen at this address, or it is dead. */
#ifndef LP_SHADOW_H
#define LP_SHADOW_H

#include "base/base.h"

typedef uint32_t lp_stamp;

#define LP_SITE_BITS 19
#define LP_EPOCH_BITS 12
#define LP_EPOCH_MAX ((1u << LP_EPOCH_BITS) - 1)
#define LP_STAMP(site, epoch) ((lp_stamp)(((uint32_t)(epoch) << LP_SITE_BITS) | (uint32_t)(site)))
#define LP_STAMP_SITE(stamp) ((stamp) & ((1u << LP_SITE_BITS) - 1))
#define LP_STAMP_EPOCH(stamp) ((stamp) >> LP_SITE_BITS & LP_EPOCH_MAX)
/* A flag beside site and epoch: the stamp of a backing block. */
#define LP_STAMP_GROWTH ((lp_stamp)1 << 31)
/* In lp_shadow_blocks: the blocks of this granule are small, where the allocator hook serves. */
#define LP_STAMP_IS_SMALL ((lp_stamp)1)
/* 1 for the stamp of a birth: neither 0 nor one of the two above. */
#define LP_STAMP_IS_BIRTH(stamp) ((int32_t)(stamp) >= (int32_t)LP_STAMP(0, 1))

#define LP_SHADOW_ADDRESS_BITS 48
#define LP_SHADOW_LEAF_LG 21           /* lg(stamps per leaf) */
#define LP_SHADOW_LEAF_STAMPS ((size_t)1 << LP_SHADOW_LEAF_LG)
#define LP_SHADOW_SMALL_BYTES 16       /* the size up to which a block is small */

/* root[address / bytes per leaf] => where the stamp of address 0 would lie if the leaf went down to there; 0: no leaf.
 * So the stamp of an address is found without masking bits off. */
typedef uintptr_t *lp_shadow;

/* NULL until lp_shadow_init(). */
extern LP_HIDDEN lp_shadow lp_shadow_blocks, lp_shadow_small;
/* In place of lp_shadow_blocks where a hook is to take its slow way: it has no leaf. */
extern LP_HIDDEN lp_shadow lp_shadow_nowhere;

/* Map the roots. */
lp_status lp_shadow_init(void);
/* Forget every stamp and every count of ledger/alive.h, keep the mappings. */
void lp_shadow_reset(void);
/* lg(bytes of addresses per stamp): 5 or 4. */
static inline int lp_shadow_granule_lg(int is_small) { return is_small ? 4 : 5; }

/* The entry of a root for an address; 0 if it has no leaf. */
static inline uintptr_t lp_shadow_entry(lp_shadow root, const void *pointer, int is_small) {
    int leaf_lg = LP_SHADOW_LEAF_LG + lp_shadow_granule_lg(is_small);
    uintptr_t index = (uintptr_t)pointer >> leaf_lg;
    int is_in_range = LP_LIKELY(index < (uintptr_t)1 << (LP_SHADOW_ADDRESS_BITS - leaf_lg));
    return is_in_range ? __atomic_load_n(&root[index], __ATOMIC_ACQUIRE) : 0;
}

/* Where the stamp of an address lies.  pre: entry is that of the address, and not 0. */
static inline lp_stamp *lp_shadow_place_from(uintptr_t entry, const void *pointer, int is_small) {
    return (lp_stamp *)(entry + ((uintptr_t)pointer >> lp_shadow_granule_lg(is_small)) * sizeof(lp_stamp));
}

/* Where the stamp of an address lies, NULL if it has no leaf.  pre: lp_shadow_init(). */
static inline lp_stamp *lp_shadow_place(const void *pointer, int is_small) {
    uintptr_t entry = lp_shadow_entry(is_small ? lp_shadow_small : lp_shadow_blocks, pointer, is_small);
    return LP_UNLIKELY(entry == 0) ? NULL : lp_shadow_place_from(entry, pointer, is_small);
}
/* The same, and make the leaf if need be; NULL when that is not possible. */
lp_stamp *lp_shadow_make_place(const void *pointer, int is_small);

/* Write a stamp that no count goes with.  pre: lp_shadow_init(). */
void lp_shadow_set(const void *pointer, int is_small, lp_stamp stamp);

static inline lp_stamp lp_shadow_get(const void *pointer, int is_small) {
    const lp_stamp *place = lp_shadow_small == NULL ? NULL : lp_shadow_place(pointer, is_small);
    return place == NULL ? 0 : *place;
}

/* Replace the epoch of every stamp by new_epoch[old epoch]. */
void lp_shadow_remap_epochs(const uint16_t new_epoch[LP_EPOCH_MAX + 1]);

/* 1 if each leaf hangs in one place, and each stamp is 0, the mark of small blocks where such may be, or names an epoch
 * from 1 and a site below the ends. */
int lp_shadow_is_valid(uint32_t epoch_end, uint32_t site_end);

/* One leaf, for passes over all stamps. */
typedef struct lp_shadow_region {
    lp_stamp *stamps;        /* LP_SHADOW_LEAF_STAMPS of them; NULL while it is being made */
    uintptr_t start;         /* the address that the first one stands for */
    int is_small;
} lp_shadow_region;

/* visit(stamps, count, arg) for each page of stamps that has one, until it returns 0; 1 if it never did. */
int lp_shadow_each_page(int (*visit)(lp_stamp *stamps, size_t count, const void *arg), const void *arg);

size_t lp_shadow_region_count(void);
lp_shadow_region lp_shadow_region_at(size_t i);
/* Which of the next pages of a leaf are resident: bit 0 of each; how many pages were looked at. */
size_t lp_shadow_resident(const lp_stamp *stamps, size_t pages, unsigned char *out_resident);
size_t lp_shadow_page_stamps(void);

/* Stamps that could not be written for want of memory. */
uint64_t lp_shadow_dropped_count(void);

#endif
