#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rawmem.h"

static void test_blocks_are_counted_as_asked_for(void) {
    uint64_t before = lp_raw_overhead_bytes();
    char *a = lp_raw_malloc(1000), *b = lp_raw_calloc(10, 50);
    CHECK(a != NULL && b != NULL && lp_raw_overhead_bytes() == before + 1500);
    CHECK((uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0);
    for (int i = 0; i < 500; i++) {
        CHECK(b[i] == 0);
    }
    memset(a, 7, 1000);
    a = lp_raw_realloc(a, 5000);
    CHECK(a != NULL && a[999] == 7 && lp_raw_overhead_bytes() == before + 5500);
    a = lp_raw_realloc(a, 10);
    CHECK(a != NULL && a[9] == 7 && lp_raw_overhead_bytes() == before + 510);
    lp_raw_free(a);
    lp_raw_free(b);
    lp_raw_free(NULL);
    CHECK(lp_raw_overhead_bytes() == before);
}

static void test_sizes_that_overflow_are_refused(void) {
    uint64_t before = lp_raw_overhead_bytes();
    CHECK(lp_raw_malloc(SIZE_MAX - 3) == NULL);
    CHECK(lp_raw_calloc(SIZE_MAX / 2, 4) == NULL);
    CHECK(lp_raw_calloc(1, SIZE_MAX - 3) == NULL);
    void *block = lp_raw_malloc(8);
    CHECK(lp_raw_realloc(block, SIZE_MAX - 3) == NULL);
    lp_raw_free(block);
    CHECK(lp_raw_overhead_bytes() == before);
}

/* Sizes on both sides of the one from which a block is a map of its own: contents and counts follow every change. */
static void test_large_blocks_keep_their_contents(void) {
    uint64_t before = lp_raw_overhead_bytes(), by_malloc = lp_raw_block_bytes();
    static const size_t size[] = {100, 5u << 20, 40u << 20, 6u << 20, (4u << 20) - 1, 4u << 20, 1000, 33u << 20};
    unsigned char *block = lp_raw_malloc(10);
    memset(block, 9, 10);
    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
        block = lp_raw_realloc(block, size[i]);
        CHECK(block != NULL && (uintptr_t)block % 16 == 0 && block[0] == 9 && block[9] == 9 &&
              (i == 0 || block[99] == 8));
        block[size[i] - 1] = 7;
        block[99] = 8;
        CHECK(lp_raw_overhead_bytes() == before + size[i]);
        CHECK(lp_raw_block_bytes() == by_malloc + (size[i] < 4u << 20 ? size[i] : 0));
    }
    lp_raw_free(block);
    block = lp_raw_calloc(5u << 20, 2);
    for (size_t i = 0; i < 10u << 20; i += 1000) {
        CHECK(block[i] == 0);
    }
    lp_raw_free(block);
    CHECK(lp_raw_overhead_bytes() == before && lp_raw_block_bytes() == by_malloc);
}

static void test_maps_cost_what_is_touched(void) {
    uint64_t before = lp_raw_overhead_bytes();
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 64u << 20;
    char *map = lp_raw_map(bytes);
    CHECK(map != NULL);
    CHECK(lp_raw_overhead_bytes() == before);
    madvise(map, bytes, MADV_NOHUGEPAGE);
    map[0] = map[bytes - 1] = map[bytes / 2] = 1;
    CHECK(lp_raw_overhead_bytes() == before + 3 * page);
    lp_raw_map_discard(map, bytes);
    CHECK(map[0] == 0 && map[bytes - 1] == 0 && map[bytes / 2] == 0);
    lp_raw_unmap(map, bytes);
    CHECK(lp_raw_overhead_bytes() == before);
}

static void test_pages_of_sparse_maps_are_counted_once_they_were_written(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 64u << 20;
    uint64_t before = lp_raw_map_bytes();
    char *map = lp_raw_map_sparse(bytes);
    CHECK(map != NULL && lp_raw_map_bytes() == before);
    map[0] = map[bytes / 2] = 1;
    CHECK(lp_raw_map_bytes() == before); /* as of the count before */
    lp_raw_wrote_sparse();
    CHECK(lp_raw_map_bytes() == before + 2 * page);
    lp_raw_unmap(map, bytes);
    CHECK(lp_raw_map_bytes() == before);
}

static void test_maps_that_are_filled_are_counted_to_their_end(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 64u << 20, filled = 3u << 20;
    uint64_t before = lp_raw_map_bytes();
    char *map = lp_raw_map_filled(bytes);
    CHECK(map != NULL && lp_raw_map_bytes() == before);
    for (size_t at = 0; at < filled; at += page) {
        map[at] = 1;
    }
    CHECK(lp_raw_map_bytes() == before + filled);
    map[bytes / 2] = 1; /* is no part of it */
    CHECK(lp_raw_map_bytes() == before + filled);
    lp_raw_unmap(map, bytes);
    CHECK(lp_raw_map_bytes() == before);
}

static void test_slots_of_maps_are_used_again(void) {
    uint64_t before = lp_raw_overhead_bytes();
    for (int i = 0; i < 20000; i++) {
        char *map = lp_raw_map(4096);
        CHECK(map != NULL);
        *map = 1;
        CHECK(i % 1000 != 0 || lp_raw_overhead_bytes() > before);
        lp_raw_unmap(map, 4096);
    }
    CHECK(lp_raw_overhead_bytes() == before);
}

static void test_requests_fail_on_demand(void) {
    lp_raw_fail_after = 2;
    void *a = lp_raw_malloc(1), *b = lp_raw_calloc(1, 1);
    CHECK(a != NULL && b != NULL);
    CHECK(lp_raw_malloc(1) == NULL && lp_raw_calloc(1, 1) == NULL && lp_raw_map(4096) == NULL);
    CHECK(lp_raw_realloc(a, 100) == NULL && lp_raw_realloc(NULL, 100) == NULL);
    lp_raw_fail_after = -1;
    lp_raw_free(a);
    lp_raw_free(b);
}

int main(void) {
    test_blocks_are_counted_as_asked_for();
    test_sizes_that_overflow_are_refused();
    test_large_blocks_keep_their_contents();
    test_maps_cost_what_is_touched();
    test_pages_of_sparse_maps_are_counted_once_they_were_written();
    test_maps_that_are_filled_are_counted_to_their_end();
    test_slots_of_maps_are_used_again();
    test_requests_fail_on_demand();
    return 0;
}
