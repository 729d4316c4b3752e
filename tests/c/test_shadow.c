/* Stamps over many leaves, what a rewrite of epochs touches, and how fine merged epochs stay. */
#include "harness.h"

#include <string.h>

#include "base/rawmem.h"
#include "ledger/epoch.h"

static void *at(uint64_t granule) { return (void *)(uintptr_t)(0x400000000000ull + granule * 32); }

static void test_a_rewrite_changes_epochs_only_and_touches_no_new_page(void) {
    static uint16_t new_epoch[LP_EPOCH_MAX + 1];
    for (uint32_t e = 1; e <= LP_EPOCH_MAX; e++) {
        new_epoch[e] = (uint16_t)(1 + e / 3);
    }
    for (uint64_t i = 0; i < 200; i++) {
        lp_shadow_set(at(i * 100003), 0, LP_STAMP(i + 16, 1 + i * 20));
    }
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(lp_shadow_get(at((1 << 21) + i * 4099), 0) == 0 || i == 0);
    }
    uint64_t before = lp_raw_overhead_bytes();
    lp_shadow_remap_epochs(new_epoch);
    CHECK(lp_raw_overhead_bytes() == before);
    for (uint64_t i = 0; i < 200; i++) {
        CHECK(lp_shadow_get(at(i * 100003), 0) == LP_STAMP(i + 16, 1 + (1 + i * 20) / 3));
        CHECK(lp_shadow_get(at(i * 100003 + 1), 0) == 0);
    }
    lp_shadow_reset();
    CHECK(lp_shadow_get(at(0), 0) == 0 && lp_raw_overhead_bytes() < before);
}

static void test_a_leaf_that_can_not_be_made_is_counted(void) {
    void *elsewhere = (void *)(uintptr_t)0x600000000000ull;
    lp_raw_fail_after = 0;
    lp_shadow_set(elsewhere, 0, 1);
    lp_raw_fail_after = -1;
    CHECK(lp_shadow_dropped_count() == 1 && lp_shadow_get(elsewhere, 0) == 0);
    lp_shadow_set(elsewhere, 0, 5);
    CHECK(lp_shadow_dropped_count() == 1 && lp_shadow_get(elsewhere, 0) == 5);
    lp_shadow_reset();
    CHECK(lp_shadow_dropped_count() == 0);
}

/* Epochs are consecutive ranges from step 0 to now; the newest 1,024 steps are exact, and no
 * range is longer than a small part of the run. */
static void check_ranges(uint32_t steps) {
    uint32_t next = 0, longest = 0;
    for (uint32_t e = 1; e <= lp_epoch_now; e++) {
        lp_epoch_range range = lp_epoch_steps(e);
        CHECK(range.first_step == next && range.last_step >= range.first_step);
        uint32_t length = range.last_step - range.first_step + 1;
        longest = length > longest ? length : longest;
        CHECK(length == 1 || range.last_step + 1024 <= steps);
        next = range.last_step + 1;
    }
    CHECK(next == steps + 1 && longest <= 2 + steps / 700);
}

static void test_ranges_stay_even(void) {
    lp_epoch_reset(1);
    for (uint32_t step = 1; step <= 300000; step++) {
        CHECK(lp_epoch_advance() == step);
        if (step % 7919 == 0 || step == 4094 || step == 4095) {
            check_ranges(step);
        }
    }
}

/* More changes of mode than epochs: ranges are joined all the same, and nothing is lost. */
static void test_a_mode_that_changes_at_every_step(void) {
    lp_epoch_reset(1);
    for (uint32_t step = 1; step <= 20000; step++) {
        lp_epoch_advance();
        lp_epoch_set_mode((uint8_t)(1 + step % 2));
    }
    CHECK(lp_epoch_steps(1).first_step == 0 && lp_epoch_steps(lp_epoch_now).last_step == 20000);
    for (uint32_t e = 2; e <= lp_epoch_now; e++) {
        CHECK(lp_epoch_steps(e).first_step == lp_epoch_steps(e - 1).last_step + 1);
    }
}

/* Stamps are judged by what epochs and sites there are. */
static void test_a_stamp_of_no_epoch_or_site_is_not_valid(void) {
    lp_shadow_reset();
    CHECK(lp_shadow_is_valid(2, 20));
    for (int is_small = 0; is_small < 2; is_small++) {
        lp_shadow_set(at(1), is_small, LP_STAMP(19, 1));
        CHECK(lp_shadow_is_valid(2, 20) && !lp_shadow_is_valid(1, 20) && !lp_shadow_is_valid(2, 19));
        lp_shadow_set(at(1), is_small, LP_STAMP(19, 0));
        CHECK(!lp_shadow_is_valid(2, 20));
        lp_shadow_set(at(1), is_small, 0);
        CHECK(lp_shadow_is_valid(1, 1));
    }
}

/* Births only have stamps in the small shadow. */
static void test_marks_and_growth_stamps_stand_in_one_shadow(void) {
    const lp_stamp special[] = {LP_STAMP_IS_SMALL, LP_STAMP(19, 1) | LP_STAMP_GROWTH};
    lp_shadow_reset();
    for (int i = 0; i < 2; i++) {
        for (int is_small = 0; is_small < 2; is_small++) {
            lp_shadow_set(at(1), is_small, special[i]);
            CHECK(lp_shadow_is_valid(2, 20) == !is_small);
            lp_shadow_set(at(1), is_small, 0);
        }
    }
    lp_shadow_set(at(1), 0, LP_STAMP(19, 2) | LP_STAMP_GROWTH);
    CHECK(!lp_shadow_is_valid(2, 20) && lp_shadow_is_valid(3, 20));
    lp_shadow_set(at(1), 0, 0);
}

/* A leaf under a second address would give each stamp to two blocks. */
static void test_a_leaf_that_hangs_in_two_places_is_not_valid(void) {
    enum { APART = 100000 };
    uintptr_t *slot = &lp_shadow_blocks[(uintptr_t)at(1) >> (LP_SHADOW_LEAF_LG + lp_shadow_granule_lg(0))];
    uintptr_t *other = slot + APART;
    uintptr_t leaf_bytes = LP_SHADOW_LEAF_STAMPS * sizeof(lp_stamp);
    lp_shadow_set(at(1), 0, LP_STAMP(19, 1));
    CHECK(*slot != 0 && *other == 0 && lp_shadow_is_valid(2, 20));
    const uintptr_t wrong[] = {*slot, *slot - APART * leaf_bytes, *slot - APART * leaf_bytes + sizeof(lp_stamp)};
    for (int i = 0; i < 3; i++) {
        *other = wrong[i];
        CHECK(!lp_shadow_is_valid(2, 20));
    }
    *other = 0;
    CHECK(lp_shadow_is_valid(2, 20));
}

int main(void) {
    CHECK(lp_shadow_get(at(1), 0) == 0);
    CHECK(lp_shadow_init() == LP_OK && lp_shadow_init() == LP_OK);
    test_a_rewrite_changes_epochs_only_and_touches_no_new_page();
    test_a_leaf_that_can_not_be_made_is_counted();
    test_ranges_stay_even();
    test_a_mode_that_changes_at_every_step();
    test_a_stamp_of_no_epoch_or_site_is_not_valid();
    test_marks_and_growth_stamps_stand_in_one_shadow();
    test_a_leaf_that_hangs_in_two_places_is_not_valid();
    return 0;
}
