/* Monotonic time, and processor time of the calling thread. */
#ifndef LP_CLOCK_H
#define LP_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef CLOCK_THREAD_CPUTIME_ID
#define LP_CLOCK_THREAD CLOCK_THREAD_CPUTIME_ID
#else
#define LP_CLOCK_THREAD CLOCK_MONOTONIC
#endif

static inline uint64_t lp_clock_read(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t lp_clock_ns(void) { return lp_clock_read(CLOCK_MONOTONIC); }

/* What a busy machine does not stretch. */
static inline uint64_t lp_clock_thread_ns(void) { return lp_clock_read(LP_CLOCK_THREAD); }

#endif
