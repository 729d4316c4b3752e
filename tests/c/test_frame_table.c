/* Frames and sites where code dies, memory runs out, or leakprobe's own frames lie between. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rawmem.h"
#include "ledger/frame_table.h"
#include "ledger/numbers.h"
#include "ledger/site.h"

static void names(const void *code, uint32_t offset, char *filename, size_t filename_bytes, char *function,
                  size_t function_bytes) {
    (void)offset;
    snprintf(filename, filename_bytes, "%d.py", *(const int *)code);
    snprintf(function, function_bytes, "f");
}

static uint32_t line(const void *code, uint32_t offset) {
    (void)code;
    return offset;
}

/* Negative numbers are leakprobe's code. */
static int is_own(const void *code) { return *(const int *)code < 0; }

static int user = 1, other = 2, own = -1;

static void test_own_frames_make_no_difference(void) {
    lp_raw_frame plain[2] = {{&user, 1}, {&other, 2}};
    lp_raw_frame between[3] = {{&user, 1}, {&own, 7}, {&other, 2}};
    lp_raw_frame below[4] = {{&user, 1}, {&other, 2}, {&own, 8}, {&own, 9}};
    lp_site_id a = lp_site_intern(plain, 2), b = lp_site_intern(between, 3), c = lp_site_intern(below, 4);
    CHECK(lp_site_base(b) == lp_site_base(a) && lp_site_base(c) == lp_site_base(a));
    lp_frame_text text[4];
    CHECK(lp_site_text(b, text, 4) == 2 && text[0].lineno == 1 && text[1].lineno == 2);
    CHECK(lp_site_intern(&between[1], 2) == LP_SITE_SELF);
    CHECK(lp_site_base(lp_site_intern(plain, 1)) != lp_site_base(a));
}

static void test_deep_stacks_are_cut(void) {
    static lp_raw_frame frames[LP_SITE_DEPTH_MAX + 5];
    static lp_frame_text text[LP_SITE_DEPTH_MAX + 5];
    for (uint32_t i = 0; i < LP_SITE_DEPTH_MAX + 5; i++) {
        frames[i] = (lp_raw_frame){&user, i};
    }
    lp_site_id site = lp_site_intern(frames, LP_SITE_DEPTH_MAX + 5);
    CHECK(site == lp_site_intern(frames, LP_SITE_DEPTH_MAX));
    CHECK(lp_site_text(site, text, LP_SITE_DEPTH_MAX + 5) == LP_SITE_DEPTH_MAX);
}

/* Code made and dropped over and over at one address: no chain may grow. */
static void test_an_address_used_over_and_over(void) {
    static int code;
    lp_raw_frame frames[2] = {{&code, 0}, {&user, 1}};
    lp_site_id last = 0, first[5] = {0};
    uint32_t stored = lp_site_count();
    uint64_t early_ns = 0, late_ns = 0;
    for (int i = 0; i < 40000; i++) {
        uint64_t start = lp_clock_ns();
        code = 10 + i % 5;
        lp_site_id site = lp_site_intern(frames, 2);
        CHECK(site != last && lp_site_intern(frames, 2) == site && lp_site_code_dies(&code) == 1);
        first[i % 5] = i < 5 ? site : first[i % 5];
        CHECK(site == first[i % 5]);
        last = site;
        *(i < 20000 ? &early_ns : &late_ns) += lp_clock_ns() - start;
    }
    CHECK(late_ns < 20 * early_ns && lp_site_count() == stored + 5);
    CHECK(lp_site_code_dies(&code) == 0);
    lp_frame_text text[2];
    CHECK(lp_site_text(last, text, 2) == 2 && strcmp(text[0].filename, "14.py") == 0);
}

/* Code at ever new addresses, and several copies of it alive at a time: as many sites as were ever alive at once. */
static void test_code_made_anew_elsewhere_takes_no_more_room(void) {
    enum { ALIVE = 7, ROUNDS = 30000 };
    static int codes[ROUNDS];
    uint32_t stored = lp_site_count();
    lp_site_id base_of[3] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        codes[i] = 100 + i % 3;
        lp_raw_frame frames[3] = {{&codes[i], 4}, {&user, 9}, {&codes[i], 6}};
        lp_site_id site = lp_site_intern(frames, 2), base = lp_site_base(site);
        lp_site_id child = lp_site_intern_child(site, frames, 3);
        CHECK(site >= LP_SITE_FIRST && child != site && lp_site_intern(frames, 2) == site);
        CHECK(lp_site_base(child) == base && lp_site_intern_child(site, frames, 3) == child);
        base_of[i % 3] = i < 3 ? base : base_of[i % 3];
        CHECK(base == base_of[i % 3]);
        lp_frame_text text[3];
        CHECK(lp_site_text(child, text, 3) == 3 && text[0].lineno == 4 && text[2].lineno == 6 &&
              atoi(text[0].filename) == codes[i]);
        if (i >= ALIVE) {
            CHECK(lp_site_code_dies(&codes[i - ALIVE]) == 1);
        }
    }
    CHECK(lp_site_count() <= stored + 2 * 3 * (ALIVE + 1));
    for (int i = ROUNDS - ALIVE; i < ROUNDS; i++) {
        CHECK(lp_site_code_dies(&codes[i]) == 1);
    }
    stored = lp_site_count();
    for (int i = 0; i < ROUNDS; i++) {
        codes[i] = 200;
        lp_raw_frame frames[2] = {{&codes[i], 4}, {&codes[i], 8}};
        CHECK(lp_site_intern(frames, 2) >= LP_SITE_FIRST);
        for (int k = i - 99; i % 100 == 99 && k <= i; k++) {
            CHECK(lp_site_code_dies(&codes[k]) == 1);
        }
    }
    CHECK(lp_site_count() <= stored + 100);
}

static void test_sites_that_can_not_be_stored_are_counted(void) {
    static int codes[60000];
    uint64_t overflows = 0, before = lp_site_overflow_count();
    lp_raw_frame known = {&user, 1};
    lp_site_id site = lp_site_intern(&known, 1);
    lp_raw_fail_after = 0;
    for (uint32_t i = 0; i < 60000; i++) {
        codes[i] = 5;
        lp_raw_frame frame = {&codes[i], 1};
        overflows += lp_site_intern(&frame, 1) == LP_SITE_OVERFLOW;
    }
    CHECK(lp_site_intern(&known, 1) == site);
    lp_raw_fail_after = -1;
    CHECK(overflows > 0 && lp_site_overflow_count() == before + overflows);
    lp_raw_frame last = {&codes[59999], 1};
    lp_site_id later = lp_site_intern(&last, 1);
    lp_frame_text text[1];
    CHECK(later >= LP_SITE_FIRST && lp_site_text(later, text, 1) == 1 && strcmp(text[0].filename, "5.py") == 0);
    for (uint32_t i = 0; i < 60000; i++) {
        lp_site_code_dies(&codes[i]);
    }
    CHECK(lp_site_intern(&known, 1) == site);
}

/* A pair that is new has the site of its innermost frame once the table is crowded; one that is known keeps its own. */
static void test_crowded_tables_take_lines_alone(void) {
    lp_raw_frame known[2] = {{&user, 3}, {&other, 3}}, frames[2] = {{&user, 3}, {&other, 4}};
    lp_site_id before = lp_site_intern(known, 2);
    for (uint32_t i = 0; lp_site_count() <= LP_SITE_CROWDED; i++) {
        frames[0].offset = 4 + i % 1024;
        frames[1].offset = 4 + i / 1024;
        CHECK(lp_site_intern(frames, 2) >= LP_SITE_FIRST);
    }
    lp_frame_text text[2];
    frames[0].offset = frames[1].offset = 1024 + 4;
    lp_site_id alone = lp_site_intern(frames, 2);
    CHECK(alone >= LP_SITE_FIRST && lp_site_text(alone, text, 2) == 1 && alone == lp_site_intern(frames, 1));
    frames[1].offset++;
    CHECK(alone == lp_site_intern(frames, 2) && before == lp_site_intern(known, 2));
    CHECK(lp_site_text(before, text, 2) == 2);
    lp_site_id child = lp_site_intern_child(alone, frames, 2);
    CHECK(lp_site_text(child, text, 2) == 2 && lp_site_parent(child) == alone);
}

static void test_full_tables_overflow(void) {
    lp_raw_frame frame = {&user, 0}, pair[2] = {{&user, 3}, {&other, 3}};
    uint32_t stored = 0;
    uint64_t before = lp_site_overflow_count();
    for (uint32_t i = 0; i <= LP_SITE_MAX; i++) {
        frame.offset = 2048 + i;
        stored += lp_site_intern(&frame, 1) != LP_SITE_OVERFLOW;
    }
    CHECK(stored < LP_SITE_MAX && lp_site_count() == LP_SITE_MAX + 1 - LP_SITE_FIRST);
    CHECK(lp_site_overflow_count() == before + LP_SITE_MAX + 1 - stored);
    CHECK(lp_site_intern(pair, 2) >= LP_SITE_FIRST);
}

/* Code that is made and dropped for hours: what no frame can be kept of leaves no text either. */
static void test_full_tables_keep_no_texts(void) {
    static int code = 1000000;
    lp_raw_frame frame = {&user, 0};
    for (uint32_t i = 0; i < LP_FRAME_MAX; i++) {
        frame.offset = 4096 + LP_SITE_MAX + i;
        lp_site_intern(&frame, 1);
    }
    uint64_t before = lp_raw_block_bytes();
    for (int i = 0; i < 1000; i++, code++) {
        frame = (lp_raw_frame){&code, 1};
        CHECK(lp_site_intern(&frame, 1) == LP_SITE_OVERFLOW);
        lp_site_code_dies(&code);
    }
    CHECK(lp_raw_block_bytes() == before);
}

int main(void) {
    lp_site_resolver resolver = {names, line, is_own, NULL, NULL};
    lp_raw_fail_after = 1;
    CHECK(lp_site_init(&resolver) == LP_NO_MEMORY && lp_site_intern(&(lp_raw_frame){&user, 1}, 1) == LP_SITE_OVERFLOW);
    lp_raw_fail_after = -1;
    CHECK(lp_site_init(&resolver) == LP_OK);
    test_own_frames_make_no_difference();
    test_deep_stacks_are_cut();
    test_an_address_used_over_and_over();
    test_code_made_anew_elsewhere_takes_no_more_room();
    test_sites_that_can_not_be_stored_are_counted();
    test_crowded_tables_take_lines_alone();
    test_full_tables_overflow();
    test_full_tables_keep_no_texts();
    return 0;
}
