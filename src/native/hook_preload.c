/* What the shim calls, and the libraries whose blocks other hooks count. */
#include "native/hook_preload.h"

#ifdef __linux__

#include <link.h>
#include <sys/mman.h>

#include "base/preload.h"    // lp_preload_find
#include "native/samples.h"  // lp_samples_born

typedef struct range {
    uintptr_t start, end;
} range;

/* Written with the GIL, read without: a range is there before `count` says so, and stays.  Libraries beyond the table
 * are counted twice. */
static struct {
    range left_out[LP_PRELOAD_RANGES];
    _Atomic size_t count;
    range own;
    range allocator;   /* of a malloc that is not the C library's: it calls with its locks held */
    uint64_t scanned_adds;
} libraries;

static int is_in(range where, const void *address) {
    return (uintptr_t)address - where.start < where.end - where.start;
}

int lp_preloaded_counts(const void *caller) {
    size_t count = atomic_load_explicit(&libraries.count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        if (is_in(libraries.left_out[i], caller)) {
            return 0;
        }
    }
    return 1;
}

/* ---- what the shim calls; our own calls may come with one of our locks ---- */

static void on_birth(lp_sampling *mine, const void *block, uint64_t bytes, const void *caller) {
    if (LP_LIKELY(!is_in(libraries.own, caller))) {
        lp_samples_look(mine, block, bytes, caller);
    } else {
        (void)lp_samples_is_taken(mine, bytes);
    }
}

static int is_left_alone(const void *caller) {
    return is_in(libraries.own, caller) || is_in(libraries.allocator, caller);
}

static void on_death(const void *block, const void *caller) {
    if (!is_left_alone(caller)) {
        (void)lp_samples_died(block);
    }
}

/* Touches nothing of the thread's but what the shim has there: the first touch of more allocates. */
static void on_map(lp_sampling *mine, const lp_preload_map *map, const void *caller) {
    if (!is_left_alone(caller) && lp_samples_is_map(map->block, map->protection, map->flags) &&
        lp_sampling_is_due(mine, lp_samples_filter, map->block, map->bytes)) {
        lp_samples_look(mine, map->block, map->bytes, caller);
    }
}

static const lp_preload_sampler sampler = {lp_samples_filter, on_birth, on_death, on_map};

/* ---- libraries ---- */

static void leave_out(range where) {
    size_t count = atomic_load(&libraries.count);
    for (size_t i = 0; i < count; i++) {
        if (libraries.left_out[i].start == where.start && libraries.left_out[i].end == where.end) {
            return;
        }
    }
    if (count < LP_PRELOAD_RANGES) {
        libraries.left_out[count] = where;
        atomic_store_explicit(&libraries.count, count + 1, memory_order_release);
    }
}

static int look_at(struct dl_phdr_info *info, size_t size, void *role_of) {
    lp_elf_image image = {info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
    range where;
    (void)size;
    lp_elf_range(&image, &where.start, &where.end);
    if (lp_elf_contains(&image, &sampler)) {
        libraries.own = where;
    }
    if (lp_elf_contains(&image, lp_preload_behind("malloc")) && !lp_elf_contains(&image, lp_preload_behind("mmap"))) {
        libraries.allocator = where;
    }
    if ((*(lp_role_fn *)role_of)(&image, info->dlpi_name) != LP_SLOT_ALL) {
        leave_out(where);
    }
    return 0;
}

void lp_preloaded_refresh(lp_role_fn role_of) {
    LP_ASSERT_GIL();
    uint64_t adds = lp_slots_loaded_count();
    if (lp_preload_find() != NULL && (adds == 0 || adds != libraries.scanned_adds)) {
        dl_iterate_phdr(look_at, &role_of);
        libraries.scanned_adds = adds;
    }
}

/* ---- on and off ---- */

void lp_preloaded_begin(lp_role_fn role_of) {
    LP_ASSERT_GIL();
    lp_preload *shim = lp_preload_find();
    lp_preloaded_refresh(role_of);
    if (shim != NULL) {
        atomic_store(&shim->sampler, &sampler);
    }
}

void lp_preloaded_end(void) {
    LP_ASSERT_GIL();
    lp_preload *shim = lp_preload_find();
    if (shim != NULL) {
        atomic_store(&shim->sampler, NULL);
    }
}

void *lp_preloaded_instead_of(const void *function) {
    lp_preload *shim = lp_preload_find();
    for (size_t i = 0; shim != NULL && i < LP_PRELOAD_COUNT; i++) {
        if (atomic_load_explicit(&shim->next[i], memory_order_relaxed) == function) {
            return shim->own[i];
        }
    }
    return NULL;
}

#endif
