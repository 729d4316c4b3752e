/* Reads another process's pagemap in pieces. A process that went or may not be read is a status, never a crash. */
#include "process/pagemap.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_malloc
#include "base/sort.h"    // lp_sort_pairs

_Static_assert(sizeof(lp_page) == sizeof(lp_sort_pair), "pages are sorted as pairs");

lp_status lp_pages_merge(lp_page *pages, size_t *count) {
    lp_sort_pair *scratch = lp_raw_malloc((*count + 1) * sizeof(*scratch));
    if (scratch == NULL) {
        return LP_NO_MEMORY;
    }
    lp_sort_pairs((lp_sort_pair *)pages, scratch, *count);
    lp_raw_free(scratch);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (kept != 0 && pages[kept - 1].number == pages[i].number) {
            pages[kept - 1].kinds |= pages[i].kinds;
        } else {
            pages[kept++] = pages[i];
        }
    }
    *count = kept;
    return LP_OK;
}

uint64_t lp_pages_with(const lp_page *pages, size_t count, uint64_t kinds) {
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += (pages[i].kinds & kinds) != 0;
    }
    return found;
}

#ifdef __linux__

#include <fcntl.h>
#include <stdio.h>   // snprintf
#include <unistd.h>

/* Entries read at once; gaps up to this are read through. */
#define WINDOW 1024
#define PRESENT (1ull << 63)
#define SWAPPED (1ull << 62)
#define FILE_OR_SHARED (1ull << 61)
#define EXCLUSIVE (1ull << 56)

static void count_page(const lp_page *page, uint64_t entry, lp_page_counts *counts) {
    int is_private =
        (entry & SWAPPED) != 0 || (entry & (PRESENT | FILE_OR_SHARED | EXCLUSIVE)) == (PRESENT | EXCLUSIVE);
    counts->pages++;
    counts->present += (entry & (PRESENT | SWAPPED)) != 0;
    counts->private_pages += is_private;
    for (uint64_t kinds = page->kinds; kinds != 0; kinds &= kinds - 1) {
        int kind = __builtin_ctzll(kinds);
        counts->pages_of[kind]++;
        counts->private_of[kind] += is_private;
    }
}

/* Count the pages of one window, which begins at the first of them; how many they were, 0 on failure. */
static size_t count_window(int file, const lp_page *pages, size_t count, lp_page_counts *counts) {
    uint64_t entry[WINDOW], first = pages[0].number;
    size_t in_window = 1;
    while (in_window < count && pages[in_window].number - first < WINDOW) {
        in_window++;
    }
    size_t entries = (size_t)(pages[in_window - 1].number - first) + 1;
    ssize_t got = pread(file, entry, entries * sizeof(*entry), (off_t)(first * sizeof(*entry)));
    if (got < 0) {
        return 0;
    }
    memset((char *)entry + got, 0, sizeof(entry) - (size_t)got);
    for (size_t i = 0; i < in_window; i++) {
        count_page(&pages[i], entry[pages[i].number - first], counts);
    }
    return in_window;
}

lp_status lp_pagemap_count(int pid, const lp_page *pages, size_t count, lp_page_counts *out_counts) {
    char path[64];
    memset(out_counts, 0, sizeof(*out_counts));
    snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return LP_SYSTEM;
    }
    lp_status status = LP_OK;
    for (size_t done = 0; done < count && status == LP_OK;) {
        size_t in_window = count_window(file, pages + done, count - done, out_counts);
        done += in_window;
        status = in_window == 0 ? LP_SYSTEM : LP_OK;
    }
    close(file);
    return status;
}

#else

lp_status lp_pagemap_count(int pid, const lp_page *pages, size_t count, lp_page_counts *out_counts) {
    (void)pid, (void)pages, (void)count;
    memset(out_counts, 0, sizeof(*out_counts));
    return LP_UNSUPPORTED;
}

#endif
