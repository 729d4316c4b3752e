#include "base/rawmem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"  // lp_lock

/* Each block is preceded by its size, in a header that keeps the alignment. */
typedef union header {
    size_t bytes;
    max_align_t align;
} header;

static _Atomic uint64_t block_bytes;

#define MAP_MAX 4096
static lp_lock map_lock = LP_LOCK_INIT(LP_RANK_RAWMEM);
static struct map {
    void *address;
    size_t bytes;
} maps[MAP_MAX];
static size_t map_count;

#ifdef LP_FAULT_INJECTION
_Atomic long lp_raw_fail_after = -1;

static int must_fail(void) {
    if (atomic_load(&lp_raw_fail_after) < 0) {
        return 0;
    }
    return atomic_fetch_sub(&lp_raw_fail_after, 1) <= 0 ? (atomic_store(&lp_raw_fail_after, 0), 1) : 0;
}
#else
#define must_fail() 0
#endif

void *lp_raw_malloc(size_t bytes) {
    if (must_fail() || bytes > SIZE_MAX - sizeof(header)) {
        return NULL;
    }
    header *block = malloc(sizeof(header) + bytes);
    if (block == NULL) {
        return NULL;
    }
    block->bytes = bytes;
    atomic_fetch_add_explicit(&block_bytes, bytes, memory_order_relaxed);
    return block + 1;
}

void *lp_raw_calloc(size_t count, size_t bytes) {
    if (bytes != 0 && count > SIZE_MAX / bytes) {
        return NULL;
    }
    void *block = lp_raw_malloc(count * bytes);
    if (block != NULL) {
        memset(block, 0, count * bytes);
    }
    return block;
}

void *lp_raw_realloc(void *old, size_t bytes) {
    if (old == NULL) {
        return lp_raw_malloc(bytes);
    }
    header *block = (header *)old - 1;
    size_t old_bytes = block->bytes;
    if (must_fail() || bytes > SIZE_MAX - sizeof(header)) {
        return NULL;
    }
    block = realloc(block, sizeof(header) + bytes);
    if (block == NULL) {
        return NULL;
    }
    block->bytes = bytes;
    atomic_fetch_add_explicit(&block_bytes, bytes - old_bytes, memory_order_relaxed);
    return block + 1;
}

void lp_raw_free(void *old) {
    if (old == NULL) {
        return;
    }
    header *block = (header *)old - 1;
    atomic_fetch_sub_explicit(&block_bytes, block->bytes, memory_order_relaxed);
    free(block);
}

static void remember_map(void *address, size_t bytes) {
    lp_lock_take(&map_lock);
    if (map_count < MAP_MAX) {
        maps[map_count++] = (struct map){address, bytes};
    }
    lp_lock_release(&map_lock);
}

void *lp_raw_map(size_t bytes) {
    if (must_fail()) {
        return NULL;
    }
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
        return NULL;
    }
    remember_map(address, bytes);
    return address;
}

void lp_raw_unmap(void *address, size_t bytes) {
    lp_lock_take(&map_lock);
    for (size_t i = 0; i < map_count; i++) {
        if (maps[i].address == address) {
            maps[i] = maps[--map_count];
            break;
        }
    }
    lp_lock_release(&map_lock);
    munmap(address, bytes);
}

void lp_raw_map_discard(void *address, size_t bytes) {
    madvise(address, bytes, MADV_DONTNEED);
}

static uint64_t resident_bytes(const struct map *map, size_t page_bytes) {
    enum { CHUNK = 4096 };
    unsigned char resident[CHUNK];
    uint64_t pages = 0;
    for (size_t done = 0; done < map->bytes; done += CHUNK * page_bytes) {
        size_t rest = map->bytes - done;
        size_t length = rest < CHUNK * page_bytes ? rest : CHUNK * page_bytes;
        if (mincore((char *)map->address + done, length, (void *)resident) != 0) {
            break;
        }
        for (size_t i = 0; i < (length + page_bytes - 1) / page_bytes; i++) {
            pages += resident[i] & 1;
        }
    }
    return pages * page_bytes;
}

uint64_t lp_raw_overhead_bytes(void) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t total = atomic_load_explicit(&block_bytes, memory_order_relaxed);
    lp_lock_take(&map_lock);
    for (size_t i = 0; i < map_count; i++) {
        total += resident_bytes(&maps[i], page_bytes);
    }
    lp_lock_release(&map_lock);
    return total;
}
