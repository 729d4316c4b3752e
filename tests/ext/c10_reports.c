/* Stands for libc10 where torch is not imported: the entry points of the profiler, with both manglings. */
#include <stddef.h>
#include <stdint.h>

typedef struct device {
    int8_t type, index;
} device;

static _Atomic uint64_t usage_calls, oom_calls;

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t bytes, size_t allocated,
                                                           size_t reserved, device d) {
    (void)block, (void)bytes, (void)allocated, (void)reserved, (void)d;
    usage_calls++;
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *block, int64_t bytes, int64_t allocated,
                                                           int64_t reserved, device d) {
    (void)block, (void)bytes, (void)allocated, (void)reserved, (void)d;
    usage_calls++;
}

void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes, size_t allocated, size_t reserved, device d) {
    (void)bytes, (void)allocated, (void)reserved, (void)d;
    oom_calls++;
}

void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t bytes, int64_t allocated, int64_t reserved, device d) {
    (void)bytes, (void)allocated, (void)reserved, (void)d;
    oom_calls++;
}

uint64_t c10_usage_calls(void) { return usage_calls; }
uint64_t c10_oom_calls(void) { return oom_calls; }
