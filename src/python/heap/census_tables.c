/* Owns types and cells between runs. A table is never full: what finds no room is counted as dropped. */
#include "python/heap/census_tables.h"

#include <string.h>

#include "base/rawmem.h"          // lp_raw_map
#include "python/compat/heap.h"   // Python.h
#include "python/heap/kinds.h"         // lp_kinds_of_numpy
#include "python/heap/numbers.h"       // LP_KEPT_NODES

#define FIRST_TYPE_CAPACITY 4096u
#define FIRST_CELL_CAPACITY ((size_t)1 << 15)

static lp_status map_tables(lp_census_tables *tables) {
    if (tables->types == NULL) {
        tables->types = lp_raw_calloc(FIRST_TYPE_CAPACITY, sizeof(lp_census_type));
        tables->type_capacity = FIRST_TYPE_CAPACITY;
    }
    if (tables->type_slots == NULL) {   /* by itself: either may have failed */
        tables->type_slots = lp_raw_calloc((size_t)tables->type_capacity * 2, sizeof(uint32_t));
    }
    if (tables->cells == NULL) {
        tables->cells = lp_raw_map(FIRST_CELL_CAPACITY * sizeof(lp_census_cell));
        tables->cell_capacity = FIRST_CELL_CAPACITY;
        tables->cell_mask = FIRST_CELL_CAPACITY - 1;
    }
    return tables->types == NULL || tables->type_slots == NULL || tables->cells == NULL ? LP_NO_MEMORY : LP_OK;
}

lp_status lp_census_tables_clear(lp_census_tables *tables) {
    LP_ASSERT_GIL();
    lp_status status = map_tables(tables);
    if (status != LP_OK) {
        return status;
    }
    memset(tables->types, 0, (size_t)(tables->type_count + 1) * sizeof(lp_census_type));
    memset(tables->type_slots, 0, (size_t)tables->type_capacity * 2 * sizeof(uint32_t));
    memset(tables->cells, 0, tables->cell_capacity * sizeof(lp_census_cell));
    tables->type_count = 0;
    tables->last_type = 0;
    tables->cell_count = 0;
    tables->dropped_count = 0;
    return LP_OK;
}

void lp_census_tables_fini(lp_census_tables *tables) {
    lp_raw_free(tables->types);
    lp_raw_free(tables->type_slots);
    if (tables->cells != NULL) {
        lp_raw_unmap(tables->cells, tables->cell_capacity * sizeof(lp_census_cell));
    }
    *tables = (lp_census_tables){0};
}

void lp_census_tables_give_back(lp_census_tables *tables) {
    if (tables->cells != NULL && tables->cell_capacity > LP_KEPT_NODES) {
        lp_raw_unmap(tables->cells, tables->cell_capacity * sizeof(lp_census_cell));
        tables->cells = NULL;
    }
}

static void place_type(lp_census_tables *tables, uint32_t index) {
    size_t mask = (size_t)tables->type_capacity * 2 - 1;
    size_t at = lp_census_hash_type(tables->types[index].type) & mask;
    while (tables->type_slots[at] != 0) {
        at = (at + 1) & mask;
    }
    tables->type_slots[at] = index;
}

static int grow_types(lp_census_tables *tables) {
    uint32_t capacity = tables->type_capacity * 2;
    uint32_t *slots = lp_raw_calloc((size_t)capacity * 2, sizeof(uint32_t));
    lp_census_type *types = slots == NULL ? NULL : lp_raw_realloc(tables->types, capacity * sizeof(lp_census_type));
    if (types == NULL) {
        lp_raw_free(slots);
        return -1;
    }
    lp_raw_free(tables->type_slots);
    tables->types = types;
    tables->type_slots = slots;
    tables->type_capacity = capacity;
    for (uint32_t i = 1; i <= tables->type_count; i++) {
        place_type(tables, i);
    }
    return 0;
}

uint32_t lp_census_add_type(lp_census_tables *tables, PyTypeObject *type) {
    LP_ASSERT_GIL();
    if (tables->type_count + 2 >= tables->type_capacity && grow_types(tables) < 0) {
        return 0;
    }
    uint32_t index = ++tables->type_count;
    lp_census_type *row = &tables->types[index];
    row->type = type;
    row->rule = lp_size_rule_of(type);
    row->has_gc = PyType_IS_GC(type) != 0;
    row->hidden = (uint8_t)lp_kinds_of_numpy(type);
    place_type(tables, index);
    return tables->last_type = index;
}

int lp_census_grow_cells(lp_census_tables *tables) {
    LP_ASSERT_GIL();
    size_t capacity = tables->cell_capacity * 2;
    lp_census_cell *cells = lp_raw_map(capacity * sizeof(lp_census_cell));
    if (cells == NULL) {
        return 0;
    }
    for (size_t i = 0; i < tables->cell_capacity; i++) {
        if (tables->cells[i].key != 0) {
            size_t at = lp_census_hash_key(tables->cells[i].key) & (capacity - 1);
            while (cells[at].key != 0) {
                at = (at + 1) & (capacity - 1);
            }
            cells[at] = tables->cells[i];
        }
    }
    lp_raw_unmap(tables->cells, tables->cell_capacity * sizeof(lp_census_cell));
    tables->cells = cells;
    tables->cell_capacity = capacity;
    tables->cell_mask = capacity - 1;
    return 1;
}
