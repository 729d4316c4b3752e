/* Asserts that what src/native/cudart_api.h declares of the CUDA runtime is what its header says.  Nothing is built
 * from this but the answer:
 *
 *     cc -std=c11 -fsyntax-only -Isrc -I$CUDA_HOME/include tests/gpu/check_headers.c
 *
 * tests/gpu/test_headers.py runs it with every toolkit that it finds. */
#include <cuda_runtime_api.h>

#include "native/cudart_api.h"

/* cudaError_t is an enum: the C ABI passes it as an int where every enumerator fits one. */
_Static_assert(sizeof(cudaError_t) == sizeof(int), "cudaError_t is passed as an int");
_Static_assert(cudaSuccess == 0, "0 is success");
_Static_assert(cudaErrorMemoryAllocation == 2, "out of memory");
_Static_assert(sizeof(cudaStream_t) == sizeof(lp_cuda_stream), "streams are pointers");

/* The parameters must be those that we declare; only the result is named by the enum in the header. */
#define SAME(function, ...)                                                                                            \
    _Static_assert(_Generic(&function, cudaError_t (*)(__VA_ARGS__): 1, default: 0), #function " has other "           \
                                                                                               "parameters")
#define OURS(type, ...)                                                                                                \
    _Static_assert(_Generic((type)0, int (*)(__VA_ARGS__): 1, default: 0), #type " has other parameters")

SAME(cudaMalloc, void **, size_t);
OURS(lp_cuda_malloc_fn, void **, size_t);
SAME(cudaFree, void *);
OURS(lp_cuda_free_fn, void *);
SAME(cudaMallocAsync, void **, size_t, cudaStream_t);
OURS(lp_cuda_malloc_async_fn, void **, size_t, lp_cuda_stream);
SAME(cudaFreeAsync, void *, cudaStream_t);
OURS(lp_cuda_free_async_fn, void *, lp_cuda_stream);
SAME(cudaSetDevice, int);
OURS(lp_cuda_set_device_fn, int);
SAME(cudaHostAlloc, void **, size_t, unsigned int);
OURS(lp_cuda_host_alloc_fn, void **, size_t, unsigned int);
SAME(cudaMallocHost, void **, size_t);
OURS(lp_cuda_malloc_host_fn, void **, size_t);
SAME(cudaFreeHost, void *);
OURS(lp_cuda_free_host_fn, void *);
SAME(cudaHostRegister, void *, size_t, unsigned int);
OURS(lp_cuda_host_register_fn, void *, size_t, unsigned int);
SAME(cudaHostUnregister, void *);
OURS(lp_cuda_host_unregister_fn, void *);
