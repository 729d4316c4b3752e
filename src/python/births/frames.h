/* From the running Python frames to an allocation site.
 *
 * The hot path keys on the running instructions of the top two frames:
 *   cache[hash(top, caller)] => {top, caller, site}       16 Ki entries, direct mapped
 * Hooks try lp_frames_find_quick() first, which takes shims for frames: their key is never
 * in the cache, so that lp_frames_stamp(), which skips them, has its turn.
 * A miss interns the two frames; a site marked deep is never cached and interns its
 * whole stack as a child.  Keys are addresses inside code objects: when one dies, the
 * entries in its range go.
 *
 * The GIL protects the cache.  lp_frames_native_site() needs no GIL and does not use it. */
#ifndef LP_FRAMES_H
#define LP_FRAMES_H

#include "python/compat/quick.h"  // lp_quick_top

#include "base/numbers.h"         // LP_HASH_FACTOR
#include "ledger/alive.h"         // lp_alive_born_quick
#include "ledger/epoch.h"         // lp_epoch_bits
#include "ledger/site.h"          // lp_site_id

#define LP_FRAMES_CACHE_LG 14
#define LP_FRAMES_DEPTH_MAX 256

/* Of 32 bytes: an entry never lies in two cache lines. */
typedef struct lp_frames_entry {
    uint64_t top, caller;
    lp_site_id site;
    uint32_t unused[3];
} lp_frames_entry;

extern LP_HIDDEN lp_frames_entry lp_frames_cache[1 << LP_FRAMES_CACHE_LG];

/* Before the first capture; 0, or -1 with an exception set. */
int lp_frames_init(uint32_t stack_depth);
/* No entry is valid any more; again before a start, and in the child of a fork. */
void lp_frames_clear(void);
/* Whole stacks from now on for births at a site. */
void lp_frames_set_deep(lp_site_id site);

/* pre: GIL; the frame is the top one of the running thread, or NULL. */
lp_site_id lp_frames_site_slow(PyThreadState *tstate);

static inline lp_frames_entry *lp_frames_slot(uint64_t top, uint64_t caller) {
    uint64_t key = top + caller * 5;
#if LP_HAS_FRAME_OBJECTS
    return &lp_frames_cache[key * LP_HASH_FACTOR >> (LP_HASH_BITS - LP_FRAMES_CACHE_LG)];
#else
    /* Keys are addresses of instructions: neighbours get neighbours. */
    return &lp_frames_cache[key / sizeof(uint16_t) % ((uint64_t)1 << LP_FRAMES_CACHE_LG)];
#endif
}

/* 1 in another interpreter of a CPython whose frozen code all interpreters run at the same address. */
static inline int lp_frames_may_be_shared(const PyThreadState *tstate) {
    return LP_HAS_CURRENT_SLOT && LP_UNLIKELY(!lp_is_home(tstate));
}

/* The site of what the running thread allocates now.  pre: GIL. */
static inline lp_site_id lp_frames_site(void) {
    PyThreadState *tstate = lp_tstate();
    if (LP_UNLIKELY(tstate == NULL)) {
        return LP_SITE_NATIVE;
    }
    LP_ASSERT_GIL();
    const lp_pyframe *frame = lp_frame_top(tstate);
    if (LP_UNLIKELY(frame == NULL) || lp_frames_may_be_shared(tstate)) {
        return lp_frames_site_slow(tstate);
    }
    const lp_pyframe *previous = lp_frame_previous(frame);
    uint64_t top = lp_frame_key(frame), caller = previous == NULL ? 0 : lp_frame_key(previous);
    const lp_frames_entry *entry = lp_frames_slot(top, caller);
    if (LP_LIKELY(entry->top == top && entry->caller == caller)) {
        return entry->site;
    }
    return lp_frames_site_slow(tstate);
}

/* A birth stamp of now; 0 for another interpreter, whose GIL does not guard our tables.  pre: GIL. */
static inline lp_stamp lp_frames_stamp(void) {
    lp_site_id site = lp_frames_site();
    return LP_UNLIKELY(site == LP_SITE_UNKNOWN) ? 0 : site | lp_epoch_bits;
}

/* The cache's entry for the running frames, if it takes no more than loads to find; else NULL.  No call
 * in it, so that a hook needs no stack.  pre: GIL, lp_frames_are_quick. */
static inline const lp_frames_entry *lp_frames_find_quick(void) {
    PyThreadState *tstate = lp_quick_tstate();
    const lp_pyframe *frame = LP_UNLIKELY(tstate == NULL) ? NULL : lp_quick_top(tstate);
    const lp_pyframe *previous = LP_UNLIKELY(frame == NULL) ? NULL : lp_quick_previous(frame);
    if (LP_UNLIKELY(previous == NULL) || lp_frames_may_be_shared(tstate)) {
        return NULL;
    }
    LP_ASSERT_GIL();
    uint64_t top = lp_quick_key(frame), caller = lp_quick_key(previous);
    const lp_frames_entry *entry = lp_frames_slot(top, caller);
    return LP_LIKELY(entry->top == top && entry->caller == caller) ? entry : NULL;
}

/* The root for the two below: one without a leaf turns all away. */
static inline lp_shadow lp_frames_quick_root(int is_on) {
    return is_on && lp_frames_are_quick ? lp_shadow_blocks : lp_shadow_nowhere;
}

/* A birth at this address, now, of what is not small; 0 if it can't be quick, and nothing is done.
 * pre: GIL; root is from above. */
static inline int lp_frames_born_quick(lp_shadow root, const void *address) {
    uintptr_t leaf = lp_shadow_entry(root, address, 0);
    const lp_frames_entry *entry = LP_UNLIKELY(leaf == 0) ? NULL : lp_frames_find_quick();
    return LP_LIKELY(entry != NULL) &&
           lp_alive_born_quick(lp_shadow_place_from(leaf, address, 0), entry->site, entry->site | lp_epoch_bits);
}

/* The same for a backing block, which is not counted. */
static inline int lp_frames_grown_quick(lp_shadow root, const void *address) {
    uintptr_t leaf = lp_shadow_entry(root, address, 0);
    const lp_frames_entry *entry = LP_UNLIKELY(leaf == 0) ? NULL : lp_frames_find_quick();
    if (LP_UNLIKELY(entry == NULL)) {
        return 0;
    }
    lp_stamp *place = lp_shadow_place_from(leaf, address, 0);
    if (LP_UNLIKELY((int32_t)*place > 0)) {
        return 0;
    }
    *place = entry->site | lp_epoch_bits | LP_STAMP_GROWTH;
    return 1;
}

/* The site of what this thread allocates now, for native hooks: any thread, no GIL. */
lp_site_id lp_frames_native_site(void);
/* lp_frames_native_site() answers LP_SITE_NATIVE from now on; waits for those under way.
 * For the end of the interpreter. */
void lp_frames_close(void);
/* In the child of a fork: nobody is under way. */
void lp_frames_reset_in_child(void);

#endif
