/* Blocks of CUDA's caching allocator: it reports each to the profiler's entry point, ungated, with the lock of
 * the device held.  A thread that holds the GIL may wait for that lock: what runs here takes no GIL, calls
 * neither torch nor CUDA, and waits only for locks of the ledger, whose holders never wait for either.
 *
 * The order of the reports of one device is that of its allocator, so an address may be used again at once.  A
 * free that waits for a stream (record_stream) is reported when it is asked for: live means allocated here.
 * Private pools, expandable segments and memory taken while a graph is captured come by the same two calls; a
 * replay takes none.  The bytes are those of the block, rounded by the allocator.
 *
 * Not seen: memory with caching off and of the cudaMallocAsync backend (hook_cudart.c sees both), allocators
 * that are plugged in, and memory of other processes. */
#include "native/hook.h"

#include "native/cuda_memory.h"  // lp_cuda_oom

#ifdef __linux__

#include "native/c10_device.h"   // lp_c10_device

_Static_assert(LP_CUDA_DEVICES == LP_MEDIUM_COUNT - LP_MEDIUM_CUDA0, "a medium for each device");

typedef void (*oom_fn)(int64_t bytes, size_t allocated, size_t reserved, lp_c10_device device);
static _Atomic(void *) report_originals[LP_SLOT_COPIES], old_report_originals[LP_SLOT_COPIES];
static _Atomic(void *) oom_originals[LP_SLOT_COPIES], old_oom_originals[LP_SLOT_COPIES];

/* Written by one thread at a time; a reader may meet two reports mixed, which no report depends on. */
static struct {
    _Atomic uint64_t count, allocated, reserved;
    _Atomic int64_t wanted;
    _Atomic int32_t device;
} oom;

static void record(const void *block, int64_t bytes, int index) {
    lp_medium medium = (lp_medium)(LP_MEDIUM_CUDA0 + index);
    if (index < 0 || index >= LP_CUDA_DEVICES) {
        lp_cuda_count_beyond();
    } else if (bytes > 0) {
        lp_hook_born_in(&lp_hook_torch_cuda, medium, block, (uint64_t)bytes);
    } else if (bytes < 0) {
        lp_hook_died_in(&lp_hook_torch_cuda, medium, block);
    }
}

static inline void on_report(lp_c10_report_fn original, void *block, int64_t bytes, size_t allocated, size_t reserved,
                             lp_c10_device device) {
    original(block, bytes, allocated, reserved, device);
    if (block != NULL && device.type == LP_C10_CUDA) {
        record(block, bytes, device.index);
    }
}

static inline void on_oom(oom_fn original, int64_t bytes, size_t allocated, size_t reserved, lp_c10_device device) {
    original(bytes, allocated, reserved, device);
    if (atomic_load_explicit(&lp_hook_torch_cuda.mode, memory_order_acquire) == LP_HOOK_ON) {
        atomic_store_explicit(&oom.wanted, bytes, memory_order_relaxed);
        atomic_store_explicit(&oom.allocated, allocated, memory_order_relaxed);
        atomic_store_explicit(&oom.reserved, reserved, memory_order_relaxed);
        atomic_store_explicit(&oom.device, device.index, memory_order_relaxed);
        atomic_fetch_add_explicit(&oom.count, 1, memory_order_release);
    }
}

LP_FOR_COPIES(LP_C10_REPORTS)
#define LP_X(copy)                                                                                                     \
    static void oom_##copy(int64_t bytes, size_t allocated, size_t reserved, lp_c10_device device) {                   \
        on_oom(LP_ORIGINAL(oom_fn, oom_originals, copy), bytes, allocated, reserved, device);                          \
    }                                                                                                                  \
    static void old_oom_##copy(int64_t bytes, size_t allocated, size_t reserved, lp_c10_device device) {               \
        on_oom(LP_ORIGINAL(oom_fn, old_oom_originals, copy), bytes, allocated, reserved, device);                      \
    }
LP_FOR_COPIES(LP_X)
#undef LP_X

static const char *const objects[] = {"libc10_cuda", NULL};
static const lp_slot_target targets[] = {
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", LP_TRAMPOLINES(report), report_originals},
    /* the manglings of torch 1.x, with signed totals */
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", LP_TRAMPOLINES(old_report), old_report_originals},
    {"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", LP_TRAMPOLINES(oom), oom_originals},
    {"_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", LP_TRAMPOLINES(old_oom), old_oom_originals},
};
static lp_slot_set slots = {.objects = objects, .targets = targets, .target_count = 4};

static void clear_reports(void) { atomic_store(&oom.count, 0); }

lp_hook lp_hook_torch_cuda = {.medium = LP_MEDIUM_CUDA0,
                              .mechanism = "reportMemoryUsageToProfiler slot of libc10_cuda",
                              .slots = &slots,
                              .clear = clear_reports,
                              .companion = &lp_hook_cuda_segments};

void lp_cuda_last_oom(lp_cuda_oom *out_oom) {
    out_oom->count = atomic_load_explicit(&oom.count, memory_order_acquire);
    out_oom->wanted_bytes = atomic_load_explicit(&oom.wanted, memory_order_relaxed);
    out_oom->allocated_bytes = atomic_load_explicit(&oom.allocated, memory_order_relaxed);
    out_oom->reserved_bytes = atomic_load_explicit(&oom.reserved, memory_order_relaxed);
    out_oom->device = atomic_load_explicit(&oom.device, memory_order_relaxed);
}

#else

void lp_cuda_last_oom(lp_cuda_oom *out_oom) { *out_oom = (lp_cuda_oom){0}; }

#endif
