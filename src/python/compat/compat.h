/* The running CPython behind names of our own.  Version tests and CPython's internal
 * structs stay in compat/; everybody else uses what is declared here.
 *
 * A frame is an lp_pyframe: PyFrameObject on 3.10, the interpreter's own frame later.
 * Frames and code objects are borrowed.  The accessors read memory and nothing else;
 * a thread may use them on its own frames without the GIL. */
#ifndef LP_COMPAT_H
#define LP_COMPAT_H

#include "python/values/cpython.h"  // Python.h, before frameobject.h

#include <frameobject.h>

#include "ledger/shadow.h"  // lp_stamp
#include "ledger/site.h"    // lp_site_resolver

#define LP_HAS_FRAME_OBJECTS (PY_VERSION_HEX < 0x030B0000)       /* running frames are objects */
#define LP_HAS_CFRAME (PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000)
#define LP_HAS_DEBUG_TABLE (PY_VERSION_HEX >= 0x030D0000)        /* offsets told by the runtime */
#define LP_HAS_SHIM_FRAMES (PY_VERSION_HEX >= 0x030C0000)        /* frames that mark an entry from C */
#define LP_HAS_CURRENT_SLOT (PY_VERSION_HEX < 0x030C0000)        /* one variable names the running thread */
#if PY_VERSION_HEX >= 0x030C0000 && defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define LP_HAS_TLS_SLOT 1                                        /* a thread-local variable does */
#else
#define LP_HAS_TLS_SLOT 0
#endif
#define LP_HAS_CODE_WATCHERS (PY_VERSION_HEX >= 0x030C0000)      /* PyCode_AddWatcher */
#define LP_HAS_CREATION_EVENTS (PY_VERSION_HEX >= 0x030D0000)    /* PyRefTracer */
#define LP_HAS_CODE_QUALNAME (PY_VERSION_HEX >= 0x030B0000)
#define LP_HAS_ACCUMULATOR (PY_VERSION_HEX < 0x030C0000)         /* what a StringIO collects is in two lists */
#define LP_HAS_WRITER_POINTER (PY_VERSION_HEX >= 0x030E0000)     /* it is behind a pointer */
#define LP_HAS_UNREADY_STR (PY_VERSION_HEX < 0x030C0000)

typedef struct lp_pyframe lp_pyframe;

/* Check the interpreter and what the probe relies on; 0, or -1 with an exception set. */
int lp_compat_init(PyObject *module);
/* Why frames can't be read here (then hooks must not be installed), or NULL. */
const char *lp_compat_why_not(void);

/* The interpreter that imported the module; objects of others are never looked at. */
extern PyInterpreterState *lp_home_interpreter;
/* 1 for a thread of that interpreter: one load, for hooks. */
static inline int lp_is_home(const PyThreadState *tstate) { return tstate->interp == lp_home_interpreter; }

#include "python/compat/frames.h"

/* ---- births ---- */

/* Which mechanism sees births; also the mode of an epoch. */
typedef enum lp_birth_mode { LP_BIRTH_NONE, LP_BIRTH_BY_BLOCK, LP_BIRTH_BY_OBJECT } lp_birth_mode;
void lp_compat_set_birth_mode(lp_birth_mode mode);

/* Bytes before an object in its block: for the collector, and for its dict and weak references. */
#define LP_PRESIZE_GC 16
#define LP_PRESIZE_PREHEADER 16
#if PY_VERSION_HEX >= 0x030C0000
#define LP_TPFLAGS_PREHEADER Py_TPFLAGS_PREHEADER
#elif PY_VERSION_HEX >= 0x030B0000
#define LP_TPFLAGS_PREHEADER Py_TPFLAGS_MANAGED_DICT
#else
#define LP_TPFLAGS_PREHEADER 0ul
#endif
static inline size_t lp_presize(const PyTypeObject *type) {
    return ((type->tp_flags & Py_TPFLAGS_HAVE_GC) ? LP_PRESIZE_GC : 0) +
           ((type->tp_flags & LP_TPFLAGS_PREHEADER) ? LP_PRESIZE_PREHEADER : 0);
}

/* Empty the cache of attribute lookups, as sys._clear_type_cache() does: it may be all that keeps a name, and lets go
 * of it at another lookup. */
static inline void lp_forget_looked_up_names(void) { (void)PyType_ClearCache(); }

/* 1 once the interpreter ends: threads that are started now never run. */
int lp_compat_is_finalizing(void);

/* 1 for objects whose reference count is never written. */
static inline int lp_is_immortal(PyObject *op) {
#if PY_VERSION_HEX >= 0x030C0000
    return _Py_IsImmortal(op);
#else
    (void)op;
    return 0;
#endif
}

/* 1 for a type whose objects lie in blocks of up to 16 bytes. */
static inline int lp_is_in_small_block(const PyTypeObject *type) {
    return (size_t)type->tp_basicsize + lp_presize(type) <= LP_SHADOW_SMALL_BYTES;
}

/* A filter of types whose objects may come from a free list unseen: bit of hash(type). */
extern uint64_t lp_recycled_filter;
int lp_compat_is_recycled_type(const PyTypeObject *type);
/* 0 if the free lists of this build can't be found, so that most of those types recycle. */
int lp_compat_sees_recycled(void);

/* The birth stamp of a live object; 0 if its birth was not seen.  The site of an object that
 * may have been recycled unseen is LP_SITE_RECYCLED. */
static inline lp_stamp lp_birth_stamp(PyObject *op) {
    const PyTypeObject *type = Py_TYPE(op);
    lp_stamp stamp = lp_shadow_get((const char *)op - lp_presize(type), lp_is_in_small_block(type));
    if (LP_UNLIKELY(!LP_STAMP_IS_BIRTH(stamp))) {
        return 0;
    }
    if (LP_UNLIKELY(lp_recycled_filter >> ((uintptr_t)type >> 6 & 63) & 1) && lp_compat_is_recycled_type(type)) {
        stamp = LP_STAMP(LP_SITE_RECYCLED, LP_STAMP_EPOCH(stamp));
    }
    return stamp;
}

/* ---- code objects ---- */

extern const lp_site_resolver lp_code_resolver;

/* The instruction of a frame (lp_frame_key()) as it was compiled, without what the interpreter put in its place; -1 if
 * there is none.  GIL held; allocates. */
int lp_code_opcode(PyCodeObject *code, uint64_t key);

/* Code under this folder is leakprobe's own; a str.  0, or -1 with an exception set. */
int lp_code_set_package_dir(PyObject *package_dir);
/* Call dies(code) before a code object goes, from now on, for good: sites outlive the hooks.
 * 0, or -1 with an exception set. */
int lp_code_watch_deaths(void (*dies)(const PyCodeObject *code));

#endif
