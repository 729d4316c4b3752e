/* Snapshots are sorted and joined; differences agree with a naive model. */
#include "harness.h"

#include <string.h>

#include "base/rawmem.h"
#include "ledger/epoch.h"
#include "ledger/ledger.h"
#include "snapshot/diff.h"

enum { TYPES = 5, SITES = 7, ROWS = 60 };

static unsigned long long random_state = 362436069ull;

typedef struct model {
    int64_t count[TYPES][SITES], bytes[TYPES][SITES];
} model;

static lp_snapshot take_random(model *m) {
    lp_row rows[ROWS];
    size_t row_count = harness_random(&random_state) % (ROWS + 1);
    memset(m, 0, sizeof(*m));
    for (size_t i = 0; i < row_count; i++) {
        uint32_t type = (uint32_t)(harness_random(&random_state) % TYPES),
                 site = (uint32_t)(harness_random(&random_state) % SITES);
        rows[i] = (lp_row){.type_id = type,
                           .site = site,
                           .count = 1 + i % 3,
                           .bytes = i % 4,
                           .first_step = (uint32_t)i,
                           .last_step = (uint32_t)i};
        m->count[type][site] += (int64_t)rows[i].count;
        m->bytes[type][site] += (int64_t)rows[i].bytes;
    }
    lp_snapshot snapshot;
    CHECK(lp_snapshot_take(rows, row_count, &snapshot) == LP_OK);
    CHECK(lp_snapshot_check(&snapshot) == LP_OK);
    return snapshot;
}

static size_t count_differences(const model *a, const model *b) {
    size_t differ = 0;
    for (int t = 0; t < TYPES; t++) {
        for (int s = 0; s < SITES; s++) {
            differ += a->count[t][s] != b->count[t][s] || a->bytes[t][s] != b->bytes[t][s];
        }
    }
    return differ;
}

static void test_differences_agree_with_a_naive_model(void) {
    for (int round = 0; round < 2000; round++) {
        model a, b;
        lp_snapshot older = take_random(&a), newer = take_random(&b);
        lp_diff_row *rows;
        size_t count;
        CHECK(lp_diff(&older, &newer, &rows, &count) == LP_OK);
        CHECK(count == count_differences(&a, &b));
        for (size_t i = 0; i < count; i++) {
            const lp_diff_row *row = &rows[i];
            CHECK(row->count_diff == b.count[row->type_id][row->site] - a.count[row->type_id][row->site]);
            CHECK(row->size_diff == b.bytes[row->type_id][row->site] - a.bytes[row->type_id][row->site]);
        }
        lp_raw_free(rows);
        lp_snapshot_fini(&older);
        lp_snapshot_fini(&newer);
    }
}

static void test_the_ledger_is_in_it(void) {
    static char memory[4];
    lp_ledger_reset();
    lp_epoch_reset(1);
    lp_ledger_add(LP_MEDIUM_CPU, &memory[0], 10, 3);
    lp_epoch_advance();
    lp_ledger_add(LP_MEDIUM_CPU, &memory[1], 20, 3);
    lp_ledger_add(LP_MEDIUM_NUMPY, &memory[2], 5, 3);
    lp_row more = {.type_id = 77, .site = 9, .count = 4, .bytes = 400, .medium = LP_MEDIUM_PYTHON};
    lp_snapshot snapshot;
    CHECK(lp_snapshot_take(&more, 1, &snapshot) == LP_OK && snapshot.count == 3);
    CHECK(snapshot.rows[0].type_id == 77 && snapshot.rows[0].bytes == 400);
    CHECK(snapshot.rows[1].medium == LP_MEDIUM_NUMPY && snapshot.rows[1].bytes == 5);
    const lp_row *cpu = &snapshot.rows[2];
    CHECK(cpu->medium == LP_MEDIUM_CPU && cpu->site == 3 && cpu->count == 2 && cpu->bytes == 30);
    CHECK(cpu->first_step == 0 && cpu->last_step == 1);
    lp_snapshot_fini(&snapshot);
    lp_ledger_reset();
}

static void test_rows_out_of_order_are_noticed(void) {
    lp_row rows[2] = {{.site = 2}, {.site = 1}};
    lp_snapshot wrong = {rows, 2};
    CHECK(lp_snapshot_check(&wrong) == LP_BAD_INPUT);
    rows[1].site = 2;
    CHECK(lp_snapshot_check(&wrong) == LP_BAD_INPUT);
}

static void test_out_of_memory_at_every_request(void) {
    static char memory;
    lp_ledger_reset();
    lp_ledger_add(LP_MEDIUM_CPU, &memory, 10, 3);
    uint64_t before = lp_raw_overhead_bytes();
    lp_row more = {.site = 1, .count = 1};
    for (long allowed = 0; allowed < 6; allowed++) {
        lp_snapshot snapshot, empty = {NULL, 0};
        lp_diff_row *rows = NULL;
        size_t count;
        lp_raw_fail_after = allowed;
        lp_status taken = lp_snapshot_take(&more, 1, &snapshot);
        lp_status compared = taken == LP_OK ? lp_diff(&empty, &snapshot, &rows, &count) : taken;
        lp_raw_fail_after = -1;
        CHECK((taken == LP_OK) == (allowed >= 4) && (compared == LP_OK) == (allowed >= 5));
        lp_raw_free(rows);
        lp_snapshot_fini(&snapshot);
        CHECK(lp_raw_overhead_bytes() == before);
    }
    lp_ledger_reset();
}

int main(void) {
    test_differences_agree_with_a_naive_model();
    test_the_ledger_is_in_it();
    test_rows_out_of_order_are_noticed();
    test_out_of_memory_at_every_request();
    CHECK(lp_raw_overhead_bytes() == 0);
    return 0;
}
