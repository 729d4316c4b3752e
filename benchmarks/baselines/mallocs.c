/* The loop of benchmarks/mallocs.py: what a C library does that allocates small blocks as it works. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIVE = 1024 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static volatile uint64_t sum;

/* Processor seconds of `count` blocks of `bytes`, each kept for the next LIVE ones, with `turns` of work between two. */
double churn(size_t count, size_t bytes, unsigned turns) {
    static char *live[LIVE];
    uint64_t x = 1;
    double began = now();
    for (size_t i = 0; i < count; i++) {
        char **place = &live[i % LIVE];
        free(*place);
        *place = malloc(bytes);
        memset(*place, (int)i, bytes);
        for (unsigned k = 0; k < turns; k++) {
            x = x * 2862933555777941757u + 3037000493u;
        }
    }
    sum = x;
    return now() - began;
}
