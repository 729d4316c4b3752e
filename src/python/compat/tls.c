/* Where CPython 3.12+ keeps the thread state of each thread: a hidden thread-local variable.
 *
 * Its address is found in the TLS block of the module that holds CPython: the only word that
 * is the thread state while the thread is attached and NULL while it is not.  The distance to
 * the thread pointer is the same in every thread if the block is static TLS, which a second
 * thread confirms.  Anything unexpected leaves the offset 0, and the call in use. */
#include "python/compat/compat.h"

#if LP_HAS_TLS_SLOT

#include <link.h>     // dl_iterate_phdr
#include <pthread.h>

intptr_t lp_tstate_offset;

typedef struct tls_block {
    uintptr_t inside;     /* an address in the module that is wanted */
    char *start;          /* of this thread */
    size_t bytes;
} tls_block;

static int visit_module(struct dl_phdr_info *info, size_t size, void *arg) {
    tls_block *block = arg;
    size_t tls_bytes = 0;
    int is_wanted = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_TLS) {
            tls_bytes = header->p_memsz;
        } else if (header->p_type == PT_LOAD && block->inside - start < header->p_memsz) {
            is_wanted = 1;
        }
    }
    if (!is_wanted) {
        return 0;
    }
    if (size >= offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof(void *)) {
        block->start = info->dlpi_tls_data;
        block->bytes = tls_bytes;
    }
    return 1;
}

/* CPython's TLS block in the calling thread; start NULL if it has none. */
static tls_block find_block(void) {
    tls_block block = {.inside = (uintptr_t)(void *)&PyType_Type};
    dl_iterate_phdr(visit_module, &block);
    return block;
}

/* Words of the block that equal `wanted` and still may be the variable. */
#define CANDIDATES 16

static size_t find_words(tls_block block, const void *wanted, size_t out_offset[CANDIDATES]) {
    size_t count = 0;
    for (size_t at = 0; at + sizeof(void *) <= block.bytes && count < CANDIDATES; at += sizeof(void *)) {
        if (*(void *const volatile *)(block.start + at) == wanted) {
            out_offset[count++] = at;
        }
    }
    return count;
}

static size_t keep_words(tls_block block, const void *wanted, size_t offset[CANDIDATES], size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (*(void *const volatile *)(block.start + offset[i]) == wanted) {
            offset[kept++] = offset[i];
        }
    }
    return kept;
}

static void *distance_in_thread(void *unused) {
    (void)unused;
    tls_block block = find_block();
    return block.start == NULL ? NULL : (void *)(block.start - (char *)__builtin_thread_pointer());
}

void lp_compat_find_tstate_slot(void) {
    size_t offset[CANDIDATES];
    pthread_t thread;
    void *other_distance;
    tls_block block = find_block();
    PyThreadState *tstate = PyThreadState_Get();
    size_t count = block.start == NULL ? 0 : find_words(block, tstate, offset);
    if (count == 0 || ((uintptr_t)block.start & (sizeof(void *) - 1)) != 0) {
        return;
    }
    PyEval_SaveThread();
    count = keep_words(block, NULL, offset, count);
    int failed =
        pthread_create(&thread, NULL, distance_in_thread, NULL) != 0 || pthread_join(thread, &other_distance) != 0;
    PyEval_RestoreThread(tstate);
    count = keep_words(block, tstate, offset, count);
    intptr_t distance = block.start - (char *)__builtin_thread_pointer();
    if (count == 1 && !failed && (intptr_t)other_distance == distance) {
        lp_tstate_offset = distance + (intptr_t)offset[0];
    }
}

#else

typedef int lp_compat_tls_is_empty;

#endif
