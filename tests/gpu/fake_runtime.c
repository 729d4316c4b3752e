/* A CUDA runtime without CUDA, to be preloaded under a real CUDA build of torch: device memory is host memory, a
 * kernel launch does nothing, copies are memcpy.  torch's own allocators, streams, events and graphs of autograd run
 * as they are, so that leakprobe's hooks meet torch's real code; no number that a kernel would compute is right.
 *
 * tests/gpu/fake_gpu.py builds it, with fake_driver.c and fake_blas.c, and runs a command on it.
 *
 * FAKE_CUDA_BYTES sets the size of each of its two devices, 16 GiB else, of which the host has what is written to.  fake_hold_events(1): streams never finish. */
#include <cuda_runtime_api.h>

#include <string.h>

#define cudaSetDevice base_set_device
#define cudaGetDevice base_get_device
#define cudaMalloc base_malloc
#define cudaFree base_free
#define cudaMallocAsync base_malloc_async
#define cudaFreeAsync base_free_async
#define cudaMallocAsync_ptsz base_malloc_async_ptsz
#define cudaFreeAsync_ptsz base_free_async_ptsz
#define cudaHostAlloc base_host_alloc
#define cudaMallocHost base_malloc_host
#define cudaFreeHost base_free_host
#define cudaHostRegister base_host_register
#define cudaHostUnregister base_host_unregister
#define cudaGetLastError base_get_last_error
#define cudaPeekAtLastError base_peek_at_last_error
#include "../ext/cuda_runtime.c"
#undef cudaSetDevice
#undef cudaGetDevice
#undef cudaMalloc
#undef cudaFree
#undef cudaMallocAsync
#undef cudaFreeAsync
#undef cudaMallocAsync_ptsz
#undef cudaFreeAsync_ptsz
#undef cudaHostAlloc
#undef cudaMallocHost
#undef cudaFreeHost
#undef cudaHostRegister
#undef cudaHostUnregister
#undef cudaGetLastError
#undef cudaPeekAtLastError

#define OK(declaration)                                                                                                \
    cudaError_t declaration { return cudaSuccess; }
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { FAKE_DEVICES = 2 };
static _Atomic int events_are_held, capturing;

__attribute__((constructor)) static void begin(void) {
    const char *bytes = getenv("FAKE_CUDA_BYTES");
    for (int device = 0; device < FAKE_DEVICES; device++) {
        standin_set_capacity(device, bytes == NULL ? (size_t)16 << 30 : strtoull(bytes, NULL, 10));
    }
}

void fake_hold_events(int on) { events_are_held = on; }

cudaError_t cudaSetDevice(int device) {
    return device < FAKE_DEVICES ? (cudaError_t)base_set_device(device) : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDevice(int *out) { return (cudaError_t)base_get_device(out); }
cudaError_t cudaMalloc(void **out, size_t bytes) { return (cudaError_t)base_malloc(out, bytes); }
cudaError_t cudaFree(void *block) { return (cudaError_t)base_free(block); }
cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) {
    return (cudaError_t)base_malloc(out, bytes);
}
cudaError_t cudaFreeAsync(void *block, cudaStream_t stream) { return (cudaError_t)base_free(block); }
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    return (cudaError_t)base_host_alloc(out, bytes, flags);
}
cudaError_t cudaMallocHost(void **out, size_t bytes) { return (cudaError_t)base_malloc_host(out, bytes); }
cudaError_t cudaFreeHost(void *block) { return (cudaError_t)base_free_host(block); }
cudaError_t cudaHostRegister(void *block, size_t bytes, unsigned flags) {
    return (cudaError_t)base_host_register(block, bytes, flags);
}
cudaError_t cudaHostUnregister(void *block) { return (cudaError_t)base_host_unregister(block); }

cudaError_t cudaGetDeviceCount(int *out) {
    *out = FAKE_DEVICES;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *out) {
    *out = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *out) {
    *out = CUDART_VERSION;
    return cudaSuccess;
}
OK(cudaDeviceSynchronize(void))
cudaError_t cudaGetLastError(void) { return (cudaError_t)base_get_last_error(); }
cudaError_t cudaPeekAtLastError(void) { return (cudaError_t)base_peek_at_last_error(); }

static void describe(struct cudaDeviceProp *out, int device) {
    memset(out, 0, sizeof(*out));
    strcpy(out->name, "no device at all");
    out->totalGlobalMem = standin_capacity(device);
    out->major = 9;
    out->multiProcessorCount = 4;
    out->warpSize = 32;
    out->maxThreadsPerBlock = 1024;
    out->maxThreadsPerMultiProcessor = 2048;
    out->sharedMemPerBlock = 48 << 10;
    out->sharedMemPerMultiprocessor = 228 << 10;
    out->regsPerMultiprocessor = 65536;
    for (int i = 0; i < 3; i++) {
        out->maxThreadsDim[i] = 1024;
        out->maxGridSize[i] = i == 0 ? 0x7fffffff : 65535;
    }
}

#undef cudaGetDeviceProperties
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    describe(out, device);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *out, int device) {
    describe(out, device);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr which, int device) {
    struct cudaDeviceProp own;
    describe(&own, device);
    *out = which == cudaDevAttrMultiProcessorCount           ? own.multiProcessorCount
           : which == cudaDevAttrMaxThreadsPerBlock          ? own.maxThreadsPerBlock
           : which == cudaDevAttrMaxThreadsPerMultiProcessor ? own.maxThreadsPerMultiProcessor
           : which == cudaDevAttrWarpSize                    ? own.warpSize
                                                             : 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
    *out = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -1;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total) {
    int device;
    base_get_device(&device);
    use_device();
    *out_total = standin_capacity(device);
    *out_free = *out_total - standin_used(device);
    return cudaSuccess;
}

static cudaError_t make(void **out) {
    use_device();
    *out = malloc(16);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) { return make((void **)out); }
OK(cudaStreamDestroy(cudaStream_t stream))
OK(cudaStreamSynchronize(cudaStream_t stream))
OK(cudaStreamQuery(cudaStream_t stream))
OK(cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags))
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) { return make((void **)out); }
cudaError_t cudaEventCreate(cudaEvent_t *out) { return make((void **)out); }
OK(cudaEventRecord(cudaEvent_t event, cudaStream_t stream))
OK(cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags))
cudaError_t cudaEventQuery(cudaEvent_t event) { return events_are_held ? cudaErrorNotReady : cudaSuccess; }
OK(cudaEventSynchronize(cudaEvent_t event))
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return cudaSuccess;
}

/* Capture: torch only has to believe that it goes on. */
static void say_capture(enum cudaStreamCaptureStatus *out) {
    *out = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out) {
    say_capture(out);
    return cudaSuccess;
}
static cudaError_t capture_info(enum cudaStreamCaptureStatus *out, unsigned long long *id) {
    say_capture(out);
    if (id != NULL) {
        *id = 1;
    }
    return cudaSuccess;
}
#undef cudaStreamGetCaptureInfo
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *o, unsigned long long *i,
                                     cudaGraph_t *g, const cudaGraphNode_t **d, const cudaGraphEdgeData **e,
                                     size_t *n) {
    return capture_info(o, i);
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus *o, unsigned long long *i,
                                        cudaGraph_t *g, const cudaGraphNode_t **d, size_t *n) {
    return capture_info(o, i);
}
#endif
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    capturing = 1;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
    capturing = 0;
    return make((void **)out);
}
OK(cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode))
OK(cudaGraphDestroy(cudaGraph_t graph))
OK(cudaGraphExecDestroy(cudaGraphExec_t graph))
OK(cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream))
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    return make((void **)out);
}
#undef cudaGraphInstantiate
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    return make((void **)out);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *out) {
    *out = 1;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
    use_device();
    return cudaSuccess;
}
OK(cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments))
OK(cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute which, int value))
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel) {
    memset(out, 0, sizeof(*out));
    out->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *kernel, int size, size_t bytes) {
    *out = 2;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *kernel, int size, size_t bytes,
                                                                   unsigned flags) {
    *out = 2;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *pointer) {
    memset(out, 0, sizeof(*out));
    out->type = cudaMemoryTypeUnregistered;
    out->device = -1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device) { return make((void **)out); }
OK(cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value))
OK(cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count))
OK(cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes))
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value) {
    *(uint64_t *)value = 0;
    return cudaSuccess;
}

/* Memory that fake_driver.c maps: 1 if the device has it. */
int fake_take(int device, size_t bytes) {
    has_context[device] = 1;
    pthread_mutex_lock(&lock);
    int fits = bytes <= capacity[device] && used[device] <= capacity[device] - bytes;
    used[device] += fits ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return fits;
}

void fake_give_back(int device, size_t bytes) {
    pthread_mutex_lock(&lock);
    used[device] -= bytes;
    pthread_mutex_unlock(&lock);
}
