#include "process/resident.h"

#ifdef __linux__

#include <stddef.h>
#include <sys/mman.h>      // mincore
#include <sys/resource.h>  // getrusage
#include <unistd.h>

#include "process/numbers.h"  // LP_MINCORE_PAGES

uint64_t lp_untouched_bytes(uint64_t address, uint64_t bytes) {
    unsigned char is_there[LP_MINCORE_PAGES];
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), untouched = 0;
    uint64_t at = (address + page_bytes - 1) / page_bytes, end = (address + bytes) / page_bytes;
    while (at < end) {
        uint64_t count = end - at < LP_MINCORE_PAGES ? end - at : LP_MINCORE_PAGES;
        if (mincore((void *)(uintptr_t)(at * page_bytes), count * page_bytes, is_there) != 0) {
            return untouched;
        }
        for (uint64_t i = 0; i < count; i++) {
            untouched += (is_there[i] & 1) == 0 ? page_bytes : 0;
        }
        at += count;
    }
    return untouched;
}

uint64_t lp_thread_touched_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_minflt * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

#else

uint64_t lp_untouched_bytes(uint64_t address, uint64_t bytes) {
    (void)address, (void)bytes;
    return 0;
}

uint64_t lp_thread_touched_bytes(void) { return 0; }

#endif
