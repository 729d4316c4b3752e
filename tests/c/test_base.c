/* Statuses, locks, sorting and media: the small files. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/sort.h"
#include "ledger/medium.h"

static unsigned long long random_state = 88172645463325252ull;

static uint64_t next_random64(void) { return harness_random(&random_state); }

static void test_each_status_has_a_text(void) {
    CHECK(strcmp(lp_status_text(LP_OK), "ok") == 0);
    for (int status = LP_NO_MEMORY; status >= LP_LIMIT; status--) {
        CHECK(strlen(lp_status_text((lp_status)status)) > 5);
    }
    CHECK(lp_status_text((lp_status)77) != NULL);
}

static void test_media_are_found_by_their_name(void) {
    for (int m = 0; m < LP_MEDIUM_COUNT; m++) {
        CHECK(lp_medium_name((lp_medium)m) != NULL && lp_medium_find(lp_medium_name((lp_medium)m)) == m);
    }
    CHECK(lp_medium_find("cuda:3") == LP_MEDIUM_CUDA0 + 3);
    CHECK(lp_medium_find("cuda:16") == -1 && lp_medium_find("") == -1);
}

static int status_of_child(void (*body)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        fclose(stdout);
        body();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void take_downwards(void) {
    lp_lock high = LP_LOCK_INIT(LP_RANK_SITES), low = LP_LOCK_INIT(LP_RANK_LEDGER);
    lp_lock_take(&high);
    lp_lock_take(&low);
}

static void take_upwards(void) {
    lp_lock high = LP_LOCK_INIT(LP_RANK_SITES), low = LP_LOCK_INIT(LP_RANK_LEDGER);
    for (int i = 0; i < 3; i++) {
        lp_lock_take(&low);
        lp_lock_take(&high);
        lp_lock_release(&high);
        lp_lock_release(&low);
    }
}

static void test_ranks_only_rise(void) {
    CHECK(status_of_child(take_upwards) == 0);
    CHECK(status_of_child(take_downwards) != 0);
}

static lp_lock shared_lock = LP_LOCK_INIT(LP_RANK_LEDGER);

static void reset_and_take(void) {
    lp_lock_reset_in_child(&shared_lock);
    lp_lock_take(&shared_lock);
    lp_lock_release(&shared_lock);
}

static void test_a_lock_is_free_in_the_child(void) {
    CHECK(status_of_child(reset_and_take) == 0);
    lp_lock_take(&shared_lock);
    CHECK(status_of_child(reset_and_take) == 0);
    lp_lock_release(&shared_lock);
}

enum { PAIRS = 5000 };

static uint64_t shaped(uint64_t key, int shape) {
    return shape == 0 ? key : shape == 1 ? key % 7 : shape == 2 ? key << 40 : shape == 3 ? key & 0xFFFF : 42;
}

static void test_sorting(void) {
    static lp_sort_pair pairs[PAIRS], scratch[PAIRS];
    for (size_t count = 0; count <= PAIRS; count = count * 2 + 1) {
        for (int shape = 0; shape < 5; shape++) {
            uint64_t sum = 0, sum_after = 0;
            for (size_t i = 0; i < count; i++) {
                pairs[i] = (lp_sort_pair){shaped(next_random64(), shape), i};
                sum += pairs[i].key * 31 + i;
            }
            lp_sort_pairs(pairs, scratch, count);
            for (size_t i = 0; i < count; i++) {
                sum_after += pairs[i].key * 31 + pairs[i].value;
                CHECK(i == 0 || pairs[i - 1].key < pairs[i].key ||
                      (pairs[i - 1].key == pairs[i].key && pairs[i - 1].value < pairs[i].value));
            }
            CHECK(sum == sum_after);
        }
    }
}

int main(void) {
    test_each_status_has_a_text();
    test_media_are_found_by_their_name();
    test_ranks_only_rise();
    test_a_lock_is_free_in_the_child();
    test_sorting();
    return 0;
}
