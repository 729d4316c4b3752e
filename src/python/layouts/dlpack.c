/* The two layouts of a tensor of DLPack: a capsule's are told apart by its name, others by their data. */
#include "python/layouts/dlpack.h"

#include <stdint.h>
#include <string.h>

/* DLManagedTensor begins with the tensor, and that with its data. */
typedef struct managed_tensor {
    const char *data;
} managed_tensor;

/* DLManagedTensorVersioned, DLPack 1.0. */
typedef struct versioned_tensor {
    uint32_t major, minor;
    void *context, *deleter;
    uint64_t flags;
    const char *data;
} versioned_tensor;

const void *lp_dlpack_data(PyObject *op) {
    const char *name = PyCapsule_GetName(op);
    int is_versioned = name != NULL && strcmp(name, "dltensor_versioned") == 0;
    if (name == NULL || (!is_versioned && strcmp(name, "dltensor") != 0)) {
        PyErr_Clear();   /* a capsule that holds NULL */
        return NULL;
    }
    const void *tensor = PyCapsule_GetPointer(op, name);
    return is_versioned ? ((const versioned_tensor *)tensor)->data : ((const managed_tensor *)tensor)->data;
}

/* The same in words: the data, of a tensor of six words, comes before the context or after it. */
enum { PLAIN_DATA = 0, PLAIN_CONTEXT = 6, VERSIONED_CONTEXT = 1, VERSIONED_DATA = 4 };

uint64_t lp_dlpack_context(const uint64_t words[LP_DLPACK_WORDS], uint64_t data) {
    return words[PLAIN_DATA] == data       ? words[PLAIN_CONTEXT]
           : words[VERSIONED_DATA] == data ? words[VERSIONED_CONTEXT]
                                           : 0;
}
