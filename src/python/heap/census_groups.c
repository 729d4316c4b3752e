/* What a finished census is asked for: groups and the series of one group. */
#include "python/heap/census.h"

#include <stdlib.h>

#include "base/map.h"     // lp_map
#include "base/rawmem.h"  // lp_raw_malloc

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

/* The group of a row, NULL when out of memory. */
static lp_census_group *find_group(lp_map *number, lp_census_group *groups, const lp_census_row *row) {
    uint32_t *at = lp_map_put(number, lp_map_pair(row->type, row->site), NULL);
    if (at == NULL) {
        return NULL;
    }
    if (*at == 0) {
        *at = (uint32_t)number->count;
        groups[*at - 1] = (lp_census_group){.type = row->type, .site = row->site};
    }
    return &groups[*at - 1];
}

static void add_window(lp_census_group *group, const lp_census_row *row, uint32_t first, uint32_t last) {
    uint32_t steps = steps_in_window(row, first, last);
    if (steps != 0) {
        group->window_steps += steps;
        group->window_count += row->count;
        group->window_bytes += row->bytes;
    }
}

lp_status lp_census_groups(const lp_census *census, uint32_t first, uint32_t last, lp_census_group **out_groups,
                           size_t *out_count) {
    lp_map number = {0};
    lp_census_group *groups = lp_raw_malloc((census->row_count + 1) * sizeof(*groups));
    lp_status status = groups == NULL ? LP_NO_MEMORY : LP_OK;
    for (size_t i = 0; i < census->row_count && status == LP_OK; i++) {
        lp_census_group *group = find_group(&number, groups, &census->rows[i]);
        if (group == NULL) {
            status = LP_NO_MEMORY;
        } else {
            add_row(group, &census->rows[i]);
            add_window(group, &census->rows[i], first, last);
        }
    }
    *out_count = number.count;
    lp_map_fini(&number);
    if (status != LP_OK) {
        lp_raw_free(groups);
        return status;
    }
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
