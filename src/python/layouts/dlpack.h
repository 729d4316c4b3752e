/* What a capsule of DLPack (dmlc/dlpack, dlpack.h) owns: a tensor that no Python object stands for. */
#ifndef LP_OWNERS_DLPACK_H
#define LP_OWNERS_DLPACK_H

#include "python/compat/compat.h"  // PyObject

/* Where the tensor's data begins; NULL for other capsules, and once the tensor was taken out. */
const void *lp_dlpack_data(PyObject *capsule);

#endif
