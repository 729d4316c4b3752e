/* Members dated by what keeps them: what is replaced in each step is as old as the place that it is put in. */
#ifndef LP_KEEPERS_H
#define LP_KEEPERS_H

#include "python/graph/trace.h"

/* Give each member the birth step of the oldest object above it that was born in the window, if there is one. */
void lp_keepers_date(lp_trace *trace);

#endif
