/* A small set of live addresses with their sizes, for hooks that must know which blocks are theirs.
 *
 *   address => bytes     protected by the caller's lock */
#ifndef LP_ADDRESS_TABLE_H
#define LP_ADDRESS_TABLE_H

#include "base/base.h"  // lp_status

typedef struct lp_address_entry {
    uintptr_t address;         /* 0: empty */
    uint64_t bytes;
} lp_address_entry;

typedef struct lp_address_table {
    lp_address_entry *entries;
    size_t capacity, count;    /* capacity is 0 or a power of two, at least twice the count */
} lp_address_table;

/* Add or replace; LP_NO_MEMORY leaves the table as it was. */
lp_status lp_address_table_add(lp_address_table *table, uintptr_t address, uint64_t bytes);
/* 1 and the bytes if the address is in the table. */
int lp_address_table_find(const lp_address_table *table, uintptr_t address, uint64_t *out_bytes);
/* 1 if the address was in the table. */
int lp_address_table_remove(lp_address_table *table, uintptr_t address);
/* Forget everything, keep the memory. */
void lp_address_table_clear(lp_address_table *table);

#endif
