#include "ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"      // lp_lock
#include "base/rawmem.h"    // lp_raw_malloc
#include "ledger/blocks.h"  // lp_blocks
#include "ledger/epoch.h"   // lp_step_now

static lp_lock lock = LP_LOCK_INIT(LP_RANK_LEDGER);
static lp_blocks blocks;
static lp_totals totals[LP_MEDIUM_COUNT];

lp_status lp_ledger_init(void) {
    return LP_OK;
}

void lp_ledger_reset(void) {
    lp_lock_take(&lock);
    lp_blocks_clear(&blocks);
    memset(totals, 0, sizeof(totals));
    lp_lock_release(&lock);
}

static void count_death(const lp_block *block) {
    lp_totals *t = &totals[block->medium];
    t->live_bytes -= block->bytes;
    t->live_count--;
}

static void count_birth(const lp_block *block) {
    lp_totals *t = &totals[block->medium];
    t->live_bytes += block->bytes;
    t->live_count++;
    t->add_count++;
    if (t->live_bytes > t->peak_bytes) {
        t->peak_bytes = t->live_bytes;
    }
}

void lp_ledger_add(lp_medium medium, const void *address, uint64_t bytes, lp_site_id site) {
    if (address == NULL || (unsigned)medium >= LP_MEDIUM_COUNT) {
        return;
    }
    uint32_t step = __atomic_load_n(&lp_step_now, __ATOMIC_RELAXED);
    lp_block block = {(uint64_t)(uintptr_t)address, bytes, site, step, (uint8_t)medium};
    lp_block old;
    lp_lock_take(&lock);
    if (lp_blocks_add(&blocks, &block, &old) != LP_OK) {
        totals[medium].dropped_count++;
    } else {
        if (old.address != 0) {
            totals[old.medium].overwritten_count++;
            count_death(&old);
        }
        count_birth(&block);
    }
    lp_lock_release(&lock);
}

uint64_t lp_ledger_remove(lp_medium medium, const void *address) {
    lp_block old = {0};
    lp_lock_take(&lock);
    /* A late death may come after another medium took the address: that block stays. */
    const lp_block *found = lp_blocks_find(&blocks, (uint64_t)(uintptr_t)address);
    if (found != NULL && found->medium == medium && lp_blocks_remove(&blocks, found->address, &old) == LP_OK) {
        count_death(&old);
        totals[medium].remove_count++;
    } else {
        totals[medium].unmatched_count++;
    }
    lp_lock_release(&lock);
    return old.bytes;
}

void lp_ledger_totals(lp_medium medium, lp_totals *out_totals) {
    lp_lock_take(&lock);
    *out_totals = totals[medium];
    lp_lock_release(&lock);
}

static int by_address(const void *a, const void *b) {
    const lp_block *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* All live blocks, unsorted, in memory of the caller's own. */
static lp_status copy_blocks(lp_block **out_blocks, size_t *out_count) {
    lp_lock_take(&lock);
    size_t count = 0;
    lp_block *copy = lp_raw_malloc((blocks.count + 1) * sizeof(lp_block));
    for (size_t i = 0; copy != NULL && blocks.slots != NULL && i <= blocks.mask; i++) {
        if (blocks.slots[i].address != 0) {
            copy[count++] = blocks.slots[i];
        }
    }
    lp_lock_release(&lock);
    *out_blocks = copy;
    *out_count = count;
    return copy == NULL ? LP_NO_MEMORY : LP_OK;
}

lp_status lp_ledger_copy(lp_block **out_blocks, size_t *out_count) {
    lp_status status = copy_blocks(out_blocks, out_count);
    if (status == LP_OK) {
        qsort(*out_blocks, *out_count, sizeof(lp_block), by_address);
    }
    return status;
}

static int by_group(const void *a, const void *b) {
    const lp_block *x = a, *y = b;
    if (x->medium != y->medium) {
        return x->medium < y->medium ? -1 : 1;
    }
    if (x->site != y->site) {
        return x->site < y->site ? -1 : 1;
    }
    return x->step < y->step ? -1 : x->step > y->step;
}

static void add_to_group(lp_group *group, const lp_block *block, const lp_block *before, uint32_t first, uint32_t last) {
    group->count++;
    group->bytes += block->bytes;
    group->last_step = block->step;
    if (block->step < first || block->step > last) {
        return;
    }
    group->window_count++;
    group->window_bytes += block->bytes;
    group->window_steps += before == NULL || before->step != block->step;
}

lp_status lp_ledger_groups(uint32_t first, uint32_t last, lp_group **out_groups, size_t *out_count) {
    lp_block *copy = NULL;
    size_t count = 0, groups = 0;
    *out_groups = NULL;
    *out_count = 0;
    lp_status status = copy_blocks(&copy, &count);
    lp_group *found = status == LP_OK ? lp_raw_calloc(count + 1, sizeof(lp_group)) : NULL;
    if (found == NULL) {
        lp_raw_free(copy);
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        copy[i].site = lp_site_base(copy[i].site);
    }
    qsort(copy, count, sizeof(lp_block), by_group);
    for (size_t i = 0; i < count; i++) {
        int same = i > 0 && copy[i - 1].medium == copy[i].medium && copy[i - 1].site == copy[i].site;
        if (!same) {
            found[groups++] = (lp_group){.medium = copy[i].medium, .site = copy[i].site, .first_step = copy[i].step};
        }
        add_to_group(&found[groups - 1], &copy[i], same ? &copy[i - 1] : NULL, first, last);
    }
    lp_raw_free(copy);
    *out_groups = found;
    *out_count = groups;
    return LP_OK;
}

lp_status lp_ledger_series(lp_medium medium, lp_site_id site, lp_cohort **out_cohorts, size_t *out_count) {
    lp_block *copy = NULL;
    size_t count = 0, kept = 0, cohorts = 0;
    *out_cohorts = NULL;
    *out_count = 0;
    lp_status status = copy_blocks(&copy, &count);
    if (status != LP_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (copy[i].medium == medium && lp_site_base(copy[i].site) == site) {
            copy[i].site = site;
            copy[kept++] = copy[i];
        }
    }
    qsort(copy, kept, sizeof(lp_block), by_group);
    lp_cohort *found = lp_raw_calloc(kept + 1, sizeof(lp_cohort));
    for (size_t i = 0; found != NULL && i < kept; i++) {
        if (cohorts == 0 || found[cohorts - 1].step != copy[i].step) {
            found[cohorts++].step = copy[i].step;
        }
        found[cohorts - 1].count++;
        found[cohorts - 1].bytes += copy[i].bytes;
    }
    lp_raw_free(copy);
    *out_cohorts = found;
    *out_count = cohorts;
    return found == NULL ? LP_NO_MEMORY : LP_OK;
}

lp_status lp_ledger_check(void) {
    lp_totals sums[LP_MEDIUM_COUNT] = {{0}};
    lp_status status = LP_OK;
    lp_lock_take(&lock);
    size_t count = 0;
    for (size_t i = 0; blocks.slots != NULL && i <= blocks.mask; i++) {
        const lp_block *block = &blocks.slots[i];
        if (block->address != 0) {
            sums[block->medium].live_bytes += block->bytes;
            sums[block->medium].live_count++;
            count++;
            if (lp_blocks_find(&blocks, block->address) != block) {
                status = LP_BAD_INPUT;
            }
        }
    }
    for (int m = 0; m < LP_MEDIUM_COUNT; m++) {
        if (sums[m].live_bytes != totals[m].live_bytes || sums[m].live_count != totals[m].live_count) {
            status = LP_BAD_INPUT;
        }
    }
    lp_lock_release(&lock);
    return count == blocks.count ? status : LP_BAD_INPUT;
}

void lp_ledger_reset_in_child(void) {
    lp_lock_reset_in_child(&lock);
}
