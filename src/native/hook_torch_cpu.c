/* CPU tensor storage: three ways to see it, best first.
 *
 * The allocator of libc10 reports each block to ProfiledCPUMemoryReporter, whether or not a profiler runs, with
 * exact pointer and size.  A compiler may have inlined those calls; then alloc_cpu and free_cpu serve (they also
 * see scratch buffers), then libc10's posix_memalign and free.  The canary decides. */
#include "native/hook.h"

#ifdef __linux__

#include "base/lock.h"              // lp_lock
#include "native/address_table.h"  // lp_address_table

/* --- ProfiledCPUMemoryReporter --- */

typedef void (*new_fn)(void *reporter, void *block, size_t bytes);
typedef void (*delete_fn)(void *reporter, void *block);
static _Atomic(void *) new_originals[LP_SLOT_COPIES], delete_originals[LP_SLOT_COPIES];

static inline void on_new(int copy, void *reporter, void *block, size_t bytes) {
    LP_ORIGINAL(new_fn, new_originals, copy)(reporter, block, bytes);
    if (block != NULL) {  // an empty storage is New(NULL, 0)
        lp_hook_born(&lp_hook_torch_cpu, block, bytes);
    }
}

/* The block itself is freed only after this call. */
static inline void on_delete(int copy, void *reporter, void *block) {
    LP_ORIGINAL(delete_fn, delete_originals, copy)(reporter, block);
    if (block != NULL) {
        lp_hook_died(&lp_hook_torch_cpu, block);
    }
}

#define LP_X(copy)                                                                                                     \
    static void new_##copy(void *reporter, void *block, size_t bytes) { on_new(copy, reporter, block, bytes); }        \
    static void delete_##copy(void *reporter, void *block) { on_delete(copy, reporter, block); }
LP_FOR_COPIES(LP_X)
#undef LP_X

static const char *const c10_objects[] = {"libc10.so", NULL};
static const lp_slot_target reporter_targets[] = {
    {"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", LP_TRAMPOLINES(new), new_originals},
    {"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", LP_TRAMPOLINES(delete), delete_originals},
};
static lp_slot_set reporter_slots = {.objects = c10_objects, .targets = reporter_targets, .target_count = 2};

lp_hook lp_hook_torch_cpu = {
    .medium = LP_MEDIUM_CPU, .mechanism = "ProfiledCPUMemoryReporter slots", .slots = &reporter_slots};

/* --- alloc_cpu, free_cpu --- */

typedef void *(*alloc_fn)(size_t bytes);
typedef void (*free_fn)(void *block);
static _Atomic(void *) alloc_originals[LP_SLOT_COPIES], free_cpu_originals[LP_SLOT_COPIES];

static inline void *on_alloc(int copy, size_t bytes) {
    void *block = LP_ORIGINAL(alloc_fn, alloc_originals, copy)(bytes);
    if (block != NULL) {
        lp_hook_born(&lp_hook_torch_alloc_cpu, block, bytes);
    }
    return block;
}

/* Recorded before the original runs: after it, another thread may own the address. */
static inline void on_free_cpu(int copy, void *block) {
    if (block != NULL) {
        lp_hook_died(&lp_hook_torch_alloc_cpu, block);
    }
    LP_ORIGINAL(free_fn, free_cpu_originals, copy)(block);
}

#define LP_X(copy)                                                                                                     \
    static void *alloc_##copy(size_t bytes) { return on_alloc(copy, bytes); }                                          \
    static void free_cpu_##copy(void *block) { on_free_cpu(copy, block); }
LP_FOR_COPIES(LP_X)
#undef LP_X

static const char *const c10_and_cpu_objects[] = {"libc10.so", "libtorch_cpu", NULL};
static const lp_slot_target alloc_targets[] = {
    {"_ZN3c109alloc_cpuEm", LP_TRAMPOLINES(alloc), alloc_originals},
    {"_ZN3c108free_cpuEPv", LP_TRAMPOLINES(free_cpu), free_cpu_originals},
};
static lp_slot_set alloc_slots = {.objects = c10_and_cpu_objects, .targets = alloc_targets, .target_count = 2};

lp_hook lp_hook_torch_alloc_cpu = {
    .medium = LP_MEDIUM_CPU, .mechanism = "alloc_cpu and free_cpu slots", .slots = &alloc_slots};

/* --- posix_memalign, free --- */

typedef int (*memalign_fn)(void **out_block, size_t alignment, size_t bytes);
static _Atomic(void *) memalign_originals[LP_SLOT_COPIES], free_originals[LP_SLOT_COPIES];

/* libc10 frees much else: blocks of posix_memalign, protected by known_lock.  The ledger's lock is taken inside. */
static lp_address_table known;
static lp_lock known_lock = LP_LOCK_INIT(LP_RANK_CPU_BLOCKS);

static inline int on_memalign(int copy, void **out_block, size_t alignment, size_t bytes) {
    int error = LP_ORIGINAL(memalign_fn, memalign_originals, copy)(out_block, alignment, bytes);
    int mode = atomic_load_explicit(&lp_hook_torch_memalign.mode, memory_order_acquire);
    if (error == 0 && *out_block != NULL && mode != LP_HOOK_OFF) {
        lp_lock_take(&known_lock);
        lp_status added = lp_address_table_add(&known, (uintptr_t)*out_block, bytes);
        lp_lock_release(&known_lock);
        if (added == LP_OK) {
            lp_hook_born(&lp_hook_torch_memalign, *out_block, bytes);
        }
    }
    return error;
}

static inline void on_free(int copy, void *block) {
    int mode = atomic_load_explicit(&lp_hook_torch_memalign.mode, memory_order_acquire);
    if (block != NULL && mode != LP_HOOK_OFF) {
        lp_lock_take(&known_lock);
        int is_known = lp_address_table_remove(&known, (uintptr_t)block);
        lp_lock_release(&known_lock);
        if (is_known) {
            lp_hook_died(&lp_hook_torch_memalign, block);
        }
    }
    LP_ORIGINAL(free_fn, free_originals, copy)(block);
}

#define LP_X(copy)                                                                                                     \
    static int memalign_##copy(void **out_block, size_t alignment, size_t bytes) {                                     \
        return on_memalign(copy, out_block, alignment, bytes);                                                         \
    }                                                                                                                  \
    static void free_##copy(void *block) { on_free(copy, block); }
LP_FOR_COPIES(LP_X)
#undef LP_X

static const lp_slot_target memalign_targets[] = {
    {"posix_memalign", LP_TRAMPOLINES(memalign), memalign_originals},
    {"free", LP_TRAMPOLINES(free), free_originals},
};
static lp_slot_set memalign_slots = {.objects = c10_objects, .targets = memalign_targets, .target_count = 2};

static void clear_known(void) {
    lp_lock_take(&known_lock);
    lp_address_table_clear(&known);
    lp_lock_release(&known_lock);
}

lp_hook lp_hook_torch_memalign = {.medium = LP_MEDIUM_CPU,
                                  .mechanism = "posix_memalign and free slots of libc10",
                                  .slots = &memalign_slots,
                                  .clear = clear_known,
                                  .lock = &known_lock};

#endif
