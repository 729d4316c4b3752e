/* Stamps and epochs: what is written is read, and merged epochs still hold the birth step. */
#include "harness.h"

#include "base/rawmem.h"
#include "ledger/epoch.h"

enum { BLOCKS = 3000 };

static void *address_of(uint32_t i) { return (void *)(uintptr_t)(0x500000000000ull + (uint64_t)i * 0x10010); }

static void test_a_stamp_is_read_as_written(void) {
    lp_shadow_set(address_of(1), 0, LP_STAMP(77, 5));
    CHECK(lp_shadow_get(address_of(1), 0) == LP_STAMP(77, 5));
    CHECK(lp_shadow_get((char *)address_of(1) + 32, 0) == 0);
    CHECK(LP_STAMP_SITE(LP_STAMP(0x7FFFF, 4095)) == 0x7FFFF && LP_STAMP_EPOCH(LP_STAMP(0x7FFFF, 4095)) == 4095);
    lp_shadow_reset();
    CHECK(lp_shadow_get(address_of(1), 0) == 0);
}

/* Neighbours of 32 bytes, and of 16 in the other shadow; neither shadow sees what the other holds. */
static void test_neighbours_have_stamps_of_their_own(void) {
    char *start = address_of(7);
    for (uint32_t i = 0; i < 64; i++) {
        lp_shadow_set(start + 32 * i, 0, LP_STAMP(100 + i, 1));
        lp_shadow_set(start + 16 * i, 1, LP_STAMP(200 + i, 2));
    }
    for (uint32_t i = 0; i < 64; i++) {
        CHECK(lp_shadow_get(start + 32 * i, 0) == LP_STAMP(100 + i, 1));
        CHECK(lp_shadow_get(start + 16 * i, 1) == LP_STAMP(200 + i, 2));
    }
    CHECK(lp_shadow_get(start + 32 * 64, 0) == 0 && lp_shadow_get(start + 16 * 64, 1) == 0);
    lp_shadow_reset();
    CHECK(lp_shadow_get(start, 0) == 0 && lp_shadow_get(start, 1) == 0);
}

static void test_addresses_beyond_48_bits_have_no_stamp(void) {
    void *far = (void *)(uintptr_t)(1ull << 52);
    lp_shadow_set(far, 0, LP_STAMP(1, 1));
    lp_shadow_set(far, 1, LP_STAMP(1, 1));
    CHECK(lp_shadow_get(far, 0) == 0 && lp_shadow_get(far, 1) == 0);
}

/* One block is born every `every` steps; after all steps each range holds its birth step. */
static void test_a_long_run(uint32_t steps, uint32_t every) {
    static uint32_t birth[BLOCKS];
    uint32_t blocks = 0;
    lp_shadow_reset();
    lp_epoch_reset(1);
    for (uint32_t step = 0; step < steps; step++) {
        if (step % every == 0 && blocks < BLOCKS) {
            birth[blocks] = lp_step_now;
            lp_shadow_set(address_of(blocks++), 0, LP_STAMP(9, lp_epoch_now));
        }
        CHECK(lp_epoch_advance() == step + 1 || steps == 0);
    }
    for (uint32_t i = 0; i < blocks; i++) {
        lp_stamp stamp = lp_shadow_get(address_of(i), 0);
        lp_epoch_range range = lp_epoch_steps(LP_STAMP_EPOCH(stamp));
        CHECK(LP_STAMP_SITE(stamp) == 9 && range.mode == 1);
        CHECK(range.first_step <= birth[i] && birth[i] <= range.last_step);
        if (steps - birth[i] < 1000) {
            CHECK(range.first_step == range.last_step);
        }
    }
}

/* What two scans say of one birth step must agree, also where a reader puts steps together by powers of two: no range
 * reaches across a multiple of the least power that is as long as it. */
static void test_ranges_are_spans_of_a_power_of_two(void) {
    uint32_t merges = 0;
    lp_epoch_reset(1);
    for (int i = 0; i < 60000; i++) {
        uint32_t epoch = lp_epoch_now;
        lp_epoch_advance();
        if (lp_epoch_now > epoch) {
            continue;
        }
        merges++;
        CHECK(lp_epoch_now <= LP_EPOCH_MAX - 1535);
        for (uint32_t e = 1; e <= lp_epoch_now; e++) {
            lp_epoch_range range = lp_epoch_steps(e);
            uint32_t span = 1;
            while (span <= range.last_step - range.first_step) {
                span *= 2;
            }
            CHECK(range.first_step / span == range.last_step / span);
        }
    }
    CHECK(merges > 10);
}

static void test_epochs_of_two_modes_are_not_merged(void) {
    lp_epoch_reset(1);
    for (int i = 0; i < 10; i++) {
        lp_epoch_advance();
    }
    lp_epoch_set_mode(2);
    uint32_t changed = lp_step_now;
    for (int i = 0; i < 20000; i++) {
        lp_epoch_advance();
    }
    for (uint32_t e = 1; e <= lp_epoch_now; e++) {
        lp_epoch_range range = lp_epoch_steps(e);
        CHECK(range.mode == (range.last_step < changed ? 1 : 2));
    }
    CHECK(lp_epoch_steps(0).mode == 0);
}

int main(void) {
    CHECK(lp_shadow_init() == LP_OK);
    test_a_stamp_is_read_as_written();
    test_neighbours_have_stamps_of_their_own();
    test_addresses_beyond_48_bits_have_no_stamp();
    test_a_long_run(100, 1);
    test_a_long_run(5000, 3);
    test_a_long_run(100000, 40);
    test_ranges_are_spans_of_a_power_of_two();
    test_epochs_of_two_modes_are_not_merged();
    CHECK(lp_raw_overhead_bytes() > 0);
    return 0;
}
