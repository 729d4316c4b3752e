/* The running thread and its frames, read without a call.  Included by compat.h, which has the version switches. */
#ifndef LP_COMPAT_FRAMES_H
#define LP_COMPAT_FRAMES_H

#if LP_HAS_CURRENT_SLOT
extern LP_HIDDEN PyThreadState *const volatile *lp_current_slot;
#endif

#if LP_HAS_TLS_SLOT
/* Bytes from the thread pointer to CPython's own variable; 0 if that was not found.  The call
 * that reads it otherwise costs as much as the rest of a hook. */
extern LP_HIDDEN intptr_t lp_tstate_offset;
/* Find it by watching which variable changes as the GIL is given up and taken back. */
void lp_compat_find_tstate_slot(void);
#endif

#if LP_HAS_CFRAME
/* Checked against CPython's own headers in compat.c. */
enum {
    LP_FRAME_CODE = PY_VERSION_HEX < 0x030C0000 ? 32 : 0,
    LP_FRAME_PREVIOUS = PY_VERSION_HEX < 0x030C0000 ? 48 : 8,
    LP_FRAME_INSTRUCTION = 56,
    LP_FRAME_OWNER = PY_VERSION_HEX < 0x030C0000 ? 69 : 70
};
#define LP_CODE_START offsetof(PyCodeObject, co_code_adaptive)
#elif LP_HAS_DEBUG_TABLE
typedef struct lp_frame_layout {
    uint32_t current_frame, previous, executable, instruction, owner, code_start;
} lp_frame_layout;
extern LP_HIDDEN lp_frame_layout lp_layout;
#define LP_FRAME_CODE lp_layout.executable
#define LP_FRAME_PREVIOUS lp_layout.previous
#define LP_FRAME_INSTRUCTION lp_layout.instruction
#define LP_FRAME_OWNER lp_layout.owner
#define LP_CODE_START lp_layout.code_start
#endif

#define LP_FRAME_OWNER_OBJECT 2    /* it has ended, and lies in its frame object */
#define LP_FRAME_OWNER_SHIM 3      /* this and above: no Python code of its own */

#define LP_FIELD(type, pointer, offset) (*(type const *)((const char *)(pointer) + (offset)))

/* The thread state that runs here; NULL without one.  pre: the GIL is held. */
static inline PyThreadState *lp_tstate(void) {
#if LP_HAS_CURRENT_SLOT
    return *lp_current_slot;
#else
#if LP_HAS_TLS_SLOT
    if (LP_LIKELY(lp_tstate_offset != 0)) {
        return *(PyThreadState *const volatile *)((char *)__builtin_thread_pointer() + lp_tstate_offset);
    }
#endif
#if LP_HAS_CREATION_EVENTS
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
#endif
}

/* The innermost frame, a shim perhaps; NULL if no Python code runs. */
static inline const lp_pyframe *lp_frame_top_raw(PyThreadState *tstate) {
#if LP_HAS_FRAME_OBJECTS
    return (const lp_pyframe *)tstate->frame;
#elif LP_HAS_CFRAME
    return (const lp_pyframe *)tstate->cframe->current_frame;
#else
    return LP_FIELD(lp_pyframe *, tstate, lp_layout.current_frame);
#endif
}

static inline const lp_pyframe *lp_frame_previous_raw(const lp_pyframe *frame) {
#if LP_HAS_FRAME_OBJECTS
    return (const lp_pyframe *)((const PyFrameObject *)frame)->f_back;
#else
    return LP_FIELD(lp_pyframe *, frame, LP_FRAME_PREVIOUS);
#endif
}

/* Code of the frame between __init__ and a specialised call of the class, once lp_code_is_init_shim(), 1 for it, has met it. */
extern LP_HIDDEN uintptr_t lp_init_shim;
int lp_code_is_init_shim(const PyCodeObject *code);

static inline const lp_pyframe *lp_frame_skip_shims(const lp_pyframe *frame) {
#if LP_HAS_SHIM_FRAMES
    while (frame != NULL && LP_UNLIKELY(LP_FIELD(char, frame, LP_FRAME_OWNER) >= LP_FRAME_OWNER_SHIM ||
                                        (LP_FIELD(uintptr_t, frame, LP_FRAME_CODE) & ~(uintptr_t)3) ==
                                            __atomic_load_n(&lp_init_shim, __ATOMIC_RELAXED))) {
        frame = lp_frame_previous_raw(frame);
    }
#endif
    return frame;
}

static inline const lp_pyframe *lp_frame_top(PyThreadState *tstate) {
    return lp_frame_skip_shims(lp_frame_top_raw(tstate));
}

static inline const lp_pyframe *lp_frame_previous(const lp_pyframe *frame) {
    return lp_frame_skip_shims(lp_frame_previous_raw(frame));
}

/* The code a frame runs, or NULL. */
static inline PyCodeObject *lp_frame_code(const lp_pyframe *frame) {
#if LP_HAS_FRAME_OBJECTS
    return ((const PyFrameObject *)frame)->f_code;
#else
    /* 3.14 tags the lowest bits. */
    PyObject *code = (PyObject *)(LP_FIELD(uintptr_t, frame, LP_FRAME_CODE) & ~(uintptr_t)3);
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
#endif
}

/* Names the running instruction among all code objects that are alive. */
static inline uint64_t lp_frame_key(const lp_pyframe *frame) {
#if LP_HAS_FRAME_OBJECTS
    const PyFrameObject *f = (const PyFrameObject *)frame;
    return (uint64_t)(uintptr_t)f->f_code << 17 | ((uint32_t)f->f_lasti & 0x1fffff);
#else
    return LP_FIELD(uintptr_t, frame, LP_FRAME_INSTRUCTION);
#endif
}

/* Offset in bytes of the running instruction; (uint32_t)-2 before the first. */
static inline uint32_t lp_frame_offset(const lp_pyframe *frame, const PyCodeObject *code) {
#if LP_HAS_FRAME_OBJECTS
    (void)code;
    return (uint32_t)((const PyFrameObject *)frame)->f_lasti * 2;
#else
    return (uint32_t)(LP_FIELD(uintptr_t, frame, LP_FRAME_INSTRUCTION) - ((uintptr_t)code + LP_CODE_START));
#endif
}

/* The keys that instructions of a code object have: first <= key < end. */
void lp_code_key_range(const PyCodeObject *code, uint64_t *out_first, uint64_t *out_end);

#endif
