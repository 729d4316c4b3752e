/* mincore() calls a page in swap absent; the map of pages, which tells, is read only where some of the machine's swap is
 * in use. */
#include "base/pages.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/numbers.h" // LP_PAGES_READ

#ifdef __linux__
#include <fcntl.h>
#include <sys/sysinfo.h>

static int is_swap_used(void) {
    struct sysinfo info;
    return sysinfo(&info) == 0 && info.freeswap != info.totalswap;
}

/* 1 if all of them were told. */
static int read_some(int file, uint64_t first, size_t pages, unsigned char *out_filled) {
    uint64_t entry[LP_PAGES_READ];
    size_t bytes = pages * sizeof(*entry);
    if (pread(file, entry, bytes, (off_t)(first * sizeof(*entry))) != (ssize_t)bytes) {
        return 0;
    }
    for (size_t i = 0; i < pages; i++) {
        out_filled[i] = (entry[i] & LP_PAGES_FILLED) != 0;
    }
    return 1;
}

static int read_pagemap(const void *address, size_t pages, unsigned char *out_filled) {
    uint64_t first = (uintptr_t)address / (uint64_t)sysconf(_SC_PAGESIZE);
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), is_read = file >= 0;
    for (size_t done = 0; done < pages && is_read; done += LP_PAGES_READ) {
        size_t rest = pages - done;
        is_read = read_some(file, first + done, rest < LP_PAGES_READ ? rest : LP_PAGES_READ, out_filled + done);
    }
    if (file >= 0) {
        close(file);
    }
    return is_read;
}
#else
static int is_swap_used(void) { return 0; }
static int read_pagemap(const void *address, size_t pages, unsigned char *out_filled) {
    return (void)address, (void)pages, (void)out_filled, 0;
}
#endif

void lp_pages_filled(const void *address, size_t pages, unsigned char *out_filled) {
    size_t bytes = pages * (size_t)sysconf(_SC_PAGESIZE);
    int is_told = is_swap_used() ? read_pagemap(address, pages, out_filled)
                                 : mincore((void *)(uintptr_t)address, bytes, (void *)out_filled) == 0;
    if (!is_told) {
        memset(out_filled, 1, pages);
    }
}
