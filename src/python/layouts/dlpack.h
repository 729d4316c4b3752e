/* What a capsule of DLPack (dmlc/dlpack, dlpack.h) owns: a tensor that no Python object stands for. */
#ifndef LP_OWNERS_DLPACK_H
#define LP_OWNERS_DLPACK_H

#include "python/compat/compat.h"  // PyObject

/* Where the tensor's data begins; NULL for other capsules, and once the tensor was taken out. */
const void *lp_dlpack_data(PyObject *capsule);

#define LP_DLPACK_WORDS 7

/* What the maker of a managed tensor, whose first words these are, keeps for it, if the tensor's data is this; else 0. */
uint64_t lp_dlpack_context(const uint64_t words[LP_DLPACK_WORDS], uint64_t data);

#endif
