/* Each allocator's own words for what it has given out; nothing here decides which of them serves. */
#include "process/malloc_reads.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- glibc: struct mallinfo2 of 2.33, so that older headers will do ---- */

typedef struct glibc_mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} glibc_mallinfo2;

static glibc_mallinfo2 (*mallinfo2_fn)(void);

void lp_bind_glibc(void *mallinfo2) { memcpy(&mallinfo2_fn, &mallinfo2, sizeof(mallinfo2_fn)); }

lp_status lp_read_glibc(lp_malloc_info *info) {
    glibc_mallinfo2 now = mallinfo2_fn();
    info->in_use = now.uordblks + now.hblkhd;
    info->mapped = now.hblkhd;
    info->free_bytes = now.fordblks;
    info->top_bytes = now.keepcost;
    info->system_bytes = info->in_use + info->free_bytes;
    return LP_OK;
}

/* ---- jemalloc: mallctl(), whose statistics are those of the last time that "epoch" was written ---- */

static int (*mallctl_fn)(const char *name, void *old, size_t *old_length, void *new_value, size_t new_length);

void lp_bind_jemalloc(void *mallctl) { memcpy(&mallctl_fn, &mallctl, sizeof(mallctl_fn)); }

static int jemalloc_number(const char *name, size_t *out_value) {
    size_t length = sizeof(*out_value);
    return mallctl_fn(name, out_value, &length, NULL, 0);
}

lp_status lp_read_jemalloc(lp_malloc_info *info) {
    uint64_t epoch = 1;
    size_t allocated = 0, resident = 0, mapped = 0, retained = 0;
    if (mallctl_fn("epoch", NULL, NULL, &epoch, sizeof(epoch)) != 0 ||
        jemalloc_number("stats.allocated", &allocated) != 0 || jemalloc_number("stats.resident", &resident) != 0 ||
        jemalloc_number("stats.mapped", &mapped) != 0) {
        return LP_UNSUPPORTED;
    }
    (void)jemalloc_number("stats.retained", &retained);   /* from 5.0 on */
    size_t taken = mapped > resident ? mapped : resident;
    info->in_use = allocated;
    info->free_bytes = resident > allocated ? resident - allocated : 0;
    info->system_bytes = (uint64_t)taken + retained;
    return LP_OK;
}

/* ---- tcmalloc: properties by name ---- */

static int (*property_fn)(const char *name, size_t *out_value);

void lp_bind_tcmalloc(void *get_numeric_property) { memcpy(&property_fn, &get_numeric_property, sizeof(property_fn)); }

lp_status lp_read_tcmalloc(lp_malloc_info *info) {
    size_t allocated = 0, heap = 0, unmapped = 0;
    if (!property_fn("generic.current_allocated_bytes", &allocated) || !property_fn("generic.heap_size", &heap) ||
        !property_fn("tcmalloc.pageheap_unmapped_bytes", &unmapped)) {
        return LP_UNSUPPORTED;
    }
    info->in_use = allocated;
    info->free_bytes = heap > allocated + unmapped ? heap - allocated - unmapped : 0;
    info->system_bytes = heap;
    return LP_OK;
}

/* ---- mimalloc: committed bytes are all that it says of the whole process ---- */

static void (*process_info_fn)(size_t *elapsed_ms, size_t *user_ms, size_t *system_ms, size_t *current_rss,
                               size_t *peak_rss, size_t *current_commit, size_t *peak_commit, size_t *page_faults);

void lp_bind_mimalloc(void *process_info) { memcpy(&process_info_fn, &process_info, sizeof(process_info_fn)); }

lp_status lp_read_mimalloc(lp_malloc_info *info) {
    size_t unused, committed = 0;
    process_info_fn(&unused, &unused, &unused, &unused, &unused, &committed, &unused, &unused);
    if (committed == 0) {
        return LP_UNSUPPORTED;
    }
    info->in_use = committed;
    info->system_bytes = committed;
    return LP_OK;
}
