/* A set of block addresses: which blocks of Python's object allocator, of those born since the
 * set was opened, are alive.  One bit per 16-byte granule, in lazily mapped leaves of 64 MiB.
 *
 * Its users call free too, which is what an escalation is for: stamps tell where and when a
 * block was born (ledger/shadow.h), not whether it still is one.  The GIL of the home interpreter protects it. */
#ifndef LP_ALIVE_H
#define LP_ALIVE_H

#include "base/base.h"

#define LP_ALIVE_LEAF_LG 26
#define LP_ALIVE_ADDRESS_BITS 48
#define LP_ALIVE_ADDRESSES (((uintptr_t)1 << LP_ALIVE_ADDRESS_BITS) - 1)
#define LP_ALIVE_LEAF_WORDS ((1u << (LP_ALIVE_LEAF_LG - 4)) / 64)

extern uint64_t **lp_alive_root;   /* NULL until lp_alive_open() */

/* Begin with an empty set. */
lp_status lp_alive_open(void);
/* Empty the set, keep the mappings. */
void lp_alive_clear(void);
/* Create the leaf of an address; NULL when that is not possible. */
uint64_t *lp_alive_add_leaf(uintptr_t address);

/* pre: lp_alive_open(). */
static inline void lp_alive_add(const void *block) {
    LP_ASSERT_GIL();
    uintptr_t address = (uintptr_t)block;
    if (LP_UNLIKELY(address >> LP_ALIVE_ADDRESS_BITS)) {
        return;
    }
    uint64_t *leaf = lp_alive_root[address >> LP_ALIVE_LEAF_LG];
    if (LP_UNLIKELY(leaf == NULL)) {
        leaf = lp_alive_add_leaf(address);
        if (leaf == NULL) {
            return;
        }
    }
    uint64_t *word = &leaf[(address >> 10) & (LP_ALIVE_LEAF_WORDS - 1)], bit = (uint64_t)1 << ((address >> 4) & 63);
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) | bit, __ATOMIC_RELAXED);
}

/* pre: lp_alive_open().  Writes nothing unless the block is in the set, so that a thread without the GIL
 * may call it for a block that never was. */
static inline void lp_alive_remove(const void *block) {
    uintptr_t address = (uintptr_t)block;
    uint64_t *const *root = &lp_alive_root[(address & LP_ALIVE_ADDRESSES) >> LP_ALIVE_LEAF_LG];
    uint64_t *leaf = address >> LP_ALIVE_ADDRESS_BITS ? NULL : __atomic_load_n(root, __ATOMIC_ACQUIRE);
    if (leaf == NULL) {
        return;
    }
    uint64_t *word = &leaf[(address >> 10) & (LP_ALIVE_LEAF_WORDS - 1)], bit = (uint64_t)1 << ((address >> 4) & 63);
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    if ((now & bit) != 0) {
        __atomic_store_n(word, now & ~bit, __ATOMIC_RELAXED);
    }
}

/* visit(address, arg) for each block of the set, until it returns nonzero, which is then returned.
 * The set must not change meanwhile. */
int lp_alive_each(int (*visit)(uintptr_t address, void *arg), void *arg);

#endif
