/* The slopes between all pairs of points, and their median: Theil and Sen's estimate. */
#ifndef LP_SLOPES_H
#define LP_SLOPES_H

#include "base/base.h"  // size_t

typedef struct lp_point {
    double x, y;
} lp_point;

typedef struct lp_slopes {
    double median, low, high; /* of the interval; infinite where the points can't bound it */
} lp_slopes;

/* Ranks beside the median by half of `spread` bound the interval.  LP_UNSUPPORTED if fewer than two pairs differ in x. */
lp_status lp_slopes_find(const lp_point *points, size_t count, double spread, lp_slopes *out_slopes);

#endif
