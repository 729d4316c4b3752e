/* A lock that only C holds: no instruction of Python lies between taking it and giving it back. */
#ifndef LP_TURN_H
#define LP_TURN_H

#include "python/compat/compat.h"  // Python.h

/* All fields are read and written with the GIL held. */
typedef struct lp_turn {
    PyThread_type_lock lock;
    unsigned long owner; /* the thread that has it; 0: nobody */
} lp_turn;

/* 0, or -1 with MemoryError. */
int lp_turn_init(lp_turn *turn);
void lp_turn_destroy(lp_turn *turn);
int lp_turn_is_mine(const lp_turn *turn);
/* Wait for it; 0, or -1 with the exception of a signal handler, the turn not taken.  pre: not mine. */
int lp_turn_take(lp_turn *turn);
/* pre: mine. */
void lp_turn_give(lp_turn *turn);

#endif
