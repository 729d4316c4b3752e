/* Data buffers of numpy arrays: numpy tells tracemalloc of each, whether or not tracemalloc runs. */
#include "native/hook.h"

#ifdef __linux__

#define NUMPY_DOMAIN 389047u
#define TRACK_FAILED (-1)      /* then numpy frees the block and raises MemoryError */
#define TRACEMALLOC_IS_OFF (-2)

typedef int (*track_fn)(unsigned int domain, uintptr_t block, size_t bytes);
typedef int (*untrack_fn)(unsigned int domain, uintptr_t block);
static _Atomic(void *) track_originals[LP_SLOT_COPIES], untrack_originals[LP_SLOT_COPIES];

static inline int on_track(int copy, unsigned int domain, uintptr_t block, size_t bytes) {
    int result = LP_ORIGINAL(track_fn, track_originals, copy)(domain, block, bytes);
    if (domain == NUMPY_DOMAIN && block != 0 && result != TRACK_FAILED) {
        lp_hook_born(&lp_hook_numpy, (const void *)block, bytes);
    }
    return result;
}

/* The block is freed only after this call.  A resize is an untrack and a track; from 2.5 on numpy leaves the
 * track out when the untrack says that tracemalloc is off, so it must not say so while we listen. */
static inline int on_untrack(int copy, unsigned int domain, uintptr_t block) {
    int result = LP_ORIGINAL(untrack_fn, untrack_originals, copy)(domain, block);
    if (domain != NUMPY_DOMAIN || block == 0) {
        return result;
    }
    lp_hook_died(&lp_hook_numpy, (const void *)block);
    int is_listening = atomic_load_explicit(&lp_hook_numpy.mode, memory_order_relaxed) != LP_HOOK_OFF;
    return is_listening && result == TRACEMALLOC_IS_OFF ? 0 : result;
}

#define LP_X(copy)                                                                                                     \
    static int track_##copy(unsigned int domain, uintptr_t block, size_t bytes) {                                      \
        return on_track(copy, domain, block, bytes);                                                                   \
    }                                                                                                                  \
    static int untrack_##copy(unsigned int domain, uintptr_t block) { return on_untrack(copy, domain, block); }
LP_FOR_COPIES(LP_X)
#undef LP_X

/* numpy/core in 1.x, numpy/_core in 2.x: the file's name is the same */
static const char *const objects[] = {"_multiarray_umath.", NULL};
static const lp_slot_target targets[] = {
    {"PyTraceMalloc_Track", LP_TRAMPOLINES(track), track_originals},
    {"PyTraceMalloc_Untrack", LP_TRAMPOLINES(untrack), untrack_originals},
};
static lp_slot_set slots = {.objects = objects, .targets = targets, .target_count = 2};

lp_hook lp_hook_numpy = {.medium = LP_MEDIUM_NUMPY, .mechanism = "PyTraceMalloc slots", .slots = &slots};

#endif
