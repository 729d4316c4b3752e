/* A file that is made is noted in a ring without a lock, on any thread; a listing moves it into a table. */
#include "native/hook_names.h"

#ifdef __linux__

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>     // O_CREAT
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"          // lp_map
#include "native/capture.h"    // lp_capture_site
#include "native/elf_slots.h"  // lp_slot_set
#include "native/ffi_calls.h"  // LP_FFI_TRAMPOLINE
#include "native/hook.h"       // LP_TRAMPOLINES
#include "native/native.h"     // lp_native_pin

typedef struct made_file {
    _Atomic uint64_t inode;  /* 0: being written, or read already */
    lp_site_id site;
} made_file;

/* Files beyond those of one round of the ring between two listings are not known as made here. */
static made_file ring[LP_NAMES_MOST];
static _Atomic uint64_t written;
static uint64_t read_until;
static lp_map known, asked_for;
static _Atomic int is_on;

static void note(uint64_t inode) {
    made_file *file = &ring[atomic_fetch_add_explicit(&written, 1, memory_order_relaxed) % LP_NAMES_MOST];
    file->site = lp_capture_site();
    atomic_store_explicit(&file->inode, inode, memory_order_release);
}

static int is_segment(const char *path) {
    static const char folder[] = "/dev/shm/";
    return path != NULL && strncmp(path, folder, sizeof(folder) - 1) == 0;
}

static void note_descriptor(int descriptor) {
    struct stat found;
    int error = errno;
    if (fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
        note((uint64_t)found.st_ino);
    }
    errno = error;
}

static int on_opened(int descriptor, int flags, int is_memory) {
    if (LP_UNLIKELY(is_memory && descriptor >= 0 && (flags & O_CREAT) != 0) &&
        atomic_load_explicit(&is_on, memory_order_relaxed)) {
        note_descriptor(descriptor);
    }
    return descriptor;
}

/* ---- trampolines: open() takes its mode where the third argument of any function is ---- */

typedef int (*open_fn)(const char *path, int flags, mode_t mode);
static _Atomic(void *) shm_open_originals[LP_SLOT_COPIES], open_originals[LP_SLOT_COPIES],
    open64_originals[LP_SLOT_COPIES];

#define LP_X(copy)                                                                                                     \
    static int shm_open_##copy(const char *name, int flags, mode_t mode) {                                             \
        return on_opened(LP_ORIGINAL(open_fn, shm_open_originals, copy)(name, flags, mode), flags, 1);                 \
    }                                                                                                                  \
    static int open_##copy(const char *path, int flags, mode_t mode) {                                                 \
        return on_opened(LP_ORIGINAL(open_fn, open_originals, copy)(path, flags, mode), flags, is_segment(path));      \
    }                                                                                                                  \
    static int open64_##copy(const char *path, int flags, mode_t mode) {                                               \
        return on_opened(LP_ORIGINAL(open_fn, open64_originals, copy)(path, flags, mode), flags, is_segment(path));    \
    }
LP_FOR_COPIES(LP_X)
#undef LP_X

/* ---- calls by a pointer, as of ctypes ---- */

/* Each as the C library has it: no library need import it. */
static open_fn direct_shm_open, direct_open;

static int shm_open_by_pointer(const char *name, int flags, mode_t mode) {
    return on_opened(direct_shm_open(name, flags, mode), flags, 1);
}

static int open_by_pointer(const char *path, int flags, mode_t mode) {
    return on_opened(direct_open(path, flags, mode), flags, is_segment(path));
}

static lp_function redirected(lp_function callee) {
    if (callee != NULL && callee == (lp_function)direct_shm_open) {
        return (lp_function)shm_open_by_pointer;
    }
    return callee != NULL && callee == (lp_function)direct_open ? (lp_function)open_by_pointer : callee;
}

static _Atomic(void *) ffi_originals[LP_SLOT_COPIES];
LP_FOR_COPIES(LP_FFI_TRAMPOLINE)

static const lp_slot_target targets[] = {
    {"shm_open", LP_TRAMPOLINES(shm_open), shm_open_originals},
    {"open", LP_TRAMPOLINES(open), open_originals},
    {"open64", LP_TRAMPOLINES(open64), open64_originals},
    {"ffi_call", LP_TRAMPOLINES(ffi), ffi_originals},
};
#define TARGET_COUNT (sizeof(targets) / sizeof(targets[0]))

static lp_slot_role role_of(const lp_elf_image *image, const char *path) {
    return lp_slots_leave_alone(image, path) ? LP_SLOT_NOTHING : LP_SLOT_ALL;
}

static lp_slot_set slots = {.role = role_of, .targets = targets, .target_count = TARGET_COUNT};

lp_status lp_names_begin(void) {
    LP_ASSERT_GIL();
    direct_shm_open = (open_fn)lp_as_function(dlsym(RTLD_DEFAULT, "shm_open"));
    direct_open = (open_fn)lp_as_function(dlsym(RTLD_DEFAULT, "open"));
    lp_native_pin();
    (void)lp_slots_patch(&slots);
    atomic_store_explicit(&is_on, 1, memory_order_relaxed);
    return LP_OK;
}

size_t lp_names_end(void) {
    LP_ASSERT_GIL();
    atomic_store_explicit(&is_on, 0, memory_order_relaxed);
    return lp_slots_unpatch(&slots);
}

/* ---- what is known: without memory a file is not ---- */

static void remember(lp_map *map, uint64_t inode, lp_site_id site) {
    uint32_t *value = lp_map_put(map, inode, NULL);
    if (value != NULL) {
        *value = site;
    }
}

void lp_names_learn(void) {
    LP_ASSERT_GIL();
    uint64_t until = atomic_load_explicit(&written, memory_order_acquire);
    uint64_t from = until - read_until > LP_NAMES_MOST ? until - LP_NAMES_MOST : read_until;
    for (; from != until; from++) {
        made_file *file = &ring[from % LP_NAMES_MOST];
        uint64_t inode = atomic_exchange_explicit(&file->inode, 0, memory_order_acquire);
        if (inode != 0) {
            remember(&known, inode, file->site);
        }
    }
    read_until = until;
}

int lp_names_find(uint64_t inode, lp_site_id *out_site) {
    LP_ASSERT_GIL();
    *out_site = lp_map_get(&known, inode, LP_SITE_UNKNOWN);
    if (*out_site == LP_SITE_UNKNOWN) {
        return 0;
    }
    remember(&asked_for, inode, *out_site);
    return 1;
}

void lp_names_forget_rest(void) {
    LP_ASSERT_GIL();
    lp_map kept = asked_for;
    asked_for = known;
    known = kept;
    lp_map_clear(&asked_for);
}

#else

lp_status lp_names_begin(void) { return LP_UNSUPPORTED; }

size_t lp_names_end(void) { return 0; }

void lp_names_learn(void) {}

int lp_names_find(uint64_t inode, lp_site_id *out_site) {
    (void)inode;
    *out_site = LP_SITE_UNKNOWN;
    return 0;
}

void lp_names_forget_rest(void) {}

#endif
