/* What the core and the shim know of each other.
 *
 * The shim (src/shim/) is a library that `leakprobe run --native` preloads: it defines malloc's functions, forwards
 * each call to the next library that does, and tells the sampler of each block while there is one.  Neither is
 * linked with the other: the core finds the shim's table by its name, where the program was started under it. */
#ifndef LP_PRELOAD_H
#define LP_PRELOAD_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/sampling.h"  // lp_sampling

#define LP_PRELOAD_TABLE "leakprobe_preload"
/* The functions that the shim defines. */
#define LP_PRELOAD_LIST(X)                                                                                             \
    X(malloc)                                                                                                          \
    X(calloc)                                                                                                          \
    X(realloc)                                                                                                         \
    X(free)                                                                                                            \
    X(aligned_alloc)                                                                                                   \
    X(posix_memalign)                                                                                                  \
    X(memalign)                                                                                                        \
    X(mmap)                                                                                                            \
    X(mmap64)                                                                                                          \
    X(munmap)

enum {
#define LP_X(name) LP_PRELOAD_##name,
    LP_PRELOAD_LIST(LP_X)
#undef LP_X
        LP_PRELOAD_COUNT
};

/* What mmap() was asked for, and gave. */
typedef struct lp_preload_map {
    const void *block;
    uint64_t bytes;
    int protection, flags;
} lp_preload_map;

/* What the shim calls, on any thread, never again while one of these runs on the same thread.  `born` only for what
 * lp_sampling_is_due() says, `died` only where a sample may be known.  `caller`: where the allocating function returns
 * to. */
typedef struct lp_preload_sampler {
    const _Atomic uint8_t *filter;
    void (*born)(lp_sampling *mine, const void *block, uint64_t bytes, const void *caller);
    void (*died)(const void *block, const void *caller);
    void (*mapped)(lp_sampling *mine, const lp_preload_map *map, const void *caller);
} lp_preload_sampler;

typedef struct lp_preload {
    uint32_t version;
    const char *names[LP_PRELOAD_COUNT];
    void *own[LP_PRELOAD_COUNT];               /* the shim's functions */
    _Atomic(void *) next[LP_PRELOAD_COUNT];    /* those that they forward to */
    /* NULL while nothing is sampled; what it points to stays for ever. */
    _Atomic(const lp_preload_sampler *) sampler;
} lp_preload;

/* The shim's table, or NULL where the program was not started under it, or defines malloc itself. */
lp_preload *lp_preload_find(void);

/* The function that serves `name` behind the shim; NULL where the shim is not there or has no such function. */
void *lp_preload_behind(const char *name);

/* 1 if a call of `function`, which `name` is bound to somewhere, reaches the shim. */
int lp_preload_serves(const char *name, const void *function);

#endif
