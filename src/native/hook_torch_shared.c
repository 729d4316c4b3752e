/* Storage in shared memory: libtorch_cpu reports each mapping to the profiler's entry point, ungated.
 *
 * A mapping is unmapped before its end is reported, so another thread may map the same address and report
 * that first.  A birth at a live address therefore ends the block that was there, and the end that still
 * has to come for it, of that address and size, is awaited and ignored. */
#include "native/hook.h"

#ifdef __linux__

#include <string.h>

#include "base/lock.h"              // lp_lock
#include "native/address_table.h"  // lp_address_table
#include "native/c10_device.h"     // lp_c10_device

static _Atomic(void *) report_originals[LP_SLOT_COPIES], old_report_originals[LP_SLOT_COPIES];

#define AWAITED_MAX 64

/* Protected by the lock; the ledger's lock is taken inside, so that both change together. */
static struct {
    lp_lock lock;
    lp_address_table live;
    lp_address_entry awaited[AWAITED_MAX];
    size_t awaited_next;
} blocks = {.lock = LP_LOCK_INIT(LP_RANK_MAPPINGS)};

static void await_end(uintptr_t address, uint64_t bytes) {
    blocks.awaited[blocks.awaited_next++ % AWAITED_MAX] = (lp_address_entry){address, bytes};
}

static int was_awaited(uintptr_t address, uint64_t bytes) {
    for (size_t i = 0; i < AWAITED_MAX; i++) {
        if (blocks.awaited[i].address == address && blocks.awaited[i].bytes == bytes) {
            blocks.awaited[i].address = 0;
            return 1;
        }
    }
    return 0;
}

static void add_mapping(const void *block, uint64_t bytes) {
    lp_site_id site = lp_capture_site();
    uint64_t old_bytes = 0;
    lp_lock_take(&blocks.lock);
    if (lp_address_table_find(&blocks.live, (uintptr_t)block, &old_bytes)) {
        await_end((uintptr_t)block, old_bytes);
        (void)lp_ledger_remove(LP_MEDIUM_SHARED, block);
    }
    (void)lp_address_table_add(&blocks.live, (uintptr_t)block, bytes);
    lp_ledger_add(LP_MEDIUM_SHARED, block, bytes, site);
    lp_lock_release(&blocks.lock);
}

static void remove_mapping(const void *block, uint64_t bytes) {
    lp_lock_take(&blocks.lock);
    if (!was_awaited((uintptr_t)block, bytes)) {
        (void)lp_address_table_remove(&blocks.live, (uintptr_t)block);
        (void)lp_ledger_remove(LP_MEDIUM_SHARED, block);
    }
    lp_lock_release(&blocks.lock);
}

static void record(const void *block, int64_t bytes) {
    int mode = atomic_load_explicit(&lp_hook_torch_shared.mode, memory_order_acquire);
    if (mode == LP_HOOK_ON && bytes > 0) {
        add_mapping(block, (uint64_t)bytes);
    } else if (mode == LP_HOOK_ON && bytes < 0) {
        remove_mapping(block, (uint64_t)-bytes);
    } else if (mode == LP_HOOK_CANARY && bytes > 0) {
        lp_hook_canary_born(block, (uint64_t)bytes);
    } else if (mode == LP_HOOK_CANARY) {
        lp_hook_canary_died(block);
    }
}

static inline void on_report(lp_c10_report_fn original, void *block, int64_t bytes, size_t allocated, size_t reserved,
                             lp_c10_device device) {
    original(block, bytes, allocated, reserved, device);
    if (block != NULL && device.type == LP_C10_CPU && device.index == -1) {
        record(block, bytes);
    }
}

LP_FOR_COPIES(LP_C10_REPORTS)

static void clear_mappings(void) {
    lp_lock_take(&blocks.lock);
    lp_address_table_clear(&blocks.live);
    memset(blocks.awaited, 0, sizeof(blocks.awaited));
    lp_lock_release(&blocks.lock);
}

static const char *const objects[] = {"libtorch_cpu", NULL};
static const lp_slot_target targets[] = {
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", LP_TRAMPOLINES(report), report_originals},
    /* the mangling of torch 1.x, with signed totals */
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", LP_TRAMPOLINES(old_report), old_report_originals},
};
static lp_slot_set slots = {.objects = objects, .targets = targets, .target_count = 2};

lp_hook lp_hook_torch_shared = {.medium = LP_MEDIUM_SHARED,
                                .mechanism = "reportMemoryUsageToProfiler slot",
                                .slots = &slots,
                                .clear = clear_mappings,
                                .lock = &blocks.lock};

#endif
