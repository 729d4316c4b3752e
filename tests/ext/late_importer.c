/* A library that is loaded late and reports memory to torch's profiler, as libtorch_cpu does.
 * Built as libtorch_cpu_late.so: the hooks go by how the file's name begins. */
#include <stddef.h>
#include <stdint.h>

/* The device is a struct of two bytes; as a whole word it lets a test set the garbage above them. */
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t bytes, size_t allocated,
                                                           size_t reserved, uint64_t device);

void late_report(uintptr_t block, int64_t bytes, int type, int index) {
    uint64_t device = UINT64_C(0xDEADBEEF12340000) | (uint64_t)(uint8_t)index << 8 | (uint8_t)type;
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)block, bytes, 0, 0, device);
}
