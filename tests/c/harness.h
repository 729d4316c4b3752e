/* The smallest harness that does: CHECK counts, and a tally of its own line is printed at exit. */
#ifndef LP_HARNESS_H
#define LP_HARNESS_H

#include <stdio.h>
#include <stdlib.h>

static unsigned long harness_passed, harness_failed;

static void harness_tally(void) {
    printf("%lu passed, %lu failed\n", harness_passed, harness_failed);
    fflush(stdout);
    if (harness_failed) {
        _Exit(1);
    }
}

__attribute__((constructor)) static void harness_begin(void) { atexit(harness_tally); }

/* A failed check is printed and counted; the test goes on. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            harness_passed++;                                                                                          \
        } else {                                                                                                       \
            harness_failed++;                                                                                          \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                             \
        }                                                                                                              \
    } while (0)

/* A small generator, so that a failing run can be repeated. */
static inline unsigned long long harness_random(unsigned long long *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
