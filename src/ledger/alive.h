/* How many blocks of each site are alive: births and deaths, counted as stamps are written and erased.
 *
 * births - deaths of a site is the number of its stamps in the two shadows, whenever somebody reads them: what is
 * written over an older stamp is a death of that one too.  The counters wrap; differences do not mind.
 *
 * Whoever owns an address calls for it with the GIL, which makes the increments safe.  Backing
 * blocks of containers (growth stamps) are not counted: their owners are. */
#ifndef LP_ALIVE_H
#define LP_ALIVE_H

#include "ledger/numbers.h"  // LP_ALIVE_PENDING_BYTES
#include "ledger/shadow.h"  // lp_stamp

typedef struct lp_alive_count {
    uint32_t births, deaths;
} lp_alive_count;

/* Behind the sites come the lines of native blocks (ledger/lines.h), as of the last mark. */
#define LP_ALIVE_SITES ((uint32_t)1 << LP_SITE_BITS)
#define LP_LINES_MAX 4096
#define LP_ALIVE_COUNT (LP_ALIVE_SITES + LP_LINES_MAX)

/* What was counted so far: whoever reads it calls lp_alive_settle() first. */
extern LP_HIDDEN lp_alive_count lp_alive[LP_ALIVE_COUNT];

/* Sites of births that are not counted yet.  A counter's address is known only once the site is, at the end of a
 * chain of loads, and a store to an address that is known late holds up the loads behind it; the next place
 * in a list is known at once. */
/* From [1] on to the next one; full where that is behind the end, which its address shows. */
extern LP_HIDDEN uint32_t lp_alive_pending[LP_ALIVE_PENDING_BYTES / sizeof(uint32_t)], *lp_alive_pending_next;
static inline int lp_alive_pending_is_full(const uint32_t *next) {
    return (uintptr_t)next % LP_ALIVE_PENDING_BYTES == 0;
}

void lp_alive_count_pending(void);
static inline void lp_alive_settle(void) {
    if (lp_alive_pending_next != lp_alive_pending + 1) {
        lp_alive_count_pending();
    }
}

static inline uint32_t lp_alive_now(uint32_t site) {
    lp_alive_settle();
    return lp_alive[site].births - lp_alive[site].deaths;
}

/* Write the stamp of a birth, over that of a block whose death went by, perhaps (an object that is
 * recycled); 0 if there is a mark of small blocks or no room in the list above, and nothing is done. */
static inline int lp_alive_born_quick(lp_stamp *place, uint32_t site, lp_stamp stamp) {
    LP_ASSERT_GIL();
    uint32_t *next = lp_alive_pending_next;
    lp_stamp before = *place;
    if (LP_UNLIKELY(lp_alive_pending_is_full(next))) {
        return 0;
    }
    if (LP_UNLIKELY((int32_t)before > 0)) {
        if (LP_UNLIKELY(before == LP_STAMP_IS_SMALL)) {
            return 0;
        }
        lp_alive[LP_STAMP_SITE(before)].deaths++;
    }
    *place = stamp;
    *next = site;
    lp_alive_pending_next = next + 1;
    return 1;
}

/* Erase the stamp of a birth and count the death; 0 if there is another stamp, and nothing is done. */
static inline int lp_alive_died_quick(lp_stamp *place) {
    LP_ASSERT_GIL();
    lp_stamp stamp = *place;
    if (LP_LIKELY(LP_STAMP_IS_BIRTH(stamp))) {
        *place = 0;
        lp_alive[LP_STAMP_SITE(stamp)].deaths++;
        return 1;
    }
    return stamp == 0;
}

/* Where a block of up to 16 bytes starts, lp_shadow_blocks has LP_STAMP_IS_SMALL, so that it need not be
 * known how large the block was that dies.  A birth whose stamp is 0 is not followed: what was at its address is dead.
 * pre: lp_shadow_init(). */
void lp_alive_born(const void *block, int is_small, lp_stamp stamp);
void lp_alive_died(const void *block);

/* The line that grew a container: its backing block, of more than 16 bytes.  pre: lp_shadow_init(). */
void lp_alive_grown(const void *block, lp_stamp stamp);

/* A stamp that turned out not to be of a live object: count it as dead, and leave `instead` there. */
void lp_alive_correct(lp_stamp *place, lp_stamp instead);

/* No stamp is left: no count either. */
void lp_alive_reset(void);

/* 1 if births - deaths of each site is the number of its stamps, or memory is out.  LP_SITE_UNKNOWN is no site: the
 * looks whether deaths are seen use it. */
int lp_alive_is_valid(void);

#endif
