#include "python/values/convert.h"  // lp_raise
#include "python/watch/parts.h"

/* The end of a mark, a look or a report: an exception that is set stays. */
static void finish(lp_watch *self) {
    lp_first_error first = {0};
    lp_keep_first(&first);
    lp_watch_move(self, first.type != NULL ? LP_WATCH_EVENT_FAIL : LP_WATCH_EVENT_DONE);
    if (self->state == LP_WATCH_LEAVING && lp_watch_leave(self, Py_None) < 0) {
        lp_keep_first(&first);
    }
    lp_raise_first(&first);
}

/* Take the marks that are owed; 1 if the program has something to hear.  An exception may be set. */
static int pay_marks(lp_watch *self) {
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
static int mark_in_turn(lp_watch *self) {
    lp_watch_move(self, LP_WATCH_EVENT_MARK);
    self->owed = 1;
    int news = pay_marks(self);
    finish(self);
    return PyErr_Occurred() ? -1 : news;
}

static PyObject *raise_not_active(void) {
    return lp_raise("not_active", "step() outside of a watch: call it inside `with leakprobe.watch() as probe:`");
}

/* Callbacks run after the mark: they may stop the watch, mark a step, or raise. */
static int mark(lp_watch *self) {
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
    return news > 0 ? lp_watch_call(self, "_call_back", NULL) : news;
}

/* From a signal handler or a finalizer inside a mark: marked when that is done. */
static int mark_later(lp_watch *self) {
    if (!lp_watch_is_active(self->state) && self->state != LP_WATCH_ENDING) {
        raise_not_active();
        return -1;
    }
    self->owed++;
    return 0;
}

PyObject *lp_watch_step(PyObject *op, PyObject *unused) {
    lp_watch *self = (lp_watch *)op;
    (void)unused;
    if (self->state == LP_WATCH_DISABLED || lp_watch_is_foreign(self)) {
        Py_RETURN_NONE;
    }
    if ((lp_turn_is_mine(&self->turn) ? mark_later(self) : mark(self)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The same for what marks by itself: a watch that somebody has stopped is no error. */
PyObject *lp_watch_step_if_on(PyObject *op, PyObject *unused) {
    lp_watch *self = (lp_watch *)op;
    if (!lp_watch_is_active(self->state)) {
        Py_RETURN_NONE;
    }
    PyObject *result = lp_watch_step(op, unused);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_Exception) && !lp_watch_is_active(self->state)) {
        PyErr_Clear(); /* stopped while this thread waited for its turn */
        Py_RETURN_NONE;
    }
    return result;
}

static PyObject *in_turn(lp_watch *self, PyObject *function, PyObject *args) {
    if (lp_turn_take(&self->turn) < 0) {
        return NULL;
    }
    int is_on = self->state == LP_WATCH_ON && lp_watch_move(self, LP_WATCH_EVENT_MARK) == 0;
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

PyObject *lp_watch_in_turn(PyObject *op, PyObject *args) {
    lp_watch *self = (lp_watch *)op;
    if (PyTuple_GET_SIZE(args) < 1) {
        PyErr_SetString(PyExc_TypeError, "_in_turn() takes a function and its arguments");
        return NULL;
    }
    PyObject *function = PyTuple_GET_ITEM(args, 0);
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)), *result = NULL;
    if (rest != NULL) {
        int is_free = lp_turn_is_mine(&self->turn) || lp_watch_is_foreign(self);
        result = is_free ? PyObject_Call(function, rest, NULL) : in_turn(self, function, rest);
    }
    Py_XDECREF(rest);
    return result;
}
