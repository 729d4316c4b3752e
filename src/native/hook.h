/* What the hooks of native allocators share.
 *
 *   off      trampolines only call the original
 *   canary   events are not recorded; those of one thread are compared with one block it makes and frees
 *   check    the same while the hook serves: the canary's block is left out, all else goes to the ledger
 *   on       events go to the ledger
 *
 * A hook calls the original and records; it takes no GIL, calls neither Python nor torch, and waits for no
 * lock but those of the ledger and the site table.  Only slots of torch's and numpy's libraries are patched, and what a hook
 * calls allocates through slots of our own, so a hook can't re-enter itself: there is no guard. */
#ifndef LP_HOOK_H
#define LP_HOOK_H

#ifdef __linux__

#include <stdatomic.h>

#include "base/lock.h"         // lp_lock
#include "ledger/ledger.h"     // lp_ledger_add
#include "native/capture.h"    // lp_capture_site
#include "native/elf_slots.h"  // lp_slot_set

enum { LP_HOOK_OFF, LP_HOOK_CANARY, LP_HOOK_CHECK, LP_HOOK_ON };

typedef struct lp_hook {
    lp_medium medium;
    const char *mechanism;
    lp_slot_set *slots;
    void (*clear)(void);           /* forget what the hook itself knows of blocks; or NULL */
    lp_lock *lock;                 /* of what the hook itself knows, held over fork; or NULL */
    struct lp_hook *companion;     /* installed and removed with it, missing slots or not; or NULL */
    _Atomic int mode;
} lp_hook;

/* Every hook.  Those of one medium stand in the order in which they are tried, all in that of their locks' ranks. */
#define LP_HOOK_LIST(X)                                                                                                \
    X(numpy)                                                                                                           \
    X(torch_cpu)        /* ProfiledCPUMemoryReporter::New and Delete */                                                \
    X(torch_alloc_cpu)  /* c10::alloc_cpu and free_cpu */                                                              \
    X(torch_memalign)   /* posix_memalign and free of libc10 */                                                        \
    X(torch_shared)                                                                                                    \
    X(pinned)           /* host memory that torch pins */                                                              \
    X(torch_cuda)       /* blocks of the caching allocator */                                                          \
    X(cudart_blocks)    /* blocks where nothing is cached, or not by the caching allocator */

#define LP_X(name) extern lp_hook lp_hook_##name;
LP_HOOK_LIST(LP_X)
#undef LP_X
/* Companions of others. */
extern lp_hook lp_hook_user_pinned;      /* host memory that the program pins itself; with `pinned` */
extern lp_hook lp_hook_cuda_segments;    /* what the caching allocator takes its blocks from; with `torch_cuda` */

/* Defined in native.c: the canary compares the event with its block; 1 if it is the canary's. */
int lp_hook_canary_born(const void *address, uint64_t bytes);
int lp_hook_canary_died(const void *address);

/* For hooks that serve several media. */
static inline void lp_hook_born_in(lp_hook *hook, lp_medium medium, const void *address, uint64_t bytes) {
    int mode = atomic_load_explicit(&hook->mode, memory_order_acquire);
    if (LP_UNLIKELY(mode != LP_HOOK_ON)) {
        int is_canary = mode != LP_HOOK_OFF && lp_hook_canary_born(address, bytes);
        if (mode != LP_HOOK_CHECK || is_canary) {
            return;
        }
    }
    lp_ledger_add(medium, address, bytes, lp_capture_site());
}

/* The bytes of the block; 0 if it was not known or nothing is recorded. */
static inline uint64_t lp_hook_died_in(lp_hook *hook, lp_medium medium, const void *address) {
    int mode = atomic_load_explicit(&hook->mode, memory_order_acquire);
    if (LP_UNLIKELY(mode != LP_HOOK_ON)) {
        int is_canary = mode != LP_HOOK_OFF && lp_hook_canary_died(address);
        if (mode != LP_HOOK_CHECK || is_canary) {
            return 0;
        }
    }
    return lp_ledger_remove(medium, address);
}

static inline void lp_hook_born(lp_hook *hook, const void *address, uint64_t bytes) {
    lp_hook_born_in(hook, hook->medium, address, bytes);
}

static inline uint64_t lp_hook_died(lp_hook *hook, const void *address) {
    return lp_hook_died_in(hook, hook->medium, address);
}

/* LP_TRAMPOLINES(new) is {new_0, ...}; LP_FOR_COPIES(X) is X(0) X(1) ..., LP_SLOT_COPIES of them. */
#define LP_TRAMPOLINES(name) {(void *)name##_0, (void *)name##_1, (void *)name##_2, (void *)name##_3}
#define LP_FOR_COPIES(X) X(0) X(1) X(2) X(3)
/* The original that trampoline `copy` calls; it was stored before the slot was. */
#define LP_ORIGINAL(type, originals, copy) ((type)atomic_load_explicit(&(originals)[copy], memory_order_acquire))

#endif
#endif
