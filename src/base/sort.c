/* Radix sort by bytes, insertion sort of a few. Stable, and owns nothing: the scratch is the caller's. */
#include "base/sort.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 64 / DIGIT_BITS, DIGIT_VALUES = 1 << DIGIT_BITS, SMALL = 48 };

static unsigned digit_of(uint64_t key, int digit) {
    return (unsigned)(key >> (digit * DIGIT_BITS)) & (DIGIT_VALUES - 1);
}

static void insertion_sort(lp_sort_pair *pairs, size_t count) {
    for (size_t i = 1; i < count; i++) {
        lp_sort_pair pair = pairs[i];
        size_t at = i;
        for (; at > 0 && pairs[at - 1].key > pair.key; at--) {
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = pair;
    }
}

/* histogram[digit][value] => number of keys */
static void count_digits(const lp_sort_pair *pairs, size_t count, size_t histogram[DIGITS][DIGIT_VALUES]) {
    memset(histogram, 0, sizeof(size_t) * DIGITS * DIGIT_VALUES);
    for (size_t i = 0; i < count; i++) {
        for (int d = 0; d < DIGITS; d++) {
            histogram[d][digit_of(pairs[i].key, d)]++;
        }
    }
}

static void move_by_digit(const lp_sort_pair *from, lp_sort_pair *to, size_t count, int digit, size_t *starts) {
    size_t next = 0;
    for (int v = 0; v < DIGIT_VALUES; v++) {
        size_t here = starts[v];
        starts[v] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++) {
        to[starts[digit_of(from[i].key, digit)]++] = from[i];
    }
}

void lp_sort_pairs(lp_sort_pair *pairs, lp_sort_pair *scratch, size_t count) {
    size_t histogram[DIGITS][DIGIT_VALUES];
    if (count <= SMALL) {
        insertion_sort(pairs, count);
        return;
    }
    count_digits(pairs, count, histogram);
    lp_sort_pair *from = pairs, *to = scratch;
    for (int d = 0; d < DIGITS; d++) {
        if (histogram[d][digit_of(pairs[0].key, d)] == count) {
            continue;  /* all keys agree in this digit */
        }
        move_by_digit(from, to, count, d, histogram[d]);
        lp_sort_pair *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != pairs) {
        memcpy(pairs, from, count * sizeof(lp_sort_pair));
    }
}
