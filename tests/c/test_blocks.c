#include "harness.h"

#include <string.h>

#include "base/rawmem.h"
#include "ledger/blocks.h"

static unsigned long long random_state = 88172645463325252ull;

static uint64_t next_random64(void) { return harness_random(&random_state); }

enum { KEYS = 6000 };

typedef struct model_block {
    uint64_t bytes;
    uint32_t cohort;
    int live;
} model_block;

static model_block model[KEYS];

static uint64_t address_of(size_t key) { return 0x7fff00000000ull + key * 16; }

static void add(lp_blocks *blocks, size_t key) {
    model_block fresh = {next_random64() & ((1ull << 48) - 1), (uint32_t)next_random64(), 1};
    lp_blocks_slot old;
    CHECK(lp_blocks_add(blocks, address_of(key), fresh.bytes, fresh.cohort, &old) == LP_OK);
    CHECK((lp_blocks_address(&old) != 0) == model[key].live);
    CHECK(!model[key].live ||
          (lp_blocks_bytes(&old) == model[key].bytes && lp_blocks_cohort(&old) == model[key].cohort));
    model[key] = fresh;
}

static void check_all(const lp_blocks *blocks) {
    size_t count = 0;
    for (size_t key = 0; key < KEYS; key++) {
        const lp_blocks_slot *slot = lp_blocks_find(blocks, address_of(key));
        CHECK((slot != NULL) == model[key].live);
        if (slot != NULL && model[key].live) {
            CHECK(lp_blocks_address(slot) == address_of(key) && lp_blocks_bytes(slot) == model[key].bytes);
            CHECK(lp_blocks_cohort(slot) == model[key].cohort);
            count++;
        }
    }
    CHECK(count == blocks->count);
}

/* The share of births swings, so that the table grows and shrinks. */
static void test_agrees_with_a_naive_model(void) {
    lp_blocks blocks = {NULL, 0, 0};
    memset(model, 0, sizeof(model));
    CHECK(lp_blocks_find(&blocks, 16) == NULL);
    for (int i = 0; i < 300000; i++) {
        size_t key = next_random64() % KEYS;
        if ((int)(next_random64() % 100) < (i / 30000 % 2 == 0 ? 80 : 15)) {
            add(&blocks, key);
        } else if (model[key].live) {
            lp_blocks_remove(&blocks, lp_blocks_find(&blocks, address_of(key)));
            model[key].live = 0;
        }
        if (i % 10000 == 0) {
            lp_blocks_trim(&blocks);
            check_all(&blocks);
        }
    }
    check_all(&blocks);
    lp_blocks_clear(&blocks);
    memset(model, 0, sizeof(model));
    check_all(&blocks);
    lp_raw_free(blocks.slots);
}

static void test_a_block_takes_at_most_64_bytes(void) {
    lp_blocks blocks = {NULL, 0, 0};
    lp_blocks_slot old;
    uint64_t before = lp_raw_overhead_bytes(), count = 200000;
    for (uint64_t i = 0; i < count; i++) {
        CHECK(lp_blocks_add(&blocks, address_of(i), i, 1, &old) == LP_OK);
        CHECK(i < 2048 || lp_raw_overhead_bytes() - before <= 32 * (i + 1) + 64);
    }
    for (uint64_t i = 0; i < count - 2048; i++) {
        lp_blocks_remove(&blocks, lp_blocks_find(&blocks, address_of(i)));
        if (i % 64 == 0) {
            lp_blocks_trim(&blocks);
            CHECK(lp_raw_overhead_bytes() - before <= 64 * (count - i - 1) + 4096);
        }
    }
    lp_raw_free(blocks.slots);
}

static void test_what_does_not_fit_is_refused(void) {
    lp_blocks blocks = {NULL, 0, 0};
    lp_blocks_slot old;
    CHECK(lp_blocks_add(&blocks, 0, 1, 1, &old) == LP_BAD_INPUT);
    CHECK(lp_blocks_add(&blocks, 1ull << 48, 1, 1, &old) == LP_BAD_INPUT);
    CHECK(lp_blocks_add(&blocks, 16, 1ull << 48, 1, &old) == LP_BAD_INPUT);
    CHECK(blocks.count == 0);
    lp_raw_fail_after = 0;
    CHECK(lp_blocks_add(&blocks, 16, 1, 1, &old) == LP_NO_MEMORY);
    lp_raw_fail_after = 1;
    size_t stored = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        stored += lp_blocks_add(&blocks, address_of(i), 1, 1, &old) == LP_OK;
    }
    lp_raw_fail_after = -1;
    CHECK(stored == blocks.capacity - 1 && blocks.count == stored);
    CHECK(lp_blocks_find(&blocks, address_of(0)) != NULL && lp_blocks_find(&blocks, address_of(3999)) == NULL);
    CHECK(lp_blocks_add(&blocks, address_of(3999), 5, 1, &old) == LP_OK);
    lp_raw_free(blocks.slots);
}

int main(void) {
    test_agrees_with_a_naive_model();
    test_a_block_takes_at_most_64_bytes();
    test_what_does_not_fit_is_refused();
    return 0;
}
