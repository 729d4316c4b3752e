/* Owns nothing. Doubles are sorted by their bits: those of positive numbers rise with them. */
#include "base/slopes.h"

#include <limits.h>  // CHAR_BIT
#include <math.h>  // INFINITY
#include <string.h>

#include "base/rawmem.h"  // lp_raw_malloc
#include "base/sort.h"    // lp_sort_pairs

#define SIGN ((uint64_t)1 << (sizeof(uint64_t) * CHAR_BIT - 1))

static uint64_t key_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (bits & SIGN) != 0 ? ~bits : bits | SIGN;
}

static double value_of(uint64_t key) {
    uint64_t bits = (key & SIGN) != 0 ? key ^ SIGN : ~key;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static size_t collect(const lp_point *points, size_t count, lp_sort_pair *out_pairs) {
    size_t pairs = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            double run = points[k].x - points[i].x;
            if (run < 0 || run > 0) {
                out_pairs[pairs++].key = key_of((points[k].y - points[i].y) / run);
            }
        }
    }
    return pairs;
}

/* The slope of a rank, down or up to the next whole one. */
static double at_or_below(const lp_sort_pair *pairs, double rank) {
    return rank < 0 ? -INFINITY : value_of(pairs[(size_t)rank].key);
}

static double at_or_above(const lp_sort_pair *pairs, size_t count, double rank) {
    size_t whole = (size_t)rank + (rank > (double)(size_t)rank);
    return whole < count ? value_of(pairs[whole].key) : INFINITY;
}

lp_status lp_slopes_find(const lp_point *points, size_t count, double spread, lp_slopes *out_slopes) {
    const double half = 1.0 / (1 + 1);
    lp_sort_pair *pairs = lp_raw_malloc((count * count + 1) * sizeof(*pairs));
    if (pairs == NULL) {
        return LP_NO_MEMORY;
    }
    size_t found = collect(points, count, pairs);
    if (found > 1) {
        lp_sort_pairs(pairs, pairs + found, found);
        double middle = half * (double)(found - 1);
        out_slopes->median = half * (at_or_below(pairs, middle) + at_or_above(pairs, found, middle));
        out_slopes->low = at_or_below(pairs, half * ((double)found - spread));
        out_slopes->high = at_or_above(pairs, found, half * ((double)found + spread));
    }
    lp_raw_free(pairs);
    return found > 1 ? LP_OK : LP_UNSUPPORTED;
}
