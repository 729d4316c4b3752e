/* Open addressing with the caller's lock held. Removal closes the hole, so no entry is a tombstone. */
#include "native/address_table.h"

#include <string.h>

#include "base/numbers.h" // LP_HASH_FACTOR
#include "base/probing.h" // lp_probing_fills
#include "base/rawmem.h"  // lp_raw_calloc

#define FIRST_CAPACITY 256

static size_t home(const lp_address_table *table, uintptr_t address) {
    uint64_t mixed = (uint64_t)(address >> 4) * LP_HASH_FACTOR;
    return (size_t)(mixed >> 32) & (table->capacity - 1);
}

/* The entry of the address, or the empty one where it would go. */
static lp_address_entry *probe(const lp_address_table *table, uintptr_t address) {
    size_t at = home(table, address);
    while (table->entries[at].address != 0 && table->entries[at].address != address) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->entries[at];
}

static lp_status grow(lp_address_table *table) {
    lp_address_table bigger = {NULL, table->capacity == 0 ? FIRST_CAPACITY : 2 * table->capacity, table->count};
    bigger.entries = lp_raw_calloc(bigger.capacity, sizeof(*bigger.entries));
    if (bigger.entries == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].address != 0) {
            *probe(&bigger, table->entries[i].address) = table->entries[i];
        }
    }
    lp_raw_free(table->entries);
    *table = bigger;
    return LP_OK;
}

lp_status lp_address_table_add(lp_address_table *table, uintptr_t address, uint64_t bytes) {
    if (2 * (table->count + 1) > table->capacity && grow(table) != LP_OK) {
        return LP_NO_MEMORY;
    }
    lp_address_entry *entry = probe(table, address);
    table->count += entry->address == 0;
    *entry = (lp_address_entry){address, bytes};
    return LP_OK;
}

int lp_address_table_find(const lp_address_table *table, uintptr_t address, uint64_t *out_bytes) {
    const lp_address_entry *entry = table->capacity == 0 ? NULL : probe(table, address);
    if (entry == NULL || entry->address == 0) {
        return 0;
    }
    *out_bytes = entry->bytes;
    return 1;
}

int lp_address_table_remove(lp_address_table *table, uintptr_t address) {
    lp_address_entry *entry = table->capacity == 0 ? NULL : probe(table, address);
    if (entry == NULL || entry->address == 0) {
        return 0;
    }
    size_t mask = table->capacity - 1, hole = (size_t)(entry - table->entries);
    for (size_t at = (hole + 1) & mask; table->entries[at].address != 0; at = (at + 1) & mask) {
        if (lp_probing_fills(at, home(table, table->entries[at].address), hole, mask)) {
            table->entries[hole] = table->entries[at];
            hole = at;
        }
    }
    table->entries[hole].address = 0;
    table->count--;
    return 1;
}

void lp_address_table_clear(lp_address_table *table) {
    if (table->capacity != 0) {
        memset(table->entries, 0, table->capacity * sizeof(*table->entries));
    }
    table->count = 0;
}
