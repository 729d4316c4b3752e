/* The table of live blocks; the ledger's lock is held. Every block is found from its home without a gap: removal
 * closes holes. */
#include "ledger/blocks.h"

#include "base/numbers.h"  // LP_HASH_FACTOR
#include "base/rawmem.h"  // lp_raw_calloc

enum { FIRST_CAPACITY = 2048 };

/* Multiplying the hash by the capacity maps it to a slot for any capacity, not only powers of
 * two: so the table can grow by a half and stays half full. */
static size_t home(const lp_blocks *blocks, uint64_t address) {
    uint64_t hash = (address >> 4) * LP_HASH_FACTOR;
    hash ^= hash >> 32;
    return (size_t)(((hash * LP_HASH_FACTOR) >> 32) * blocks->capacity >> 32);
}

static size_t next_of(const lp_blocks *blocks, size_t i) { return i + 1 == blocks->capacity ? 0 : i + 1; }

/* How far slot i is behind slot `from`, going round. */
static size_t distance(const lp_blocks *blocks, size_t from, size_t i) {
    return i >= from ? i - from : i + blocks->capacity - from;
}

/* The slot of an address, or the empty one where it belongs. */
static lp_blocks_slot *find_slot(const lp_blocks *blocks, uint64_t address) {
    size_t i = home(blocks, address);
    while (lp_blocks_address(&blocks->slots[i]) != 0 && lp_blocks_address(&blocks->slots[i]) != address) {
        i = next_of(blocks, i);
    }
    return &blocks->slots[i];
}

/* LP_FULL where the hash has no bits for more slots. */
static lp_status resize(lp_blocks *blocks, size_t capacity) {
    if (capacity > UINT32_MAX) {
        return LP_FULL;
    }
    lp_blocks fresh = {lp_raw_calloc(capacity, sizeof(lp_blocks_slot)), capacity, blocks->count};
    if (fresh.slots == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < blocks->capacity; i++) {
        if (lp_blocks_address(&blocks->slots[i]) != 0) {
            *find_slot(&fresh, lp_blocks_address(&blocks->slots[i])) = blocks->slots[i];
        }
    }
    lp_raw_free(blocks->slots);
    *blocks = fresh;
    return LP_OK;
}

static lp_status make_room(lp_blocks *blocks) {
    if (blocks->slots == NULL) {
        return resize(blocks, FIRST_CAPACITY);
    }
    if (blocks->count + 1 <= blocks->capacity / 4 * 3) {
        return LP_OK;
    }
    lp_status status = resize(blocks, blocks->capacity / 2 * 3);
    /* Without memory for more, the slots that are left still serve. */
    return blocks->count + 1 < blocks->capacity ? LP_OK : status;
}

lp_status lp_blocks_add(lp_blocks *blocks, uint64_t address, uint64_t bytes, uint32_t cohort, lp_blocks_slot *out_old) {
    if (address == 0 || address >> LP_BLOCKS_ADDRESS_BITS != 0 || bytes >> LP_BLOCKS_BYTES_BITS != 0) {
        return LP_BAD_INPUT;
    }
    lp_status status = make_room(blocks);
    if (status != LP_OK) {
        return status;
    }
    lp_blocks_slot *slot = find_slot(blocks, address);
    *out_old = *slot;
    blocks->count += lp_blocks_address(slot) == 0;
    slot->word[0] = address | (uint64_t)(cohort >> 16) << LP_BLOCKS_ADDRESS_BITS;
    slot->word[1] = bytes | (uint64_t)(cohort & 0xFFFF) << LP_BLOCKS_BYTES_BITS;
    return LP_OK;
}

lp_blocks_slot *lp_blocks_find(const lp_blocks *blocks, uint64_t address) {
    if (blocks->slots == NULL || address == 0) {
        return NULL;
    }
    lp_blocks_slot *slot = find_slot(blocks, address);
    return lp_blocks_address(slot) == 0 ? NULL : slot;
}

/* A block after the hole moves into it if the hole lies between its home and itself. */
static void close_hole(lp_blocks *blocks, size_t hole) {
    for (size_t i = next_of(blocks, hole); lp_blocks_address(&blocks->slots[i]) != 0; i = next_of(blocks, i)) {
        size_t wanted = home(blocks, lp_blocks_address(&blocks->slots[i]));
        if (distance(blocks, wanted, i) >= distance(blocks, hole, i)) {
            blocks->slots[hole] = blocks->slots[i];
            hole = i;
        }
    }
    blocks->slots[hole] = (lp_blocks_slot){{0, 0}};
}

void lp_blocks_remove(lp_blocks *blocks, lp_blocks_slot *slot) {
    close_hole(blocks, (size_t)(slot - blocks->slots));
    blocks->count--;
}

void lp_blocks_trim(lp_blocks *blocks) {
    if (blocks->capacity > FIRST_CAPACITY && blocks->count < blocks->capacity / 4) {
        size_t half_full = blocks->count * 2;
        /* When that fails the table is only larger than it need be. */
        (void)resize(blocks, half_full > FIRST_CAPACITY ? half_full : FIRST_CAPACITY);
    }
}

void lp_blocks_clear(lp_blocks *blocks) {
    lp_raw_free(blocks->slots);
    *blocks = (lp_blocks){NULL, 0, 0};
}
