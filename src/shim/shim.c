/* A library to preload: stands before malloc's functions and forwards each call to the next library that defines it.
 *
 * No part of the extension, and knows no Python.  Every library of the process calls it, from the loader's first call on
 * until the last thread is gone: nothing here takes a lock, and what it keeps of a thread lies in the memory that each
 * thread starts with, so that reading it never allocates.  While nothing is sampled, a call costs the look at
 * `sampler` and the call of the next function.
 *
 * The next functions are looked up by the first call, since other libraries begin before this one.  The loader may
 * allocate for that: such blocks come from a small arena, and are never freed. */
#include "base/preload.h"
#include "base/sampling.h"  // lp_sampling_is_due

#if defined(__linux__) && defined(__GLIBC__)

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/numbers.h"  // LP_SHIM_ARENA

#define EXPORTED __attribute__((visibility("default")))
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
#define CALLER __builtin_return_address(0)

typedef void *(*malloc_fn)(size_t bytes);
typedef void *(*calloc_fn)(size_t count, size_t bytes);
typedef void *(*realloc_fn)(void *block, size_t bytes);
typedef void (*free_fn)(void *block);
typedef void *(*aligned_alloc_fn)(size_t alignment, size_t bytes);
typedef aligned_alloc_fn memalign_fn;
typedef int (*posix_memalign_fn)(void **out_block, size_t alignment, size_t bytes);
typedef void *(*mmap_fn)(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
typedef mmap_fn mmap64_fn;
typedef int (*munmap_fn)(void *address, size_t bytes);

/* Until the next functions are known: look them up, then call them. */
static void *first_malloc(size_t bytes);
static void *first_calloc(size_t count, size_t bytes);
static void *first_realloc(void *block, size_t bytes);
static void first_free(void *block);
static void *first_aligned_alloc(size_t alignment, size_t bytes);
static void *first_memalign(size_t alignment, size_t bytes);
static int first_posix_memalign(void **out_block, size_t alignment, size_t bytes);
static void *first_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
static void *first_mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
static int first_munmap(void *address, size_t bytes);

/* The functions that all others call: defined below under names of our own, so that the table has their addresses
 * whatever the loader binds the names to. */
static void *own_malloc(size_t bytes);
static void *own_calloc(size_t count, size_t bytes);
static void *own_realloc(void *old, size_t bytes);
static void own_free(void *block);
static void *own_aligned_alloc(size_t alignment, size_t bytes);
static void *own_memalign(size_t alignment, size_t bytes);
static int own_posix_memalign(void **out_block, size_t alignment, size_t bytes);
static void *own_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
static void *own_mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
static int own_munmap(void *address, size_t bytes);
#define LP_X(name) EXPORTED extern __typeof__(own_##name) name __attribute__((alias("own_" #name)));
LP_PRELOAD_LIST(LP_X)
#undef LP_X

static lp_preload table = {.version = LP_PRELOAD_VERSION,
#define LP_X(name) .names[LP_PRELOAD_##name] = #name,
                           LP_PRELOAD_LIST(LP_X)
#undef LP_X
#define LP_X(name) .own[LP_PRELOAD_##name] = (void *)own_##name,
                               LP_PRELOAD_LIST(LP_X)
#undef LP_X
#define LP_X(name) .next[LP_PRELOAD_##name] = (void *)first_##name,
                                   LP_PRELOAD_LIST(LP_X)
#undef LP_X
};

EXPORTED extern lp_preload leakprobe_preload __attribute__((alias("table")));

/* Relaxed: what these point to is there from the start. */
#define NEXT(name) ((name##_fn)atomic_load_explicit(&table.next[LP_PRELOAD_##name], memory_order_relaxed))
#define SAMPLER() atomic_load_explicit(&table.sampler, memory_order_relaxed)

/* ---- the arena ---- */

/* Zeros, since nothing is handed out twice. */
static _Alignas(LP_SHIM_ALIGN) char arena[LP_SHIM_ARENA];
static _Atomic size_t arena_used;

static int is_in_arena(const void *block) { return (uintptr_t)block - (uintptr_t)arena < LP_SHIM_ARENA; }

static void *from_arena(size_t bytes) {
    size_t rounded = (bytes + LP_SHIM_ALIGN - 1) & ~(size_t)(LP_SHIM_ALIGN - 1);
    size_t at = rounded < bytes ? LP_SHIM_ARENA : atomic_fetch_add(&arena_used, rounded);
    return at >= LP_SHIM_ARENA || rounded > LP_SHIM_ARENA - at ? NULL : arena + at;
}

/* Its size is not known: all that follows it in the arena may be copied. */
static void *out_of_arena(const char *old, size_t bytes) {
    size_t rest = (size_t)(arena + LP_SHIM_ARENA - old);
    void *block = own_malloc(bytes);
    if (block != NULL) {
        memcpy(block, old, bytes < rest ? bytes : rest);
    }
    return block;
}

/* ---- the first calls ---- */

OF_THREAD int is_looking_up;

/* 1 if the next functions may be called; 0 on the thread that is looking them up. */
static int look_up(void) {
    if (is_looking_up) {
        return 0;
    }
    is_looking_up = 1;
    for (size_t i = 0; i < LP_PRELOAD_COUNT; i++) {
        void *function = dlsym(RTLD_NEXT, table.names[i]);
        if (function == NULL) {
            abort();   /* no C library behind this one */
        }
        atomic_store(&table.next[i], function);
    }
    is_looking_up = 0;
    return 1;
}

static void *first_malloc(size_t bytes) { return look_up() ? NEXT(malloc)(bytes) : from_arena(bytes); }

static void *first_calloc(size_t count, size_t bytes) {
    if (look_up()) {
        return NEXT(calloc)(count, bytes);
    }
    return bytes != 0 && count > SIZE_MAX / bytes ? NULL : from_arena(count * bytes);
}

static void *first_realloc(void *block, size_t bytes) {
    return look_up() ? NEXT(realloc)(block, bytes) : from_arena(bytes);
}

static void first_free(void *block) {
    if (look_up()) {
        NEXT(free)(block);
    }
}

static void *first_aligned_alloc(size_t alignment, size_t bytes) {
    return look_up() ? NEXT(aligned_alloc)(alignment, bytes) : NULL;
}

static void *first_memalign(size_t alignment, size_t bytes) {
    return look_up() ? NEXT(memalign)(alignment, bytes) : NULL;
}

static int first_posix_memalign(void **out_block, size_t alignment, size_t bytes) {
    return look_up() ? NEXT(posix_memalign)(out_block, alignment, bytes) : ENOMEM;
}

static void *first_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return look_up() ? NEXT(mmap)(address, bytes, protection, flags, file, offset) : MAP_FAILED;
}

static void *first_mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return look_up() ? NEXT(mmap64)(address, bytes, protection, flags, file, offset) : MAP_FAILED;
}

static int first_munmap(void *address, size_t bytes) { return look_up() ? NEXT(munmap)(address, bytes) : -1; }

/* ---- what the sampler is told ---- */

/* What the sampler allocates itself, and what the loader does for it, is not sampled. */
OF_THREAD int is_inside;
OF_THREAD lp_sampling sampling;

static LP_NOINLINE void tell_birth(const lp_preload_sampler *sampler, const void *block, size_t bytes,
                                   const void *caller) {
    if (!is_inside) {
        is_inside = 1;
        sampler->born(&sampling, block, bytes, caller);
        is_inside = 0;
    }
}

static LP_NOINLINE void tell_death(const lp_preload_sampler *sampler, const void *block, const void *caller) {
    if (!is_inside) {
        is_inside = 1;
        sampler->died(block, caller);
        is_inside = 0;
    }
}

static inline void born(const lp_preload_sampler *sampler, const void *block, size_t bytes, const void *caller) {
    if (LP_UNLIKELY(lp_sampling_is_due(&sampling, sampler->filter, block, bytes))) {
        tell_birth(sampler, block, bytes, caller);
    }
}

static inline void died(const lp_preload_sampler *sampler, const void *block, const void *caller) {
    if (LP_UNLIKELY(lp_sampling_may_know(sampler->filter, block))) {
        tell_death(sampler, block, caller);
    }
}

static LP_NOINLINE void tell_map(const lp_preload_sampler *sampler, lp_preload_map map, const void *caller) {
    if (!is_inside) {
        is_inside = 1;
        sampler->mapped(&sampling, &map, caller);
        is_inside = 0;
    }
}

/* ---- the functions; the first line of each is all that runs while nothing is sampled ---- */

static void *own_malloc(size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_LIKELY(sampler == NULL)) {
        return NEXT(malloc)(bytes);
    }
    void *block = NEXT(malloc)(bytes);
    born(sampler, block, bytes, CALLER);
    return block;
}

static void *own_calloc(size_t count, size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_LIKELY(sampler == NULL)) {
        return NEXT(calloc)(count, bytes);
    }
    void *block = NEXT(calloc)(count, bytes);
    born(sampler, block, count * bytes, CALLER);
    return block;
}

/* The death is told first: after it, another thread may own the address. */
static void *own_realloc(void *old, size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_UNLIKELY(is_in_arena(old))) {
        return out_of_arena(old, bytes);
    }
    if (LP_LIKELY(sampler == NULL)) {
        return NEXT(realloc)(old, bytes);
    }
    died(sampler, old, CALLER);
    void *block = NEXT(realloc)(old, bytes);
    born(sampler, block, bytes, CALLER);
    return block;
}

static void own_free(void *block) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_UNLIKELY(is_in_arena(block))) {
        return;
    }
    if (LP_UNLIKELY(sampler != NULL)) {
        died(sampler, block, CALLER);
    }
    NEXT(free)(block);
}

static void *own_aligned_alloc(size_t alignment, size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_LIKELY(sampler == NULL)) {
        return NEXT(aligned_alloc)(alignment, bytes);
    }
    void *block = NEXT(aligned_alloc)(alignment, bytes);
    born(sampler, block, bytes, CALLER);
    return block;
}

static void *own_memalign(size_t alignment, size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_LIKELY(sampler == NULL)) {
        return NEXT(memalign)(alignment, bytes);
    }
    void *block = NEXT(memalign)(alignment, bytes);
    born(sampler, block, bytes, CALLER);
    return block;
}

static int own_posix_memalign(void **out_block, size_t alignment, size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    int error = NEXT(posix_memalign)(out_block, alignment, bytes);
    if (LP_UNLIKELY(sampler != NULL) && error == 0) {
        born(sampler, *out_block, bytes, CALLER);
    }
    return error;
}

static void *own_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    const lp_preload_sampler *sampler = SAMPLER();
    void *block = NEXT(mmap)(address, bytes, protection, flags, file, offset);
    if (LP_UNLIKELY(sampler != NULL)) {
        tell_map(sampler, (lp_preload_map){block, bytes, protection, flags}, CALLER);
    }
    return block;
}

static void *own_mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    const lp_preload_sampler *sampler = SAMPLER();
    void *block = NEXT(mmap64)(address, bytes, protection, flags, file, offset);
    if (LP_UNLIKELY(sampler != NULL)) {
        tell_map(sampler, (lp_preload_map){block, bytes, protection, flags}, CALLER);
    }
    return block;
}

static int own_munmap(void *address, size_t bytes) {
    const lp_preload_sampler *sampler = SAMPLER();
    if (LP_UNLIKELY(sampler != NULL)) {
        died(sampler, address, CALLER);
    }
    return NEXT(munmap)(address, bytes);
}

/* ---- fork ---- */

/* A lock of the sampler's may be held for ever in the child, and a C library may fork without Python: nothing is sampled
 * in a child before it asks for it.  The call that forked may have been the sampler's own thread's. */
static void in_child(void) {
    atomic_store(&table.sampler, NULL);
    is_inside = sampling.is_inside = 0;
}

__attribute__((constructor)) static void begin(void) {
    (void)look_up();
    (void)pthread_atfork(NULL, NULL, in_child);
}

#endif
