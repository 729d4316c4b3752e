/* How much a kept tensor or array views of the pinned memory that it keeps. */
#ifndef LP_VIEWS_H
#define LP_VIEWS_H

#include "python/graph/trace.h"

/* {type, viewed_bytes, storage_bytes, block_bytes} of the first tensor or array on the bucket's path that lies on a
 * pinned block, new reference; None where there is none.  storage_bytes is None where no tensor of torch's own is
 * below.  The only call of torch runs under DisableTorchFunction. */
PyObject *lp_view_to_dict(const lp_trace *trace, const lp_bucket *bucket);

#endif
