/* The running frame without the looks that a hook can leave out of its quick path.
 *
 * Offsets are those of the headers, and no shim is told from a frame: its key is one that no
 * Python code has.  Only for use while lp_frames_are_quick: import has checked both. */
#ifndef LP_COMPAT_QUICK_H
#define LP_COMPAT_QUICK_H

#include "python/compat/compat.h"  // lp_pyframe

extern int lp_frames_are_quick;

#if LP_HAS_DEBUG_TABLE
/* Compared with the runtime's own table in compat.c. */
enum { LP_QUICK_CURRENT = offsetof(PyThreadState, current_frame), LP_QUICK_PREVIOUS = 8, LP_QUICK_INSTRUCTION = 56 };
#endif

/* The thread state that runs here, or NULL. */
static inline PyThreadState *lp_quick_tstate(void) {
#if LP_HAS_TLS_SLOT && defined(__x86_64__)
    PyThreadState *tstate;
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(tstate) : "r"(lp_tstate_offset));
    return tstate;
#elif LP_HAS_TLS_SLOT
    return *(PyThreadState *const volatile *)((char *)__builtin_thread_pointer() + lp_tstate_offset);
#else
    return lp_tstate();
#endif
}

/* The innermost frame, or NULL. */
static inline const lp_pyframe *lp_quick_top(PyThreadState *tstate) {
#if LP_HAS_DEBUG_TABLE
    return LP_FIELD(lp_pyframe *, tstate, LP_QUICK_CURRENT);
#else
    return lp_frame_top_raw(tstate);
#endif
}

/* The frame that a frame returns to, or NULL. */
static inline const lp_pyframe *lp_quick_previous(const lp_pyframe *frame) {
#if LP_HAS_DEBUG_TABLE
    return LP_FIELD(lp_pyframe *, frame, LP_QUICK_PREVIOUS);
#else
    return lp_frame_previous_raw(frame);
#endif
}

/* The same as lp_frame_key(). */
static inline uint64_t lp_quick_key(const lp_pyframe *frame) {
#if LP_HAS_DEBUG_TABLE
    return LP_FIELD(uintptr_t, frame, LP_QUICK_INSTRUCTION);
#else
    return lp_frame_key(frame);
#endif
}

#endif
