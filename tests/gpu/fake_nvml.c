/* NVIDIA's management library, where torch asks it whether devices share a fabric (they do not), and, when
 * memory runs out, who else uses the device (nobody).  Beside fake_runtime.c, and a
 * library of its own, since torch opens it by its name. */
#include <stddef.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3 };

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out) {
    (void)id;
    *out = NULL;
    return SUCCESS;
}
int nvmlDeviceGetGpuFabricInfoV(void *device, void *out) {
    (void)device, (void)out; /* the caller has set it to zero: no fabric */
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    *out = 13000;
    return SUCCESS;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void) { return NOT_SUPPORTED; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return NOT_SUPPORTED; }
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count) {
    (void)device;
    *count = 0;
    return SUCCESS;
}
