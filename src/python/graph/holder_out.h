/* The object whose contents grow, as a dict. */
#ifndef LP_HOLDER_OUT_H
#define LP_HOLDER_OUT_H

#include "python/graph/edge_names.h"
#include "python/graph/trace.h"  // lp_trace

/* None where there is none.  elements: room for LP_PATH_MOST_NODES. */
PyObject *lp_holder_to_dict(const lp_trace *trace, const lp_bucket *bucket, lp_element *elements);

#endif
