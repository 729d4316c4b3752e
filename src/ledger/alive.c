#include "ledger/alive.h"

#include "base/rawmem.h"  // lp_raw_map

#define ROOT_COUNT ((size_t)1 << (LP_ALIVE_ADDRESS_BITS - LP_ALIVE_LEAF_LG))
#define LEAF_BYTES (LP_ALIVE_LEAF_WORDS * sizeof(uint64_t))

uint64_t **lp_alive_root;

typedef struct leaf {
    uint64_t *word;
    uintptr_t base;      /* the address that its first bit stands for */
} leaf;

static leaf *leaves;     /* every leaf that exists */
static size_t leaf_count, leaf_capacity;

lp_status lp_alive_open(void) {
    LP_ASSERT_GIL();
    if (lp_alive_root == NULL) {
        lp_alive_root = lp_raw_map(ROOT_COUNT * sizeof(uint64_t *));
    }
    lp_alive_clear();
    return lp_alive_root == NULL ? LP_NO_MEMORY : LP_OK;
}

static int grow_leaves(void) {
    size_t capacity = leaf_capacity == 0 ? 64 : leaf_capacity * 2;
    leaf *grown = lp_raw_realloc(leaves, capacity * sizeof(*leaves));
    if (grown == NULL) {
        return -1;
    }
    leaves = grown;
    leaf_capacity = capacity;
    return 0;
}

uint64_t *lp_alive_add_leaf(uintptr_t address) {
    if (leaf_count == leaf_capacity && grow_leaves() < 0) {
        return NULL;
    }
    uint64_t *word = lp_raw_map(LEAF_BYTES);
    if (word != NULL) {
        leaves[leaf_count++] = (leaf){word, address >> LP_ALIVE_LEAF_LG << LP_ALIVE_LEAF_LG};
        __atomic_store_n(&lp_alive_root[address >> LP_ALIVE_LEAF_LG], word, __ATOMIC_RELEASE);
    }
    return word;
}

void lp_alive_clear(void) {
    for (size_t i = 0; i < leaf_count; i++) {
        lp_raw_map_discard(leaves[i].word, LEAF_BYTES);
    }
}

static int visit_word(uint64_t word, uintptr_t base, int (*visit)(uintptr_t, void *), void *arg) {
    int result = 0;
    for (; word != 0 && result == 0; word &= word - 1) {
        result = visit(base + 16 * (uintptr_t)__builtin_ctzll(word), arg);
    }
    return result;
}

int lp_alive_each(int (*visit)(uintptr_t address, void *arg), void *arg) {
    LP_ASSERT_GIL();
    for (size_t i = 0; i < leaf_count; i++) {
        for (size_t w = 0; w < LP_ALIVE_LEAF_WORDS; w++) {
            uint64_t word = leaves[i].word[w];
            int result = word == 0 ? 0 : visit_word(word, leaves[i].base + 1024 * w, visit, arg);
            if (result != 0) {
                return result;
            }
        }
    }
    return 0;
}
