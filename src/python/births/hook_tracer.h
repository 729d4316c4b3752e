/* Creation events of CPython 3.13+ (PyRefTracer): stamp each object where its block starts.
 *
 * The process has one slot.  A tracer that is found there is called after ours; whoever
 * puts another one there later is chained at the next check.  All of it: GIL held. */
#ifndef LP_HOOK_TRACER_H
#define LP_HOOK_TRACER_H

#include "python/compat/compat.h"  // LP_HAS_CREATION_EVENTS

/* 1 if creation events reach the hook.  Makes and drops an object, unless it is in the slot. */
int lp_hook_tracer_is_reached(void);
/* Take the slot, chain what is there; 0, or -1 (no exception).  pre: not reached. */
int lp_hook_tracer_install(void);
/* Give the slot back if it is ours, else stay as a pass-through. */
void lp_hook_tracer_uninstall(void);
/* Stamp, or pass through. */
void lp_hook_tracer_set_active(int active);

#endif
