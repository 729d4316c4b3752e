/* Runs what must not be cut short in a thread of its own.
 *
 * Python runs signal handlers between the instructions of the main thread, and an exception set from outside in the thread that it
 * was set for.  Neither meets a thread that lasts for one call only: Python code that opens, registers or replaces something
 * there ends in a known place, and what arrived meanwhile is raised in the caller afterwards. */
#ifndef LP_ASIDE_H
#define LP_ASIDE_H

/* 0, or -1 with an exception set. */
typedef int (*lp_job)(void *arg);

/* Run job(arg) to its end and return what it returned, its exception set here.  Where no thread can be started (the
 * interpreter ends, there is no memory, another library has replaced Python's threads) it runs in this thread.  The collector is off
 * meanwhile: finalizers of the program would meet a thread that they don't expect. */
int lp_run_aside(lp_job job, void *arg);

#endif
