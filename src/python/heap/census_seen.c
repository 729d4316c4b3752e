/* Owns the leaves of bits. Empty between censuses. */
#include "python/heap/census_seen.h"

#include "base/rawmem.h"  // lp_raw_map

#define ROOT_COUNT ((size_t)1 << (LP_SEEN_ADDRESS_BITS - LP_SEEN_LEAF_LG))
#define LEAF_BYTES (LP_SEEN_LEAF_WORDS * sizeof(uint64_t))

uint64_t **lp_seen_root;

static struct {
    uint64_t **leaves;  /* every leaf that exists, so that clearing is no walk of the root */
    size_t leaf_count, leaf_capacity;
    int is_short;
} seen;

lp_status lp_seen_init(void) {
    if (lp_seen_root == NULL) {
        lp_seen_root = lp_raw_map(ROOT_COUNT * sizeof(uint64_t *));
    }
    return lp_seen_root == NULL ? LP_NO_MEMORY : LP_OK;
}

static int grow_leaves(void) {
    size_t capacity = seen.leaf_capacity == 0 ? 64 : seen.leaf_capacity * 2;
    uint64_t **grown = lp_raw_realloc(seen.leaves, capacity * sizeof(*seen.leaves));
    if (grown == NULL) {
        return -1;
    }
    seen.leaves = grown;
    seen.leaf_capacity = capacity;
    return 0;
}

uint64_t *lp_seen_add_leaf(uintptr_t address) {
    int has_room = seen.leaf_count < seen.leaf_capacity || grow_leaves() == 0;
    uint64_t *leaf = has_room ? lp_raw_map(LEAF_BYTES) : NULL;
    seen.is_short |= leaf == NULL;
    if (leaf != NULL) {
        seen.leaves[seen.leaf_count++] = leaf;
        lp_seen_root[address >> LP_SEEN_LEAF_LG] = leaf;
    }
    return leaf;
}

int lp_seen_is_short(void) { return seen.is_short; }

void lp_seen_clear(void) {
    seen.is_short = 0;
    for (size_t i = 0; i < seen.leaf_count; i++) {
        lp_raw_map_discard(seen.leaves[i], LEAF_BYTES);
    }
}
