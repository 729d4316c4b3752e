#include "ledger/blocks.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_calloc

static size_t home(const lp_blocks *blocks, uint64_t address) {
    uint64_t hash = (address >> 4) * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash >> 20) & blocks->mask;
}

static size_t find(const lp_blocks *blocks, uint64_t address) {
    size_t i = home(blocks, address);
    while (blocks->slots[i].address != 0 && blocks->slots[i].address != address) {
        i = (i + 1) & blocks->mask;
    }
    return i;
}

static lp_status grow(lp_blocks *blocks) {
    lp_blocks fresh = {NULL, blocks->slots == NULL ? 1023 : blocks->mask * 2 + 1, blocks->count};
    fresh.slots = lp_raw_calloc(fresh.mask + 1, sizeof(lp_block));
    if (fresh.slots == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; blocks->slots != NULL && i <= blocks->mask; i++) {
        if (blocks->slots[i].address != 0) {
            fresh.slots[find(&fresh, blocks->slots[i].address)] = blocks->slots[i];
        }
    }
    lp_raw_free(blocks->slots);
    *blocks = fresh;
    return LP_OK;
}

lp_status lp_blocks_add(lp_blocks *blocks, const lp_block *block, lp_block *out_old) {
    if (blocks->slots == NULL || blocks->count * 3 > blocks->mask * 2) {
        lp_status status = grow(blocks);
        if (status != LP_OK && (blocks->slots == NULL || blocks->count >= blocks->mask)) {
            return status;
        }
    }
    size_t i = find(blocks, block->address);
    *out_old = blocks->slots[i];
    blocks->count += out_old->address == 0;
    blocks->slots[i] = *block;
    return LP_OK;
}

lp_status lp_blocks_remove(lp_blocks *blocks, uint64_t address, lp_block *out_old) {
    if (blocks->slots == NULL) {
        return LP_NOT_FOUND;
    }
    size_t hole = find(blocks, address);
    if (blocks->slots[hole].address == 0) {
        return LP_NOT_FOUND;
    }
    *out_old = blocks->slots[hole];
    for (size_t next = (hole + 1) & blocks->mask; blocks->slots[next].address != 0; next = (next + 1) & blocks->mask) {
        size_t wanted = home(blocks, blocks->slots[next].address);
        if (((next - wanted) & blocks->mask) >= ((next - hole) & blocks->mask)) {
            blocks->slots[hole] = blocks->slots[next];
            hole = next;
        }
    }
    blocks->slots[hole].address = 0;
    blocks->count--;
    return LP_OK;
}

const lp_block *lp_blocks_find(const lp_blocks *blocks, uint64_t address) {
    if (blocks->slots == NULL) {
        return NULL;
    }
    size_t i = find(blocks, address);
    return blocks->slots[i].address == 0 ? NULL : &blocks->slots[i];
}

void lp_blocks_clear(lp_blocks *blocks) {
    lp_raw_free(blocks->slots);
    memset(blocks, 0, sizeof(*blocks));
}
