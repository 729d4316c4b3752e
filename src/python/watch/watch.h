/* leakprobe._core.Watch: the base of every watch, which begins and ends whole.
 *
 * __enter__, __exit__, step() and stop() are functions of C, since a function of Python can be cut short before its first
 * instruction.  A watch is in one state of watch/states.h.  What it takes from the process is a row of (take, give back) pairs;
 * they are taken, and given back in reverse, where no signal handler can run (aside.h).  Of one watch, one thread at a time enters,
 * marks, looks or leaves (turn.h); the others wait.
 *
 * The subclass has:
 *   _prepare()        the pairs, or None where there is nothing to watch; takes nothing.  A half is a method's name or a function of C
 *   _mark()           a step has ended; true if _call_back() is to be called once the others may mark
 *   _call_back()      calls what the program has asked to be called
 *   _last_look(kind)  the watch ends, with an exception of this type or None, and all is still there
 *   _let_go()         puts back what belongs to the thread that leaves; called again if it raises
 *   _failed(error)    notes an Exception that leaving met */
#ifndef LP_WATCH_H
#define LP_WATCH_H

#include "python/compat/compat.h"  // Python.h

/* Add the type to the module; 0, or -1 with an exception set. */
int lp_watch_init(PyObject *module);
/* In a forked child: the watch of its parent is not its own. */
void lp_watch_reset_in_child(void);

#endif
