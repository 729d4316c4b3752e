/* Owns the leaves between walks. A slot is empty again before the next walk, whichever way this one ended. */
#include "analysis/addresses.h"

#include "base/rawmem.h"  // lp_raw_map

#define ROOT_COUNT ((size_t)1 << (LP_ADDRESSES_BITS - LP_ADDRESSES_LEAF_LG))
#define LEAF_BYTES (sizeof(uint32_t) * LP_ADDRESSES_GRANULES)

lp_status lp_addresses_init(lp_addresses *table) {
    if (table->root == NULL) {
        table->root = lp_raw_map(ROOT_COUNT * sizeof(*table->root));
    }
    return table->root == NULL ? LP_NO_MEMORY : LP_OK;
}

void lp_addresses_fini(lp_addresses *table) {
    lp_addresses_discard(table);
    if (table->root != NULL) {
        lp_raw_unmap(table->root, ROOT_COUNT * sizeof(*table->root));
    }
    *table = (lp_addresses){0};
}

static uint32_t *new_leaf(lp_addresses *table, uint32_t index) {
    uint32_t *used = lp_raw_realloc(table->used, (table->used_count + (size_t)1) * sizeof(*used));
    table->used = used != NULL ? used : table->used;
    uint32_t *leaf = used != NULL ? lp_raw_map(LEAF_BYTES) : NULL;
    if (leaf == NULL) {
        return NULL;
    }
    if (table->is_large) {
        lp_raw_map_in_large_pages(leaf, LEAF_BYTES);
    }
    table->used[table->used_count++] = index;
    return table->root[index] = leaf;
}

uint32_t *lp_addresses_slot_slow(lp_addresses *table, uint64_t address) {
    if ((address & 15) != 0 || (address >> LP_ADDRESSES_BITS) != 0) {
        return lp_map_put(&table->odd, address, NULL);
    }
    uint32_t index = (uint32_t)(address >> LP_ADDRESSES_LEAF_LG);
    uint32_t *leaf = table->root[index] != NULL ? table->root[index] : new_leaf(table, index);
    return leaf == NULL ? NULL : &leaf[(address >> 4) & (LP_ADDRESSES_GRANULES - 1)];
}

uint32_t lp_addresses_find(const lp_addresses *table, uint64_t address) {
    uint32_t number = 0;
    if ((address & 15) != 0 || (address >> LP_ADDRESSES_BITS) != 0) {
        number = lp_map_get(&table->odd, address, 0);
    } else if (table->root != NULL && table->root[address >> LP_ADDRESSES_LEAF_LG] != NULL) {
        number = table->root[address >> LP_ADDRESSES_LEAF_LG][(address >> 4) & (LP_ADDRESSES_GRANULES - 1)];
    }
    return number == 0 ? LP_ADDRESSES_NONE : number - 1;
}

void lp_addresses_clear(lp_addresses *table, const uint64_t *addresses, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i + 16 < count) {
            lp_addresses_prefetch(table, addresses[i + 16]);
        }
        uint64_t address = addresses[i];
        if ((address & 15) == 0 && (address >> LP_ADDRESSES_BITS) == 0) {
            uint32_t *leaf = table->root[address >> LP_ADDRESSES_LEAF_LG];
            if (leaf != NULL) {
                leaf[(address >> 4) & (LP_ADDRESSES_GRANULES - 1)] = 0;
            }
        }
    }
    lp_map_clear(&table->odd);
}

void lp_addresses_discard(lp_addresses *table) {
    for (uint32_t i = 0; i < table->used_count; i++) {
        uint32_t **leaf = &table->root[table->used[i]];
        lp_raw_unmap(*leaf, LEAF_BYTES);
        *leaf = NULL;
    }
    lp_raw_free(table->used);
    table->used = NULL;
    table->used_count = 0;
    lp_map_fini(&table->odd);
}
