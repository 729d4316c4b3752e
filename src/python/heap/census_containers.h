/* The largest containers that a census meets. */
#ifndef LP_CENSUS_CONTAINERS_H
#define LP_CENSUS_CONTAINERS_H

#include "python/heap/census.h"

/* Take it in, for the smallest one if there are LP_CENSUS_CONTAINERS; from how many bytes on one more counts. */
uint64_t lp_census_note_container(lp_census *census, const lp_census_container *row);
/* The largest first. */
void lp_census_sort_containers(lp_census *census);

#endif
