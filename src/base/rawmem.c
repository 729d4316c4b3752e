/* Owns the count of the probe's bytes and the table of its mappings. No lock: what fork copies is whole at any
 * time. */
#include "base/rawmem.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/numbers.h"  // LP_PAGES_ASKED

/* Each block is preceded by its size, in a header that keeps the alignment. */
typedef union header {
    size_t bytes;
    max_align_t align;
} header;

static _Atomic uint64_t block_bytes, mapped_bytes;  /* of blocks that malloc serves, and of the others */

/* Live maps: address => bytes.  A slot is taken by compare-and-swap from NULL to CLAIMED and
 * published by its address, so that no lock is needed; maps beyond the table are not counted. */
#define MAP_MAX 8192
#define CLAIMED ((void *)1)
enum { OF_CALLER, OF_BLOCK, SPARSE, FILLED };
static struct map {
    void *_Atomic address;
    _Atomic size_t bytes;
    _Atomic int kind;
    _Atomic uint64_t counted_at,
        counted;  /* of a sparse one: its resident bytes, and how often any was written before */
} maps[MAP_MAX];
static _Atomic size_t map_end;  /* slots from here on were never used */
static _Atomic uint64_t sparse_writes = 1;

#ifdef LP_FAULT_INJECTION
_Atomic long lp_raw_fail_after = -1;
_Atomic long lp_raw_fail_most = LONG_MAX;
_Atomic unsigned long lp_raw_request_count, lp_raw_failed_count;

/* 1 if the counter is above 0, which it is lowered by then. */
static int count_down(_Atomic long *counter) {
    long left = atomic_load(counter);
    while (left > 0 && !atomic_compare_exchange_weak(counter, &left, left - 1)) {
    }
    return left > 0;
}

static int must_fail(void) {
    atomic_fetch_add(&lp_raw_request_count, 1);
    if (atomic_load(&lp_raw_fail_after) < 0 || count_down(&lp_raw_fail_after) || !count_down(&lp_raw_fail_most)) {
        return 0;
    }
    atomic_fetch_add(&lp_raw_failed_count, 1);
    return 1;
}
#else
#define must_fail() 0
#endif

void lp_raw_map_in_large_pages(void *address, size_t bytes) {
#ifdef MADV_HUGEPAGE
    madvise(address, bytes, MADV_HUGEPAGE);
#else
    (void)address, (void)bytes;
#endif
}

/* ---- the table of maps ---- */

static size_t used_slots(void) {
    size_t end = atomic_load(&map_end);
    return end < MAP_MAX ? end : MAP_MAX;
}

/* A slot of a map that is gone, else a new one; NULL if the table is full. */
static struct map *claim_slot(void) {
    for (size_t i = 0; i < used_slots(); i++) {
        void *expected = NULL;
        if (atomic_load_explicit(&maps[i].address, memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&maps[i].address, &expected, CLAIMED)) {
            return &maps[i];
        }
    }
    while (atomic_load(&map_end) < MAP_MAX) {
        size_t i = atomic_fetch_add(&map_end, 1);
        void *expected = NULL;
        if (i < MAP_MAX && atomic_compare_exchange_strong(&maps[i].address, &expected, CLAIMED)) {
            return &maps[i];
        }
    }
    return NULL;
}

static void add_map(void *address, size_t bytes, int kind) {
    struct map *slot = claim_slot();
    if (slot != NULL) {
        atomic_store(&slot->bytes, bytes);
        atomic_store(&slot->kind, kind);
        atomic_store(&slot->counted_at, 0);
        atomic_store(&slot->address, address);
    }
}

static void drop_map(void *address) {
    for (size_t i = 0; i < used_slots(); i++) {
        void *expected = address;
        if (atomic_compare_exchange_strong(&maps[i].address, &expected, NULL)) {
            break;
        }
    }
}

/* ---- blocks in maps of their own ---- */

/* From this size on a block is a map: it grows without a copy, leaves nothing behind in malloc's heap,
 * and in large pages, which spare page faults and misses of the translation buffer. */
#ifdef MREMAP_MAYMOVE
#define MAPPED_FROM ((size_t)4 << 20)
#else
#define MAPPED_FROM SIZE_MAX
#endif

static int is_mapped(size_t bytes) { return bytes >= MAPPED_FROM; }

#ifdef MREMAP_MAYMOVE
static size_t map_length(size_t bytes) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(header) + bytes + page_bytes - 1) & ~(page_bytes - 1);
}

static header *use_map(void *address, size_t bytes) {
    if (address == MAP_FAILED) {
        return NULL;
    }
    lp_raw_map_in_large_pages(address, map_length(bytes));
    add_map(address, map_length(bytes), OF_BLOCK);
    atomic_fetch_add_explicit(&mapped_bytes, bytes, memory_order_relaxed);
    return address;
}

#define LARGE_PAGE ((size_t)2 << 20)

/* Only what begins at a multiple of a large page is given any, and moves without its pages being split. */
static void *map_aligned(size_t length) {
    char *from = mmap(NULL, length + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) {
        return MAP_FAILED;
    }
    char *aligned = (char *)(((uintptr_t)from + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1));
    size_t before = (size_t)(aligned - from);
    if (before > 0) {
        munmap(from, before);
    }
    munmap(aligned + length, LARGE_PAGE - before);
    return aligned;
}

static header *new_mapped(size_t bytes) { return use_map(map_aligned(map_length(bytes)), bytes); }

/* In its place if there is room behind it. */
static void *move_map(void *block, size_t old_length, size_t length) {
    void *moved = mremap(block, old_length, length, 0);
    if (moved != MAP_FAILED) {
        return moved;
    }
    void *to = map_aligned(length);
    if (to == MAP_FAILED) {
        return MAP_FAILED;
    }
    moved = mremap(block, old_length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (moved == MAP_FAILED) {
        munmap(to, length);
    }
    return moved;
}

static header *resize_mapped(header *block, size_t bytes) {
    size_t old_bytes = block->bytes, old_length = map_length(old_bytes);
    drop_map(block);
    header *moved = use_map(move_map(block, old_length, map_length(bytes)), bytes);
    if (moved == NULL) {
        add_map(block, old_length, OF_BLOCK);
    } else {
        atomic_fetch_sub_explicit(&mapped_bytes, old_bytes, memory_order_relaxed);
    }
    return moved;
}

static void free_mapped(header *block) {
    drop_map(block);
    atomic_fetch_sub_explicit(&mapped_bytes, block->bytes, memory_order_relaxed);
    munmap(block, map_length(block->bytes));
}
#else
static header *new_mapped(size_t bytes) { return (void)bytes, NULL; }
static header *resize_mapped(header *block, size_t bytes) { return (void)block, (void)bytes, NULL; }
static void free_mapped(header *block) { (void)block; }
#endif

/* ---- blocks ---- */

static header *count_malloc(header *block, size_t bytes) {
    if (block != NULL) {
        atomic_fetch_add_explicit(&block_bytes, bytes, memory_order_relaxed);
    }
    return block;
}

static header *new_block(size_t bytes) {
    return is_mapped(bytes) ? new_mapped(bytes) : count_malloc(malloc(sizeof(header) + bytes), bytes);
}

static void *hand_out(header *block, size_t bytes) {
    if (block == NULL) {
        return NULL;
    }
    block->bytes = bytes;
    return block + 1;
}

/* Room for the header and for rounding up to pages. */
static int is_too_large(size_t bytes) { return bytes > SIZE_MAX / 2; }

void *lp_raw_malloc(size_t bytes) {
    if (must_fail() || is_too_large(bytes)) {
        return NULL;
    }
    return hand_out(new_block(bytes), bytes);
}

void *lp_raw_calloc(size_t count, size_t bytes) {
    if (must_fail() || (bytes != 0 && count > SIZE_MAX / 2 / bytes)) {
        return NULL;
    }
    size_t all = count * bytes;
    return hand_out(is_mapped(all) ? new_mapped(all) : count_malloc(calloc(1, sizeof(header) + all), all), all);
}

/* Between malloc and a map: by a copy. */
static void *move_block(void *old, size_t old_bytes, size_t bytes) {
    void *moved = hand_out(new_block(bytes), bytes);
    if (moved != NULL) {
        memcpy(moved, old, old_bytes < bytes ? old_bytes : bytes);
        lp_raw_free(old);
    }
    return moved;
}

void *lp_raw_realloc(void *old, size_t bytes) {
    if (old == NULL) {
        return lp_raw_malloc(bytes);
    }
    header *block = (header *)old - 1;
    size_t old_bytes = block->bytes;
    if (must_fail() || is_too_large(bytes)) {
        return NULL;
    }
    if (is_mapped(old_bytes) != is_mapped(bytes)) {
        return move_block(old, old_bytes, bytes);
    }
    if (is_mapped(bytes)) {
        return hand_out(resize_mapped(block, bytes), bytes);
    }
    block = count_malloc(realloc(block, sizeof(header) + bytes), bytes);
    if (block != NULL) {
        atomic_fetch_sub_explicit(&block_bytes, old_bytes, memory_order_relaxed);
    }
    return hand_out(block, bytes);
}

void lp_raw_free(void *old) {
    if (old == NULL) {
        return;
    }
    header *block = (header *)old - 1;
    if (is_mapped(block->bytes)) {
        free_mapped(block);
        return;
    }
    atomic_fetch_sub_explicit(&block_bytes, block->bytes, memory_order_relaxed);
    free(block);
}

/* ---- maps of the caller ---- */

static void *map_new(size_t bytes, int kind) {
    if (must_fail()) {
        return NULL;
    }
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(address, bytes, MADV_NOHUGEPAGE); /* tables that are sparse would get 2 MiB for each page */
    add_map(address, bytes, kind);
    return address;
}

void *lp_raw_map(size_t bytes) { return map_new(bytes, OF_CALLER); }

void *lp_raw_map_sparse(size_t bytes) { return map_new(bytes, SPARSE); }

void *lp_raw_map_filled(size_t bytes) { return map_new(bytes, FILLED); }

void lp_raw_wrote_sparse(void) { atomic_fetch_add(&sparse_writes, 1); }

void lp_raw_unmap(void *address, size_t bytes) {
    drop_map(address);
    munmap(address, bytes);
}

void lp_raw_map_discard(void *address, size_t bytes) {
    if (madvise(address, bytes, MADV_DONTNEED) != 0) {
        memset(address, 0, bytes);   /* locked by mlockall() */
    }
}

static uint64_t count_resident(const unsigned char *resident, size_t pages) {
    uint64_t count = 0;
    for (size_t i = 0; i < pages; i++) {
        count += resident[i] & 1;
    }
    return count;
}

/* A map that another thread unmaps meanwhile ends the count: mincore() fails.  `is_filled`: so do many pages that are not
 * there. */
static uint64_t resident_bytes(char *address, size_t bytes, size_t page_bytes, int is_filled) {
    unsigned char resident[LP_PAGES_ASKED];
    size_t chunk = (is_filled ? LP_PAGES_OF_FILLED : LP_PAGES_ASKED) * page_bytes;
    uint64_t pages = 0, found = 1;
    for (size_t done = 0; done < bytes && (found != 0 || !is_filled); done += chunk) {
        size_t rest = bytes - done, length = rest < chunk ? rest : chunk;
        if (mincore(address + done, length, (void *)resident) != 0) {
            break;
        }
        found = count_resident(resident, (length + page_bytes - 1) / page_bytes);
        pages += found;
    }
    return pages * page_bytes;
}

uint64_t lp_raw_block_bytes(void) { return atomic_load_explicit(&block_bytes, memory_order_relaxed); }

/* The kernel is asked about each page of a map, 10 ns each: of 64 MiB and more, only once they were written to. */
static uint64_t resident_of(struct map *map, void *address, size_t page_bytes) {
    uint64_t writes = atomic_load(&sparse_writes);
    int kind = atomic_load(&map->kind);
    if (kind == SPARSE && atomic_load(&map->counted_at) == writes) {
        return atomic_load(&map->counted);
    }
    uint64_t counted = resident_bytes(address, atomic_load(&map->bytes), page_bytes, kind == FILLED);
    atomic_store(&map->counted, counted);
    atomic_store(&map->counted_at, writes);
    return counted;
}

/* Resident bytes of maps, without those of blocks if these are not wanted. */
static uint64_t resident_maps(int with_blocks) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t total = 0;
    for (size_t i = 0; i < used_slots(); i++) {
        void *address = atomic_load(&maps[i].address);
        if (address != NULL && address != CLAIMED && (with_blocks || atomic_load(&maps[i].kind) != OF_BLOCK)) {
            total += resident_of(&maps[i], address, page_bytes);
        }
    }
    return total;
}

uint64_t lp_raw_overhead_bytes(void) {
    return lp_raw_block_bytes() + atomic_load_explicit(&mapped_bytes, memory_order_relaxed) + resident_maps(0);
}

uint64_t lp_raw_map_bytes(void) { return resident_maps(1); }

uint64_t lp_raw_map_length(void) {
    uint64_t total = 0;
    for (size_t i = 0; i < used_slots(); i++) {
        void *address = atomic_load(&maps[i].address);
        total += address != NULL && address != CLAIMED ? atomic_load(&maps[i].bytes) : 0;
    }
    return total;
}
