/* Numbers of this folder that bound work. */
#ifndef LP_HEAP_NUMBERS_H
#define LP_HEAP_NUMBERS_H

/* Of what a scan found of a site all of the first are looked at, and of the rest one for so many: each is a miss of the
 * cache, 0.1 us.  Of two million that is 65,000, and a type's share is known to a few percent. */
#define LP_FOUND_ALL_OF_THE_FIRST 2048u
#define LP_FOUND_ONE_OF 32u
/* Rows that there is room for at first. */
#define LP_FOUND_ROOM 256u

#endif
