/* What the hooks of native allocators share.
 *
 *   off      trampolines only call the original
 *   canary   events are not recorded; those of one thread are compared with one block it makes and frees
 *   on       events go to the ledger
 *
 * A hook calls the original and records; it takes no GIL, calls neither Python nor torch, and waits for no
 * lock but those of the ledger and the site table.  Only slots of torch and numpy are patched, and what a hook
 * calls allocates through slots of our own, so a hook can't re-enter itself: there is no guard. */
#ifndef LP_HOOK_H
#define LP_HOOK_H

#ifdef __linux__

#include <stdatomic.h>

#include "base/lock.h"         // lp_lock
#include "ledger/ledger.h"     // lp_ledger_add
#include "native/capture.h"    // lp_capture_site
#include "native/elf_slots.h"  // lp_slot_set

enum { LP_HOOK_OFF, LP_HOOK_CANARY, LP_HOOK_ON };

typedef struct lp_hook {
    lp_medium medium;
    const char *mechanism;
    lp_slot_set *slots;
    void (*clear)(void);           /* forget what the hook itself knows of blocks; or NULL */
    lp_lock *lock;                 /* of what the hook itself knows, held over fork; or NULL */
    _Atomic int mode;
} lp_hook;

extern lp_hook lp_hook_torch_cpu;        /* ProfiledCPUMemoryReporter::New and Delete */
extern lp_hook lp_hook_torch_alloc_cpu;  /* c10::alloc_cpu and free_cpu */
extern lp_hook lp_hook_torch_memalign;   /* posix_memalign and free of libc10 */
extern lp_hook lp_hook_torch_shared;
extern lp_hook lp_hook_numpy;

/* Defined in native.c: the canary compares the event with its block. */
void lp_hook_canary_born(const void *address, uint64_t bytes);
void lp_hook_canary_died(const void *address);

static inline void lp_hook_born(lp_hook *hook, const void *address, uint64_t bytes) {
    int mode = atomic_load_explicit(&hook->mode, memory_order_acquire);
    if (LP_LIKELY(mode == LP_HOOK_ON)) {
        lp_ledger_add(hook->medium, address, bytes, lp_capture_site());
    } else if (mode == LP_HOOK_CANARY) {
        lp_hook_canary_born(address, bytes);
    }
}

static inline void lp_hook_died(lp_hook *hook, const void *address) {
    int mode = atomic_load_explicit(&hook->mode, memory_order_acquire);
    if (LP_LIKELY(mode == LP_HOOK_ON)) {
        (void)lp_ledger_remove(hook->medium, address);
    } else if (mode == LP_HOOK_CANARY) {
        lp_hook_canary_died(address);
    }
}

/* LP_TRAMPOLINES(new) is {new_0, ...}; LP_FOR_COPIES(X) is X(0) X(1) ..., LP_SLOT_COPIES of them. */
#define LP_TRAMPOLINES(name) {(void *)name##_0, (void *)name##_1, (void *)name##_2, (void *)name##_3}
#define LP_FOR_COPIES(X) X(0) X(1) X(2) X(3)
/* The original that trampoline `copy` calls; it was stored before the slot was. */
#define LP_ORIGINAL(type, originals, copy) ((type)atomic_load_explicit(&(originals)[copy], memory_order_acquire))

#endif
#endif
