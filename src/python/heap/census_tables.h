/* The two tables of a census, in memory of their own that stays mapped between runs.
 *
 *   types   type => index into an array of {type, how to measure it}
 *   cells   (type index, stamp) => {count, bytes}
 *
 * Both are open-addressing tables of a power of two; the GIL protects them. */
#ifndef LP_CENSUS_TABLES_H
#define LP_CENSUS_TABLES_H

#include "python/heap/sizes.h"   // lp_size_rule

#include "base/numbers.h"   // LP_HASH_FACTOR
#include "ledger/shadow.h"  // lp_stamp

typedef struct lp_census_type {
    PyTypeObject *type;      /* borrowed, for the length of the pass */
    lp_size_rule rule;
    uint8_t has_gc;          /* instances may be tracked, and refer to others */
    uint8_t hidden;          /* lp_kinds_of_numpy() */
} lp_census_type;

typedef struct lp_census_cell {
    uint64_t key;            /* type index << 32 | stamp; 0: free */
    uint64_t count, bytes;
} lp_census_cell;

typedef struct lp_census_tables {
    lp_census_type *types;   /* [0] is never used */
    uint32_t type_count, type_capacity;
    uint32_t *type_slots;    /* type index, or 0; twice as many as types */
    uint32_t last_type;      /* the type of the object before is often that of the next */
    lp_census_cell *cells;
    size_t cell_count, cell_capacity, cell_mask;
    uint64_t dropped_count;  /* objects that could not be counted for want of memory */
} lp_census_tables;

/* Empty both; the first time, or after a failure, map them. */
lp_status lp_census_tables_clear(lp_census_tables *tables);
void lp_census_tables_fini(lp_census_tables *tables);
/* Give cells back that are more than is kept for the next pass. */
void lp_census_tables_give_back(lp_census_tables *tables);

uint32_t lp_census_add_type(lp_census_tables *tables, PyTypeObject *type);
/* 1 if there is more room now: all have another slot. */
int lp_census_grow_cells(lp_census_tables *tables);

static inline size_t lp_census_hash_type(const PyTypeObject *type) {
    return (size_t)(((uint64_t)(uintptr_t)type >> 4) * LP_HASH_FACTOR >> 32);
}

/* Index of a type; 0 when it can't be stored. */
static inline uint32_t lp_census_find_type(lp_census_tables *tables, PyTypeObject *type) {
    if (tables->types[tables->last_type].type == type) {
        return tables->last_type;
    }
    size_t mask = (size_t)tables->type_capacity * 2 - 1;
    size_t at = lp_census_hash_type(type) & mask;
    for (; tables->type_slots[at] != 0; at = (at + 1) & mask) {
        if (tables->types[tables->type_slots[at]].type == type) {
            return tables->last_type = tables->type_slots[at];
        }
    }
    return lp_census_add_type(tables, type);
}

static inline size_t lp_census_hash_key(uint64_t key) {
    key *= LP_HASH_FACTOR;
    return (size_t)(key ^ (key >> 32));
}

/* Where the search for a key begins, to be fetched ahead. */
static inline const lp_census_cell *lp_census_slot(const lp_census_tables *tables, uint64_t key) {
    return &tables->cells[lp_census_hash_key(key) & tables->cell_mask];
}

static inline void lp_census_add(lp_census_tables *tables, uint32_t type, lp_stamp stamp, uint64_t count,
                                 uint64_t bytes) {
    uint64_t key = ((uint64_t)type << 32) | stamp;
    size_t at = lp_census_hash_key(key) & tables->cell_mask;
    while (tables->cells[at].key != key) {
        if (tables->cells[at].key == 0) {
            if (LP_UNLIKELY(tables->cell_count * 2 >= tables->cell_capacity)) {
                if (lp_census_grow_cells(tables)) {
                    at = lp_census_hash_key(key) & tables->cell_mask;
                    continue;
                }
                if (tables->cell_count + 1 >= tables->cell_capacity) {
                    tables->dropped_count += count;
                    return;
                }
            }
            tables->cells[at].key = key;
            tables->cell_count++;
            break;
        }
        at = (at + 1) & tables->cell_mask;
    }
    tables->cells[at].count += count;
    tables->cells[at].bytes += bytes;
}

#endif
