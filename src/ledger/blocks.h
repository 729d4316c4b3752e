/* Live native blocks: address => lp_block, open addressing with linear probing and
 * backward-shift deletion, at most two thirds full: 48 bytes a block at most on average.
 * The caller holds the lock of the ledger. */
#ifndef LP_BLOCKS_H
#define LP_BLOCKS_H

#include "ledger/ledger.h"  // lp_block

typedef struct lp_blocks {
    lp_block *slots;        /* address 0: empty */
    size_t mask, count;
} lp_blocks;

/* Add or replace; *out_old is the block replaced, address 0 if none. */
lp_status lp_blocks_add(lp_blocks *blocks, const lp_block *block, lp_block *out_old);
/* Remove; LP_NOT_FOUND if the address is unknown. */
lp_status lp_blocks_remove(lp_blocks *blocks, uint64_t address, lp_block *out_old);
const lp_block *lp_blocks_find(const lp_blocks *blocks, uint64_t address);
void lp_blocks_clear(lp_blocks *blocks);

#endif
