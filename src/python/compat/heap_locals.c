/* What each version's frames hold. All is borrowed: slots are read while no Python code runs. */
#include "python/compat/heap_internal.h"

#include "python/compat/heap_locals.h"
#include "python/compat/numbers.h"  // LP_UNWOUND_CONTEXTS

#if PY_VERSION_HEX >= 0x030B0000

#define LP_HAS_STACKREFS (PY_VERSION_HEX >= 0x030E0000)

static _PyInterpreterFrame *innermost(PyThreadState *thread) {
#if LP_HAS_CFRAME
    if (thread->cframe == NULL) {
        return NULL;
    }
#endif
    return (_PyInterpreterFrame *)lp_frame_top_raw(thread);
}

/* The code of a frame, or NULL for a frame that stands for C. */
static PyCodeObject *code_of(_PyInterpreterFrame *frame) {
#if LP_HAS_STACKREFS
    PyObject *code = lp_frames_slot_object((uintptr_t)frame->f_executable.bits);
#elif PY_VERSION_HEX >= 0x030D0000
    PyObject *code = frame->f_executable;
#else
    PyObject *code = (PyObject *)frame->f_code;
#endif
#if LP_HAS_SHIM_FRAMES
    if (frame->owner >= LP_FRAME_OWNER_SHIM) {
        return NULL;
    }
#endif
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
}

static PyObject *function_of(_PyInterpreterFrame *frame) {
#if LP_HAS_STACKREFS
    return lp_frames_slot_object((uintptr_t)frame->f_funcobj.bits);
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->f_funcobj;
#else
    return (PyObject *)frame->f_func;
#endif
}

/* Slots of the evaluation stack to look at. */
static uint32_t stack_count_of(const _PyInterpreterFrame *frame, const PyCodeObject *code) {
    uint32_t count = (uint32_t)code->co_stacksize;
#if LP_HAS_STACKREFS
    /* Saved before whatever may run other code, so exact while we look. */
    ptrdiff_t used = frame->stackpointer == NULL ? -1 : frame->stackpointer - frame->localsplus - code->co_nlocalsplus;
    count = used >= 0 && used < (ptrdiff_t)count ? (uint32_t)used : count;
#else
    (void)frame;
#endif
    return count;
}

static int view_of(_PyInterpreterFrame *frame, lp_running_frame *out) {
    PyCodeObject *code = frame == NULL ? NULL : code_of(frame);
    if (code == NULL) {
        return 0;
    }
    *out = (lp_running_frame){
        .key = frame,
        .code = code,
        .instruction = lp_frame_key((const lp_pyframe *)frame),
        .function = function_of(frame),
        .globals = frame->f_globals,
        .locals = frame->f_locals,
        .slot = (const uintptr_t *)frame->localsplus,
        .local_count = (uint32_t)code->co_nlocalsplus,
        .stack_count = stack_count_of(frame, code),
    };
    return 1;
}

static int visit_thread(PyThreadState *thread, lp_frame_visit visit, void *arg) {
    lp_running_frame view;
    for (_PyInterpreterFrame *frame = innermost(thread); frame != NULL; frame = frame->previous) {
        int is_python = view_of(frame, &view);
        view.thread = thread->thread_id;
        int result = is_python ? visit(&view, arg) : 0;
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int lp_frames_of_object(PyObject *op, lp_running_frame *out) {
    if (PyFrame_Check(op)) {
        return view_of(((PyFrameObject *)op)->f_frame, out);
    }
    if (!PyGen_Check(op) && !PyCoro_CheckExact(op) && !PyAsyncGen_CheckExact(op)) {
        return 0;
    }
    PyGenObject *generator = (PyGenObject *)op;
#if LP_HAS_STACKREFS
    return generator->gi_frame_state >= FRAME_CLEARED ? 0 : view_of(&generator->gi_iframe, out);
#else
    return generator->gi_frame_state >= FRAME_CLEARED ? 0 : view_of((_PyInterpreterFrame *)generator->gi_iframe, out);
#endif
}

/* A frame that has ended and was not cleared: it lies in its frame object. */
static int is_unwound(PyFrameObject *frame) { return frame->f_frame->owner == LP_FRAME_OWNER_OBJECT; }

PyObject *lp_frames_slot_object(uintptr_t slot) {
#if LP_HAS_STACKREFS
    return (slot & 2) ? NULL : (PyObject *)(slot & ~(uintptr_t)3);
#else
    return (PyObject *)slot;
#endif
}

PyObject *lp_frames_local_name(PyCodeObject *code, uint32_t i) {
    PyObject *names = code->co_localsplusnames;
    return (Py_ssize_t)i < PyTuple_GET_SIZE(names) ? PyTuple_GET_ITEM(names, i) : NULL;
}

#else /* 3.10: frames are objects */

static void view_of(PyFrameObject *frame, lp_running_frame *out) {
    PyCodeObject *code = frame->f_code;
    *out = (lp_running_frame){
        .key = frame,
        .code = code,
        .instruction = lp_frame_key((const lp_pyframe *)frame),
        .globals = frame->f_globals,
        .locals = frame->f_locals,
        .slot = (const uintptr_t *)frame->f_localsplus,
        .local_count =
            (uint32_t)(code->co_nlocals + PyTuple_GET_SIZE(code->co_cellvars) + PyTuple_GET_SIZE(code->co_freevars)),
        .stack_count = (uint32_t)code->co_stacksize,
    };
}

static int visit_thread(PyThreadState *thread, lp_frame_visit visit, void *arg) {
    lp_running_frame view;
    for (PyFrameObject *frame = thread->frame; frame != NULL; frame = frame->f_back) {
        view_of(frame, &view);
        view.thread = thread->thread_id;
        int result = visit(&view, arg);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int lp_frames_of_object(PyObject *op, lp_running_frame *out) {
    PyFrameObject *frame = NULL;
    if (PyFrame_Check(op)) {
        frame = (PyFrameObject *)op;
    } else if (PyGen_Check(op) || PyCoro_CheckExact(op) || PyAsyncGen_CheckExact(op)) {
        frame = ((PyGenObject *)op)->gi_frame;
    }
    if (frame == NULL) {
        return 0;
    }
    view_of(frame, out);
    return 1;
}

static int is_unwound(PyFrameObject *frame) { return frame->f_state == FRAME_RAISED; }

PyObject *lp_frames_slot_object(uintptr_t slot) { return (PyObject *)slot; }

PyObject *lp_frames_local_name(PyCodeObject *code, uint32_t i) {
    PyObject *tuples[3] = {code->co_varnames, code->co_cellvars, code->co_freevars};
    for (int t = 0; t < 3; t++) {
        uint32_t count = t == 0 ? (uint32_t)code->co_nlocals : (uint32_t)PyTuple_GET_SIZE(tuples[t]);
        if (i < count) {
            return PyTuple_GET_ITEM(tuples[t], i);
        }
        i -= count;
    }
    return NULL;
}

#endif

static int each_thread(int (*visit_one)(PyThreadState *, lp_frame_visit, void *), lp_frame_visit visit, void *arg) {
    LP_ASSERT_GIL();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(PyThreadState_Get());
    for (PyThreadState *thread = PyInterpreterState_ThreadHead(interpreter); thread != NULL;
         thread = PyThreadState_Next(thread)) {
        int result = visit_one(thread, visit, arg);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int lp_frames_each_running(lp_frame_visit visit, void *arg) { return each_thread(visit_thread, visit, arg); }

/* Borrowed; NULL for what is no exception. */
static PyBaseExceptionObject *exception(PyObject *value) {
    return value != NULL && PyExceptionInstance_Check(value) ? (PyBaseExceptionObject *)value : NULL;
}

static int visit_traceback(PyObject *traceback, unsigned long thread, lp_frame_visit visit, void *arg) {
    lp_running_frame view;
    int result = 0;
    while (result == 0 && traceback != NULL && PyTraceBack_Check(traceback)) {
        PyTracebackObject *entry = (PyTracebackObject *)traceback;
        if (is_unwound(entry->tb_frame) && lp_frames_of_object((PyObject *)entry->tb_frame, &view)) {
            view.thread = thread;
            view.stack_count = 0;
            result = visit(&view, arg);
        }
        traceback = (PyObject *)entry->tb_next;
    }
    return result;
}

static int visit_handled(PyThreadState *thread, lp_frame_visit visit, void *arg) {
    int result = 0;
    for (const _PyErr_StackItem *item = thread->exc_info; item != NULL; item = item->previous_item) {
        const PyBaseExceptionObject *error = exception(item->exc_value);
        for (unsigned i = 0; result == 0 && error != NULL && i < LP_UNWOUND_CONTEXTS; i++) {
            result = visit_traceback(error->traceback, thread->thread_id, visit, arg);
            error = exception(error->context);
        }
    }
    return result;
}

int lp_frames_each_unwound(lp_frame_visit visit, void *arg) { return each_thread(visit_handled, visit, arg); }

PyObject *lp_frames_qualname(PyObject *op) { return ((PyGenObject *)op)->gi_qualname; }
