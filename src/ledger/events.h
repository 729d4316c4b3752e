/* The last births and deaths of native blocks, oldest first: what a step did, and the trace of an export.
 *
 * A ring of LP_EVENTS_MOST entries; older ones are written over.  The caller holds the lock of the ledger. */
#ifndef LP_EVENTS_H
#define LP_EVENTS_H

#include "ledger/site.h"  // lp_site_id

#define LP_EVENTS_MOST 32768u

typedef struct lp_event {
    uint64_t address;
    int64_t bytes;            /* negative: the block died */
    lp_site_id site;          /* where the block was born */
    uint32_t step;            /* when this happened, not when the block was born */
    uint8_t medium;
} lp_event;

typedef struct lp_events {
    lp_event *ring;           /* NULL: none is kept */
    uint64_t count;           /* all so far */
} lp_events;

void lp_events_add(lp_events *events, lp_event event);
/* The newest, oldest first; out has room for LP_EVENTS_MOST.  Returns how many. */
uint32_t lp_events_copy(const lp_events *events, lp_event *out);
/* Forget them, give the memory back. */
void lp_events_clear(lp_events *events);

#endif
