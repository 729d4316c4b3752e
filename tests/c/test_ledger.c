/* The ledger against a naive model, from one thread and from many; what it does when memory runs out. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/rawmem.h"
#include "ledger/epoch.h"
#include "ledger/ledger.h"

extern _Atomic long lp_raw_fail_after;

enum { SLOTS = 512 };

typedef struct model {
    uint64_t bytes[SLOTS];
    uint32_t step[SLOTS];
    lp_site_id site[SLOTS];
    int medium[SLOTS];
    int live[SLOTS];
} model;

static void *address_of(int slot) { return (void *)(uintptr_t)(0x7f0000000000ull + (uint64_t)slot * 64); }

static void check_totals(const model *m) {
    for (int medium = 0; medium < 4; medium++) {
        uint64_t bytes = 0, count = 0;
        for (int i = 0; i < SLOTS; i++) {
            bytes += m->live[i] && m->medium[i] == medium ? m->bytes[i] : 0;
            count += m->live[i] && m->medium[i] == medium;
        }
        lp_totals totals;
        lp_ledger_totals((lp_medium)medium, &totals);
        CHECK(totals.live_bytes == bytes && totals.live_count == count);
        CHECK(totals.peak_bytes >= totals.live_bytes && totals.recent_peak_bytes >= totals.live_bytes);
    }
    CHECK(lp_ledger_is_valid());
}

/* Births and deaths of each line, as the series of live counts read them. */
static void check_lines(const model *m) {
    static lp_alive_count counts[LP_LINES_MAX];
    uint32_t count = lp_ledger_read_lines(counts), seen = 0;
    for (int medium = 0; medium < 4; medium++) {
        for (lp_site_id site = 1; site <= 5; site++) {
            uint32_t line = lp_ledger_line((lp_medium)medium, site), live = 0;
            for (int i = 0; i < SLOTS; i++) {
                live += m->live[i] && m->medium[i] == medium && m->site[i] == site;
            }
            CHECK(line < count && counts[line].births - counts[line].deaths == live);
            CHECK(lp_ledger_base_line(line) == line);
            seen++;
        }
    }
    CHECK(seen == count && lp_ledger_line(LP_MEDIUM_CUDA0, 1) == LP_LINES_MAX);
}

static void check_series(const model *m, int medium, lp_site_id site) {
    lp_cohort *cohorts;
    size_t count;
    CHECK(lp_ledger_series((lp_medium)medium, site, &cohorts, &count) == LP_OK);
    for (size_t c = 0; c < count; c++) {
        uint64_t bytes = 0, blocks = 0;
        for (int i = 0; i < SLOTS; i++) {
            int same = m->live[i] && m->medium[i] == medium && m->site[i] == site && m->step[i] == cohorts[c].step;
            bytes += same ? m->bytes[i] : 0;
            blocks += (uint64_t)same;
        }
        CHECK(cohorts[c].bytes == bytes && cohorts[c].count == blocks && blocks > 0);
        CHECK(c == 0 || cohorts[c - 1].step < cohorts[c].step);
    }
    lp_raw_free(cohorts);
}

static void check_groups(const model *m, uint32_t first, uint32_t last) {
    lp_group *groups;
    size_t count;
    uint64_t seen = 0, live = 0;
    CHECK(lp_ledger_groups(first, last, &groups, &count) == LP_OK);
    for (size_t g = 0; g < count; g++) {
        uint64_t window_bytes = 0, steps = 0, had[512] = {0};
        for (int i = 0; i < SLOTS; i++) {
            int same = m->live[i] && m->medium[i] == groups[g].medium && m->site[i] == groups[g].site;
            if (same && m->step[i] >= first && m->step[i] <= last) {
                window_bytes += m->bytes[i];
                steps += !had[m->step[i]];
                had[m->step[i]] = 1;
            }
        }
        CHECK(groups[g].window_bytes == window_bytes && groups[g].window_steps == steps);
        seen += groups[g].count;
    }
    for (int i = 0; i < SLOTS; i++) {
        live += (uint64_t)m->live[i];
    }
    CHECK(seen == live);
    lp_raw_free(groups);
}

static void random_step(model *m, unsigned long long *random) {
    int slot = (int)(harness_random(random) % SLOTS);
    if (m->live[slot] && harness_random(random) % 3) {
        CHECK(lp_ledger_remove((lp_medium)m->medium[slot], address_of(slot)) == m->bytes[slot]);
        m->live[slot] = 0;
        return;
    }
    m->bytes[slot] = harness_random(random) % 10000;
    m->medium[slot] = (int)(harness_random(random) % 4);
    m->site[slot] = 1 + (lp_site_id)(harness_random(random) % 5);
    m->step[slot] = lp_step_now;
    m->live[slot] = 1;
    lp_ledger_add((lp_medium)m->medium[slot], address_of(slot), m->bytes[slot], m->site[slot]);
}

static void test_against_the_model(unsigned long long seed) {
    static model m;
    memset(&m, 0, sizeof(m));
    lp_ledger_reset();
    lp_epoch_reset(1);
    for (int i = 0; i < 60000; i++) {
        random_step(&m, &seed);
        if (i % 500 == 499) {
            lp_epoch_advance();
        }
        if (i % 6000 == 5999) {
            check_totals(&m);
            check_lines(&m);
            check_series(&m, 1, 3);
            check_groups(&m, 10, 60);
        }
    }
}

static void test_lines_beyond_the_last_are_not_counted(void) {
    static lp_alive_count counts[LP_LINES_MAX];
    lp_ledger_reset();
    for (int i = 0; i < LP_LINES_MAX + 100; i++) {
        lp_ledger_add(LP_MEDIUM_CPU, (void *)(uintptr_t)(0x1000 + 64 * i), 10, (lp_site_id)(16 + i));
    }
    CHECK(lp_ledger_read_lines(counts) == LP_LINES_MAX);
    CHECK(lp_ledger_line(LP_MEDIUM_CPU, 16 + LP_LINES_MAX - 1) == LP_LINES_MAX - 1);
    CHECK(lp_ledger_line(LP_MEDIUM_CPU, 16 + LP_LINES_MAX) == LP_LINES_MAX);
    for (int i = LP_LINES_MAX + 99; i >= 0; i--) {
        CHECK(lp_ledger_remove(LP_MEDIUM_CPU, (void *)(uintptr_t)(0x1000 + 64 * i)) == 10);
    }
    lp_ledger_read_lines(counts);
    CHECK(counts[0].deaths == 1 && counts[LP_LINES_MAX - 1].deaths == 1 && lp_ledger_is_valid());
}

static void test_a_late_death_leaves_the_block_of_another_medium(void) {
    lp_ledger_reset();
    lp_ledger_add(LP_MEDIUM_NUMPY, address_of(1), 100, 1);
    CHECK(lp_ledger_remove(LP_MEDIUM_SHARED, address_of(1)) == 0);
    lp_totals numpy, shared;
    lp_ledger_totals(LP_MEDIUM_NUMPY, &numpy);
    lp_ledger_totals(LP_MEDIUM_SHARED, &shared);
    CHECK(numpy.live_bytes == 100 && shared.unmatched_count == 1);
}

static void test_a_birth_at_a_live_address_replaces_and_is_counted(void) {
    lp_ledger_reset();
    lp_ledger_add(LP_MEDIUM_CPU, address_of(1), 100, 1);
    lp_ledger_add(LP_MEDIUM_CPU, address_of(1), 50, 1);
    lp_totals totals;
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.live_bytes == 50 && totals.live_count == 1 && totals.overwritten_count == 1 &&
          totals.peak_bytes == 100);
}

static void test_recent_peaks_begin_anew(void) {
    lp_ledger_reset();
    lp_totals totals;
    lp_ledger_add(LP_MEDIUM_CPU, address_of(1), 100, 1);
    lp_ledger_remove(LP_MEDIUM_CPU, address_of(1));
    lp_ledger_add(LP_MEDIUM_CPU, address_of(2), 30, 1);
    lp_ledger_begin_peaks();
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.recent_peak_bytes == 30 && totals.peak_bytes == 100);
    lp_ledger_add(LP_MEDIUM_CPU, address_of(3), 20, 1);
    lp_ledger_remove(LP_MEDIUM_CPU, address_of(3));
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.recent_peak_bytes == 50 && totals.live_bytes == 30);
}

static void test_out_of_memory_drops_and_counts(void) {
    lp_ledger_reset();
    atomic_store(&lp_raw_fail_after, 0);
    for (int i = 0; i < 100; i++) {
        lp_ledger_add(LP_MEDIUM_CPU, address_of(i), 10, 1);
    }
    atomic_store(&lp_raw_fail_after, -1);
    lp_totals totals;
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.dropped_count == 100 && totals.live_count == 0);
    lp_ledger_add(LP_MEDIUM_CPU, address_of(1), 10, 1);
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.live_count == 1 && lp_ledger_is_valid());
}

static void *worker(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    unsigned long long random = 88172645463325252ull + number;
    char live[64] = {0};
    for (int i = 0; i < 20000; i++) {
        int slot = (int)(harness_random(&random) % 64);
        void *address = address_of((int)number * 1000 + slot);
        if (live[slot]) {
            lp_ledger_remove(LP_MEDIUM_CPU, address);
        } else {
            lp_ledger_add(LP_MEDIUM_CPU, address, 16, 1);
        }
        live[slot] = !live[slot];
    }
    uintptr_t count = 0;
    for (int i = 0; i < 64; i++) {
        count += (uintptr_t)live[i];
    }
    return (void *)count;
}

static void test_many_threads(void) {
    pthread_t threads[8];
    uint64_t expected = 0;
    lp_ledger_reset();
    for (uintptr_t i = 0; i < 8; i++) {
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
    }
    for (int i = 0; i < 8; i++) {
        void *count;
        pthread_join(threads[i], &count);
        expected += (uint64_t)(uintptr_t)count;
    }
    lp_totals totals;
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.live_count == expected && totals.unmatched_count == 0 && totals.overwritten_count == 0);
    CHECK(lp_ledger_is_valid());
}

int main(void) {
    CHECK(lp_shadow_init() == LP_OK && lp_ledger_init() == LP_OK);
    for (unsigned long long seed = 1; seed <= 4; seed++) {
        test_against_the_model(seed * 7919);
    }
    test_lines_beyond_the_last_are_not_counted();
    test_a_late_death_leaves_the_block_of_another_medium();
    test_a_birth_at_a_live_address_replaces_and_is_counted();
    test_recent_peaks_begin_anew();
    test_out_of_memory_drops_and_counts();
    test_many_threads();
    return 0;
}
