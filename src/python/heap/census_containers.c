#include "python/heap/census_containers.h"

#include <stdlib.h>

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

void lp_census_sort_containers(lp_census *census) {
    qsort(census->containers, census->container_count, sizeof(*census->containers), compare_containers);
}
