/* Entering and leaving a watch: what is taken is given back in reverse, also when taking failed half way. */
#include "python/watch/parts.h"

#include <unistd.h>  // getpid

#include "python/watch/aside.h"
#include "python/values/convert.h"  // lp_raise

/* What is given back for want of memory in vain, or cut short by a signal, is tried so often at once: more signals come only
 * from a program that raises at every instruction. */
#define TRIES 100

lp_watch *lp_watch_active;
PyObject *lp_watch_kept, *lp_watch_outer;

int lp_watch_move(lp_watch *self, lp_watch_event event) {
    lp_watch_state next = lp_watch_next(self->state, event);
    if (next == LP_WATCH_STATE_COUNT) {
        return -1;
    }
    self->state = next;
    return 0;
}

int lp_watch_is_foreign(const lp_watch *self) { return self->pid != 0 && self->pid != getpid(); }

int lp_watch_call(lp_watch *self, const char *method, PyObject *arg) {
    PyObject *name = PyUnicode_InternFromString(method); /* CPython's cache of lookups keeps each new one */
    PyObject *result = name == NULL ? NULL : PyObject_CallMethodObjArgs((PyObject *)self, name, arg, NULL);
    Py_XDECREF(name);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* ---- resources ---- */

typedef enum half { TAKE, GIVE_BACK } half;

/* Each half is the name of a method, or a function of C, which needs no memory to be called. */
static PyObject *run_half(const lp_watch *self, Py_ssize_t resource, half half) {
    PyObject *what = PyTuple_GET_ITEM(PyTuple_GET_ITEM(self->resources, resource), half);
    return PyUnicode_Check(what) ? PyObject_CallMethodNoArgs((PyObject *)self, what) : PyObject_CallNoArgs(what);
}

static int are_resources(PyObject *given) {
    int good = PyTuple_CheckExact(given) && PyTuple_GET_SIZE(given) <= 64;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(given); i++) {
        PyObject *pair = PyTuple_GET_ITEM(given, i);
        good = PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2;
    }
    return good;
}

/* Ask the subclass what is to be taken; 0, or -1 with an exception set.  None: nothing, leakprobe is switched off. */
static int name_resources(lp_watch *self) {
    PyObject *given = PyObject_CallMethod((PyObject *)self, "_prepare", NULL);
    if (given == NULL || given == Py_None || are_resources(given)) {
        Py_XSETREF(self->resources, given);
        return given == NULL ? -1 : 0;
    }
    Py_DECREF(given);
    PyErr_SetString(PyExc_TypeError, "_prepare() gives pairs");
    return -1;
}

static int take_all(void *arg) {
    lp_watch *self = arg;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->resources); i++) {
        self->held |= (uint64_t)1 << i;
        PyObject *result = run_half(self, i, TAKE);
        if (result == NULL) {
            return -1;
        }
        Py_DECREF(result);
    }
    return 0;
}

/* 1 after an exception that says nothing of what was called: there was no memory, or a signal came. */
static int is_to_try_again(void) {
    return PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception);
}

static void give_back(lp_watch *self, Py_ssize_t resource, lp_first_error *error) {
    int again = 1;
    for (int i = 0; i < TRIES && again; i++) {
        PyObject *result = run_half(self, resource, GIVE_BACK);
        again = result == NULL && is_to_try_again();
        Py_XDECREF(result);
        lp_keep_first(error);
    }
    if (!again) {
        self->held &= ~((uint64_t)1 << resource);
    }
}

static int give_all_back(void *arg) {
    lp_watch *self = arg;
    lp_first_error error = {0};
    for (Py_ssize_t i = self->resources == NULL ? 0 : PyTuple_GET_SIZE(self->resources); i-- > 0;) {
        if (self->held >> i & 1) {
            give_back(self, i, &error);
        }
    }
    return lp_raise_first(&error);
}

/* ---- leaving ---- */

/* Take an exception that leaving met: the subclass notes one of the probe's own, and only one of the program is raised. */
static void note_failure(lp_watch *self, lp_first_error *first) {
    lp_first_error error = {0};
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        lp_keep_first(first);
        return;
    }
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    PyErr_NormalizeException(&error.type, &error.value, &error.traceback);
    if (lp_watch_call(self, "_failed", error.value) < 0) {
        lp_keep_first(first);
    }
    Py_XDECREF(error.type);
    Py_XDECREF(error.value);
    Py_XDECREF(error.traceback);
}

/* What must be put back in the thread that leaves, again until it is. */
static void let_go_here(lp_watch *self, lp_first_error *first) {
    for (int i = 0; i < TRIES && lp_watch_call(self, "_let_go", NULL) < 0; i++) {
        note_failure(self, first);
    }
}

static void forget(lp_watch *self) {
    lp_watch_active = lp_watch_active == self ? NULL : lp_watch_active;
    if (lp_watch_kept == (PyObject *)self) {
        Py_CLEAR(lp_watch_kept);
    }
}

/* Give all back and be off, or be left in LEAVING where memory is short. */
static void give_up_resources(lp_watch *self, lp_first_error *first) {
    if (lp_run_aside(give_all_back, self) < 0) {
        note_failure(self, first);
    }
    lp_watch_move(self, self->held == 0 ? LP_WATCH_EVENT_DONE : LP_WATCH_EVENT_FAIL);
    if (self->state == LP_WATCH_OFF) {
        forget(self);
    } else if (lp_watch_kept == NULL) {
        lp_watch_kept = Py_NewRef((PyObject *)self);
    }
}

int lp_watch_leave(lp_watch *self, PyObject *kind) {
    lp_first_error first = {0};
    if (self->resources != NULL && lp_watch_call(self, "_last_look", kind) < 0) {
        note_failure(self, &first);
    }
    let_go_here(self, &first);
    give_up_resources(self, &first);
    return lp_raise_first(&first);
}

/* What a forked child has of its parent's watch: only what lies in its own memory is put back. */
static void leave_in_child(lp_watch *self) {
    lp_first_error first = {0};
    self->state = LP_WATCH_LEAVING;
    let_go_here(self, &first);
    if (give_all_back(self) < 0) {
        lp_keep_first(&first);
    }
    self->held = 0;
    lp_watch_move(self, LP_WATCH_EVENT_DONE);
    if (lp_raise_first(&first) < 0) {
        PyErr_WriteUnraisable((PyObject *)self);
    }
}

int lp_watch_end(lp_watch *self, PyObject *kind) {
    int result = 0;
    if (self->state == LP_WATCH_NEW || self->state == LP_WATCH_DISABLED || self->state == LP_WATCH_OFF) {
        return lp_watch_move(self, LP_WATCH_EVENT_STOP);
    }
    if (lp_watch_is_foreign(self)) {
        leave_in_child(self);
        return 0;
    }
    if (self->state == LP_WATCH_ENTERING || self->state == LP_WATCH_MARKING) {
        lp_watch_move(self,
                      LP_WATCH_EVENT_STOP); /* whoever is at it ends the watch, even if this thread stops waiting */
    }
    if (lp_turn_is_mine(&self->turn)) {
        return 0;
    }
    if (lp_turn_take(&self->turn) < 0) {
        return -1;
    }
    if (self->state == LP_WATCH_ON || self->state == LP_WATCH_LEAVING) {
        lp_watch_move(self, LP_WATCH_EVENT_STOP);
        result = lp_watch_leave(self, kind);
    }
    lp_turn_give(&self->turn);
    return result;
}

/* ---- entering ---- */

/* 0, or -1 with an exception of the program. */
static int end_other(lp_watch *other) {
    Py_INCREF(other);
    int result = lp_watch_end(other, Py_None);
    Py_DECREF(other);
    return result;
}

/* What an earlier watch could not give back. */
static int end_leftover(void) {
    int is_left = lp_watch_active != NULL && lp_watch_active->state == LP_WATCH_LEAVING;
    return is_left ? end_other(lp_watch_active) : 0;
}

static int has_outer(const lp_watch *self) {
    return lp_watch_outer != NULL && lp_watch_outer != (const PyObject *)self;
}

static int end_outer(const lp_watch *self) { return has_outer(self) ? end_other((lp_watch *)lp_watch_outer) : 0; }

static int tell_outer(lp_watch *self) {
    if (!has_outer(self)) {
        return 0;
    }
    lp_watch *outer = (lp_watch *)Py_NewRef(lp_watch_outer);
    lp_first_error first = {0};
    if (lp_watch_call(outer, "_gave_way_to", (PyObject *)self) < 0) {
        note_failure(outer, &first);
    }
    Py_DECREF(outer);
    return lp_raise_first(&first);
}

static int can_enter(lp_watch *self) {
    if (self->state == LP_WATCH_OFF) {
        lp_raise("used_probe", "this probe has been used: call leakprobe.watch() for a new one");
        return 0;
    }
    if (end_leftover() < 0 || end_outer(self) < 0) {
        return 0;
    }
    if (lp_watch_active != NULL || lp_watch_next(self->state, LP_WATCH_EVENT_ENTER) == LP_WATCH_STATE_COUNT) {
        lp_raise("already_active",
                 "a watch is active already: one process can have one at a time; leave the first "
                 "`with` block, or call leakprobe.stop(); a test that pytest measures is in one: mark "
                 "it @pytest.mark.skip_growth(reason)");
        return 0;
    }
    return 1;
}

/* 0, or -1 with an exception set, of the program's signal handlers too. */
static int take_resources(lp_watch *self) {
    if (name_resources(self) < 0) {
        return -1;
    }
    if (self->resources == Py_None) {
        Py_CLEAR(self->resources);
        return lp_watch_move(self, LP_WATCH_EVENT_DISABLE);
    }
    return lp_run_aside(take_all, self) < 0 ? -1 : PyErr_CheckSignals();
}

/* pre: ENTERING, the turn is mine. */
static int enter_in_turn(lp_watch *self) {
    lp_first_error first = {0};
    if (take_resources(self) < 0) {
        lp_keep_first(&first);
        lp_watch_move(self, LP_WATCH_EVENT_FAIL);
        let_go_here(self, &first);
        give_up_resources(self, &first);
        return lp_raise_first(&first);
    }
    if (self->state == LP_WATCH_DISABLED || self->state == LP_WATCH_OFF) {
        forget(self);
        return 0;
    }
    lp_watch_move(self, LP_WATCH_EVENT_DONE);
    self->has_begun = 1;
    return self->state == LP_WATCH_LEAVING ? lp_watch_leave(self, Py_None) : 0;
}

static int begin_in_turn(lp_watch *self) {
    if (!can_enter(self) || tell_outer(self) < 0) {
        return -1;
    }
    lp_watch_move(self, LP_WATCH_EVENT_ENTER);
    self->pid = getpid();
    lp_watch_active = self;
    return enter_in_turn(self);
}

int lp_watch_begin(lp_watch *self) {
    if (lp_turn_is_mine(&self->turn)) { /* a signal handler enters what is being entered */
        return can_enter(self) ? 0 : -1;
    }
    if (lp_turn_take(&self->turn) < 0) {
        return -1;
    }
    int result = begin_in_turn(self);
    lp_turn_give(&self->turn);
    return result;
}

void lp_watch_reset_in_child(void) {
    lp_watch_active = NULL;
    lp_watch_kept = NULL; /* not given back: whose it is may be in the middle of anything */
    lp_watch_outer = NULL;
}
