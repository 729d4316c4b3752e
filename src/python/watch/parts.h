/* The parts of Watch (watch.h): how it is entered and left (watch.c), marked (watch/marks.c), and the type (watch_type.c). */
#ifndef LP_WATCH_PARTS_H
#define LP_WATCH_PARTS_H

#include <sys/types.h> // pid_t

#include "python/watch/first_error.h"
#include "python/watch/turn.h"
#include "python/watch/watch.h"
#include "python/watch/states.h"

typedef struct lp_watch {
    PyObject_HEAD lp_watch_state state;
    pid_t pid; /* the process that entered it */
    lp_turn turn;
    PyObject *resources; /* tuple of (take, give back), or NULL before it is entered */
    uint64_t held; /* bit i: resource i has been taken, or in part */
    int has_begun; /* it has been ON */
    unsigned owed; /* marks that came from inside a mark */
} lp_watch;

/* The watch that is entered, until it holds nothing; borrowed, so that one which nobody can reach any more ends. */
extern lp_watch *lp_watch_active;
/* The same where somebody must end it who has no reference to it: stop(); owned. */
extern PyObject *lp_watch_kept;
/* Ends where another one is entered, and hears of each by its _gave_way_to(); owned, or NULL. */
extern PyObject *lp_watch_outer;

/* 0, or -1 where the state takes no such event. */
int lp_watch_move(lp_watch *self, lp_watch_event event);
/* 1 in a forked child, for the watch that its parent entered: who had the turn there is not here. */
int lp_watch_is_foreign(const lp_watch *self);
/* Call a method of the subclass; 0, or -1 with an exception set. */
int lp_watch_call(lp_watch *self, const char *method, PyObject *arg);

/* Enter it, in turn; 0, or -1 with an exception set and all given back. */
int lp_watch_begin(lp_watch *self);
/* Bring it to OFF; from inside its own entering or marking: as soon as that is done.  0, or -1 with an exception set. */
int lp_watch_end(lp_watch *self, PyObject *kind);
/* pre: LEAVING, the turn is mine.  0, or -1 with the exception of the program that came in between. */
int lp_watch_leave(lp_watch *self, PyObject *kind);

/* Methods of the type that mark; in_turn calls a function while nothing marks. */
PyObject *lp_watch_step(PyObject *op, PyObject *unused);
PyObject *lp_watch_step_if_on(PyObject *op, PyObject *unused);
PyObject *lp_watch_in_turn(PyObject *op, PyObject *args);

#endif
