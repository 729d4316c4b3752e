/* What torch's allocators report to, c10::reportMemoryUsageToProfiler(), and c10::Device as the ABI passes it: by value, in one register whose bits above these two bytes are garbage. */
#ifndef LP_C10_DEVICE_H
#define LP_C10_DEVICE_H

#include <stddef.h>
#include <stdint.h>

typedef struct lp_c10_device {
    int8_t type, index;
} lp_c10_device;

_Static_assert(sizeof(lp_c10_device) == 2, "c10::Device is two bytes");

typedef void (*lp_c10_report_fn)(void *block, int64_t bytes, size_t allocated, size_t reserved, lp_c10_device device);

/* c10::DeviceType; builds for ROCm say CUDA too. */
enum { LP_C10_CPU = 0, LP_C10_CUDA = 1 };

#endif
