/* Pages of a forked child, counted from its parent. */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/pagemap.h"
#include "process/proc_memory.h"

enum { PAGES = 4000, STRIDE = 3 };

static size_t page_bytes;

static lp_page page_at(const char *memory, size_t number, uint64_t kinds) {
    return (lp_page){(uintptr_t)(memory + number * page_bytes) / page_bytes, kinds};
}

static void test_pages_are_sorted_and_joined(void) {
    lp_page pages[] = {{9, 1}, {4, 2}, {9, 4}, {1, 1}, {4, 2}, {1000000000000, 8}};
    size_t count = sizeof(pages) / sizeof(pages[0]);
    CHECK(lp_pages_merge(pages, &count) == LP_OK && count == 4);
    CHECK(pages[0].number == 1 && pages[1].number == 4 && pages[2].number == 9 && pages[3].number == 1000000000000);
    CHECK(pages[1].kinds == 2 && pages[2].kinds == 5);
    CHECK(lp_pages_with(pages, count, 1) == 2 && lp_pages_with(pages, count, 6) == 2 &&
          lp_pages_with(pages, count, 16) == 0);
    count = 0;
    CHECK(lp_pages_merge(pages, &count) == LP_OK && count == 0);
}

/* A child that writes to every STRIDE-th page, says so, and waits to be ended. */
static pid_t start_writer(char *memory, int *out_done) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < PAGES; i += STRIDE) {
            memory[i * page_bytes] = 2;
        }
        CHECK(write(ends[1], "x", 1) == 1);
        pause();
        _exit(0);
    }
    close(ends[1]);
    *out_done = ends[0];
    return child;
}

static void test_written_pages_are_private(void) {
    static lp_page pages[PAGES];
    lp_page_counts counts;
    lp_proc_memory memory_of_child;
    char *memory = mmap(NULL, PAGES * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), byte;
    madvise(memory, PAGES * page_bytes, MADV_NOHUGEPAGE);
    memset(memory, 1, (PAGES - 1) * page_bytes);   /* the last page is never touched */
    for (size_t i = 0; i < PAGES; i++) {
        pages[i] = page_at(memory, i, i % 2 == 0 ? 1 : 1ull << 63);
    }
    int done;
    pid_t child = start_writer(memory, &done);
    CHECK(read(done, &byte, 1) == 1);
    CHECK(lp_pagemap_count(child, pages, PAGES, &counts) == LP_OK);
    uint64_t written = (PAGES + STRIDE - 1) / STRIDE;
    CHECK(counts.pages == PAGES);
    CHECK(counts.private_pages == written);
    CHECK(counts.present == PAGES - 1 + ((PAGES - 1) % STRIDE == 0));
    CHECK(counts.pages_of[0] == PAGES / 2 && counts.pages_of[63] == PAGES / 2 && counts.pages_of[5] == 0);
    CHECK(counts.private_of[0] + counts.private_of[63] == written);
    CHECK(counts.private_of[0] == (PAGES + 2 * STRIDE - 1) / (2 * STRIDE));
    CHECK(lp_proc_rollup_of(child, &memory_of_child) == LP_OK);
    CHECK(memory_of_child.private_bytes >= written * page_bytes && memory_of_child.rss >= PAGES * page_bytes);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(done);
    CHECK(lp_pagemap_count(child, pages, PAGES, &counts) == LP_SYSTEM);
    CHECK(lp_proc_rollup_of(child, &memory_of_child) == LP_SYSTEM);
    munmap(memory, PAGES * page_bytes);
}

static void test_shared_memory_is_never_private(void) {
    static lp_page pages[8];
    lp_page_counts counts;
    char *memory = mmap(NULL, 8 * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, 8 * page_bytes);
    for (size_t i = 0; i < 8; i++) {
        pages[i] = page_at(memory, i, 1);
    }
    CHECK(lp_pagemap_count(getpid(), pages, 8, &counts) == LP_OK);
    CHECK(counts.present == 8 && counts.private_pages == 0);
    munmap(memory, 8 * page_bytes);
}

int main(void) {
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    test_pages_are_sorted_and_joined();
    test_written_pages_are_private();
    test_shared_memory_is_never_private();
    return 0;
}
