/* Sorting by 64-bit keys: radix sort, stable, linear. */
#ifndef LP_SORT_H
#define LP_SORT_H

#include "base/base.h"  // size_t, uint64_t

typedef struct lp_sort_pair {
    uint64_t key, value;
} lp_sort_pair;

/* Sort by rising key; scratch has room for `count` pairs. */
void lp_sort_pairs(lp_sort_pair *pairs, lp_sort_pair *scratch, size_t count);

#endif
