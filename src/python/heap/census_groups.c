/* What a finished census is asked for: groups and the series of one group. */
#include "python/heap/census.h"

#include <stdlib.h>
#include <string.h>

#include "base/rawmem.h"  // lp_raw_malloc

static size_t hash_group(uint32_t type, lp_site_id site) {
    uint64_t key = (((uint64_t)type << 32) | site) * 0x9E3779B97F4A7C15u;
    return (size_t)(key ^ (key >> 32));
}

/* Steps of a row that lie in the window; survivors can't be from more steps than there are survivors. */
static uint32_t steps_in_window(const lp_census_row *row, uint32_t first, uint32_t last) {
    uint32_t low = row->first_step > first ? row->first_step : first;
    uint32_t high = row->last_step < last ? row->last_step : last;
    if (low > high) {
        return 0;
    }
    uint64_t steps = (uint64_t)high - low + 1;
    return (uint32_t)(steps < row->count ? steps : row->count);
}

static void add_row(lp_census_group *group, const lp_census_row *row) {
    if (group->count == 0 || row->first_step < group->first_step) {
        group->first_step = row->first_step;
    }
    if (row->last_step > group->last_step) {
        group->last_step = row->last_step;
    }
    group->count += row->count;
    group->bytes += row->bytes;
}

static lp_census_group *find_group(lp_census_group *groups, size_t *group_count, uint32_t *slots, size_t mask,
                                   const lp_census_row *row) {
    size_t at = hash_group(row->type, row->site) & mask;
    for (; slots[at] != 0; at = (at + 1) & mask) {
        lp_census_group *group = &groups[slots[at] - 1];
        if (group->type == row->type && group->site == row->site) {
            return group;
        }
    }
    slots[at] = (uint32_t)++*group_count;
    lp_census_group *group = &groups[*group_count - 1];
    memset(group, 0, sizeof(*group));
    group->type = row->type;
    group->site = row->site;
    return group;
}

static size_t slots_for(size_t row_count) {
    size_t slots = 64;
    while (slots < row_count * 2) {
        slots *= 2;
    }
    return slots;
}

lp_status lp_census_groups(const lp_census *census, uint32_t first, uint32_t last, lp_census_group **out_groups,
                           size_t *out_count) {
    size_t slot_count = slots_for(census->row_count);
    uint32_t *slots = lp_raw_calloc(slot_count, sizeof(uint32_t));
    lp_census_group *groups = slots == NULL ? NULL : lp_raw_malloc((census->row_count + 1) * sizeof(*groups));
    *out_count = 0;
    if (groups == NULL) {
        lp_raw_free(slots);
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < census->row_count; i++) {
        const lp_census_row *row = &census->rows[i];
        lp_census_group *group = find_group(groups, out_count, slots, slot_count - 1, row);
        add_row(group, row);
        uint32_t steps = steps_in_window(row, first, last);
        if (steps != 0) {
            group->window_steps += steps;
            group->window_count += row->count;
            group->window_bytes += row->bytes;
        }
    }
    lp_raw_free(slots);
    *out_groups = groups;
    return LP_OK;
}

static int compare_rows(const void *left, const void *right) {
    uint32_t a = ((const lp_census_row *)left)->last_step, b = ((const lp_census_row *)right)->last_step;
    return a < b ? -1 : a > b;
}

lp_status lp_census_series(const lp_census *census, uint64_t type_id, lp_site_id site, lp_census_row **out_rows,
                           size_t *out_count) {
    size_t count = 0;
    for (size_t i = 0; i < census->row_count; i++) {
        const lp_census_row *row = &census->rows[i];
        count += row->site == site && census->types[row->type].type_id == type_id;
    }
    lp_census_row *rows = lp_raw_malloc((count + 1) * sizeof(*rows));
    if (rows == NULL) {
        return LP_NO_MEMORY;
    }
    *out_count = 0;
    for (size_t i = 0; i < census->row_count; i++) {
        const lp_census_row *row = &census->rows[i];
        if (row->site == site && census->types[row->type].type_id == type_id) {
            rows[(*out_count)++] = *row;
        }
    }
    qsort(rows, *out_count, sizeof(*rows), compare_rows);
    *out_rows = rows;
    return LP_OK;
}
