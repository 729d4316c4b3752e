/* The functions of the CUDA runtime whose slots are patched, declared by ourselves so that no toolkit is needed
 * to build.  cudaError_t is an enum, passed as an int; 0 is cudaSuccess.  tests/gpu/check_headers.c compares
 * each with cuda_runtime_api.h. */
#ifndef LP_CUDART_API_H
#define LP_CUDART_API_H

#include <stddef.h>

typedef struct CUstream_st *lp_cuda_stream;

typedef int (*lp_cuda_malloc_fn)(void **out_block, size_t bytes);
typedef int (*lp_cuda_free_fn)(void *block);
typedef int (*lp_cuda_malloc_async_fn)(void **out_block, size_t bytes, lp_cuda_stream stream);
typedef int (*lp_cuda_free_async_fn)(void *block, lp_cuda_stream stream);
typedef int (*lp_cuda_set_device_fn)(int device);

typedef int (*lp_cuda_host_alloc_fn)(void **out_block, size_t bytes, unsigned int flags);
typedef int (*lp_cuda_malloc_host_fn)(void **out_block, size_t bytes);
typedef int (*lp_cuda_free_host_fn)(void *block);
typedef int (*lp_cuda_host_register_fn)(void *block, size_t bytes, unsigned int flags);
typedef int (*lp_cuda_host_unregister_fn)(void *block);

#endif
