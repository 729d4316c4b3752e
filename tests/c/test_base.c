/* Statuses, locks, sorting and media: the small files. */
#include "harness.h"

#include <signal.h>
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

static void assert_what_is_so(void) { LP_ASSERT(1 + 1 == 2); }
static void assert_what_is_not(void) { LP_ASSERT(1 + 1 == 3); }
static int nobody_holds_it(void) { return 0; }

static void assert_the_gil(void) { LP_ASSERT_GIL(); }

static void assert_the_gil_of_nobody(void) {
    lp_holds_gil = nobody_holds_it;
    LP_ASSERT_GIL();
}

static void test_assertions_abort(void) {
    CHECK(status_of_child(assert_what_is_so) == 0);
    CHECK(status_of_child(assert_what_is_not) == SIGABRT);
    CHECK(status_of_child(assert_the_gil) == 0);
    CHECK(status_of_child(assert_the_gil_of_nobody) == SIGABRT);
}

/* What a failed assertion writes, whatever its buffers held. */
static void test_a_failed_assertion_names_its_place(void) {
    char text[256] = "";
    int ends[2];
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        assert_what_is_not();
        _exit(0);
    }
    close(ends[1]);
    CHECK(waitpid(child, NULL, 0) == child && read(ends[0], text, sizeof(text) - 1) > 0);
    close(ends[0]);
    CHECK(strstr(text, "test_base.c:") != NULL && strstr(text, "assertion failed: 1 + 1 == 3\n") != NULL);
}

int main(void) {
    test_each_status_has_a_text();
    test_media_are_found_by_their_name();
    test_ranks_only_rise();
    test_a_lock_is_free_in_the_child();
    test_sorting();
    test_assertions_abort();
    test_a_failed_assertion_names_its_place();
    return 0;
}
