/* Patches the allocating functions everywhere, for as long as it is asked for. The inside flag keeps the probe's
 * own calls out. */
#include "native/hook_heap.h"

#ifdef __linux__

#include <dlfcn.h>
#include <string.h>
#include <sys/types.h>  // off_t

#include "base/preload.h"         // lp_preload_behind
#include "native/ffi_calls.h" // LP_FFI_TRAMPOLINE
#include "native/hook.h"          // LP_TRAMPOLINES
#include "native/hook_preload.h"  // lp_preloaded_begin
#include "native/native.h"        // lp_native_pin
#include "native/samples.h"       // lp_samples_born

#define CALLER __builtin_return_address(0)

/* ---- blocks ---- */

typedef void *(*malloc_fn)(size_t bytes);
typedef void *(*calloc_fn)(size_t count, size_t bytes);
typedef void *(*realloc_fn)(void *block, size_t bytes);
typedef void *(*aligned_fn)(size_t alignment, size_t bytes);
typedef int (*posix_memalign_fn)(void **out_block, size_t alignment, size_t bytes);
typedef void (*free_fn)(void *block);
static _Atomic(void *) malloc_originals[LP_SLOT_COPIES], calloc_originals[LP_SLOT_COPIES];
static _Atomic(void *) realloc_originals[LP_SLOT_COPIES], free_originals[LP_SLOT_COPIES];
static _Atomic(void *) aligned_originals[LP_SLOT_COPIES], memalign_originals[LP_SLOT_COPIES];
static _Atomic(void *) posix_originals[LP_SLOT_COPIES];
/* PyMem_Raw*() of extension modules, as zlib's: what the interpreter asks malloc for on its own is counted elsewhere. */
static _Atomic(void *) raw_malloc_originals[LP_SLOT_COPIES], raw_calloc_originals[LP_SLOT_COPIES];
static _Atomic(void *) raw_realloc_originals[LP_SLOT_COPIES];

static inline void *on_malloc(malloc_fn original, size_t bytes, const void *caller) {
    void *block = original(bytes);
    lp_samples_born(block, bytes, caller);
    return block;
}

static inline void *on_calloc(calloc_fn original, size_t count, size_t bytes, const void *caller) {
    void *block = original(count, bytes);
    lp_samples_born(block, count * bytes, caller);
    return block;
}

/* The death is recorded first: after the original, another thread may own the address.  A block that could not be
 * resized lives on unseen, which is no leak. */
static inline void *on_realloc(realloc_fn original, void *old, size_t bytes, const void *caller) {
    (void)lp_samples_died(old);
    void *block = original(old, bytes);
    lp_samples_born(block, bytes, caller);
    return block;
}

static inline void *on_aligned(int copy, size_t alignment, size_t bytes, const void *caller) {
    void *block = LP_ORIGINAL(aligned_fn, aligned_originals, copy)(alignment, bytes);
    lp_samples_born(block, bytes, caller);
    return block;
}

static inline void *on_memalign(int copy, size_t alignment, size_t bytes, const void *caller) {
    void *block = LP_ORIGINAL(aligned_fn, memalign_originals, copy)(alignment, bytes);
    lp_samples_born(block, bytes, caller);
    return block;
}

static inline int on_posix(int copy, void **out_block, size_t alignment, size_t bytes, const void *caller) {
    int error = LP_ORIGINAL(posix_memalign_fn, posix_originals, copy)(out_block, alignment, bytes);
    if (error == 0) {
        lp_samples_born(*out_block, bytes, caller);
    }
    return error;
}

static inline void on_free(int copy, void *block) {
    (void)lp_samples_died(block);
    LP_ORIGINAL(free_fn, free_originals, copy)(block);
}

/* ---- maps ---- */

typedef void *(*mmap_fn)(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
typedef int (*munmap_fn)(void *address, size_t bytes);
static _Atomic(void *) mmap_originals[LP_SLOT_COPIES], mmap64_originals[LP_SLOT_COPIES];
static _Atomic(void *) munmap_originals[LP_SLOT_COPIES];

static inline int on_munmap(int copy, void *block, size_t bytes) {
    (void)lp_samples_died(block);
    return LP_ORIGINAL(munmap_fn, munmap_originals, copy)(block, bytes);
}

/* ---- trampolines ---- */

#define LP_ALLOCATORS(prefix, copy)                                                                                    \
    static void *prefix##malloc_##copy(size_t n) {                                                                     \
        return on_malloc(LP_ORIGINAL(malloc_fn, prefix##malloc_originals, copy), n, CALLER);                           \
    }                                                                                                                  \
    static void *prefix##calloc_##copy(size_t count, size_t n) {                                                       \
        return on_calloc(LP_ORIGINAL(calloc_fn, prefix##calloc_originals, copy), count, n, CALLER);                    \
    }                                                                                                                  \
    static void *prefix##realloc_##copy(void *old, size_t n) {                                                         \
        return on_realloc(LP_ORIGINAL(realloc_fn, prefix##realloc_originals, copy), old, n, CALLER);                   \
    }
#define LP_X(copy)                                                                                                     \
    LP_ALLOCATORS(, copy)                                                                                              \
    LP_ALLOCATORS(raw_, copy)                                                                                          \
    static void *aligned_##copy(size_t a, size_t n) { return on_aligned(copy, a, n, CALLER); }                         \
    static void *memalign_##copy(size_t a, size_t n) { return on_memalign(copy, a, n, CALLER); }                       \
    static int posix_##copy(void **out, size_t a, size_t n) { return on_posix(copy, out, a, n, CALLER); }              \
    static void free_##copy(void *block) { on_free(copy, block); }                                                     \
    static void *mmap_##copy(void *at, size_t n, int protection, int flags, int file, off_t offset) {                  \
        void *block = LP_ORIGINAL(mmap_fn, mmap_originals, copy)(at, n, protection, flags, file, offset);              \
        lp_samples_mapped(block, n, protection, flags, CALLER);                                                        \
        return block;                                                                                                  \
    }                                                                                                                  \
    static void *mmap64_##copy(void *at, size_t n, int protection, int flags, int file, off_t offset) {                \
        void *block = LP_ORIGINAL(mmap_fn, mmap64_originals, copy)(at, n, protection, flags, file, offset);            \
        lp_samples_mapped(block, n, protection, flags, CALLER);                                                        \
        return block;                                                                                                  \
    }                                                                                                                  \
    static int munmap_##copy(void *block, size_t n) { return on_munmap(copy, block, n); }
LP_FOR_COPIES(LP_X)
#undef LP_X

/* ---- calls by a pointer, as of ctypes ---- */

static _Atomic(void *) ffi_originals[LP_SLOT_COPIES];
static lp_function redirected(lp_function callee);
LP_FOR_COPIES(LP_FFI_TRAMPOLINE)

/* ---- slots ---- */

/* C++'s new and delete call malloc and free through slots of their own library. */
static const lp_slot_target targets[] = {
    {"malloc", LP_TRAMPOLINES(malloc), malloc_originals},
    {"calloc", LP_TRAMPOLINES(calloc), calloc_originals},
    {"aligned_alloc", LP_TRAMPOLINES(aligned), aligned_originals},
    {"memalign", LP_TRAMPOLINES(memalign), memalign_originals},
    {"posix_memalign", LP_TRAMPOLINES(posix), posix_originals},
    {"mmap", LP_TRAMPOLINES(mmap), mmap_originals},
    {"mmap64", LP_TRAMPOLINES(mmap64), mmap64_originals},
    {"PyMem_RawMalloc", LP_TRAMPOLINES(raw_malloc), raw_malloc_originals},
    {"PyMem_RawCalloc", LP_TRAMPOLINES(raw_calloc), raw_calloc_originals},
    {"PyMem_RawRealloc", LP_TRAMPOLINES(raw_realloc), raw_realloc_originals},
    {"realloc", LP_TRAMPOLINES(realloc), realloc_originals},
    {"free", LP_TRAMPOLINES(free), free_originals},
    {"munmap", LP_TRAMPOLINES(munmap), munmap_originals},
    {"ffi_call", LP_TRAMPOLINES(ffi), ffi_originals},
};
#define TARGET_COUNT (sizeof(targets) / sizeof(targets[0]))
enum { BIRTHS = 11 };  /* realloc is one too */

/* The trampoline of an allocating function that a library has a pointer to; no slot leads to it.  Or the shim's: of the C
 * library's own handle, dlsym() gives what stands behind it. */
static lp_function redirected(lp_function callee) {
    if (!lp_samples_are_on()) {
        return callee;
    }
    for (size_t i = 0; i < TARGET_COUNT; i++) {
        for (size_t copy = 0; copy < LP_SLOT_COPIES; copy++) {
            if (atomic_load_explicit(&targets[i].originals[copy], memory_order_acquire) == (void *)callee) {
                return lp_as_function(targets[i].trampolines[copy]);
            }
        }
    }
    void *shim = lp_preloaded_instead_of((void *)callee);
    return shim == NULL ? callee : lp_as_function(shim);
}

/* `allocator_base`: of a library that serves malloc in the place of the C library's. */
static uintptr_t interpreter_base, allocator_base;

static uintptr_t base_of(const void *address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? (uintptr_t)info.dli_fbase : 0;
}

/* Where a program at a fixed address begins, its load bias is 0. */
static int holds(const lp_elf_image *image, uintptr_t base) {
    return base != 0 && lp_elf_contains(image, (const void *)base);
}

static uintptr_t find_allocator(void) {
    void *shim = lp_preload_behind("malloc"), *served = shim != NULL ? shim : dlsym(RTLD_DEFAULT, "malloc");
    uintptr_t base = base_of(served);
    return base == base_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")) || base == interpreter_base ? 0 : base;
}

/* Blocks of the interpreter, of arrays and of tensors are counted by other hooks; their deaths may be of others' blocks.
 * The loader runs before and below everything; what an allocator maps is given out as blocks. */
static lp_slot_role role_of(const lp_elf_image *image, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    if (lp_slots_leave_alone(image, path) || holds(image, allocator_base)) {
        return LP_SLOT_NOTHING;
    }
    int is_served = strncmp(name, "libc10", strlen("libc10")) == 0 ||
                    strncmp(name, "_multiarray_umath.", strlen("_multiarray_umath.")) == 0;
    return is_served || holds(image, interpreter_base) ? LP_SLOT_DEATHS : LP_SLOT_ALL;
}

static lp_slot_set slots = {.role = role_of, .targets = targets, .target_count = TARGET_COUNT, .birth_count = BIRTHS};

lp_status lp_heap_begin(uint64_t mean_bytes, const void *interpreter) {
    LP_ASSERT_GIL();
    if (lp_samples_are_on()) {
        lp_samples_raise_mean(mean_bytes);
        return LP_OK;
    }
    interpreter_base = base_of(interpreter);
    if (interpreter_base == 0) {
        return LP_UNSUPPORTED;
    }
    allocator_base = find_allocator();
    lp_native_pin();
    lp_status status = lp_samples_begin(mean_bytes, lp_preloaded_counts);
    if (status == LP_OK) {
        (void)lp_slots_patch(&slots);
        lp_preloaded_begin(role_of);
    }
    return status;
}

void lp_heap_refresh(void) {
    LP_ASSERT_GIL();
    if (lp_samples_are_on()) {
        (void)lp_slots_patch(&slots);
        lp_preloaded_refresh(role_of);
    }
}

const char *lp_heap_library_of(const void *address) {
    LP_ASSERT_GIL();
    uintptr_t at = (uintptr_t)address;
    for (size_t i = 0; i < slots.object_count; i++) {
        const lp_slot_object *object = &slots.found_objects[i];
        if (at >= object->start && at < object->end) {
            return object->path;
        }
    }
    return NULL;
}

size_t lp_heap_end(void) {
    LP_ASSERT_GIL();
    lp_preloaded_end();
    lp_samples_end();
    return lp_slots_unpatch(&slots);
}

#else

lp_status lp_heap_begin(uint64_t mean_bytes, const void *interpreter) {
    (void)mean_bytes, (void)interpreter;
    return LP_UNSUPPORTED;
}

void lp_heap_refresh(void) {}

const char *lp_heap_library_of(const void *address) {
    (void)address;
    return NULL;
}

size_t lp_heap_end(void) { return 0; }

#endif
