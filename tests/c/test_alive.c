#include "harness.h"

#include <string.h>

#include "ledger/alive.h"

enum { BLOCKS = 3000 };

static unsigned long long random_state = 88172645463325252ull;
static unsigned char is_alive[BLOCKS];

/* Blocks in three regions far from each other, 16 bytes apart. */
static uintptr_t address_of(unsigned i) {
    static const uintptr_t region[] = {(uintptr_t)1 << 30, (uintptr_t)0x7f0000000000, ((uintptr_t)1 << 26) - 16 * 500};
    return region[i % 3] + 16 * (uintptr_t)(i / 3);
}

typedef struct seen {
    unsigned count, strange;
    unsigned stop_after;
    uintptr_t last;
} seen;

static int visit(uintptr_t address, void *arg) {
    seen *s = arg;
    unsigned found = BLOCKS;
    for (unsigned region = 0; region < 3 && found == BLOCKS; region++) {
        uintptr_t offset = address - address_of(region);
        found = offset < 16 * (BLOCKS / 3) && offset % 16 == 0 ? (unsigned)(offset / 16) * 3 + region : BLOCKS;
    }
    s->strange += found == BLOCKS || !is_alive[found];
    s->count++;
    s->last = address;
    return s->stop_after != 0 && s->count == s->stop_after ? 7 : 0;
}

static unsigned count_alive(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        count += is_alive[i];
    }
    return count;
}

static void test_agrees_with_a_naive_model(void) {
    CHECK(lp_alive_open() == LP_OK);
    for (int i = 0; i < 200000; i++) {
        unsigned k = (unsigned)(harness_random(&random_state) % BLOCKS);
        if (harness_random(&random_state) % 2) {
            lp_alive_add((void *)address_of(k));
            is_alive[k] = 1;
        } else {
            lp_alive_remove((void *)address_of(k));
            is_alive[k] = 0;
        }
        if (i % 20000 == 0) {
            seen s = {0};
            CHECK(lp_alive_each(visit, &s) == 0 && s.count == count_alive() && s.strange == 0);
        }
    }
}

static void test_a_visit_can_stop(void) {
    seen s = {.stop_after = 5};
    CHECK(lp_alive_each(visit, &s) == 7 && s.count == 5);
}

static void test_addresses_out_of_range_are_left_alone(void) {
    seen before = {0}, after = {0};
    lp_alive_each(visit, &before);
    lp_alive_add((void *)(uintptr_t)0xffff800000001230);
    lp_alive_remove((void *)(uintptr_t)0xffff800000001230);
    lp_alive_remove((void *)(uintptr_t)0x123456780);
    lp_alive_each(visit, &after);
    CHECK(before.count == after.count);
}

static void test_opening_empties(void) {
    seen s = {0};
    CHECK(lp_alive_open() == LP_OK);
    lp_alive_each(visit, &s);
    CHECK(s.count == 0);
}

int main(void) {
    test_agrees_with_a_naive_model();
    test_a_visit_can_stop();
    test_addresses_out_of_range_are_left_alone();
    test_opening_empties();
    return 0;
}
