/* The kernel's count of the pages that this thread made it give out. */
#include "process/resident.h"

#ifdef __linux__

#include <sys/resource.h>  // getrusage
#include <unistd.h>

uint64_t lp_thread_touched_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_minflt * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

#else

uint64_t lp_thread_touched_bytes(void) { return 0; }

#endif
