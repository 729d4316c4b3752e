/* Canaries: one block of each medium that has a hook, made and freed on purpose.  Nothing is imported for it, and CUDA
 * never started. */
#ifndef LP_CANARIES_H
#define LP_CANARIES_H

#include "ledger/medium.h"           // lp_medium
#include "python/compat/compat.h"    // PyObject

/* The module of a medium if it is imported to its end (new reference), else NULL and why not; no exception. */
PyObject *lp_canary_module(lp_medium medium, const char **out_why_not);
/* lp_native_canary_fn: make a block of the medium and free it. */
int lp_canary_make_and_free(lp_medium medium, uint64_t bytes);
/* 1 if a block may be made: the program has started CUDA, in this process, and no graph is being captured. */
int lp_canary_cuda_is_up(void);
/* 1 if a function of an imported module, called without arguments, says True. */
int lp_canary_asks(const char *module_name, const char *function);

#endif
