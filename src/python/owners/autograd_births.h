/* When the nodes of autograd graphs were made, and how many bytes they take.
 *
 * They are no objects of Python's allocator and no blocks of the ledger: malloc serves them.  torch
 * numbers them as it makes them, thread by thread; what the next number was at each mark tells the step. */
#ifndef LP_AUTOGRAD_BIRTHS_H
#define LP_AUTOGRAD_BIRTHS_H

#include "python/owners/torch.h"

/* Make the nodes that were born in the steps of the request members of its autograd group.  After the
 * getters; LP_OK also where the request has no such group or torch no numbers. */
lp_status lp_autograd_note_births(lp_torch *torch);
/* Bytes of the C++ node behind a wrapper and of its list of edges; 0 where malloc's header does not tell. */
uint64_t lp_autograd_bytes(PyObject *op);

#endif
