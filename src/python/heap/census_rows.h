/* What a pass of the heap found, taken over into the census that stays (census.h). */
#ifndef LP_CENSUS_ROWS_H
#define LP_CENSUS_ROWS_H

#include "python/heap/census.h"
#include "python/heap/census_tables.h"  // lp_census_tables

/* Take a container in, for the smallest one if there are LP_CENSUS_CONTAINERS; from how many bytes on one more counts. */
uint64_t lp_census_note_container(lp_census *census, const lp_census_container *row);
/* Rows and names, while the types are alive: nothing has run since the pass.  Cells of child sites join those of
 * their base. */
lp_status lp_census_copy_rows(lp_census *census, lp_census_tables *tables);

#endif
