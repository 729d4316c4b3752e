/* libFuzzer: births, deaths, steps and failing allocations from bytes, the ledger against a plain table.
 * One operation is 4 bytes: what, which address, how large, how often memory is still had. */
#include "fuzz.h"

#include <stdatomic.h>

#include "base/rawmem.h"
#include "ledger/epoch.h"
#include "ledger/ledger.h"

enum { ADDRESSES = 256, MEDIA = 4 };

typedef struct known {
    int live, medium;
    uint64_t bytes;
    uint32_t step;
    lp_site_id site;
} known;

static known table[ADDRESSES];
static uint64_t dropped[MEDIA], unmatched[MEDIA], overwritten[MEDIA];

static void *address_of(int number) {
    /* Close together and far apart: neighbours in the hash table and in the shadow. */
    return (void *)(uintptr_t)(0x7f0000000000ull + ((uint64_t)number % 16) * 16 +
                               ((uint64_t)number / 16) * 0x10000000ull);
}

static lp_totals totals_of(int medium) {
    lp_totals totals;
    lp_ledger_totals((lp_medium)medium, &totals);
    return totals;
}

static void add(int number, int medium, uint64_t bytes, lp_site_id site) {
    known *entry = &table[number];
    uint64_t before = totals_of(medium).dropped_count;
    lp_ledger_add((lp_medium)medium, address_of(number), bytes, site);
    if (totals_of(medium).dropped_count > before) {
        dropped[medium]++;
        return;
    }
    overwritten[medium] += (uint64_t)entry->live;
    *entry = (known){1, medium, bytes, lp_step_now, site};
}

static void death(int number, int medium) {
    known *entry = &table[number];
    int is_known = entry->live && entry->medium == medium;
    CHECK(lp_ledger_remove((lp_medium)medium, address_of(number)) == (is_known ? entry->bytes : 0));
    unmatched[medium] += !is_known;
    entry->live = entry->live && !is_known;
}

static void check_totals(void) {
    for (int medium = 0; medium < MEDIA; medium++) {
        uint64_t bytes = 0, count = 0;
        for (int i = 0; i < ADDRESSES; i++) {
            int is_here = table[i].live && table[i].medium == medium;
            bytes += is_here ? table[i].bytes : 0;
            count += (uint64_t)is_here;
        }
        lp_totals totals = totals_of(medium);
        CHECK(totals.live_bytes == bytes && totals.live_count == count && totals.peak_bytes >= bytes);
        CHECK(totals.dropped_count == dropped[medium] && totals.unmatched_count == unmatched[medium]);
    }
    CHECK(lp_ledger_is_valid());
}

static void check_series(int medium, lp_site_id site) {
    lp_cohort *cohorts;
    size_t count;
    uint64_t seen = 0, live = 0;
    if (lp_ledger_series((lp_medium)medium, site, &cohorts, &count) != LP_OK) {
        return;
    }
    for (size_t c = 0; c < count; c++) {
        CHECK(cohorts[c].count > 0 && (c == 0 || cohorts[c - 1].step < cohorts[c].step));
        seen += cohorts[c].bytes;
    }
    for (int i = 0; i < ADDRESSES; i++) {
        live += table[i].live && table[i].medium == medium && table[i].site == site ? table[i].bytes : 0;
    }
    CHECK(seen == live);
    lp_raw_free(cohorts);
}

static void check_copies(uint32_t first, uint32_t last) {
    lp_group *groups;
    lp_block *blocks;
    size_t group_count, block_count, live = 0, seen = 0;
    for (int i = 0; i < ADDRESSES; i++) {
        live += (size_t)table[i].live;
    }
    if (lp_ledger_groups(first, last, &groups, &group_count) == LP_OK) {
        for (size_t i = 0; i < group_count; i++) {
            seen += groups[i].count;
            CHECK(groups[i].window_count <= groups[i].count && groups[i].window_bytes <= groups[i].bytes);
        }
        CHECK(seen == live);
        lp_raw_free(groups);
    }
    if (lp_ledger_copy(&blocks, &block_count) == LP_OK) {
        CHECK(block_count == live);
        for (size_t i = 1; i < block_count; i++) {
            CHECK(blocks[i - 1].address < blocks[i].address);
        }
        lp_raw_free(blocks);
    }
}

static void run_operation(input *in) {
    uint8_t what = (uint8_t)take(in, 1);
    int number = (int)take(in, 1), medium = what / 8 % MEDIA;
    uint64_t size = take(in, 1), faults = take(in, 1);
    lp_site_id site = LP_SITE_FIRST + what / 32;
    atomic_store(&lp_raw_fail_after, faults >= 192 ? (long)(faults - 192) : -1);
    switch (what % 8) {
    case 0:
    case 1:
    case 2:
        add(number, medium, size * size * size, site);
        break;
    case 3:
    case 4:
        death(number, table[number].live && size % 8 ? table[number].medium : medium);
        break;
    case 5:
        lp_epoch_advance();
        break;
    case 6:
        check_series(medium, site);
        break;
    default:
        check_copies((uint32_t)size, (uint32_t)(size + faults));
    }
    atomic_store(&lp_raw_fail_after, -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int is_ready;
    if (!is_ready) {
        is_ready = 1;
        CHECK(lp_shadow_init() == LP_OK && lp_ledger_init() == LP_OK);
    }
    lp_ledger_reset();
    lp_epoch_reset(1);
    memset(table, 0, sizeof(table));
    memset(dropped, 0, sizeof(dropped));
    memset(unmatched, 0, sizeof(unmatched));
    input in = {data, size, 0};
    while (in.at < in.size) {
        run_operation(&in);
    }
    check_totals();
    check_copies(0, UINT32_MAX);
    return 0;
}
