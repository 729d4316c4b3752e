/* Device memory as torch's libraries take it from the CUDA runtime.
 *
 *   beside the caching allocator    segments: what its cache holds, and what goes past it
 *   in its place                    blocks of the ledger: caching is off, or the backend is cudaMallocAsync
 *
 * The runtime's functions do not say for which device they are: the one that the thread chose last, by
 * cudaSetDevice() of the same libraries.  Memory that libraries of their own copy of the runtime take (NCCL), and
 * what goes by the driver (expandable segments), does not come by here. */
#include "native/hook.h"

#include "native/cuda_memory.h"    // lp_cuda_sum

#ifdef __linux__

#include <string.h>

#include "native/address_table.h"  // lp_address_table
#include "native/cudart_api.h"     // lp_cuda_malloc_fn

#define DEVICE_SHIFT 48
#define BYTES_MASK ((UINT64_C(1) << DEVICE_SHIFT) - 1)

/* Protected by segments_lock: address => bytes, the device above them. */
static struct {
    lp_lock segments_lock;
    lp_address_table segments;
    lp_cuda_sum sums[LP_CUDA_DEVICES];
} device_memory = {.segments_lock = LP_LOCK_INIT(LP_RANK_SEGMENTS)};

static _Thread_local int thread_device;

static _Atomic uint64_t beyond_count;

void lp_cuda_note_device(int device) { thread_device = device >= 0 ? device : 0; }

void lp_cuda_count_beyond(void) { atomic_fetch_add_explicit(&beyond_count, 1, memory_order_relaxed); }

/* 1 if it is known from now on. */
static int add_segment(const void *block, uint64_t bytes, int device) {
    lp_lock_take(&device_memory.segments_lock);
    int is_added = bytes <= BYTES_MASK && lp_address_table_add(&device_memory.segments, (uintptr_t)block,
                                                               bytes | (uint64_t)device << DEVICE_SHIFT) == LP_OK;
    if (is_added) {
        lp_cuda_sum_add(&device_memory.sums[device], bytes);
    }
    lp_lock_release(&device_memory.segments_lock);
    return is_added;
}

/* 1, the bytes and the device of a segment that was known. */
static int remove_segment(const void *block, uint64_t *out_bytes, int *out_device) {
    uint64_t found = 0;
    lp_lock_take(&device_memory.segments_lock);
    int is_known = lp_address_table_find(&device_memory.segments, (uintptr_t)block, &found);
    *out_bytes = found & BYTES_MASK;
    *out_device = (int)(found >> DEVICE_SHIFT);
    if (is_known) {
        lp_address_table_remove(&device_memory.segments, (uintptr_t)block);
        lp_cuda_sum_remove(&device_memory.sums[*out_device], *out_bytes);
    }
    lp_lock_release(&device_memory.segments_lock);
    return is_known;
}

static int is_on(void) {
    return atomic_load_explicit(&lp_hook_cuda_segments.mode, memory_order_acquire) != LP_HOOK_OFF ||
           atomic_load_explicit(&lp_hook_cudart_blocks.mode, memory_order_acquire) != LP_HOOK_OFF;
}

static void device_born(const void *block, size_t bytes, int device) {
    if (device >= LP_CUDA_DEVICES) {
        lp_cuda_count_beyond();
        return;
    }
    if (add_segment(block, bytes, device)) { /* of another its end would not be told */
        lp_hook_born_in(&lp_hook_cudart_blocks, (lp_medium)(LP_MEDIUM_CUDA0 + device), block, bytes);
    }
}

static inline int after_malloc(int error, void **out_block, size_t bytes) {
    if (error == 0 && is_on() && *out_block != NULL) {
        device_born(*out_block, bytes, thread_device);
    }
    return error;
}

/* Removed before the original runs: after it, another thread may own the address. */
static inline int remove_known(const void *block, uint64_t *out_bytes, int *out_device) {
    if (block == NULL || !is_on() || !remove_segment(block, out_bytes, out_device)) {
        return 0;
    }
    lp_hook_died_in(&lp_hook_cudart_blocks, (lp_medium)(LP_MEDIUM_CUDA0 + *out_device), block);
    return 1;
}

/* What the runtime refused to free is there still. */
static inline int after_free(int error, int was_known, const void *block, uint64_t bytes, int device) {
    if (error != 0 && was_known) {
        device_born(block, bytes, device);
    }
    return error;
}

static _Atomic(void *) malloc_originals[LP_SLOT_COPIES], free_originals[LP_SLOT_COPIES];
static _Atomic(void *) malloc_async_originals[LP_SLOT_COPIES], free_async_originals[LP_SLOT_COPIES];
static _Atomic(void *) malloc_ptsz_originals[LP_SLOT_COPIES], free_ptsz_originals[LP_SLOT_COPIES];
static _Atomic(void *) set_device_originals[LP_SLOT_COPIES];

static inline int on_free(lp_cuda_free_fn original, void *block) {
    uint64_t bytes = 0;
    int device = 0, was_known = remove_known(block, &bytes, &device);
    return after_free(original(block), was_known, block, bytes, device);
}

static inline int on_free_async(lp_cuda_free_async_fn original, void *block, lp_cuda_stream stream) {
    uint64_t bytes = 0;
    int device = 0, was_known = remove_known(block, &bytes, &device);
    return after_free(original(block, stream), was_known, block, bytes, device);
}

static inline int on_set_device(lp_cuda_set_device_fn original, int device) {
    int error = original(device);
    if (error == 0) {
        lp_cuda_note_device(device);
    }
    return error;
}

#define ASYNC(name, copy)                                                                                              \
    static int malloc_##name##_##copy(void **out_block, size_t bytes, lp_cuda_stream stream) {                         \
        int error = LP_ORIGINAL(lp_cuda_malloc_async_fn, malloc_##name##_originals, copy)(out_block, bytes, stream);   \
        return after_malloc(error, out_block, bytes);                                                                  \
    }                                                                                                                  \
    static int free_##name##_##copy(void *block, lp_cuda_stream stream) {                                              \
        return on_free_async(LP_ORIGINAL(lp_cuda_free_async_fn, free_##name##_originals, copy), block, stream);        \
    }
#define LP_X(copy)                                                                                                     \
    static int malloc_##copy(void **out_block, size_t bytes) {                                                         \
        int error = LP_ORIGINAL(lp_cuda_malloc_fn, malloc_originals, copy)(out_block, bytes);                          \
        return after_malloc(error, out_block, bytes);                                                                  \
    }                                                                                                                  \
    static int free_##copy(void *block) { return on_free(LP_ORIGINAL(lp_cuda_free_fn, free_originals, copy), block); } \
    ASYNC(async, copy)                                                                                                 \
    ASYNC(ptsz, copy)                                                                                                  \
    static int set_device_##copy(int device) {                                                                         \
        return on_set_device(LP_ORIGINAL(lp_cuda_set_device_fn, set_device_originals, copy), device);                  \
    }
LP_FOR_COPIES(LP_X)
#undef LP_X

static const char *const objects[] = {"libc10_cuda", "libtorch_cuda", NULL};
static const lp_slot_target targets[] = {
    {"cudaMalloc", LP_TRAMPOLINES(malloc), malloc_originals},
    {"cudaFree", LP_TRAMPOLINES(free), free_originals},
    {"cudaMallocAsync", LP_TRAMPOLINES(malloc_async), malloc_async_originals},
    {"cudaFreeAsync", LP_TRAMPOLINES(free_async), free_async_originals},
    /* the same for a default stream per thread */
    {"cudaMallocAsync_ptsz", LP_TRAMPOLINES(malloc_ptsz), malloc_ptsz_originals},
    {"cudaFreeAsync_ptsz", LP_TRAMPOLINES(free_ptsz), free_ptsz_originals},
    {"cudaSetDevice", LP_TRAMPOLINES(set_device), set_device_originals},
};
/* One set: of the two hooks that use it, one serves at a time. */
static lp_slot_set slots = {.objects = objects, .targets = targets, .target_count = 7};

static void clear_segments(void) {
    lp_lock_take(&device_memory.segments_lock);
    lp_address_table_clear(&device_memory.segments);
    memset(device_memory.sums, 0, sizeof(device_memory.sums));
    lp_lock_release(&device_memory.segments_lock);
    atomic_store(&beyond_count, 0);
}

lp_hook lp_hook_cuda_segments = {.medium = LP_MEDIUM_CUDA0,
                                 .mechanism = "cudaMalloc slots, for segments",
                                 .slots = &slots,
                                 .clear = clear_segments,
                                 .lock = &device_memory.segments_lock};

lp_hook lp_hook_cudart_blocks = {.medium = LP_MEDIUM_CUDA0,
                                 .mechanism = "cudaMalloc and cudaMallocAsync slots of libc10_cuda",
                                 .slots = &slots,
                                 .clear = clear_segments};

void lp_cuda_segments(int device, lp_cuda_sum *out_sum) {
    *out_sum = (lp_cuda_sum){0};
    if (device >= 0 && device < LP_CUDA_DEVICES) {
        lp_lock_take(&device_memory.segments_lock);
        *out_sum = device_memory.sums[device];
        lp_lock_release(&device_memory.segments_lock);
    }
}

uint64_t lp_cuda_beyond_count(void) { return atomic_load_explicit(&beyond_count, memory_order_relaxed); }

#else

uint64_t lp_cuda_beyond_count(void) { return 0; }

void lp_cuda_segments(int device, lp_cuda_sum *out_sum) {
    (void)device;
    *out_sum = (lp_cuda_sum){0};
}

void lp_cuda_note_device(int device) { (void)device; }

#endif
