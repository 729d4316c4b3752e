/* cuBLAS where no kernel runs, beside fake_runtime.c: handles are memory, every product is left undone.  torch takes
 * its workspaces from its own allocator, as with the real one.  Arguments that are not read are not declared: both
 * ABIs (x86-64, aarch64) leave them to the caller. */
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    HEURISTIC_BYTES = 96
}; /* cublasLtMatmulHeuristicResult_t: an algorithm of 64 bytes, and what it needs */

static int make(void **out) {
    *out = calloc(1, 64);
    return *out == NULL;
}
static int drop(void *handle) {
    free(handle);
    return SUCCESS;
}
static int say_zero(void *handle, int *out) {
    *out = 0;
    return SUCCESS;
}

#define MAKES(name)                                                                                                    \
    int name(void **out) { return make(out); }
#define DROPS(name)                                                                                                    \
    int name(void *handle) { return drop(handle); }
#define SAYS(name)                                                                                                     \
    int name(void *handle, int *out) { return say_zero(handle, out); }
#define DOES_NOTHING(name)                                                                                             \
    int name(void) { return SUCCESS; }

MAKES(cublasCreate_v2)
DROPS(cublasDestroy_v2)
SAYS(cublasGetMathMode)
SAYS(cublasGetPointerMode_v2)
DOES_NOTHING(cublasSetMathMode)
DOES_NOTHING(cublasSetPointerMode_v2)
DOES_NOTHING(cublasSetSmCountTarget)
DOES_NOTHING(cublasSetStream_v2)
DOES_NOTHING(cublasSetWorkspace_v2)

DOES_NOTHING(cublasSgemm_v2)
DOES_NOTHING(cublasDgemm_v2)
DOES_NOTHING(cublasSgemmEx)
DOES_NOTHING(cublasGemmEx)
DOES_NOTHING(cublasSgemmStridedBatched)
DOES_NOTHING(cublasDgemmStridedBatched)
DOES_NOTHING(cublasGemmStridedBatchedEx)
DOES_NOTHING(cublasSgemv_v2)
DOES_NOTHING(cublasDgemv_v2)
DOES_NOTHING(cublasSdot_v2)
DOES_NOTHING(cublasDdot_v2)
DOES_NOTHING(cublasDotEx)

MAKES(cublasLtCreate)
DROPS(cublasLtDestroy)
MAKES(cublasLtMatmulDescCreate)
DROPS(cublasLtMatmulDescDestroy)
DOES_NOTHING(cublasLtMatmulDescSetAttribute)
MAKES(cublasLtMatrixLayoutCreate)
DROPS(cublasLtMatrixLayoutDestroy)
DOES_NOTHING(cublasLtMatrixLayoutSetAttribute)
MAKES(cublasLtMatmulPreferenceCreate)
DROPS(cublasLtMatmulPreferenceDestroy)
DOES_NOTHING(cublasLtMatmulPreferenceSetAttribute)
DOES_NOTHING(cublasLtMatmul)

int cublasLtMatmulAlgoGetHeuristic(void *lt, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, void *out, int *count) {
    memset(out, 0, HEURISTIC_BYTES);
    *count = 1;
    return SUCCESS;
}
