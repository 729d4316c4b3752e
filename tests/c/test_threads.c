/* Everything that any thread may call, from several at once; the one for the thread sanitizer. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rawmem.h"
#include "ledger/epoch.h"
#include "ledger/ledger.h"

enum { THREADS = 4, ROUNDS = 4000, CODES = 64 };

static int codes[CODES];

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

static lp_site_id some_site(unsigned long long *random) {
    lp_raw_frame frames[3];
    for (int i = 0; i < 3; i++) {
        frames[i] = (lp_raw_frame){&codes[harness_random(random) % CODES], (uint32_t)(harness_random(random) % 4)};
    }
    lp_site_id site = lp_site_intern(frames, 2);
    if (lp_site_is_deep(site)) {
        site = lp_site_intern_child(site, frames, 3);
    }
    return site;
}

/* Births, deaths, sites and stamps at addresses of the thread's own, and maps. */
static void *work(void *argument) {
    unsigned long long random = 1000003ull * (1 + (uintptr_t)argument);
    uintptr_t home = 0x500000000000ull + (uintptr_t)argument * (1 << 16);
    for (int i = 0; i < ROUNDS; i++) {
        void *address = (void *)(home + harness_random(&random) % 256 * 16);
        lp_site_id site = some_site(&random);
        lp_ledger_remove(LP_MEDIUM_CPU, address);
        lp_ledger_add(LP_MEDIUM_CPU, address, 16, site);
        lp_shadow_set(address, 0, LP_STAMP(site, 1));
        if (i % 64 == 0) {
            char *map = lp_raw_map(4096);
            *map = 1;
            lp_raw_unmap(map, 4096);
        }
    }
    return NULL;
}

/* What marks and looks do meanwhile. */
static void *look(void *unused) {
    (void)unused;
    for (int i = 0; i < 60; i++) {
        lp_group *groups = NULL;
        size_t count = 0;
        lp_epoch_advance();
        if (lp_ledger_groups(0, UINT32_MAX, &groups, &count) == LP_OK && count > 0) {
            lp_site_set_deep(groups[count / 2].site);
            (void)lp_site_first_child(groups[count / 2].site);
        }
        lp_raw_free(groups);
        (void)lp_raw_overhead_bytes();
        (void)lp_site_count();
    }
    return NULL;
}

static void test_all_at_once(void) {
    pthread_t threads[THREADS + 1];
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    }
    CHECK(pthread_create(&threads[THREADS], NULL, look, NULL) == 0);
    for (int i = 0; i <= THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    lp_totals totals;
    lp_ledger_totals(LP_MEDIUM_CPU, &totals);
    CHECK(totals.add_count == THREADS * ROUNDS && totals.overwritten_count == 0 && totals.dropped_count == 0);
    CHECK(totals.live_count == totals.add_count - totals.remove_count);
    CHECK(lp_ledger_is_valid() && lp_site_overflow_count() == 0);
}

/* The thread sanitizer can't follow a child of a process with threads. */
#ifndef __SANITIZE_THREAD__
static int child_can_work(void) {
    unsigned long long random = 7;
    lp_site_reset_in_child();
    lp_ledger_reset_in_child();
    static char here;
    int whole = lp_ledger_is_valid();
    lp_ledger_add(LP_MEDIUM_NUMPY, &here, 5, some_site(&random));
    return whole && lp_ledger_remove(LP_MEDIUM_NUMPY, &here) == 5 && lp_ledger_is_valid();
}

/* With the locks held over the fork, as the hooks do: the child finds whole tables. */
static void test_forks_while_threads_work(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    }
    for (int i = 0; i < 10; i++) {
        lp_ledger_before_fork();
        lp_site_before_fork();
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            _exit(child_can_work() ? 0 : 1);
        }
        lp_site_after_fork_in_parent();
        lp_ledger_after_fork_in_parent();
        int status = -1;
        waitpid(child, &status, 0);
        CHECK(status == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(lp_ledger_is_valid());
}
#endif

int main(void) {
    lp_site_resolver resolver = {names, line, NULL, NULL, NULL};
    CHECK(lp_shadow_init() == LP_OK && lp_site_init(&resolver) == LP_OK && lp_ledger_init() == LP_OK);
    lp_epoch_reset(1);
    test_all_at_once();
#ifndef __SANITIZE_THREAD__
    test_forks_while_threads_work();
#endif
    lp_ledger_reset();
    return 0;
}
