/* Live counts beside a plain model of them, the spans of the series, and a scan in slices. */
#include "harness.h"

#include <stdlib.h>

#include "base/rawmem.h"
#include "ledger/alive.h"
#include "ledger/epoch.h"
#include "ledger/scan.h"
#include "ledger/site_series.h"

enum { BLOCKS = 4000, SITES = 40, FIRST = LP_SITE_FIRST };

typedef struct block {
    uint32_t site, step;   /* site 0: not alive */
    int is_small;
} block;

static block model[BLOCKS];

static void *address_of(uint32_t i) { return (void *)(uintptr_t)(0x500000000000ull + (uint64_t)i * 0x8010); }

static void names(const void *code, uint32_t offset, char *filename, size_t filename_bytes, char *function,
                  size_t function_bytes) {
    (void)offset;
    (void)code;
    snprintf(filename, filename_bytes, "a.py");
    snprintf(function, function_bytes, "f");
}

static uint32_t line(const void *code, uint32_t offset) {
    (void)code;
    return offset;
}

static int is_own(const void *code) { return code == NULL; }

static const lp_site_resolver resolver = {names, line, is_own, NULL, NULL};

static void make_sites(void) {
    for (uint32_t i = 0; i < SITES; i++) {
        lp_raw_frame frame = {&resolver, i + 1};
        CHECK(lp_site_intern(&frame, 1) == FIRST + i);
    }
}

static void die(uint32_t i) {
    lp_alive_died(address_of(i));
    model[i].site = 0;
}

static void be_born(uint32_t i, uint32_t site, int is_small) {
    lp_alive_born(address_of(i), is_small, LP_STAMP(site, lp_epoch_now));
    model[i] = (block){site, lp_step_now, is_small};
}

static uint32_t count_model(uint32_t site, uint32_t first, uint32_t last) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        count += model[i].site == site && model[i].step >= first && model[i].step <= last;
    }
    return count;
}

static void check_counts(void) {
    for (uint32_t site = FIRST; site < FIRST + SITES; site++) {
        CHECK(lp_alive_now(site) == count_model(site, 0, UINT32_MAX));
    }
    CHECK(lp_alive_is_valid());
}

static void check_scan(int slices) {
    lp_site_id asked[3] = {FIRST + 1, FIRST + 7, FIRST + 30};
    uint32_t begun = lp_step_now, rest = slices;
    CHECK(lp_scan_begin(asked, 3) == LP_OK && lp_scan_slice(0) == 0);
    while (lp_scan_slice(rest-- > 0 ? 0 : 1000000000) == 0) {
        uint32_t i = (uint32_t)rand() % BLOCKS;   /* the program goes on meanwhile */
        die(i);
        be_born(i, FIRST + (uint32_t)rand() % SITES, rand() % 4 == 0);
        die((uint32_t)rand() % BLOCKS);
    }
    lp_scan_row *rows;
    size_t count, total = 0;
    CHECK(lp_scan_rows(&rows, &count) == LP_OK);
    for (size_t i = 0; i < count; i++) {
        CHECK(rows[i].last_step < begun &&
              rows[i].count == count_model(rows[i].site, rows[i].first_step, rows[i].last_step));
        total += rows[i].count;
    }
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 3; i++) {
        expected += begun == 0 ? 0 : count_model(asked[i], 0, begun - 1);
    }
    CHECK(total == expected);
    lp_raw_free(rows);
    lp_scan_end();
    CHECK(lp_scan_rows(&rows, &count) == LP_NOT_FOUND && lp_scan_slice(1) == LP_NOT_FOUND);
}

/* Sizes change, small ones too; a block is written over whose death went by; growth stamps come between. */
static void test_counts_and_scans_are_the_model(void) {
    srand(7);
    lp_shadow_reset();
    lp_epoch_reset(1);
    lp_series_reset(0);
    for (uint32_t step = 0; step < 200; step++) {
        for (uint32_t k = 0; k < 300; k++) {
            uint32_t i = (uint32_t)rand() % BLOCKS, action = (uint32_t)rand() % 8;
            if (action < 4) {
                if (rand() % 2) {
                    die(i);
                }
                int is_small = model[i].site != 0 ? model[i].is_small : rand() % 4 == 0;
                be_born(i, FIRST + (uint32_t)rand() % SITES, is_small);
            } else if (action < 7) {
                die(i);
            } else {
                die(i);
                lp_alive_grown(address_of(i), LP_STAMP(FIRST, lp_epoch_now));
            }
        }
        check_counts();
        lp_series_mark(1);
        CHECK(lp_series_is_valid());
        lp_epoch_advance();
        if (step % 10 == 0) {
            check_scan((int)step);
        }
    }
}

/* Two small blocks of one granule die one after the other. */
static void test_small_blocks_share_a_granule(void) {
    char *left = (char *)0x510000000000ull, *right = left + 16;
    lp_shadow_reset();
    lp_alive_born(left, 1, LP_STAMP(FIRST, 1));
    lp_alive_born(right, 1, LP_STAMP(FIRST + 1, 1));
    CHECK(lp_alive_now(FIRST) == 1 && lp_alive_now(FIRST + 1) == 1);
    lp_alive_died(left);
    CHECK(lp_alive_now(FIRST) == 0 && lp_alive_now(FIRST + 1) == 1);
    lp_alive_died(right);
    CHECK(lp_alive_now(FIRST + 1) == 0 && lp_shadow_get(left, 0) == 0);
    lp_alive_died(right);
    CHECK(lp_alive_now(FIRST + 1) == 0);
}

/* Live counts of the mark after each step, and what the spans must hold. */
static void check_spans(uint32_t row, const uint32_t *live, const uint32_t *births, uint32_t steps) {
    lp_series_span spans[LP_SERIES_SPANS];
    lp_series_state state = lp_series_get_state();
    uint32_t count = lp_series_read(row, spans);
    CHECK((count - 1) * state.width < steps && steps <= count * state.width);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t low = UINT32_MAX, high = 0, born = 0;
        for (uint32_t s = i * state.width; s < (i + 1) * state.width && s < steps; s++) {
            low = live[s] < low ? live[s] : low;
            high = live[s] > high ? live[s] : high;
            born += births[s];
        }
        CHECK(spans[i].low == low && spans[i].high == high && spans[i].births == born);
    }
}

/* One to five are born in a step, and up to five die. */
static void test_spans_hold_lowest_highest_and_births(void) {
    enum { STEPS = 1500 };
    static uint32_t live[STEPS], births[STEPS];
    uint32_t born = 0;
    lp_shadow_reset();
    lp_epoch_reset(1);
    lp_series_reset(0);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t k = (uint32_t)rand() % 5 + 1; k > 0; k--) {
            lp_alive_born(address_of(born++), 0, LP_STAMP(FIRST + 5, lp_epoch_now));
            births[step] += step > 0;   /* a site has its row from its second step of births on */
        }
        for (uint32_t k = (uint32_t)rand() % 6; k > 0 && step > 1 && lp_alive_now(FIRST + 5) > 1; k--) {
            lp_alive_died(address_of((uint32_t)rand() % born));
        }
        live[step] = lp_alive_now(FIRST + 5);
        lp_series_mark(1);
        CHECK(lp_series_is_valid());
        lp_epoch_advance();
        if (step >= 1 && (step < 200 || step % 37 == 0)) {
            int row = lp_series_find(FIRST + 5);
            CHECK(row > 0);
            check_spans((uint32_t)row, live, births, step + 1);
        }
    }
}

/* A leak rises; a ring is level once it is full; what lives for a step has no row. */
static void test_what_rises_is_found(void) {
    lp_shadow_reset();
    lp_epoch_reset(1);
    lp_series_reset(0);
    uint32_t next = 0;
    for (uint32_t step = 0; step < 700; step++) {
        lp_alive_born(address_of(next++), 0, LP_STAMP(FIRST + 1, lp_epoch_now));
        lp_alive_died(address_of(100000 + step % 20));
        lp_alive_born(address_of(100000 + step % 20), 0, LP_STAMP(FIRST + 2, lp_epoch_now));
        lp_alive_born(address_of(200000), 0, LP_STAMP(FIRST + 3, lp_epoch_now));
        lp_alive_died(address_of(200000));
        lp_series_mark(1);
        CHECK(lp_series_is_valid());
        lp_epoch_advance();
    }
    lp_series_row found[8];
    CHECK(lp_series_rising(64, 5, found, 8) == 1 && found[0].site == FIRST + 1 && found[0].live == 700);
    CHECK(lp_series_find(FIRST + 2) > 0 && lp_series_find(FIRST + 3) < 0);
    CHECK(lp_series_rising(600, 1000, found, 8) == 0);
}

/* After a warm-up of 300 steps the spans are of one step again, and know what was alive. */
static void test_spans_begin_anew_after_a_long_warmup(void) {
    lp_shadow_reset();
    lp_epoch_reset(1);
    lp_series_reset(lp_step_now);
    uint32_t first = lp_step_now, next = 0;
    lp_series_begin_at(first + 300);
    for (uint32_t step = 0; step < 340; step++) {
        lp_alive_born(address_of(next++), 0, LP_STAMP(FIRST + 1, lp_epoch_now));
        lp_series_mark(1);
        CHECK(lp_series_is_valid());
        lp_epoch_advance();
        if (step == 200) {
            CHECK(lp_series_get_state().width > 1);
        }
    }
    lp_series_state state = lp_series_get_state();
    CHECK(state.width == 1 && state.closed == 40 && state.first_step == first + 300);
    lp_series_span spans[LP_SERIES_SPANS];
    CHECK(lp_series_read((uint32_t)lp_series_find(FIRST + 1), spans) == 40);
    for (uint32_t i = 0; i < 40; i++) {
        CHECK(spans[i].low == 301 + i && spans[i].high == 301 + i && spans[i].births == 1);
    }
    lp_series_row found[8];
    CHECK(lp_series_rising(first + 300, 30, found, 8) == 1 && found[0].site == FIRST + 1);
    lp_series_begin_at(0);
}

/* A count without its stamp, a stamp without its count; of growth stamps and marks there is none. */
static void test_counts_that_are_not_those_of_the_stamps_are_not_valid(void) {
    lp_shadow_reset();
    CHECK(lp_alive_is_valid());
    for (int is_small = 0; is_small < 2; is_small++) {
        lp_alive_born(address_of(1), is_small, LP_STAMP(FIRST, lp_epoch_now));
        lp_alive_grown(address_of(3), LP_STAMP(FIRST, lp_epoch_now));
        CHECK(lp_alive_is_valid());
        lp_alive[FIRST].deaths++;
        CHECK(!lp_alive_is_valid());
        lp_alive[FIRST].deaths--;
        lp_shadow_set(address_of(5), is_small, LP_STAMP(FIRST + 1, lp_epoch_now));
        CHECK(!lp_alive_is_valid());
        lp_shadow_set(address_of(5), is_small, 0);
        lp_alive_died(address_of(1));
        CHECK(lp_alive_is_valid() && lp_alive_now(FIRST) == 0);
    }
}

static void be_born_quickly(uint32_t i, uint32_t site) {
    lp_stamp stamp = LP_STAMP(site, lp_epoch_now);
    if (!lp_alive_born_quick(lp_shadow_make_place(address_of(i), 0), site, stamp)) {
        lp_alive_born(address_of(i), 0, stamp);
    }
}

/* Hooks put births on a list, which is emptied where it is full, where somebody reads, and where all is forgotten. */
static void test_births_are_counted_by_the_time_they_are_read(void) {
    for (uint32_t all = 1; all < 1000; all += 111) {
        lp_shadow_reset();
        lp_series_reset(lp_step_now);
        for (uint32_t i = 0; i < all; i++) {
            be_born_quickly(i, FIRST + i % 3);
        }
        for (uint32_t rest = 0; rest < 3; rest++) {
            CHECK(lp_alive_now(FIRST + rest) == (all + 2 - rest) / 3);
        }
        lp_series_mark(1);
        be_born_quickly(all, FIRST);
        lp_series_mark(1);
        be_born_quickly(all + 1, FIRST);
        CHECK(lp_series_get_row((uint32_t)lp_series_find(FIRST)).births == (all + 2) / 3 + 2);
        CHECK(lp_alive_is_valid());
        be_born_quickly(all + 2, FIRST);
    }
    lp_shadow_reset();
    CHECK(lp_alive_now(FIRST) == 0 && lp_alive_is_valid());
}

/* What has died and is counted still is no peak. */
static void test_counts_that_are_not_exact_are_no_peak(void) {
    lp_shadow_reset();
    lp_series_reset(lp_step_now);
    for (uint32_t i = 0; i < 10; i++) {
        be_born_quickly(i, FIRST);
        lp_series_mark(1);
    }
    int at = lp_series_find(FIRST);
    be_born_quickly(10, FIRST);
    lp_series_mark(0);
    static lp_series_span spans[LP_SERIES_SPANS];
    CHECK(at > 0 && lp_series_read((uint32_t)at, spans) >= 11);
    CHECK(spans[9].low == 10 && spans[9].high == 10 && spans[10].low == 11 && spans[10].high < 11);
}

int main(void) {
    CHECK(lp_series_find(FIRST) < 0);
    lp_series_mark(1);
    CHECK(lp_shadow_init() == LP_OK && lp_site_init(&resolver) == LP_OK && lp_series_init() == LP_OK);
    make_sites();
    test_counts_and_scans_are_the_model();
    test_counts_that_are_not_those_of_the_stamps_are_not_valid();
    test_births_are_counted_by_the_time_they_are_read();
    test_counts_that_are_not_exact_are_no_peak();
    test_small_blocks_share_a_granule();
    test_spans_hold_lowest_highest_and_births();
    test_what_rises_is_found();
    test_spans_begin_anew_after_a_long_warmup();
    return 0;
}
