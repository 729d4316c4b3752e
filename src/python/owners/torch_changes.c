/* The engine changes gradients and nodes without the GIL.  And a thread that replaces a gradient gives the GIL up as the
 * old tensor dies, while the parameter still refers to it: whoever asks for the gradient then gets freed memory. */
#include "python/owners/torch_changes.h"

#include <opcode.h> // STORE_ATTR
#include <time.h> // nanosleep

#include "base/clock.h" // lp_clock_ns
#include "python/compat/compat.h" // lp_code_opcode
#include "python/compat/heap_locals.h" // lp_frames_each_running
#include "python/owners/numbers.h"

typedef struct lp_changes {
    unsigned long own; /* the thread that asks */
    unsigned long thread; /* of the frame before; frames of one come innermost first */
    int is_own; /* the change is the asking thread's: it would wait for itself */
    const char *why;
} lp_changes;

static int is_assigning(const lp_running_frame *frame) {
    int opcode = lp_code_opcode(frame->code, frame->instruction);
    return opcode == STORE_ATTR || opcode == DELETE_ATTR;
}

static int look_at(const lp_running_frame *frame, void *changes_) {
    lp_changes *changes = changes_;
    int is_innermost = frame->thread != changes->thread, is_own = frame->thread == changes->own;
    changes->thread = frame->thread;
    if (PyUnicode_CompareWithASCIIString(frame->code->co_name, "_engine_run_backward") == 0) {
        changes->why = "a backward pass is running";
    } else if (is_innermost && !is_own && is_assigning(frame)) {
        changes->why = "another thread is replacing an attribute";
    }
    changes->is_own = is_own;
    return changes->why != NULL;
}

static lp_changes look(void) {
    lp_changes changes = {.own = PyThreadState_Get()->thread_id};
    lp_frames_each_running(look_at, &changes);
    return changes;
}

const char *lp_torch_changes(void) { return look().why; }

void lp_torch_await_changes(void) {
    uint64_t until = lp_clock_ns() + LP_TORCH_PATIENCE_NS;
    for (lp_changes changes = look(); changes.why != NULL && !changes.is_own && lp_clock_ns() < until;
         changes = look()) {
        struct timespec pause = {0, LP_TORCH_PAUSE_NS};
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS;
    }
}
