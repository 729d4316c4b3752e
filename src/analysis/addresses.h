/* Address => node number, for the addresses of one walk.
 *
 * Addresses that are multiples of 16 live in lazily mapped leaves (64 MiB of
 * addresses each, 4 bytes per 16-byte granule), the rest in a hash table.  The
 * leaves stay mapped between snapshots: page faults would cost a quarter of the walk. */
#ifndef LP_ADDRESSES_H
#define LP_ADDRESSES_H

#include "base/map.h"  // lp_map
#include "base/base.h"

#define LP_ADDRESSES_LEAF_LG 26
#define LP_ADDRESSES_BITS 48
#define LP_ADDRESSES_GRANULES (1u << (LP_ADDRESSES_LEAF_LG - 4))
#define LP_ADDRESSES_NONE UINT32_MAX

typedef struct lp_addresses {
    uint32_t **root;   /* address >> 26 => leaf or NULL; slot: node number + 1, 0 for none */
    uint32_t *used;    /* where root has a leaf: to read all of root would touch its pages */
    uint32_t used_count;
    lp_map odd;        /* unaligned and very high addresses */
    int is_large; /* leaves made from now on use large pages: fewer faults, more memory where few addresses lie */
} lp_addresses;

lp_status lp_addresses_init(lp_addresses *table);
void lp_addresses_fini(lp_addresses *table);
uint32_t *lp_addresses_slot_slow(lp_addresses *table, uint64_t address);
/* Empty the slots of these addresses, keep the memory. */
void lp_addresses_clear(lp_addresses *table, const uint64_t *addresses, size_t count);
/* Give the memory of the leaves back; all slots read as empty. */
void lp_addresses_discard(lp_addresses *table);

/* The slot of an address (number + 1, or 0), NULL when out of memory.  pre: address != 0. */
static inline uint32_t *lp_addresses_slot(lp_addresses *table, uint64_t address) {
    if (LP_UNLIKELY((address & 15) != 0 || (address >> LP_ADDRESSES_BITS) != 0)) {
        return lp_addresses_slot_slow(table, address);
    }
    uint32_t *leaf = table->root[address >> LP_ADDRESSES_LEAF_LG];
    if (LP_UNLIKELY(leaf == NULL)) {
        return lp_addresses_slot_slow(table, address);
    }
    return &leaf[(address >> 4) & (LP_ADDRESSES_GRANULES - 1)];
}

static inline void lp_addresses_prefetch(const lp_addresses *table, uint64_t address) {
    if (LP_LIKELY((address & 15) == 0 && (address >> LP_ADDRESSES_BITS) == 0)) {
        const uint32_t *leaf = table->root[address >> LP_ADDRESSES_LEAF_LG];
        if (LP_LIKELY(leaf != NULL)) {
            __builtin_prefetch(&leaf[(address >> 4) & (LP_ADDRESSES_GRANULES - 1)], 1);
        }
    }
}

/* The node of an address, or LP_ADDRESSES_NONE; makes nothing. */
uint32_t lp_addresses_find(const lp_addresses *table, uint64_t address);

#endif
