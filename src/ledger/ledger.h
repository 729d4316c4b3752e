/* The ledger of native blocks (few, large): live blocks, cohorts and totals.
 *
 *   blocks   address => {bytes, site, step, medium}        exact, freed when freed
 *   cohorts  (medium, site, step) => {count, bytes}        survivors by birth step
 *   totals   medium => live and peak bytes and counts
 *   events   the last births and deaths
 *
 * One lock (LP_RANK_LEDGER), taken inside.  May be called by any thread, with or
 * without the GIL.  Memory comes from base/rawmem.h.  A record that can't be stored
 * is dropped and counted, never an error for the caller. */
#ifndef LP_LEDGER_H
#define LP_LEDGER_H

#include "base/base.h"
#include "ledger/alive.h"   // lp_alive_count
#include "ledger/events.h"  // lp_event
#include "ledger/medium.h"  // lp_medium
#include "ledger/site.h"    // lp_site_id

typedef struct lp_block {
    uint64_t address, bytes;
    lp_site_id site;
    uint32_t step;
    uint8_t medium;
} lp_block;

typedef struct lp_totals {
    uint64_t live_bytes, peak_bytes, live_count;
    uint64_t recent_peak_bytes; /* since lp_ledger_begin_peaks() */
    uint64_t add_count, remove_count;
    uint64_t unmatched_count;   /* frees of blocks that were not known: older than the hook */
    uint64_t overwritten_count; /* births at an address still live: a free was missed */
    uint64_t dropped_count;     /* births that could not be stored: no memory, or an address over 48 bits */
} lp_totals;

lp_status lp_ledger_init(void);
/* Forget every block and total, give the memory back.  For the start of a watch: deaths were not
 * seen since the last one. */
void lp_ledger_reset(void);

void lp_ledger_add(lp_medium medium, const void *address, uint64_t bytes, lp_site_id site);
/* Returns the bytes of the block, 0 if it was not known (counted under `medium`).  A block that
 * another medium has at this address since stays: its birth overtook this death. */
uint64_t lp_ledger_remove(lp_medium medium, const void *address);
/* 1 if a block of any medium begins at this address. */
int lp_ledger_contains(const void *address);
void lp_ledger_totals(lp_medium medium, lp_totals *out_totals);
/* Live bytes of the media whose blocks malloc serves. */
uint64_t lp_ledger_malloc_bytes(void);
/* From now on recent_peak_bytes is the most that has been live since now. */
void lp_ledger_begin_peaks(void);
/* How many different sizes the blocks born since the reset had; at most 65,536, and too few where there are thousands. */
uint64_t lp_ledger_size_count(void);

/* One (medium, base site) with survivors; `window` counts blocks born in steps first..last. */
typedef struct lp_group {
    uint8_t medium;
    lp_site_id site;
    uint64_t count, bytes;
    uint64_t window_count, window_bytes;
    uint32_t window_steps;      /* distinct birth steps in the window that still have survivors */
    uint32_t first_step, last_step;
} lp_group;

/* Groups of all live blocks; *out_groups is freed with lp_raw_free(). */
lp_status lp_ledger_groups(uint32_t first, uint32_t last, lp_group **out_groups, size_t *out_count);

typedef struct lp_cohort {
    uint32_t step;
    uint64_t count, bytes;
} lp_cohort;

/* Survivors by birth step of one (medium, base site), rising steps; freed with lp_raw_free(). */
lp_status lp_ledger_series(lp_medium medium, lp_site_id site, lp_cohort **out_cohorts, size_t *out_count);

/* Copy the counts of all lines, at most LP_LINES_MAX; how many there are. */
uint32_t lp_ledger_read_lines(lp_alive_count *out_counts);
/* The number of a line, LP_LINES_NONE if nothing was born there. */
uint32_t lp_ledger_line(lp_medium medium, lp_site_id site);
/* The number of the line under whose base site a line is known; itself if there is no room for that one. */
uint32_t lp_ledger_base_line(uint32_t line);

/* Copy of all live blocks, sorted by address; freed with lp_raw_free(). */
lp_status lp_ledger_copy(lp_block **out_blocks, size_t *out_count);

/* The last LP_EVENTS_MOST births and deaths, oldest first; freed with lp_raw_free().  *out_total: all since the reset. */
lp_status lp_ledger_events(lp_event **out_events, size_t *out_count, uint64_t *out_total);

/* 1 unless totals and cohorts contradict the blocks: sums, counts, indices, free lists.  For tests and assertions. */
int lp_ledger_is_valid(void);
/* Around fork: hold the lock, so that the child gets a whole ledger; release it in the parent, reset it in the child. */
void lp_ledger_before_fork(void);
void lp_ledger_after_fork_in_parent(void);
void lp_ledger_reset_in_child(void);

#endif
