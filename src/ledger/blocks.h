/* Live native blocks: address => {bytes, cohort}, open addressing with linear probing and
 * backward-shift deletion.  A slot has 16 bytes, and a growing table is half to three quarters
 * full: 32 bytes a block at most.  After a trim it is a quarter full or more: 64 bytes at most.
 * The caller holds the lock of the ledger. */
#ifndef LP_BLOCKS_H
#define LP_BLOCKS_H

#include "base/base.h"

#define LP_BLOCKS_ADDRESS_BITS 48
#define LP_BLOCKS_BYTES_BITS 48

/* Packed by hand: use the functions below.  word 0: address, high half of the cohort;
 * word 1: bytes, low half of it.  An address of 0 is an empty slot. */
typedef struct lp_blocks_slot {
    uint64_t word[2];
} lp_blocks_slot;

typedef struct lp_blocks {
    lp_blocks_slot *slots;
    size_t capacity, count;
} lp_blocks;

static inline uint64_t lp_blocks_address(const lp_blocks_slot *slot) {
    return slot->word[0] & ((1ull << LP_BLOCKS_ADDRESS_BITS) - 1);
}

static inline uint64_t lp_blocks_bytes(const lp_blocks_slot *slot) {
    return slot->word[1] & ((1ull << LP_BLOCKS_BYTES_BITS) - 1);
}

static inline uint32_t lp_blocks_cohort(const lp_blocks_slot *slot) {
    return (uint32_t)(slot->word[0] >> LP_BLOCKS_ADDRESS_BITS) << 16 |
           (uint32_t)(slot->word[1] >> LP_BLOCKS_BYTES_BITS);
}

/* Add or replace; *out_old is the slot that was replaced, address 0 if none.
 * LP_BAD_INPUT if the address or the bytes have too many bits. */
lp_status lp_blocks_add(lp_blocks *blocks, uint64_t address, uint64_t bytes, uint32_t cohort, lp_blocks_slot *out_old);
/* The slot of an address, valid until the next change; NULL if it is unknown. */
lp_blocks_slot *lp_blocks_find(const lp_blocks *blocks, uint64_t address);
/* pre: slot comes from lp_blocks_find(). */
void lp_blocks_remove(lp_blocks *blocks, lp_blocks_slot *slot);
/* Give memory back after a peak; not done by a removal, lest a program that rises and falls in
 * each step resize the table in its hooks over and over. */
void lp_blocks_trim(lp_blocks *blocks);
/* Forget all blocks, give the memory back. */
void lp_blocks_clear(lp_blocks *blocks);

#endif
