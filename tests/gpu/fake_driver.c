/* The driver, as far as torch asks for it, beside fake_runtime.c: expandable segments reserve addresses, make memory
 * and map it there.  Here memory is a file without a name, so that it can be mapped where the caller wants it.
 *
 * torch asks the runtime for each function by name; one that is not here says that it is not supported. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define OK(declaration)                                                                                                \
    API CUresult declaration { return CUDA_SUCCESS; }
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { GRANULARITY = 2 << 20 };

typedef struct memory {
    size_t bytes;
    int device, file;
} memory;

int standin_has_context(int device);
int fake_take(int device, size_t bytes);
void fake_give_back(int device, size_t bytes);

static CUresult is_not_here(void) { return CUDA_ERROR_NOT_SUPPORTED; }

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                                 unsigned long long flags,
                                                 enum cudaDriverEntryPointQueryResult *status) {
    void *found = dlsym(RTLD_DEFAULT, name);
    *out = found != NULL ? found : (void *)is_not_here;
    if (status != NULL) {
        *status = cudaDriverEntryPointSuccess;
    }
    return cudaSuccess;
}
#undef cudaGetDriverEntryPoint
API cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                        enum cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(name, out, CUDA_VERSION, flags, status);
}

OK(cuInit(unsigned flags))
API CUresult cuDriverGetVersion(int *out) {
    *out = CUDA_VERSION;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGet(CUdevice *out, int ordinal) {
    *out = ordinal;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice device) {
    *out = 0;
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    *flags = 0, *active = standin_has_context(device);
    return CUDA_SUCCESS;
}
API CUresult cuCtxGetCurrent(CUcontext *out) {
    *out = (CUcontext)1;
    return CUDA_SUCCESS;
}
OK(cuCtxSetCurrent(CUcontext context))
API CUresult cuGetErrorString(CUresult error, const char **out) {
    *out = "an error of the fake driver";
    return CUDA_SUCCESS;
}

API CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *properties,
                                           CUmemAllocationGranularity_flags option) {
    *out = GRANULARITY;
    return CUDA_SUCCESS;
}

API CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wanted,
                                 unsigned long long flags) {
    void *found = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *out = (CUdeviceptr)found;
    return found == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    return munmap((void *)address, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *properties,
                         unsigned long long flags) {
    int device = properties->location.id;
    if (!fake_take(device, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory *made = malloc(sizeof(*made));
    *made = (memory){bytes, device, memfd_create("fake device memory", MFD_CLOEXEC)};
    *out = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return made->file >= 0 && ftruncate(made->file, (off_t)bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    memory *made = (memory *)(uintptr_t)handle;
    fake_give_back(made->device, made->bytes);
    close(made->file);
    free(made);
    return CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                      unsigned long long flags) {
    int file = ((memory *)(uintptr_t)handle)->file;
    void *found = mmap((void *)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, (off_t)offset);
    return found == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
API CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count) {
    return mprotect((void *)address, bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap((void *)address, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE
                                                                               : CUDA_SUCCESS;
}
