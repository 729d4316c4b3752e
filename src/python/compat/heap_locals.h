/* What running frames hold: their local variables and their evaluation stacks. */
#ifndef LP_COMPAT_HEAP_LOCALS_H
#define LP_COMPAT_HEAP_LOCALS_H

#include "python/compat/compat.h"  // PyObject

#include "base/base.h"      // uint32_t

/* A running frame.  Everything is borrowed and valid until Python code runs again. */
typedef struct lp_running_frame {
    const void *key;           /* tells frames apart */
    unsigned long thread;      /* as threading.get_ident() gives it; 0 for a frame that does not run */
    PyCodeObject *code;
    uint64_t instruction;      /* as lp_frame_key() gives it */
    PyObject *function;        /* or NULL: a function, the globals and the locals when they are a mapping */
    PyObject *globals, *locals;
    const uintptr_t *slot;     /* local variables, then the stack; tagged on 3.14+ */
    uint32_t local_count;
    uint32_t stack_count;      /* slots of the stack; before 3.14 used or not */
} lp_running_frame;

/* Nonzero: no more. */
typedef int (*lp_frame_visit)(const lp_running_frame *, void *);

/* visit() each running frame of every thread of this interpreter, innermost first, until it
 * returns nonzero; returns that, or 0.  GIL held; runs no Python code. */
int lp_frames_each_running(lp_frame_visit visit, void *arg);

/* The same for the frames that exceptions which are being handled have unwound: until that is over they hold
 * what they held when it was raised, as if they ran; outermost first, without a stack. */
int lp_frames_each_unwound(lp_frame_visit visit, void *arg);

/* 1 where a frame keeps the arguments of a call on its stack until the call is over: 3.10. */
static inline int lp_frames_keep_arguments(void) { return PY_VERSION_HEX < 0x030B0000; }

/* The frame of a suspended generator, coroutine or frame object; 0 if op is none of them or has none. */
int lp_frames_of_object(PyObject *op, lp_running_frame *out_frame);

/* The qualified name of a generator or coroutine (borrowed); its struct is not public since 3.14. */
PyObject *lp_frames_qualname(PyObject *op);

/* The object in a slot, or NULL.  A stack slot may hold what is left of an object that has
 * died: compare such a pointer, never follow it. */
PyObject *lp_frames_slot_object(uintptr_t slot);

/* Name of local variable i of a code object (borrowed str), or NULL. */
PyObject *lp_frames_local_name(PyCodeObject *code, uint32_t i);

#endif
