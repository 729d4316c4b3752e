/* Holders that bound themselves, such as a deque with a maxlen: they let go of what they keep, so that whoever keeps it
 * too is the one that makes it stay.  A trace that meets them looks for its paths once more, past them first, and past
 * what has only copied what others keep. */
#ifndef LP_BOUNDED_H
#define LP_BOUNDED_H

#include "python/graph/trace.h"

/* After an attribution: note those among the holders; 1 if that asks for another round. */
int lp_bounded_find(lp_trace *trace);
/* Before roots are added: they lead nowhere. */
void lp_bounded_block(lp_trace *trace);
/* After modules and frames were followed: they lead on, copies last.  What was not reached from
 * there is as if it had not been noted. */
void lp_bounded_release(lp_trace *trace);

#endif
