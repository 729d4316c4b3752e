/* Owns our place in the one slot of PyRefTracer. Whoever was there is called after us, and gets the slot back. */
#include "python/births/hook_tracer.h"

#if LP_HAS_CREATION_EVENTS

#include "python/births/frames.h"  // lp_frames_born_quick

static struct {
    int active, looking, seen;
    lp_shadow quick_root;  /* lp_frames_quick_root() */
    PyRefTracer chained;
    void *chained_data;
} tracer;

static inline const void *block_of(PyObject *op) { return (const char *)op - lp_presize(Py_TYPE(op)); }

static LP_NOINLINE int on_create_slow(PyObject *op) {
    if (tracer.active) {
        lp_alive_born(block_of(op), lp_is_in_small_block(Py_TYPE(op)), lp_frames_stamp());
    } else if (tracer.looking) {
        tracer.seen = 1;
    }
    return 0;
}

/* Jumps to find where the block starts, not arithmetic: the processor guesses them, and need not wait for the type's
 * flags to know where the stamp lies. */
#define KEEP_JUMP() __asm__ volatile("")

static inline int stamp_quick(PyObject *op) {
    const PyTypeObject *type = Py_TYPE(op);
    const char *block = (const char *)op;
    if ((type->tp_flags & Py_TPFLAGS_HAVE_GC) != 0) {
        block -= LP_PRESIZE_GC;
        KEEP_JUMP();
        if (LP_UNLIKELY(type->tp_flags & LP_TPFLAGS_PREHEADER)) {
            block -= LP_PRESIZE_PREHEADER;
            KEEP_JUMP();
        }
    } else if (LP_UNLIKELY((type->tp_flags & LP_TPFLAGS_PREHEADER) != 0 ||
                           type->tp_basicsize <= LP_SHADOW_SMALL_BYTES)) {
        return 0;
    }
    return LP_LIKELY(lp_frames_born_quick(tracer.quick_root, block));
}

/* The object is a header and no more yet: only its address and its type may be used.  Deaths are seen as
 * the block is freed: the interpreter's loop of 3.13 drops objects without an event. */
static int on_event(PyObject *op, PyRefTracerEvent event, void *data) {
    (void)data;
    if (LP_UNLIKELY(event != PyRefTracer_CREATE) || LP_LIKELY(stamp_quick(op))) {
        return 0;
    }
    return on_create_slow(op);
}

static int on_event_chained(PyObject *op, PyRefTracerEvent event, void *data) {
    on_event(op, event, data);
    /* An event on the tracer itself is not for the one that we replaced. */
    return event == PyRefTracer_CREATE || event == PyRefTracer_DESTROY ? tracer.chained(op, event, tracer.chained_data)
                                                                       : 0;
}

static int is_in_slot(void) {
    void *data;
    PyRefTracer tracer = PyRefTracer_GetTracer(&data);
    return tracer == on_event || tracer == on_event_chained;
}

int lp_hook_tracer_is_reached(void) {
    LP_ASSERT_GIL();
    if (is_in_slot()) {
        return 1;
    }
    int before = tracer.active;
    lp_hook_tracer_set_active(0);
    tracer.looking = 1, tracer.seen = 0;
    Py_XDECREF(PyList_New(0));
    PyErr_Clear();
    lp_hook_tracer_set_active(before);
    tracer.looking = 0;
    return tracer.seen;
}

int lp_hook_tracer_install(void) {
    LP_ASSERT_GIL();
    tracer.chained = PyRefTracer_GetTracer(&tracer.chained_data);
    lp_hook_tracer_set_active(tracer.active);   /* there was no root yet, perhaps */
    if (PyRefTracer_SetTracer(tracer.chained == NULL ? on_event : on_event_chained, NULL) < 0) {
        PyErr_Clear();
        return -1;
    }
    return 0;
}

void lp_hook_tracer_uninstall(void) {
    LP_ASSERT_GIL();
    lp_hook_tracer_set_active(0);
    if (is_in_slot() && PyRefTracer_SetTracer(tracer.chained, tracer.chained_data) < 0) {
        PyErr_Clear();
    }
}

void lp_hook_tracer_set_active(int on) {
    tracer.active = on;
    tracer.quick_root = lp_frames_quick_root(on);
}

#else

int lp_hook_tracer_is_reached(void) { return 0; }
int lp_hook_tracer_install(void) { return -1; }
void lp_hook_tracer_uninstall(void) {}
void lp_hook_tracer_set_active(int on) { (void)on; }

#endif
