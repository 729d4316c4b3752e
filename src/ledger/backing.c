/* Owns one record a site, while there is room; the GIL. */
#include "ledger/backing.h"

#include <string.h>

#include "ledger/epoch.h"  // lp_step_now

#define SLOTS (2 * LP_BACKING_SITES)

static lp_backing records[LP_BACKING_SITES];
static uint16_t slots[SLOTS];   /* hash of the site => index of its record + 1, or 0 */
static uint32_t count;
static uint64_t dropped_count;
static uint32_t cleaned_at;

static uint32_t first_slot(lp_site_id site) { return (site * 0x9E3779B1u >> 16) % SLOTS; }

/* The slot of a site, or the free one where it belongs. */
static uint32_t find_slot(lp_site_id site) {
    uint32_t slot = first_slot(site);
    while (slots[slot] != 0 && records[slots[slot] - 1].site != site) {
        slot = (slot + 1) % SLOTS;
    }
    return slot;
}

/* Drop the sites that set one record and no more, as those of an import do; once a step at most. */
static void drop_single(void) {
    uint32_t kept = 0;
    if (cleaned_at == lp_step_now) {
        return;
    }
    cleaned_at = lp_step_now;
    memset(slots, 0, sizeof(slots));
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].record_steps > 1 || records[i].last_step == lp_step_now) {
            lp_backing record = records[i];
            uint32_t slot = find_slot(record.site);   /* reads only what is kept so far */
            records[kept++] = record;
            slots[slot] = (uint16_t)kept;
        }
    }
    count = kept;
}

/* NULL if the table is full. */
static lp_backing *find_or_add(lp_site_id site) {
    uint32_t slot = find_slot(site);
    if (slots[slot] != 0) {
        return &records[slots[slot] - 1];
    }
    if (count == LP_BACKING_SITES) {
        drop_single();
        slot = find_slot(site);
    }
    if (count == LP_BACKING_SITES) {
        dropped_count++;
        return NULL;
    }
    slots[slot] = (uint16_t)(count + 1);
    records[count] = (lp_backing){.site = site, .first_step = lp_step_now};
    return &records[count++];
}

void lp_backing_note(lp_site_id site, uint64_t bytes) {
    LP_ASSERT_GIL();
    lp_backing *record = site == LP_SITE_SELF ? NULL : find_or_add(site);
    if (record == NULL || bytes <= record->bytes) {
        return;
    }
    record->record_steps += record->bytes == 0 || record->last_step != lp_step_now;
    record->bytes = bytes;
    record->last_step = lp_step_now;
    if (record->first_step == lp_step_now) {
        record->first_bytes = bytes;
    }
}

uint32_t lp_backing_count(void) { return count; }

lp_backing lp_backing_at(uint32_t i) { return records[i]; }

uint64_t lp_backing_dropped_count(void) { return dropped_count; }

void lp_backing_reset(void) {
    memset(slots, 0, sizeof(slots));
    count = 0;
    dropped_count = 0;
    cleaned_at = 0;
}

int lp_backing_is_valid(void) {
    uint32_t used = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (slots[slot] > count) {
            return 0;
        }
        used += slots[slot] != 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        const lp_backing *record = &records[i];
        if (slots[find_slot(record->site)] != i + 1 || record->first_step > record->last_step ||
            record->first_bytes > record->bytes) {
            return 0;
        }
    }
    return used == count;
}
