/* The largest block of each site beside a plain model. */
#include "harness.h"

#include <stdlib.h>

#include "ledger/backing.h"
#include "ledger/epoch.h"

enum { SITES = 300, FIRST = LP_SITE_FIRST, STEPS = 60 };

static void test_records_are_the_model(void) {
    static lp_backing model[SITES];
    lp_epoch_reset(1);
    lp_backing_reset();
    for (uint32_t step = 0; step < STEPS; step++, lp_epoch_advance()) {
        for (uint32_t k = 0; k < SITES; k++) {
            uint32_t at = (uint32_t)rand() % SITES, bytes = LP_BACKING_LARGE_BYTES + 1 + (uint32_t)rand() % 100000;
            lp_backing *m = &model[at];
            lp_backing_note(FIRST + at, bytes);
            m->first_step = m->bytes == 0 ? step : m->first_step;
            if (bytes > m->bytes) {
                m->record_steps += m->bytes == 0 || m->last_step != step;
                m->bytes = bytes, m->last_step = step;
                m->first_bytes = m->first_step == step ? bytes : m->first_bytes;
            }
        }
        CHECK(lp_backing_is_valid());
    }
    for (uint32_t i = 0; i < lp_backing_count(); i++) {
        lp_backing found = lp_backing_at(i);
        const lp_backing *m = &model[found.site - FIRST];
        CHECK(found.bytes == m->bytes && found.first_bytes == m->first_bytes && found.first_step == m->first_step);
        CHECK(found.last_step == m->last_step && found.record_steps == m->record_steps);
    }
    CHECK(lp_backing_count() == SITES && lp_backing_dropped_at() == -1);
}

static void test_blocks_that_were_extended_are_counted_once_a_step(void) {
    lp_epoch_reset(1);
    lp_backing_reset();
    lp_backing_note_extended(FIRST);   /* no record yet */
    CHECK(lp_backing_count() == 0);
    for (uint32_t step = 0; step < 10; step++, lp_epoch_advance()) {
        lp_backing_note(FIRST, step < 8 ? 1000 + step : 1000);
        for (uint32_t k = 0; k < step % 2 * 3; k++) {
            lp_backing_note_extended(FIRST);
        }
    }
    CHECK(lp_backing_at(0).record_steps == 8 && lp_backing_at(0).extended_steps == 4);   /* no record in step 9 */
}

static void test_lines_that_extend_one_another_s_blocks_are_one_family(void) {
    lp_backing_reset();
    for (uint32_t i = 0; i < 6; i++) {
        lp_backing_note(FIRST + i, 1000);
    }
    lp_backing_join(FIRST, FIRST + 50);   /* of no record */
    lp_backing_join(FIRST + 1, FIRST + 1);
    CHECK(lp_backing_at(0).family == 0 && lp_backing_at(1).family == 0);
    lp_backing_join(FIRST, FIRST + 1);
    lp_backing_join(FIRST + 2, FIRST + 3);
    CHECK(lp_backing_at(0).family == lp_backing_at(1).family && lp_backing_at(0).family != 0);
    CHECK(lp_backing_at(2).family == lp_backing_at(3).family && lp_backing_at(2).family != lp_backing_at(0).family);
    lp_backing_join(FIRST + 3, FIRST + 4);
    lp_backing_join(FIRST + 4, FIRST + 1);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(lp_backing_at(i).family == lp_backing_at(0).family);
    }
    CHECK(lp_backing_at(5).family == 0 && lp_backing_is_valid());
}

static void test_sites_beyond_the_table_are_counted(void) {
    lp_backing_reset();
    CHECK(lp_backing_count() == 0 && lp_backing_is_valid());
    lp_backing_note(LP_SITE_SELF, 1000);
    CHECK(lp_backing_count() == 0);
    for (uint32_t i = 0; i < LP_BACKING_SITES + 5; i++) {
        lp_backing_note(FIRST + i, 1000);
    }
    CHECK(lp_backing_count() == LP_BACKING_SITES && lp_backing_dropped_at() == lp_step_now && lp_backing_is_valid());
    lp_backing_note(FIRST, 2000);
    CHECK(lp_backing_at(0).bytes == 2000);
}

static void test_a_full_table_forgets_what_set_one_record_before(void) {
    uint32_t last = FIRST + LP_BACKING_SITES;
    lp_epoch_advance();
    for (uint32_t i = 0; i < 7; i++) {
        lp_backing_note(FIRST + i, 3000);   /* a second record */
    }
    lp_backing_note(last, 1000);
    CHECK(lp_backing_count() == 8 && lp_backing_is_valid());
    CHECK(lp_backing_at(0).bytes == 3000 && lp_backing_at(0).record_steps == 2 && lp_backing_at(7).site == last);
    for (uint32_t i = 8; i < LP_BACKING_SITES + 3; i++) {
        lp_backing_note(last + i, 1000);
    }
    CHECK(lp_backing_count() == LP_BACKING_SITES && lp_backing_dropped_at() == lp_step_now && lp_backing_is_valid());
}

static void test_a_full_table_forgets_what_has_stopped_to_grow(void) {
    enum { GROWING = 9, SETTLED = 400 };
    lp_backing_reset();
    lp_epoch_reset(1);
    for (uint32_t i = 0; i < LP_BACKING_SITES; i++) {
        lp_backing_note(FIRST + i, 1000);
    }
    lp_epoch_advance();
    for (uint32_t i = 0; i < LP_BACKING_SITES; i++) {
        lp_backing_note(FIRST + i, 2000);   /* two records each, in two steps */
    }
    for (uint32_t step = 2; step < SETTLED; step++, lp_epoch_advance()) {
        for (uint32_t i = 0; i < GROWING; i++) {
            lp_backing_note(FIRST + i, 2000 + (uint64_t)step);
        }
    }
    lp_backing_note(FIRST + LP_BACKING_SITES, 1000);
    CHECK(lp_backing_dropped_at() == -1 && lp_backing_is_valid());
    CHECK(lp_backing_count() == GROWING + 1 && lp_backing_at(GROWING).site == FIRST + LP_BACKING_SITES);
}

static void test_a_full_table_keeps_what_doubles(void) {
    enum { DOUBLINGS = 9 };
    lp_backing_reset();
    lp_epoch_reset(1);
    for (uint32_t step = 0; step < 1 << DOUBLINGS; step++, lp_epoch_advance()) {
        if ((step & (step + 1)) == 0) {   /* 0, 1, 3, 7: as a dict that takes one entry a step */
            lp_backing_note(FIRST, 1000 * ((uint64_t)step + 1));
        }
        for (uint32_t i = 0; i < LP_BACKING_SITES / 16; i++) {
            lp_backing_note(FIRST + 1 + step * (LP_BACKING_SITES / 16) + i, 1000);
        }
        CHECK(lp_backing_at(0).site == FIRST);
    }
    CHECK(lp_backing_at(0).record_steps == DOUBLINGS + 1 || lp_backing_at(0).record_steps == DOUBLINGS);
    CHECK(lp_backing_is_valid());
}

int main(void) {
    test_records_are_the_model();
    test_blocks_that_were_extended_are_counted_once_a_step();
    test_lines_that_extend_one_another_s_blocks_are_one_family();
    test_sites_beyond_the_table_are_counted();
    test_a_full_table_forgets_what_set_one_record_before();
    test_a_full_table_forgets_what_has_stopped_to_grow();
    test_a_full_table_keeps_what_doubles();
    return 0;
}
