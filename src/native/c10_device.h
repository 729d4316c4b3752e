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

/* Trampolines into the file's own on_report(), to be repeated for each copy: of torch 2.x and, with signed totals, of 1.x. */
#define LP_C10_REPORTS(copy)                                                                                           \
    static void report_##copy(void *block, int64_t bytes, size_t allocated, size_t reserved, lp_c10_device device) {   \
        on_report(LP_ORIGINAL(lp_c10_report_fn, report_originals, copy), block, bytes, allocated, reserved, device);   \
    }                                                                                                                  \
    static void old_report_##copy(void *block, int64_t bytes, size_t allocated, size_t reserved,                       \
                                  lp_c10_device device) {                                                              \
        on_report(LP_ORIGINAL(lp_c10_report_fn, old_report_originals, copy), block, bytes, allocated, reserved,        \
                  device);                                                                                             \
    }

/* c10::DeviceType; builds for ROCm say CUDA too. */
enum { LP_C10_CPU = 0, LP_C10_CUDA = 1 };

#endif
