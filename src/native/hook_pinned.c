/* Pinned host memory: the blocks that torch's host allocator takes from the CUDA runtime.
 *
 * A block that comes from the allocator's cache makes no call, so what is seen is memory taken and given back,
 * and who has a block now is found by joining the storages of the graph with these addresses.  With
 * pinned_use_cuda_host_register torch registers memory of malloc instead: a block of this medium too, and one that
 * malloc's own figure has in it.  What the program registers itself (torch.cuda.cudart().cudaHostRegister) belongs to
 * another medium: it is only summed. */
#include "native/hook.h"

#include "native/cuda_memory.h"    // lp_cuda_sum

const char lp_cuda_pin_name[] = "cudaHostRegister", lp_cuda_unpin_name[] = "cudaHostUnregister";

#ifdef __linux__

#include "native/address_table.h"  // lp_address_table
#include "native/cudart_api.h"     // lp_cuda_host_alloc_fn

/* Memory that was registered. */
typedef struct registered {
    lp_address_table table;
    lp_cuda_sum sum;
} registered;

/* Protected by registered_lock: of another medium and pinned too; of this medium, from malloc. */
static lp_lock registered_lock = LP_LOCK_INIT(LP_RANK_REGISTERED);
static registered others, malloced;

static void add_registered(registered *set, const void *block, uint64_t bytes) {
    lp_lock_take(&registered_lock);
    if (lp_address_table_add(&set->table, (uintptr_t)block, bytes) == LP_OK) {
        lp_cuda_sum_add(&set->sum, bytes);
    }
    lp_lock_release(&registered_lock);
}

static int remove_registered(registered *set, const void *block, uint64_t *out_bytes) {
    lp_lock_take(&registered_lock);
    int is_known = lp_address_table_find(&set->table, (uintptr_t)block, out_bytes);
    if (is_known) {
        lp_address_table_remove(&set->table, (uintptr_t)block);
        lp_cuda_sum_remove(&set->sum, *out_bytes);
    }
    lp_lock_release(&registered_lock);
    return is_known;
}

/* The canary's, which is never pinned. */
static _Atomic(const void *) answered_block;

static inline int is_answered(const void *block) {
    return block != NULL && block == atomic_load_explicit(&answered_block, memory_order_relaxed);
}

static inline int mode_now(void) { return atomic_load_explicit(&lp_hook_pinned.mode, memory_order_acquire); }

static inline int after_alloc(int error, void **out_block, size_t bytes) {
    if (error == 0 && mode_now() != LP_HOOK_OFF && *out_block != NULL) {
        lp_hook_born(&lp_hook_pinned, *out_block, bytes);
    }
    return error;
}

/* After it was freed, another thread may own the address: so it dies first.  What could not be freed comes back. */
static inline int on_free_host(lp_cuda_free_host_fn original, void *block) {
    uint64_t bytes = block == NULL ? 0 : lp_hook_died(&lp_hook_pinned, block);
    int error = original(block);
    if (error != 0 && bytes != 0) {
        lp_hook_born(&lp_hook_pinned, block, bytes);
    }
    return error;
}

/* by_torch: its own memory, which no other hook sees, unless the ledger says that one does. */
static inline int after_register(int error, void *block, size_t bytes, int by_torch) {
    if (error != 0 || mode_now() == LP_HOOK_OFF || block == NULL) {
        return error;
    }
    if (by_torch && !lp_ledger_contains(block)) {
        lp_hook_born(&lp_hook_pinned, block, bytes);
        add_registered(&malloced, block, bytes);
    } else {
        add_registered(&others, block, bytes);
    }
    return error;
}

static inline int on_user_register(lp_cuda_host_register_fn original, void *block, size_t bytes, unsigned int flags) {
    if (LP_UNLIKELY(is_answered(block))) {
        lp_hook_canary_born(block, bytes);
        return 0;
    }
    return after_register(original(block, bytes, flags), block, bytes, 0);
}

static inline int on_unregister(lp_cuda_host_unregister_fn original, void *block) {
    uint64_t bytes = 0;
    int mode = mode_now();
    int was_malloced = mode != LP_HOOK_OFF && remove_registered(&malloced, block, &bytes);
    int was_registered = mode != LP_HOOK_OFF && remove_registered(&others, block, &bytes);
    if (mode != LP_HOOK_OFF && !was_registered && block != NULL && lp_ledger_contains(block)) {
        bytes = lp_hook_died(&lp_hook_pinned, block);
    }
    int error = original(block);
    if (error != 0 && bytes != 0 && was_registered) {
        add_registered(&others, block, bytes);
    } else if (error != 0 && bytes != 0) {
        lp_hook_born(&lp_hook_pinned, block, bytes);
        if (was_malloced) {
            add_registered(&malloced, block, bytes);
        }
    }
    return error;
}

static inline int on_user_unregister(lp_cuda_host_unregister_fn original, void *block) {
    if (LP_UNLIKELY(is_answered(block))) {
        lp_hook_canary_died(block);
        return 0;
    }
    return on_unregister(original, block);
}

static _Atomic(void *) host_alloc_originals[LP_SLOT_COPIES], malloc_host_originals[LP_SLOT_COPIES];
static _Atomic(void *) free_host_originals[LP_SLOT_COPIES], register_originals[LP_SLOT_COPIES];
static _Atomic(void *) unregister_originals[LP_SLOT_COPIES];
static _Atomic(void *) user_register_originals[LP_SLOT_COPIES], user_unregister_originals[LP_SLOT_COPIES];

#define LP_X(copy)                                                                                                     \
    static int host_alloc_##copy(void **out_block, size_t bytes, unsigned int flags) {                                 \
        int error = LP_ORIGINAL(lp_cuda_host_alloc_fn, host_alloc_originals, copy)(out_block, bytes, flags);           \
        return after_alloc(error, out_block, bytes);                                                                   \
    }                                                                                                                  \
    static int malloc_host_##copy(void **out_block, size_t bytes) {                                                    \
        int error = LP_ORIGINAL(lp_cuda_malloc_host_fn, malloc_host_originals, copy)(out_block, bytes);                \
        return after_alloc(error, out_block, bytes);                                                                   \
    }                                                                                                                  \
    static int free_host_##copy(void *block) {                                                                         \
        return on_free_host(LP_ORIGINAL(lp_cuda_free_host_fn, free_host_originals, copy), block);                      \
    }                                                                                                                  \
    static int register_##copy(void *block, size_t bytes, unsigned int flags) {                                        \
        int error = LP_ORIGINAL(lp_cuda_host_register_fn, register_originals, copy)(block, bytes, flags);              \
        return after_register(error, block, bytes, 1);                                                                 \
    }                                                                                                                  \
    static int unregister_##copy(void *block) {                                                                        \
        return on_unregister(LP_ORIGINAL(lp_cuda_host_unregister_fn, unregister_originals, copy), block);              \
    }                                                                                                                  \
    static int user_register_##copy(void *block, size_t bytes, unsigned int flags) {                                   \
        return on_user_register(LP_ORIGINAL(lp_cuda_host_register_fn, user_register_originals, copy), block, bytes,    \
                                flags);                                                                                \
    }                                                                                                                  \
    static int user_unregister_##copy(void *block) {                                                                   \
        return on_user_unregister(LP_ORIGINAL(lp_cuda_host_unregister_fn, user_unregister_originals, copy), block);    \
    }
LP_FOR_COPIES(LP_X)
#undef LP_X

static const char *const torch_objects[] = {"libtorch_cuda", NULL};
static const lp_slot_target torch_targets[] = {
    {"cudaHostAlloc", LP_TRAMPOLINES(host_alloc), host_alloc_originals},
    {"cudaMallocHost", LP_TRAMPOLINES(malloc_host), malloc_host_originals},
    {"cudaFreeHost", LP_TRAMPOLINES(free_host), free_host_originals},
    {"cudaHostRegister", LP_TRAMPOLINES(register), register_originals},
    {"cudaHostUnregister", LP_TRAMPOLINES(unregister), unregister_originals},
};
static lp_slot_set torch_slots = {.objects = torch_objects, .targets = torch_targets, .target_count = 5};

static const char *const user_objects[] = {"libtorch_python", NULL};
static const lp_slot_target user_targets[] = {
    {"cudaHostRegister", LP_TRAMPOLINES(user_register), user_register_originals},
    {"cudaHostUnregister", LP_TRAMPOLINES(user_unregister), user_unregister_originals},
};
static lp_slot_set user_slots = {.objects = user_objects, .targets = user_targets, .target_count = 2};

static void clear_registered(void) {
    lp_lock_take(&registered_lock);
    lp_address_table_clear(&others.table);
    lp_address_table_clear(&malloced.table);
    others.sum = malloced.sum = (lp_cuda_sum){0};
    lp_lock_release(&registered_lock);
}

lp_hook lp_hook_pinned = {.medium = LP_MEDIUM_PINNED,
                          .mechanism = "cudaHostAlloc and cudaHostRegister slots of libtorch_cuda",
                          .slots = &torch_slots,
                          .clear = clear_registered,
                          .lock = &registered_lock,
                          .companion = &lp_hook_user_pinned};

lp_hook lp_hook_user_pinned = {
    .medium = LP_MEDIUM_PINNED, .mechanism = "cudaHostRegister slots of libtorch_python", .slots = &user_slots};

int lp_cuda_answer_for(const void *block) {
    atomic_store(&answered_block, block);
    return lp_slots_patch(&user_slots) >= user_slots.target_count;
}

void lp_cuda_registered(lp_cuda_sum *out_sum) {
    lp_lock_take(&registered_lock);
    *out_sum = others.sum;
    lp_lock_release(&registered_lock);
}

uint64_t lp_cuda_malloc_bytes(void) {
    lp_lock_take(&registered_lock);
    uint64_t bytes = malloced.sum.live_bytes;
    lp_lock_release(&registered_lock);
    return bytes;
}

#else

int lp_cuda_answer_for(const void *block) {
    (void)block;
    return 0;
}

void lp_cuda_registered(lp_cuda_sum *out_sum) { *out_sum = (lp_cuda_sum){0}; }

uint64_t lp_cuda_malloc_bytes(void) { return 0; }

#endif
