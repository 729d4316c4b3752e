/* Births and deaths of native blocks by line: (medium, site) => two counters that wrap.
 *
 * A line has a number that it keeps; lines beyond LP_LINES_MAX are not counted.  The caller holds the lock
 * of the ledger. */
#ifndef LP_LINES_H
#define LP_LINES_H

#include "ledger/alive.h"  // lp_alive_count

enum { LP_LINES_NONE = LP_LINES_MAX, LP_LINES_SLOTS = LP_LINES_MAX + LP_LINES_MAX };

typedef struct lp_lines {
    uint32_t key[LP_LINES_MAX];          /* medium and site, as in a cohort's key */
    lp_alive_count counts[LP_LINES_MAX];
    uint16_t slots[LP_LINES_SLOTS];      /* open addressing: number + 1 */
    uint32_t count;
} lp_lines;

/* The number of a line, LP_LINES_NONE if it has none yet. */
uint32_t lp_lines_find(const lp_lines *lines, uint32_t key);
/* The same; a line that is new gets one while there are any. */
uint32_t lp_lines_make(lp_lines *lines, uint32_t key);

static inline void lp_lines_born(lp_lines *lines, uint32_t key) {
    uint32_t line = lp_lines_make(lines, key);
    if (LP_LIKELY(line != LP_LINES_NONE)) {
        lines->counts[line].births++;
    }
}

static inline void lp_lines_died(lp_lines *lines, uint32_t key) {
    uint32_t line = lp_lines_find(lines, key);
    if (LP_LIKELY(line != LP_LINES_NONE)) {
        lines->counts[line].deaths++;
    }
}

#endif
