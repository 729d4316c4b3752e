#include "python/watch/turn.h"

int lp_turn_init(lp_turn *turn) {
    LP_ASSERT_GIL();
    turn->owner = 0;
    turn->lock = PyThread_allocate_lock();
    return turn->lock != NULL ? 0 : (PyErr_NoMemory(), -1);
}

void lp_turn_destroy(lp_turn *turn) {
    LP_ASSERT_GIL();
    if (turn->lock != NULL && turn->owner == 0) {
        PyThread_free_lock(turn->lock);
    }
    turn->lock = NULL;
}

int lp_turn_is_mine(const lp_turn *turn) {
    LP_ASSERT_GIL();
    return turn->owner == PyThread_get_thread_ident();
}

int lp_turn_take(lp_turn *turn) {
    LP_ASSERT_GIL();
    PyLockStatus got = PyThread_acquire_lock_timed(turn->lock, 0, 0);
    while (got != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS;
        got = PyThread_acquire_lock_timed(turn->lock, -1, 1);
        Py_END_ALLOW_THREADS;
        if (got == PY_LOCK_INTR && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    turn->owner = PyThread_get_thread_ident();
    return 0;
}

void lp_turn_give(lp_turn *turn) {
    LP_ASSERT_GIL();
    turn->owner = 0;
    PyThread_release_lock(turn->lock);
}
