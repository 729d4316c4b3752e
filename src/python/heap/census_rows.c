/* What a census gives, as plain memory that outlives the objects: rows, the largest containers, names of types. */
#include "python/heap/census_rows.h"

#include <stdlib.h>

#include "base/rawmem.h"               // lp_raw_malloc
#include "ledger/epoch.h"              // lp_epoch_steps
#include "python/values/type_names.h"  // lp_type_name_copy

/* ---- the largest containers ---- */

static uint32_t find_smallest(const lp_census *census) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < census->container_count; i++) {
        at = census->containers[i].bytes < census->containers[at].bytes ? i : at;
    }
    return at;
}

uint64_t lp_census_note_container(lp_census *census, const lp_census_container *row) {
    uint32_t at = census->container_count < LP_CENSUS_CONTAINERS ? census->container_count++ : find_smallest(census);
    census->containers[at] = *row;
    return census->container_count == LP_CENSUS_CONTAINERS ? census->containers[find_smallest(census)].bytes : 0;
}

static int compare_containers(const void *left, const void *right) {
    uint64_t a = ((const lp_census_container *)left)->bytes, b = ((const lp_census_container *)right)->bytes;
    return a < b ? 1 : a > b ? -1 : 0;
}

static void sort_containers(lp_census *census) {
    qsort(census->containers, census->container_count, sizeof(*census->containers), compare_containers);
}

/* ---- rows ---- */

static void fill_row(lp_census_row *row, const lp_census_cell *cell) {
    lp_stamp stamp = (lp_stamp)cell->key;
    lp_epoch_range steps = lp_epoch_steps(LP_STAMP_EPOCH(stamp));
    row->type = (uint32_t)(cell->key >> 32);
    row->site = LP_STAMP_SITE(stamp);
    row->first_step = steps.first_step;
    row->last_step = steps.last_step;
    row->count = cell->count;
    row->bytes = cell->bytes;
}

/* Cells of child sites join those of their base, so that a row is one (type, base site, epoch). */
static lp_status join_children(lp_census_tables *tables) {
    size_t count = 0;
    lp_census_cell *children = lp_raw_malloc((tables->cell_count + 1) * sizeof(lp_census_cell));
    if (children == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < tables->cell_capacity; i++) {
        lp_census_cell *cell = &tables->cells[i];
        lp_site_id site = LP_STAMP_SITE((lp_stamp)cell->key);
        lp_site_id base = cell->key == 0 ? site : lp_site_base(site);
        if (base != site) {
            children[count] = *cell;
            children[count++].key = cell->key - site + base;
            cell->count = 0;
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t key = children[i].key;
        lp_census_add(tables, (uint32_t)(key >> 32), (lp_stamp)key, children[i].count, children[i].bytes);
    }
    lp_raw_free(children);
    return LP_OK;
}

static lp_status copy_rows(lp_census *census, lp_census_tables *tables) {
    lp_status status = join_children(tables);
    if (status != LP_OK) {
        return status;
    }
    census->rows = lp_raw_malloc((tables->cell_count + 1) * sizeof(lp_census_row));
    if (census->rows == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < tables->cell_capacity; i++) {
        if (tables->cells[i].count != 0) {
            fill_row(&census->rows[census->row_count++], &tables->cells[i]);
        }
    }
    return LP_OK;
}

static int name_type(lp_census *census, const lp_census_tables *tables, uint32_t index) {
    lp_census_name *name = &census->types[index];
    if (name->text == NULL) {
        name->text = lp_type_name_copy(tables->types[index].type);
    }
    return name->text == NULL ? -1 : 0;
}

/* Names are read while the types are alive: nothing ran since the pass. */
static lp_status copy_names(lp_census *census, const lp_census_tables *tables) {
    census->type_count = tables->type_count;
    census->types = lp_raw_calloc((size_t)census->type_count + 1, sizeof(lp_census_name));
    if (census->types == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 1; i <= census->type_count; i++) {
        census->types[i].type_id = (uint64_t)(uintptr_t)tables->types[i].type;
    }
    for (size_t i = 0; i < census->row_count; i++) {
        if (name_type(census, tables, census->rows[i].type) < 0) {
            return LP_NO_MEMORY;
        }
    }
    for (uint32_t i = 0; i < census->container_count; i++) {
        if (name_type(census, tables, census->containers[i].type) < 0) {
            return LP_NO_MEMORY;
        }
        census->containers[i].site = lp_site_base(census->containers[i].site);
    }
    return LP_OK;
}

lp_status lp_census_copy_rows(lp_census *census, lp_census_tables *tables) {
    lp_status status = copy_rows(census, tables);
    sort_containers(census);
    return status == LP_OK ? copy_names(census, tables) : status;
}

void lp_census_free(lp_census *census) {
    if (census == NULL) {
        return;
    }
    for (uint32_t i = 1; census->types != NULL && i <= census->type_count; i++) {
        lp_raw_free(census->types[i].text);
    }
    lp_raw_free(census->types);
    lp_raw_free(census->rows);
    lp_raw_free(census);
}
