/* Owns the ring of events; the ledger's lock is held. Without memory for it, nothing is kept and nothing fails. */
#include "ledger/events.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_map

void lp_events_add(lp_events *events, lp_event event) {
    if (LP_UNLIKELY(events->ring == NULL)) {
        events->ring = lp_raw_map(LP_EVENTS_MOST * sizeof(*events->ring));
        if (events->ring == NULL) {
            return;
        }
    }
    events->ring[events->count++ % LP_EVENTS_MOST] = event;
}

uint32_t lp_events_copy(const lp_events *events, lp_event *out) {
    if (events->ring == NULL) {
        return 0;
    }
    uint32_t kept = events->count < LP_EVENTS_MOST ? (uint32_t)events->count : LP_EVENTS_MOST;
    uint32_t first = (uint32_t)((events->count - kept) % LP_EVENTS_MOST);
    uint32_t head = kept < LP_EVENTS_MOST - first ? kept : LP_EVENTS_MOST - first;
    memcpy(out, events->ring + first, head * sizeof(*out));
    memcpy(out + head, events->ring, (kept - head) * sizeof(*out));
    return kept;
}

void lp_events_clear(lp_events *events) {
    if (events->ring != NULL) {
        lp_raw_unmap(events->ring, LP_EVENTS_MOST * sizeof(*events->ring));
    }
    *events = (lp_events){NULL, 0};
}
