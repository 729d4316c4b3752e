/* Linear probing in tables of a power of two: the step of Knuth's algorithm R (The Art of Computer
 * Programming 3, 6.4) that fills the hole of what is removed, so that no mark of it is needed. */
#ifndef LP_PROBING_H
#define LP_PROBING_H

#include <stddef.h>

/* 1 if the entry at a place belongs into the hole before it: the search that begins at its home passes the hole. */
static inline int lp_probing_fills(size_t at, size_t home, size_t hole, size_t mask) {
    return ((at - home) & mask) >= ((at - hole) & mask);
}

#endif
