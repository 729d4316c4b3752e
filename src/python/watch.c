#include "python/watch.h"

#include <unistd.h>  // getpid

#include "python/aside.h"
#include "python/convert.h"  // lp_raise
#include "python/first_error.h"
#include "python/methods.h"
#include "python/turn.h"
#include "python/watch_states.h"

/* What is given back for want of memory in vain, or cut short by a signal, is tried so often at once: more signals come only
 * from a program that raises at every instruction. */
#define TRIES 100

typedef struct watch {
    PyObject_HEAD lp_watch_state state;
    pid_t pid;           /* the process that entered it */
    lp_turn turn;
    PyObject *resources; /* tuple of (take, give back), or NULL before it is entered */
    uint64_t held;       /* bit i: resource i has been taken, or in part */
    int has_begun;       /* it has been ON */
    unsigned owed;       /* marks that came from inside a mark */
} watch;

static PyTypeObject *watch_type;
/* The watch that is entered, until it holds nothing; borrowed, so that one which nobody can reach any more ends. */
static watch *active;
/* The same where somebody must end it who has no reference to it: stop(); owned. */
static PyObject *kept;

static int move(watch *self, lp_watch_event event) {
    lp_watch_state next = lp_watch_next(self->state, event);
    if (next == LP_WATCH_STATE_COUNT) {
        return -1;
    }
    self->state = next;
    return 0;
}

/* 1 in a forked child, for the watch that its parent entered: who had the turn there is not here. */
static int is_foreign(const watch *self) { return self->pid != 0 && self->pid != getpid(); }

/* Call a method of the subclass; 0, or -1 with an exception set. */
static int call(watch *self, const char *method, PyObject *arg) {
    PyObject *name = PyUnicode_InternFromString(method);  /* CPython's cache of lookups keeps each new one */
    PyObject *result = name == NULL ? NULL : PyObject_CallMethodObjArgs((PyObject *)self, name, arg, NULL);
    Py_XDECREF(name);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* ---- resources ---- */

typedef enum half { TAKE, GIVE_BACK } half;

/* Each half is the name of a method, or a function of C, which needs no memory to be called. */
static PyObject *run_half(const watch *self, Py_ssize_t resource, half half) {
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
static int name_resources(watch *self) {
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
    watch *self = arg;
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

static void give_back(watch *self, Py_ssize_t resource, lp_first_error *error) {
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
    watch *self = arg;
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
static void note_failure(watch *self, lp_first_error *first) {
    lp_first_error error = {0};
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        lp_keep_first(first);
        return;
    }
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    PyErr_NormalizeException(&error.type, &error.value, &error.traceback);
    if (call(self, "_failed", error.value) < 0) {
        lp_keep_first(first);
    }
    Py_XDECREF(error.type);
    Py_XDECREF(error.value);
    Py_XDECREF(error.traceback);
}

/* What must be put back in the thread that leaves, again until it is. */
static void let_go_here(watch *self, lp_first_error *first) {
    for (int i = 0; i < TRIES && call(self, "_let_go", NULL) < 0; i++) {
        note_failure(self, first);
    }
}

static void forget(watch *self) {
    active = active == self ? NULL : active;
    if (kept == (PyObject *)self) {
        Py_CLEAR(kept);
    }
}

/* Give all back and be off, or be left in LEAVING where memory is short. */
static void give_up_resources(watch *self, lp_first_error *first) {
    if (lp_run_aside(give_all_back, self) < 0) {
        note_failure(self, first);
    }
    move(self, self->held == 0 ? LP_WATCH_EVENT_DONE : LP_WATCH_EVENT_FAIL);
    if (self->state == LP_WATCH_OFF) {
        forget(self);
    } else if (kept == NULL) {
        kept = Py_NewRef((PyObject *)self);
    }
}

/* pre: LEAVING, the turn is mine.  0, or -1 with the exception of the program that came in between. */
static int leave(watch *self, PyObject *kind) {
    lp_first_error first = {0};
    if (self->resources != NULL && call(self, "_last_look", kind) < 0) {
        note_failure(self, &first);
    }
    let_go_here(self, &first);
    give_up_resources(self, &first);
    return lp_raise_first(&first);
}

/* What a forked child has of its parent's watch: only what lies in its own memory is put back. */
static void leave_in_child(watch *self) {
    lp_first_error first = {0};
    self->state = LP_WATCH_LEAVING;
    let_go_here(self, &first);
    if (give_all_back(self) < 0) {
        lp_keep_first(&first);
    }
    self->held = 0;
    move(self, LP_WATCH_EVENT_DONE);
    if (lp_raise_first(&first) < 0) {
        PyErr_WriteUnraisable((PyObject *)self);
    }
}

/* Bring the watch to OFF; from inside its own entering or marking: as soon as that is done. */
static int end(watch *self, PyObject *kind) {
    int result = 0;
    if (self->state == LP_WATCH_NEW || self->state == LP_WATCH_DISABLED || self->state == LP_WATCH_OFF) {
        return move(self, LP_WATCH_EVENT_STOP);
    }
    if (is_foreign(self)) {
        leave_in_child(self);
        return 0;
    }
    if (self->state == LP_WATCH_ENTERING || self->state == LP_WATCH_MARKING) {
        move(self, LP_WATCH_EVENT_STOP); /* whoever is at it ends the watch, even if this thread stops waiting */
    }
    if (lp_turn_is_mine(&self->turn)) {
        return 0;
    }
    if (lp_turn_take(&self->turn) < 0) {
        return -1;
    }
    if (self->state == LP_WATCH_ON || self->state == LP_WATCH_LEAVING) {
        move(self, LP_WATCH_EVENT_STOP);
        result = leave(self, kind);
    }
    lp_turn_give(&self->turn);
    return result;
}

/* ---- entering ---- */

/* What an earlier watch could not give back; 0, or -1 with an exception of the program. */
static int end_leftover(void) {
    if (active == NULL || active->state != LP_WATCH_LEAVING) {
        return 0;
    }
    watch *leftover = (watch *)Py_NewRef((PyObject *)active);
    int result = end(leftover, Py_None);
    Py_DECREF(leftover);
    return result;
}

static int can_enter(watch *self) {
    if (self->state == LP_WATCH_OFF) {
        lp_raise("used_probe", "this probe has been used: call leakprobe.watch() for a new one");
        return 0;
    }
    if (end_leftover() < 0) {
        return 0;
    }
    if (active != NULL || lp_watch_next(self->state, LP_WATCH_EVENT_ENTER) == LP_WATCH_STATE_COUNT) {
        lp_raise("already_active", "a watch is active already: one process can have one at a time; leave the first "
                                   "`with` block, or call leakprobe.stop()");
        return 0;
    }
    return 1;
}

/* 0, or -1 with an exception set, of the program's signal handlers too. */
static int take_resources(watch *self) {
    if (name_resources(self) < 0) {
        return -1;
    }
    if (self->resources == Py_None) {
        Py_CLEAR(self->resources);
        return move(self, LP_WATCH_EVENT_DISABLE);
    }
    return lp_run_aside(take_all, self) < 0 ? -1 : PyErr_CheckSignals();
}

/* pre: ENTERING, the turn is mine. */
static int enter_in_turn(watch *self) {
    lp_first_error first = {0};
    if (take_resources(self) < 0) {
        lp_keep_first(&first);
        move(self, LP_WATCH_EVENT_FAIL);
        let_go_here(self, &first);
        give_up_resources(self, &first);
        return lp_raise_first(&first);
    }
    if (self->state == LP_WATCH_DISABLED || self->state == LP_WATCH_OFF) {
        forget(self);
        return 0;
    }
    move(self, LP_WATCH_EVENT_DONE);
    self->has_begun = 1;
    return self->state == LP_WATCH_LEAVING ? leave(self, Py_None) : 0;
}

static int begin_in_turn(watch *self) {
    if (!can_enter(self)) {
        return -1;
    }
    move(self, LP_WATCH_EVENT_ENTER);
    self->pid = getpid();
    active = self;
    return enter_in_turn(self);
}

static int begin(watch *self) {
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

static PyObject *watch_enter(PyObject *op, PyObject *unused) {
    (void)unused;
    return begin((watch *)op) < 0 ? NULL : Py_NewRef(op);
}

static PyObject *watch_exit(PyObject *op, PyObject *args) {
    PyObject *kind = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
    if (end((watch *)op, kind) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- marking ---- */

/* The end of a mark, a look or a report: an exception that is set stays. */
static void finish(watch *self) {
    lp_first_error first = {0};
    lp_keep_first(&first);
    move(self, first.type != NULL ? LP_WATCH_EVENT_FAIL : LP_WATCH_EVENT_DONE);
    if (self->state == LP_WATCH_LEAVING && leave(self, Py_None) < 0) {
        lp_keep_first(&first);
    }
    lp_raise_first(&first);
}

/* Take the marks that are owed; 1 if the program has something to hear.  An exception may be set. */
static int pay_marks(watch *self) {
    int news = 0;
    while (self->owed > 0 && self->state == LP_WATCH_MARKING && !PyErr_Occurred()) {
        self->owed--;
        PyObject *name = PyUnicode_InternFromString("_mark");
        PyObject *result = name == NULL ? NULL : PyObject_CallMethodNoArgs((PyObject *)self, name);
        Py_XDECREF(name);
        news |= result != NULL && PyObject_IsTrue(result) > 0;
        Py_XDECREF(result);
    }
    return news;
}

/* 1 if the program has something to hear, 0 if not, -1 with an exception set. */
static int mark_in_turn(watch *self) {
    move(self, LP_WATCH_EVENT_MARK);
    self->owed = 1;
    int news = pay_marks(self);
    finish(self);
    return PyErr_Occurred() ? -1 : news;
}

static PyObject *raise_not_active(void) {
    return lp_raise("not_active", "step() outside of a watch: call it inside `with leakprobe.watch() as probe:`");
}

/* Callbacks run after the mark: they may stop the watch, mark a step, or raise. */
static int mark(watch *self) {
    int news = -1;
    if (lp_turn_take(&self->turn) < 0) {
        return -1;
    }
    if (self->state == LP_WATCH_ON) {
        news = mark_in_turn(self);
    } else {
        raise_not_active();
    }
    lp_turn_give(&self->turn);
    return news > 0 ? call(self, "_call_back", NULL) : news;
}

/* From a signal handler or a finalizer inside a mark: marked when that is done. */
static int mark_later(watch *self) {
    if (!lp_watch_is_active(self->state) && self->state != LP_WATCH_ENDING) {
        raise_not_active();
        return -1;
    }
    self->owed++;
    return 0;
}

static PyObject *watch_step(PyObject *op, PyObject *unused) {
    watch *self = (watch *)op;
    (void)unused;
    if (self->state == LP_WATCH_DISABLED || is_foreign(self)) {
        Py_RETURN_NONE;
    }
    if ((lp_turn_is_mine(&self->turn) ? mark_later(self) : mark(self)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The same for what marks by itself: a watch that somebody has stopped is no error. */
static PyObject *watch_step_if_on(PyObject *op, PyObject *unused) {
    watch *self = (watch *)op;
    if (!lp_watch_is_active(self->state)) {
        Py_RETURN_NONE;
    }
    PyObject *result = watch_step(op, unused);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_Exception) && !lp_watch_is_active(self->state)) {
        PyErr_Clear(); /* stopped while this thread waited for its turn */
        Py_RETURN_NONE;
    }
    return result;
}

static PyObject *in_turn(watch *self, PyObject *function, PyObject *args) {
    if (lp_turn_take(&self->turn) < 0) {
        return NULL;
    }
    int is_on = self->state == LP_WATCH_ON && move(self, LP_WATCH_EVENT_MARK) == 0;
    self->owed = 0;
    PyObject *result = PyObject_Call(function, args, NULL);
    if (is_on) {
        pay_marks(self);
        finish(self);
        if (PyErr_Occurred()) {
            Py_CLEAR(result);
        }
    }
    lp_turn_give(&self->turn);
    return result;
}

static PyObject *watch_in_turn(PyObject *op, PyObject *args) {
    watch *self = (watch *)op;
    if (PyTuple_GET_SIZE(args) < 1) {
        PyErr_SetString(PyExc_TypeError, "_in_turn() takes a function and its arguments");
        return NULL;
    }
    PyObject *function = PyTuple_GET_ITEM(args, 0);
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)), *result = NULL;
    if (rest != NULL) {
        int is_free = lp_turn_is_mine(&self->turn) || is_foreign(self);
        result = is_free ? PyObject_Call(function, rest, NULL) : in_turn(self, function, rest);
    }
    Py_XDECREF(rest);
    return result;
}

static PyObject *watch_is_active(PyObject *op, PyObject *unused) {
    const watch *self = (watch *)op;
    (void)unused;
    return PyBool_FromLong(lp_watch_is_active(self->state) && !is_foreign(self));
}

static PyObject *watch_state(PyObject *op, void *unused) {
    (void)unused;
    return PyUnicode_FromString(lp_watch_state_name(((watch *)op)->state));
}

static PyObject *watch_has_begun(PyObject *op, void *unused) {
    (void)unused;
    return PyBool_FromLong(((watch *)op)->has_begun);
}

/* ---- the type ---- */

static PyObject *watch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    watch *self = (watch *)type->tp_alloc(type, 0);
    if (self != NULL && lp_turn_init(&self->turn) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Nobody can reach it: it ends, as one whose block was never entered because a signal came in between. */
static void watch_finalize(PyObject *op) {
    watch *self = (watch *)op;
    lp_first_error first = {0};
    if (self->held == 0 || is_foreign(self)) {
        return;
    }
    lp_keep_first(&first);
    if (end(self, Py_None) < 0) {
        PyErr_WriteUnraisable(op);
    }
    lp_raise_first(&first);
}

static int watch_traverse(PyObject *op, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((watch *)op)->resources);
    return 0;
}

static int watch_clear(PyObject *op) {
    Py_CLEAR(((watch *)op)->resources);
    return 0;
}

static void watch_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    watch *self = (watch *)op;
    PyObject_GC_UnTrack(op);
    active = active == self ? NULL : active;
    watch_clear(op);
    lp_turn_destroy(&self->turn);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", watch_enter, METH_NOARGS, PyDoc_STR("Begin the watch; what raises in here leaves it off.")},
    {"__exit__", watch_exit, METH_VARARGS, PyDoc_STR("End the watch; it is off after this, whatever is raised.")},
    {"step", watch_step, METH_NOARGS,
     PyDoc_STR("step($self)\n--\n\nMark the end of a step, from any thread: marks are taken one after the other.\n\n"
               "Errors: LeakprobeError \"not_active\" outside of a watch.")},
    {"_step_if_on", watch_step_if_on, METH_NOARGS, PyDoc_STR("step(), or nothing where the watch is not on.")},
    {"is_active", watch_is_active, METH_NOARGS,
     PyDoc_STR("is_active($self)\n--\n\nTrue between entering and leaving the watch.")},
    {"_in_turn", watch_in_turn, METH_VARARGS, PyDoc_STR("_in_turn(function, *args): call it while nothing marks.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_state", watch_state, NULL, PyDoc_STR("The name of the state (watch_states.h)."), NULL},
    {"_has_begun", watch_has_begun, NULL, PyDoc_STR("True once all that it takes was taken."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A watch that begins and ends whole; the subclass says what it takes and what a mark does."},
    {Py_tp_new, watch_new},
    {Py_tp_finalize, watch_finalize},
    {Py_tp_dealloc, watch_dealloc},
    {Py_tp_traverse, watch_traverse},
    {Py_tp_clear, watch_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "leakprobe._core.Watch",
    .basicsize = sizeof(watch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int lp_watch_init(PyObject *module) {
    if (watch_type == NULL) {
        watch_type = (PyTypeObject *)PyType_FromSpec(&spec);
    }
    return watch_type == NULL ? -1 : PyModule_AddObjectRef(module, "Watch", (PyObject *)watch_type);
}

void lp_watch_reset_in_child(void) {
    active = NULL;
    kept = NULL; /* not given back: whose it is may be in the middle of anything */
}

/* ---- functions ---- */

static PyObject *mod_start_watch(PyObject *module, PyObject *op) {
    (void)module;
    if (!PyObject_TypeCheck(op, watch_type)) {
        PyErr_SetString(PyExc_TypeError, "start_watch() takes a Watch");
        return NULL;
    }
    if (begin((watch *)op) < 0) {
        return NULL;
    }
    if (active == (watch *)op) {
        Py_XSETREF(kept, Py_NewRef(op));
    }
    return Py_NewRef(op);
}

static PyObject *mod_stop_watch(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    if (active == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *op = Py_NewRef((PyObject *)active);
    if (end(active, Py_None) < 0) {
        Py_CLEAR(op);
    }
    return op;
}

static PyObject *mod_active_watch(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    int is_on = active != NULL && lp_watch_is_active(active->state);
    return Py_NewRef(is_on ? (PyObject *)active : Py_None);
}

PyMethodDef lp_watch_methods[] = {
    {"start_watch", mod_start_watch, METH_O,
     PyDoc_STR("start_watch(watch): enter it, and keep it until it ends; the watch.")},
    {"stop_watch", mod_stop_watch, METH_NOARGS,
     PyDoc_STR("stop_watch()\n--\n\nEnd the watch that is on, from any thread, and give its probe, or None if there "
               "was none.\n\n"
               "From inside a mark (a signal handler), the watch ends as soon as the mark has.")},
    {"active_watch", mod_active_watch, METH_NOARGS, PyDoc_STR("The watch that is on in this process, or None.")},
    {NULL, NULL, 0, NULL},
};
