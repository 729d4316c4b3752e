/* Owns one record a site, while there is room; the GIL. */
#include "ledger/backing.h"

#include <string.h>

#include "ledger/epoch.h"  // lp_step_now

static struct {
    lp_backing records[LP_BACKING_SITES];
    uint16_t slots[LP_BACKING_SLOTS];  /* hash of the site => index of its record + 1, or 0 */
    uint32_t count;
    uint32_t dropped_before;  /* this step; 0: none */
    uint32_t cleaned_at;
} table;

/* The slot of a site, or the free one where it belongs. */
static uint32_t find_slot(lp_site_id site) {
    uint32_t slot = lp_backing_first_slot(site);
    while (table.slots[slot] != 0 && table.records[table.slots[slot] - 1].site != site) {
        slot = (slot + 1) % LP_BACKING_SLOTS;
    }
    return slot;
}

/* 1 if a larger block may yet come: a list grows by an eighth at a time and a dict to twice its size, so that the
 * next record is no longer away than all the earlier ones took.  What set one record and no more is of an import. */
static int may_grow(const lp_backing *record) {
    uint32_t age = record->last_step - record->first_step, silence = lp_step_now - record->last_step;
    return silence == 0 || (record->record_steps > 1 && silence <= LP_BACKING_PATIENCE * age);
}

/* Drop the sites that have stopped to grow; once a step at most. */
static void drop_settled(void) {
    uint32_t kept = 0;
    if (table.cleaned_at == lp_step_now) {
        return;
    }
    table.cleaned_at = lp_step_now;
    memset(table.slots, 0, sizeof(table.slots));
    for (uint32_t i = 0; i < table.count; i++) {
        if (may_grow(&table.records[i])) {
            lp_backing record = table.records[i];
            uint32_t slot = find_slot(record.site);   /* reads only what is kept so far */
            table.records[kept++] = record;
            table.slots[slot] = (uint16_t)kept;
        }
    }
    table.count = kept;
}

/* NULL if the table is full. */
static lp_backing *find_or_add(lp_site_id site) {
    uint32_t slot = find_slot(site);
    if (table.slots[slot] != 0) {
        return &table.records[table.slots[slot] - 1];
    }
    if (table.count == LP_BACKING_SITES) {
        drop_settled();
        slot = find_slot(site);
    }
    if (table.count == LP_BACKING_SITES) {
        table.dropped_before = lp_step_now + 1;
        return NULL;
    }
    table.slots[slot] = (uint16_t)(table.count + 1);
    table.records[table.count] = (lp_backing){.site = site, .first_step = lp_step_now};
    return &table.records[table.count++];
}

void lp_backing_note(lp_site_id site, uint64_t bytes) {
    LP_ASSERT_GIL();
    lp_backing *record = site == LP_SITE_SELF || site == LP_SITE_UNKNOWN ? NULL : find_or_add(site);
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

static lp_backing *find(lp_site_id site) {
    uint32_t slot = find_slot(site);
    return table.slots[slot] == 0 ? NULL : &table.records[table.slots[slot] - 1];
}

static int is_of(const lp_backing *record, const lp_backing *one) {
    return lp_site_base(record->site) == lp_site_base(one->site) || (one->family != 0 && record->family == one->family);
}

/* That of any record of the same line: another instruction of it may have none yet. */
static lp_site_id family_of(const lp_backing *one) {
    lp_site_id family = one->family;
    for (uint32_t i = 0; i < table.count && family == 0; i++) {
        family = lp_site_base(table.records[i].site) == lp_site_base(one->site) ? table.records[i].family : 0;
    }
    return family;
}

void lp_backing_join(lp_site_id site, lp_site_id earlier) {
    LP_ASSERT_GIL();
    if (lp_site_base(site) == lp_site_base(earlier)) {
        return;
    }
    const lp_backing *one = find(site), *other = find(earlier);
    if (one == NULL || other == NULL || (one->family == other->family && one->family != 0)) {
        return;
    }
    lp_backing a = *one, b = *other; /* as they were: the loop changes them */
    a.family = family_of(one);
    b.family = family_of(other);
    lp_site_id family = a.family != 0 ? a.family : b.family != 0 ? b.family : lp_site_base(site);
    for (uint32_t i = 0; i < table.count; i++) {
        lp_backing *record = &table.records[i];
        record->family = is_of(record, &a) || is_of(record, &b) ? family : record->family;
    }
}

void lp_backing_note_extended(lp_site_id site) {
    LP_ASSERT_GIL();
    lp_backing *record = find(site);
    if (record != NULL && record->last_step == lp_step_now) {
        record->extended_steps += record->extended_steps == 0 || record->extended_step != lp_step_now;
        record->extended_step = lp_step_now;
    }
}

uint32_t lp_backing_count(void) { return table.count; }

lp_backing lp_backing_at(uint32_t i) { return table.records[i]; }

int64_t lp_backing_dropped_at(void) { return (int64_t)table.dropped_before - 1; }

void lp_backing_reset(void) {
    memset(table.slots, 0, sizeof(table.slots));
    table.count = 0;
    table.dropped_before = 0;
    table.cleaned_at = 0;
}

int lp_backing_is_valid(void) {
    uint32_t used = 0;
    for (uint32_t slot = 0; slot < LP_BACKING_SLOTS; slot++) {
        if (table.slots[slot] > table.count) {
            return 0;
        }
        used += table.slots[slot] != 0;
    }
    for (uint32_t i = 0; i < table.count; i++) {
        const lp_backing *record = &table.records[i];
        if (table.slots[find_slot(record->site)] != i + 1 || record->first_step > record->last_step ||
            record->first_bytes > record->bytes) {
            return 0;
        }
    }
    return used == table.count;
}
