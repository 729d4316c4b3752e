/* Owns blocks, cohorts, totals and lines under one lock. They change together: the sums over blocks, cohorts and
 * totals agree. */
#include "ledger/ledger.h"

#include <string.h>

#include "base/lock.h"      // lp_lock
#include "base/rawmem.h"    // lp_raw_malloc
#include "base/sort.h"      // lp_sort_pairs
#include "ledger/blocks.h"  // lp_blocks
#include "ledger/cohort.h"  // lp_cohorts
#include "ledger/epoch.h"   // lp_step_now
#include "ledger/lines.h"   // lp_lines
#include "ledger/size_set.h"  // lp_size_set

static struct {
    lp_lock lock; /* protects all of it */
    lp_blocks blocks;
    lp_cohorts cohorts;
    lp_totals totals[LP_MEDIUM_COUNT];
    lp_events events;
    lp_size_set sizes;
    lp_lines lines;
} ledger = {.lock = LP_LOCK_INIT(LP_RANK_LEDGER)};

lp_status lp_ledger_init(void) { return LP_OK; }

/* What must hold between any two calls and costs next to nothing to see.  The lock is held. */
static int is_plausible(void) {
    uint64_t live_count = 0;
    for (int medium = 0; medium < LP_MEDIUM_COUNT; medium++) {
        live_count += ledger.totals[medium].live_count;
        if (ledger.totals[medium].live_bytes > ledger.totals[medium].peak_bytes ||
            ledger.totals[medium].live_count > ledger.totals[medium].add_count) {
            return 0;
        }
    }
    return live_count == ledger.blocks.count && ledger.blocks.count <= ledger.blocks.capacity &&
           ledger.cohorts.count <= ledger.blocks.count;
}

void lp_ledger_reset(void) {
    lp_lock_take(&ledger.lock);
    lp_blocks_clear(&ledger.blocks);
    lp_cohorts_clear(&ledger.cohorts);
    lp_events_clear(&ledger.events);
    memset(ledger.totals, 0, sizeof(ledger.totals));
    memset(&ledger.sizes, 0, sizeof(ledger.sizes));
    memset(&ledger.lines, 0, sizeof(ledger.lines));
    lp_lock_release(&ledger.lock);
}

static void count_birth(lp_medium medium, uint64_t bytes) {
    lp_totals *t = &ledger.totals[medium];
    t->live_bytes += bytes;
    t->live_count++;
    t->add_count++;
    if (t->live_bytes > t->peak_bytes) {
        t->peak_bytes = t->live_bytes;
    }
    if (t->live_bytes > t->recent_peak_bytes) {
        t->recent_peak_bytes = t->live_bytes;
    }
}

/* Take a block out of its cohort and its totals; returns its medium. */
static lp_medium count_death(const lp_blocks_slot *block) {
    uint32_t cohort = lp_blocks_cohort(block);
    uint64_t key = lp_cohorts_get(&ledger.cohorts, cohort)->key;
    lp_medium medium = lp_cohorts_medium(key);
    lp_lines_died(&ledger.lines, lp_cohorts_line(key));
    ledger.totals[medium].live_bytes -= lp_blocks_bytes(block);
    ledger.totals[medium].live_count--;
    lp_cohorts_remove(&ledger.cohorts, cohort, lp_blocks_bytes(block));
    return medium;
}

/* Note the death of a block before it is taken out. */
static void note_death(const lp_blocks_slot *block) {
    uint64_t key = lp_cohorts_get(&ledger.cohorts, lp_blocks_cohort(block))->key;
    uint32_t step = __atomic_load_n(&lp_step_now, __ATOMIC_RELAXED);
    lp_events_add(&ledger.events, (lp_event){lp_blocks_address(block), -(int64_t)lp_blocks_bytes(block),
                                             lp_cohorts_site(key), step, (uint8_t)lp_cohorts_medium(key)});
}

static void add_lock_held(uint64_t key, uint64_t address, uint64_t bytes) {
    LP_ASSERT(is_plausible());
    lp_medium medium = lp_cohorts_medium(key);
    uint32_t cohort = lp_cohorts_add(&ledger.cohorts, key, bytes);
    if (cohort == 0) {
        ledger.totals[medium].dropped_count++;
        return;
    }
    lp_blocks_slot old;
    if (lp_blocks_add(&ledger.blocks, address, bytes, cohort, &old) != LP_OK) {
        lp_cohorts_remove(&ledger.cohorts, cohort, bytes);
        ledger.totals[medium].dropped_count++;
        return;
    }
    if (LP_UNLIKELY(lp_blocks_address(&old) != 0)) {
        note_death(&old);
        ledger.totals[count_death(&old)].overwritten_count++;
    }
    count_birth(medium, bytes);
    lp_lines_born(&ledger.lines, lp_cohorts_line(key));
    lp_size_set_add(&ledger.sizes, bytes);
    lp_events_add(&ledger.events,
                  (lp_event){address, (int64_t)bytes, lp_cohorts_site(key), lp_cohorts_step(key), (uint8_t)medium});
}

void lp_ledger_add(lp_medium medium, const void *address, uint64_t bytes, lp_site_id site) {
    if (address == NULL || (unsigned)medium >= LP_MEDIUM_COUNT || site > LP_SITE_MAX) {
        return;
    }
    uint64_t key = lp_cohorts_key(medium, site, __atomic_load_n(&lp_step_now, __ATOMIC_RELAXED));
    lp_lock_take(&ledger.lock);
    add_lock_held(key, (uint64_t)(uintptr_t)address, bytes);
    lp_lock_release(&ledger.lock);
}

uint64_t lp_ledger_remove(lp_medium medium, const void *address) {
    uint64_t bytes = 0;
    if ((unsigned)medium >= LP_MEDIUM_COUNT) {
        return 0;
    }
    lp_lock_take(&ledger.lock);
    LP_ASSERT(is_plausible());
    lp_blocks_slot *found = lp_blocks_find(&ledger.blocks, (uint64_t)(uintptr_t)address);
    if (found != NULL && lp_cohorts_medium(lp_cohorts_get(&ledger.cohorts, lp_blocks_cohort(found))->key) == medium) {
        bytes = lp_blocks_bytes(found);
        note_death(found);
        count_death(found);
        lp_blocks_remove(&ledger.blocks, found);
        ledger.totals[medium].remove_count++;
    } else {
        ledger.totals[medium].unmatched_count++;
    }
    lp_lock_release(&ledger.lock);
    return bytes;
}

int lp_ledger_contains(const void *address) {
    lp_lock_take(&ledger.lock);
    int is_known = lp_blocks_find(&ledger.blocks, (uint64_t)(uintptr_t)address) != NULL;
    lp_lock_release(&ledger.lock);
    return is_known;
}

void lp_ledger_totals(lp_medium medium, lp_totals *out_totals) {
    lp_lock_take(&ledger.lock);
    LP_ASSERT(is_plausible());
    *out_totals = ledger.totals[medium];
    lp_lock_release(&ledger.lock);
}

uint64_t lp_ledger_malloc_bytes(void) {
    lp_lock_take(&ledger.lock);
    uint64_t bytes = ledger.totals[LP_MEDIUM_CPU].live_bytes + ledger.totals[LP_MEDIUM_NUMPY].live_bytes;
    lp_lock_release(&ledger.lock);
    return bytes;
}

void lp_ledger_begin_peaks(void) {
    lp_lock_take(&ledger.lock);
    for (int medium = 0; medium < LP_MEDIUM_COUNT; medium++) {
        ledger.totals[medium].recent_peak_bytes = ledger.totals[medium].live_bytes;
    }
    lp_lock_release(&ledger.lock);
}

uint64_t lp_ledger_size_count(void) {
    lp_lock_take(&ledger.lock);
    uint64_t count = ledger.sizes.count;
    lp_lock_release(&ledger.lock);
    return count;
}

/* ---- copies ---- */

/* The cohorts that have survivors; freed with lp_raw_free(). */
static lp_status copy_cohorts(lp_cohort_record **out_records, size_t *out_count) {
    size_t count = 0;
    lp_lock_take(&ledger.lock);
    lp_blocks_trim(&ledger.blocks);
    lp_cohort_record *copy = lp_raw_malloc((ledger.cohorts.count + 1) * sizeof(*copy));
    for (uint32_t id = 1; copy != NULL && id < ledger.cohorts.end; id++) {
        const lp_cohort_record *record = lp_cohorts_get(&ledger.cohorts, id);
        if (record->count != 0) {
            copy[count++] = *record;
        }
    }
    lp_lock_release(&ledger.lock);
    *out_records = copy;
    *out_count = count;
    return copy == NULL ? LP_NO_MEMORY : LP_OK;
}

static lp_block read_block(const lp_blocks_slot *slot) {
    uint64_t key = lp_cohorts_get(&ledger.cohorts, lp_blocks_cohort(slot))->key;
    return (lp_block){lp_blocks_address(slot), lp_blocks_bytes(slot), lp_cohorts_site(key), lp_cohorts_step(key),
                      (uint8_t)lp_cohorts_medium(key)};
}

/* All live blocks in the order of the table. */
static lp_status copy_blocks(lp_block **out_blocks, size_t *out_count) {
    size_t count = 0;
    lp_lock_take(&ledger.lock);
    lp_block *copy = lp_raw_malloc((ledger.blocks.count + 1) * sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < ledger.blocks.capacity; i++) {
        if (lp_blocks_address(&ledger.blocks.slots[i]) != 0) {
            copy[count++] = read_block(&ledger.blocks.slots[i]);
        }
    }
    lp_lock_release(&ledger.lock);
    *out_blocks = copy;
    *out_count = count;
    return copy == NULL ? LP_NO_MEMORY : LP_OK;
}

lp_status lp_ledger_copy(lp_block **out_blocks, size_t *out_count) {
    lp_block *copy = NULL, *sorted = NULL;
    lp_sort_pair *pairs = NULL;
    size_t count = 0;
    *out_blocks = NULL;
    *out_count = 0;
    lp_status status = copy_blocks(&copy, &count);
    if (status == LP_OK) {
        pairs = lp_raw_malloc((count + 1) * 2 * sizeof(*pairs));
        sorted = lp_raw_malloc((count + 1) * sizeof(*sorted));
        status = pairs == NULL || sorted == NULL ? LP_NO_MEMORY : LP_OK;
    }
    for (size_t i = 0; status == LP_OK && i < count; i++) {
        pairs[i] = (lp_sort_pair){copy[i].address, i};
    }
    if (status == LP_OK) {
        lp_sort_pairs(pairs, pairs + count, count);
        for (size_t i = 0; i < count; i++) {
            sorted[i] = copy[pairs[i].value];
        }
        *out_blocks = sorted;
        *out_count = count;
        sorted = NULL;
    }
    lp_raw_free(copy);
    lp_raw_free(pairs);
    lp_raw_free(sorted);
    return status;
}

lp_status lp_ledger_events(lp_event **out_events, size_t *out_count, uint64_t *out_total) {
    lp_event *copy = lp_raw_malloc(LP_EVENTS_MOST * sizeof(*copy));
    *out_events = copy;
    *out_count = 0;
    if (copy == NULL) {
        return LP_NO_MEMORY;
    }
    lp_lock_take(&ledger.lock);
    *out_count = lp_events_copy(&ledger.events, copy);
    *out_total = ledger.events.count;
    lp_lock_release(&ledger.lock);
    return LP_OK;
}

/* ---- groups and series ---- */

/* Pairs (key under the base site, index of the record), sorted: those of a group follow each
 * other by rising step. */
static lp_status sort_by_base(const lp_cohort_record *records, size_t count, lp_sort_pair **out_pairs) {
    lp_sort_pair *pairs = lp_raw_malloc((count + 1) * 2 * sizeof(*pairs));
    *out_pairs = pairs;
    if (pairs == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t key = records[i].key;
        lp_site_id base = lp_site_base(lp_cohorts_site(key));
        pairs[i] = (lp_sort_pair){lp_cohorts_key(lp_cohorts_medium(key), base, lp_cohorts_step(key)), i};
    }
    lp_sort_pairs(pairs, pairs + count, count);
    return LP_OK;
}

static int same_group(uint64_t a, uint64_t b) { return lp_cohorts_line(a) == lp_cohorts_line(b); }

static void add_to_group(lp_group *group, const lp_cohort_record *record, uint32_t step, int is_new_step,
                         uint32_t first, uint32_t last) {
    group->count += record->count;
    group->bytes += record->bytes;
    group->last_step = step;
    if (step >= first && step <= last) {
        group->window_count += record->count;
        group->window_bytes += record->bytes;
        group->window_steps += (uint32_t)is_new_step;
    }
}

/* groups has room for all; returns how many there are. */
static size_t fill_groups(lp_group *groups, const lp_cohort_record *records, const lp_sort_pair *pairs, size_t count,
                          uint32_t first, uint32_t last) {
    size_t group_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t key = pairs[i].key;
        if (i == 0 || !same_group(pairs[i - 1].key, key)) {
            groups[group_count++] = (lp_group){.medium = (uint8_t)lp_cohorts_medium(key),
                                               .site = lp_cohorts_site(key),
                                               .first_step = lp_cohorts_step(key)};
        }
        int is_new_step = i == 0 || pairs[i - 1].key != key;
        add_to_group(&groups[group_count - 1], &records[pairs[i].value], lp_cohorts_step(key), is_new_step, first,
                     last);
    }
    return group_count;
}

static size_t count_groups(const lp_sort_pair *pairs, size_t count) {
    size_t group_count = count != 0;
    for (size_t i = 1; i < count; i++) {
        group_count += !same_group(pairs[i - 1].key, pairs[i].key);
    }
    return group_count;
}

lp_status lp_ledger_groups(uint32_t first, uint32_t last, lp_group **out_groups, size_t *out_count) {
    lp_cohort_record *records = NULL;
    lp_sort_pair *pairs = NULL;
    lp_group *groups = NULL;
    size_t count = 0;
    *out_count = 0;
    lp_status status = copy_cohorts(&records, &count);
    if (status == LP_OK) {
        status = sort_by_base(records, count, &pairs);
    }
    if (status == LP_OK) {
        groups = lp_raw_malloc((count_groups(pairs, count) + 1) * sizeof(*groups));
        status = groups == NULL ? LP_NO_MEMORY : LP_OK;
    }
    if (status == LP_OK) {
        *out_count = fill_groups(groups, records, pairs, count, first, last);
    }
    lp_raw_free(records);
    lp_raw_free(pairs);
    *out_groups = groups;
    return status;
}

lp_status lp_ledger_series(lp_medium medium, lp_site_id site, lp_cohort **out_cohorts, size_t *out_count) {
    lp_cohort_record *records = NULL;
    lp_sort_pair *pairs = NULL;
    lp_cohort *series = NULL;
    size_t count = 0, kept = 0, length = 0;
    lp_status status = copy_cohorts(&records, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t key = records[i].key;
        if (lp_cohorts_medium(key) == medium && lp_site_base(lp_cohorts_site(key)) == site) {
            records[kept++] = records[i];
        }
    }
    if (status == LP_OK) {
        status = sort_by_base(records, kept, &pairs);
    }
    if (status == LP_OK) {
        series = lp_raw_malloc((kept + 1) * sizeof(*series));
        status = series == NULL ? LP_NO_MEMORY : LP_OK;
    }
    for (size_t i = 0; status == LP_OK && i < kept; i++) {
        if (i == 0 || pairs[i - 1].key != pairs[i].key) {
            series[length++] = (lp_cohort){.step = lp_cohorts_step(pairs[i].key)};
        }
        series[length - 1].count += records[pairs[i].value].count;
        series[length - 1].bytes += records[pairs[i].value].bytes;
    }
    lp_raw_free(records);
    lp_raw_free(pairs);
    *out_cohorts = series;
    *out_count = length;
    return status;
}

/* ---- lines ---- */

uint32_t lp_ledger_read_lines(lp_alive_count *out_counts) {
    lp_lock_take(&ledger.lock);
    uint32_t count = ledger.lines.count;
    memcpy(out_counts, ledger.lines.counts, count * sizeof(*out_counts));
    lp_lock_release(&ledger.lock);
    return count;
}

uint32_t lp_ledger_line(lp_medium medium, lp_site_id site) {
    lp_lock_take(&ledger.lock);
    uint32_t line = lp_lines_find(&ledger.lines, lp_cohorts_line(lp_cohorts_key(medium, site, 0)));
    lp_lock_release(&ledger.lock);
    return line;
}

uint32_t lp_ledger_base_line(uint32_t line) {
    lp_lock_take(&ledger.lock);
    uint64_t key = lp_cohorts_line_key(ledger.lines.key[line]);
    lp_lock_release(&ledger.lock);
    uint64_t base = lp_cohorts_key(lp_cohorts_medium(key), lp_site_base(lp_cohorts_site(key)), 0);
    lp_lock_take(&ledger.lock);
    uint32_t found = lp_lines_make(&ledger.lines, lp_cohorts_line(base));
    lp_lock_release(&ledger.lock);
    return found == LP_LINES_NONE ? line : found;
}

/* ---- proof and fork ---- */

/* Subtract each block from the sums of its cohort and its medium; 1 if each is found and fits. */
static int subtract_blocks(lp_cohort_record *left, lp_totals *sums) {
    size_t count = 0;
    for (size_t i = 0; i < ledger.blocks.capacity; i++) {
        const lp_blocks_slot *slot = &ledger.blocks.slots[i];
        uint32_t cohort = lp_blocks_cohort(slot);
        if (lp_blocks_address(slot) == 0) {
            continue;
        }
        if (cohort == 0 || cohort >= ledger.cohorts.end ||
            lp_blocks_find(&ledger.blocks, lp_blocks_address(slot)) != slot) {
            return 0;
        }
        lp_medium medium = lp_cohorts_medium(left[cohort].key);
        left[cohort].count--;
        left[cohort].bytes -= lp_blocks_bytes(slot);
        sums[medium].live_count--;
        sums[medium].live_bytes -= lp_blocks_bytes(slot);
        count++;
    }
    return count == ledger.blocks.count;
}

/* left: room for a copy of every cohort. */
static int is_consistent(lp_cohort_record *left) {
    lp_totals sums[LP_MEDIUM_COUNT];
    memcpy(sums, ledger.totals, sizeof(sums));
    size_t live_count = 0;
    for (uint32_t id = 1; id < ledger.cohorts.end; id++) {
        left[id] = *lp_cohorts_get(&ledger.cohorts, id);
        live_count += left[id].count != 0;
    }
    int consistent = subtract_blocks(left, sums) && live_count == ledger.cohorts.count;
    for (uint32_t id = 1; id < ledger.cohorts.end; id++) {
        consistent = consistent && left[id].count == 0 && left[id].bytes == 0;
    }
    for (int medium = 0; medium < LP_MEDIUM_COUNT; medium++) {
        consistent = consistent && sums[medium].live_count == 0 && sums[medium].live_bytes == 0;
    }
    return consistent;
}

int lp_ledger_is_valid(void) {
    lp_lock_take(&ledger.lock);
    lp_cohort_record *left = lp_raw_malloc(((size_t)ledger.cohorts.end + 1) * sizeof(*left));
    int is_valid = is_plausible() && lp_cohorts_is_valid(&ledger.cohorts) && (left == NULL || is_consistent(left));
    lp_raw_free(left);
    lp_lock_release(&ledger.lock);
    return is_valid;
}

void lp_ledger_before_fork(void) { lp_lock_take(&ledger.lock); }

void lp_ledger_after_fork_in_parent(void) { lp_lock_release(&ledger.lock); }

void lp_ledger_reset_in_child(void) { lp_lock_reset_in_child(&ledger.lock); }
