#include "python/heap/census_seen.h"

#include "base/rawmem.h"  // lp_raw_map

#define ROOT_COUNT ((size_t)1 << (LP_SEEN_ADDRESS_BITS - LP_SEEN_LEAF_LG))
#define LEAF_BYTES (LP_SEEN_LEAF_WORDS * sizeof(uint64_t))

uint64_t **lp_seen_root;

static uint64_t **leaves;     /* every leaf that exists, so that clearing is no walk of the root */
static size_t leaf_count, leaf_capacity;

lp_status lp_seen_init(void) {
    if (lp_seen_root == NULL) {
        lp_seen_root = lp_raw_map(ROOT_COUNT * sizeof(uint64_t *));
    }
    return lp_seen_root == NULL ? LP_NO_MEMORY : LP_OK;
}

static int grow_leaves(void) {
    size_t capacity = leaf_capacity == 0 ? 64 : leaf_capacity * 2;
    uint64_t **grown = lp_raw_realloc(leaves, capacity * sizeof(*leaves));
    if (grown == NULL) {
        return -1;
    }
    leaves = grown;
    leaf_capacity = capacity;
    return 0;
}

uint64_t *lp_seen_add_leaf(uintptr_t address) {
    if (leaf_count == leaf_capacity && grow_leaves() < 0) {
        return NULL;
    }
    uint64_t *leaf = lp_raw_map(LEAF_BYTES);
    if (leaf != NULL) {
        leaves[leaf_count++] = leaf;
        lp_seen_root[address >> LP_SEEN_LEAF_LG] = leaf;
    }
    return leaf;
}

void lp_seen_clear(void) {
    for (size_t i = 0; i < leaf_count; i++) {
        lp_raw_map_discard(leaves[i], LEAF_BYTES);
    }
}
