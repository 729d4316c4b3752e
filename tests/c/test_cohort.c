#include "harness.h"

#include <string.h>

#include "base/rawmem.h"
#include "ledger/cohort.h"

enum { KEYS = 4000 };

static unsigned long long random_state = 2463534242ull;

static uint64_t key_of(uint32_t i) { return lp_cohorts_key((lp_medium)(i % 3), 16 + i % 50, i); }

static void test_keys_are_read_as_written(void) {
    uint64_t key = lp_cohorts_key((lp_medium)(LP_MEDIUM_COUNT - 1), LP_SITE_MAX, UINT32_MAX);
    CHECK(lp_cohorts_medium(key) == LP_MEDIUM_COUNT - 1 && lp_cohorts_site(key) == LP_SITE_MAX);
    CHECK(lp_cohorts_step(key) == UINT32_MAX);
}

static void test_agrees_with_a_naive_model(void) {
    static uint32_t count[KEYS], id[KEYS];
    lp_cohorts cohorts = {0};
    size_t live = 0;
    for (int i = 0; i < 400000; i++) {
        uint32_t k = (uint32_t)(harness_random(&random_state) % KEYS);
        if (harness_random(&random_state) % 100 < (i / 50000 % 2 ? 30u : 70u)) {
            uint32_t got = lp_cohorts_add(&cohorts, key_of(k), k);
            CHECK(got != 0 && (count[k] == 0 || got == id[k]));
            id[k] = got;
            live += count[k]++ == 0;
        } else if (count[k] != 0) {
            lp_cohorts_remove(&cohorts, id[k], k);
            live -= --count[k] == 0;
        }
        CHECK(cohorts.count == live);
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        const lp_cohort_record *record = lp_cohorts_get(&cohorts, id[k]);
        CHECK(count[k] == 0 ||
              (record->key == key_of(k) && record->count == count[k] && record->bytes == (uint64_t)k * count[k]));
    }
    CHECK(cohorts.end <= KEYS + 1);
    lp_cohorts_clear(&cohorts);
    CHECK(lp_raw_overhead_bytes() == 0 && cohorts.count == 0);
}

/* With every number of requests that succeed before memory runs out: what was stored stays. */
static void test_out_of_memory_at_every_request(void) {
    for (long allowed = 0; allowed < 12; allowed++) {
        lp_cohorts cohorts = {0};
        uint64_t stored = 0, sum = 0;
        lp_raw_fail_after = allowed;
        for (uint32_t k = 0; k < KEYS; k++) {
            stored += lp_cohorts_add(&cohorts, key_of(k), 1) != 0;
        }
        lp_raw_fail_after = -1;
        for (uint32_t id = 1; id < cohorts.end; id++) {
            sum += lp_cohorts_get(&cohorts, id)->count;
        }
        CHECK(cohorts.count == stored && sum == stored && (allowed > 2 || stored < KEYS));
        CHECK(lp_cohorts_add(&cohorts, key_of(KEYS), 1) != 0);
        lp_cohorts_clear(&cohorts);
        CHECK(lp_raw_overhead_bytes() == 0);
    }
}

/* Each invariant is broken in turn. */
static void test_broken_cohorts_are_not_valid(void) {
    lp_cohorts cohorts = {0};
    CHECK(lp_cohorts_is_valid(&cohorts));
    for (uint32_t k = 0; k < KEYS; k++) {
        CHECK(lp_cohorts_add(&cohorts, key_of(k), 1) == k + 1);
    }
    lp_cohorts_remove(&cohorts, 2, 1);
    lp_cohorts_remove(&cohorts, 5, 1);
    CHECK(lp_cohorts_is_valid(&cohorts));
#define CHECK_BROKEN(place, value)                                                                                     \
    do {                                                                                                               \
        __typeof__(place) before = place;                                                                              \
        place = value;                                                                                                 \
        CHECK(!lp_cohorts_is_valid(&cohorts));                                                                         \
        place = before;                                                                                                \
        CHECK(lp_cohorts_is_valid(&cohorts));                                                                          \
    } while (0)
    CHECK_BROKEN(cohorts.count, cohorts.count - 1);
    CHECK_BROKEN(cohorts.first_free, 2);                                   /* 5 is lost */
    CHECK_BROKEN(cohorts.first_free, 1);                                   /* in use */
    CHECK_BROKEN(cohorts.first_free, cohorts.end);
    CHECK_BROKEN(lp_cohorts_get(&cohorts, 2)->next_free, 5);               /* a chain that goes round */
    CHECK_BROKEN(lp_cohorts_get(&cohorts, 1)->count, 0);                   /* the index names what is free */
    CHECK_BROKEN(lp_cohorts_get(&cohorts, 1)->key, key_of(3 * KEYS));      /* nothing leads to its slot */
#undef CHECK_BROKEN
    lp_cohorts_clear(&cohorts);
}

int main(void) {
    test_keys_are_read_as_written();
    test_agrees_with_a_naive_model();
    test_out_of_memory_at_every_request();
    test_broken_cohorts_are_not_valid();
    return 0;
}
