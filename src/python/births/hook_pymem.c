/* Owns the layers over the object and memory allocators. The original is called with its own context, and a
 * birth is stamped only once it has given the block; the GIL. */
#include "python/births/hook_pymem.h"

#include <string.h>

#if defined(__linux__) || defined(__APPLE__)
#include <dlfcn.h>          // dladdr
#define HAS_DLADDR 1
#endif

#include "ledger/alive.h"    // lp_alive_died
#include "ledger/backing.h"  // lp_backing_note
#include "python/births/frames.h"   // lp_frames_born_quick

typedef enum hook_state { STATE_INERT, STATE_ACTIVE, STATE_LOOKING } hook_state;

/* Sizes that nobody asks for by chance while a hook looks whether it is reached, and whether it sees deaths.  The first is
 * that of a large block: what was not quick has forgotten the size of others. */
#define DEATH_BYTES 331
#define LOOK_BYTES (LP_BACKING_LARGE_BYTES + DEATH_BYTES)

/* The allocators that the hooks wrap; ctx stays in CPython's table. */
static struct {
    PyMemAllocatorEx original_obj, original_mem;
    hook_state state[2];
    lp_shadow quick_root[2];  /* lp_frames_quick_root() */
    int notes_large;  /* births are stamped, by this hook or by events */
    const void *seen_block;
    int obj_realloc_was_reached;  /* the hook is in the chain */
    int mem_realloc_was_reached;  /* the same, by a block that is not small */
} hooked;

static void note_seen(const void *block, size_t bytes, lp_pymem_domain domain) {
    if (hooked.state[domain] == STATE_LOOKING && bytes == LOOK_BYTES) {
        hooked.seen_block = block;
    }
}

static inline int is_small(size_t bytes) { return bytes <= LP_SHADOW_SMALL_BYTES; }

/* A small block has its stamp elsewhere; a large one is noted. */
static inline int is_special(size_t bytes) {
    return bytes - (LP_SHADOW_SMALL_BYTES + 1) >= LP_BACKING_LARGE_BYTES - LP_SHADOW_SMALL_BYTES;
}

/* What could not be done quickly; a small block that backs a container has no stamp. */
static LP_NOINLINE void *record_slow(void *block, size_t bytes, lp_pymem_domain domain) {
    if (block == NULL || hooked.state[domain] != STATE_ACTIVE) {
        note_seen(block, bytes, domain);
    } else if (domain == LP_PYMEM_OBJ) {
        lp_stamp stamp = lp_frames_stamp();
        lp_alive_born(block, is_small(bytes), stamp);
        if (bytes > LP_BACKING_LARGE_BYTES) {
            lp_backing_note(LP_STAMP_SITE(stamp), bytes);
        }
    } else if (!is_small(bytes)) {
        lp_stamp stamp = lp_frames_stamp();
        lp_alive_grown(block, stamp);
        if (bytes > LP_BACKING_LARGE_BYTES) {
            lp_backing_note(LP_STAMP_SITE(stamp), bytes);
        }
    }
    return block;
}

/* For what is not small. */
static LP_NOINLINE void *stamp(void *block, lp_pymem_domain domain) {
    return record_slow(block, LP_SHADOW_SMALL_BYTES + 1, domain);
}

static inline int record_quick(const void *block, lp_pymem_domain domain) {
    lp_shadow root = hooked.quick_root[domain];
    return domain == LP_PYMEM_OBJ ? lp_frames_born_quick(root, block) : lp_frames_grown_quick(root, block);
}

/* Nothing of the arguments is used after the original's call: what is not quick ends in a jump. */
#define LP_DEFINE_FUNCTION(name, function, domain, bytes, parameters, arguments)                                       \
    static void *name##_##function parameters {                                                                        \
        if (LP_UNLIKELY(is_special(bytes))) {                                                                          \
            return record_slow(hooked.original_##name.function arguments, bytes, domain);                              \
        }                                                                                                              \
        void *result = hooked.original_##name.function arguments;                                                      \
        return LP_LIKELY(record_quick(result, domain)) ? result : stamp(result, domain);                               \
    }

LP_DEFINE_FUNCTION(obj, malloc, LP_PYMEM_OBJ, bytes, (void *ctx, size_t bytes), (ctx, bytes))
LP_DEFINE_FUNCTION(obj, calloc, LP_PYMEM_OBJ, n *bytes, (void *ctx, size_t n, size_t bytes), (ctx, n, bytes))
LP_DEFINE_FUNCTION(mem, malloc, LP_PYMEM_MEM, bytes, (void *ctx, size_t bytes), (ctx, bytes))
LP_DEFINE_FUNCTION(mem, calloc, LP_PYMEM_MEM, n *bytes, (void *ctx, size_t n, size_t bytes), (ctx, n, bytes))

static int is_of_earlier_step(lp_stamp stamp) {
    return LP_STAMP_SITE(stamp) != LP_SITE_UNKNOWN && LP_STAMP_EPOCH(stamp) != LP_STAMP_EPOCH(lp_epoch_bits);
}

static LP_NOINLINE void *mem_realloc_special(void *ctx, void *block, size_t bytes) {
    hooked.mem_realloc_was_reached = 1;
    lp_stamp before = bytes > LP_BACKING_LARGE_BYTES ? lp_shadow_get(block, 0) : 0;
    void *result = record_slow(hooked.original_mem.realloc(ctx, block, bytes), bytes, LP_PYMEM_MEM);
    if (result != NULL && is_of_earlier_step(before)) {
        lp_backing_join(lp_frames_site(), LP_STAMP_SITE(before));
    }
    return result;
}

static void *mem_realloc(void *ctx, void *block, size_t bytes) {
    if (LP_UNLIKELY(is_special(bytes))) {
        return mem_realloc_special(ctx, block, bytes);
    }
    void *result = hooked.original_mem.realloc(ctx, block, bytes);
    return LP_LIKELY(record_quick(result, LP_PYMEM_MEM)) ? result : stamp(result, LP_PYMEM_MEM);
}

/* The old block is dead wherever the new one lies; nobody can have taken its place yet: GIL. */
static void *obj_realloc(void *ctx, void *block, size_t bytes) {
    lp_stamp before = bytes > LP_BACKING_LARGE_BYTES && hooked.notes_large ? lp_shadow_get(block, 0) : 0;
    int is_extended = LP_STAMP_IS_BIRTH(before) && is_of_earlier_step(before);
    void *result = hooked.original_obj.realloc(ctx, block, bytes);
    hooked.obj_realloc_was_reached = 1;
    if (result != NULL) {
        lp_alive_died(block);
        if (bytes > LP_BACKING_LARGE_BYTES && hooked.notes_large && hooked.state[LP_PYMEM_OBJ] != STATE_ACTIVE) {
            lp_backing_note(lp_frames_site(), bytes);
        }
    }
    record_slow(result, bytes, LP_PYMEM_OBJ);
    if (result != NULL && is_extended) {
        lp_backing_note_extended(lp_frames_site());
        lp_backing_join(lp_frames_site(), LP_STAMP_SITE(before));
    }
    return result;
}

/* An object has no length yet as its creation event comes: its block has. */
static LP_NOINLINE void *obj_malloc_large(void *ctx, size_t bytes) {
    void *result = hooked.original_obj.malloc(ctx, bytes);
    if (result != NULL && hooked.notes_large) {
        lp_backing_note(lp_frames_site(), bytes);
    }
    return result;
}

static void *obj_malloc_noting(void *ctx, size_t bytes) {
    if (LP_UNLIKELY(bytes > LP_BACKING_LARGE_BYTES)) {
        return obj_malloc_large(ctx, bytes);
    }
    return hooked.original_obj.malloc(ctx, bytes);
}

static LP_NOINLINE void obj_free_slow(void *ctx, void *block) {
    lp_alive_died(block);
    hooked.original_obj.free(ctx, block);
}

/* Where the hook does not serve there is no stamp. */
static void obj_free(void *ctx, void *block) {
    uintptr_t leaf = lp_shadow_entry(lp_shadow_blocks, block, 0);
    if (LP_LIKELY(leaf != 0) && LP_UNLIKELY(!lp_alive_died_quick(lp_shadow_place_from(leaf, block, 0)))) {
        obj_free_slow(ctx, block);
        return;
    }
    hooked.original_obj.free(ctx, block);
}

static PyMemAllocatorDomain python_domain(lp_pymem_domain domain) {
    return domain == LP_PYMEM_OBJ ? PYMEM_DOMAIN_OBJ : PYMEM_DOMAIN_MEM;
}

static PyMemAllocatorEx *original(lp_pymem_domain domain) {
    return domain == LP_PYMEM_OBJ ? &hooked.original_obj : &hooked.original_mem;
}

static PyMemAllocatorEx top(lp_pymem_domain domain) {
    PyMemAllocatorEx now;
    PyMem_GetAllocator(python_domain(domain), &now);
    return now;
}

static int is_on_top(lp_pymem_domain domain) {
    return domain == LP_PYMEM_OBJ ? top(domain).free == obj_free : top(domain).malloc == mem_malloc;
}

/* A hook that was to see deaths only sees no birth: off it goes, so that a whole one can be put on. */
static int is_whole(lp_pymem_domain domain) { return domain == LP_PYMEM_MEM || top(LP_PYMEM_OBJ).malloc == obj_malloc; }

static int growth_is_in_chain(void) {
    void *block = PyMem_Malloc(LOOK_BYTES);
    hooked.mem_realloc_was_reached = 0;
    void *resized = PyMem_Realloc(block, LOOK_BYTES + 1);
    PyMem_Free(resized == NULL ? block : resized);
    return hooked.mem_realloc_was_reached;
}

static lp_pymem_place place_of_unseen(lp_pymem_domain domain) {
    /* Once more in a chain that it is in, it would call itself. */
    int is_in_chain = domain == LP_PYMEM_OBJ ? lp_hook_pymem_deaths_place() != LP_PYMEM_ABSENT : growth_is_in_chain();
    return is_in_chain ? LP_PYMEM_SHIFTED : LP_PYMEM_ABSENT;
}

static void set_state(lp_pymem_domain domain, hook_state now) {
    hooked.state[domain] = now;
    hooked.quick_root[domain] = lp_frames_quick_root(now == STATE_ACTIVE);
}

lp_pymem_place lp_hook_pymem_place(lp_pymem_domain domain) {
    LP_ASSERT_GIL();
    if (is_on_top(domain) && !is_whole(domain)) {
        lp_hook_pymem_uninstall(domain);
    }
    if (is_on_top(domain)) {
        return LP_PYMEM_ON_TOP;
    }
    hook_state before = hooked.state[domain];
    set_state(domain, STATE_LOOKING);
    hooked.seen_block = NULL;
    void *block = domain == LP_PYMEM_OBJ ? PyObject_Malloc(LOOK_BYTES) : PyMem_Malloc(LOOK_BYTES);
    /* A debug layer above asks for more bytes than its caller did, and shifts the block. */
    lp_pymem_place place = hooked.seen_block == NULL    ? place_of_unseen(domain)
                           : hooked.seen_block == block ? LP_PYMEM_BENEATH
                                                        : LP_PYMEM_SHIFTED;
    if (domain == LP_PYMEM_OBJ) {
        PyObject_Free(block);
    } else {
        PyMem_Free(block);
    }
    set_state(domain, before);
    return place;
}

/* 1 if the stamp of a block goes as it is freed. */
static int free_erases(void *block) {
    lp_stamp *place = block == NULL ? NULL : lp_shadow_make_place(block, 0);
    if (place != NULL) {
        lp_alive_died(block);
        *place = LP_STAMP(LP_SITE_UNKNOWN, 1);
    }
    PyObject_Free(block);
    int is_erased = place != NULL && *place == 0;
    if (place != NULL) {
        *place = 0;
    }
    return is_erased;
}

lp_pymem_place lp_hook_pymem_deaths_place(void) {
    LP_ASSERT_GIL();
    if (is_on_top(LP_PYMEM_OBJ)) {
        return LP_PYMEM_ON_TOP;
    }
    void *block = PyObject_Malloc(DEATH_BYTES);
    hooked.obj_realloc_was_reached = 0;
    void *resized = PyObject_Realloc(block, DEATH_BYTES + 1);
    int is_in_chain = hooked.obj_realloc_was_reached;
    int is_seen = free_erases(resized == NULL ? block : resized);
    return !is_in_chain ? LP_PYMEM_ABSENT : is_seen ? LP_PYMEM_BENEATH : LP_PYMEM_SHIFTED;
}

int lp_hook_pymem_sees_deaths(void) {
    lp_pymem_place place = lp_hook_pymem_deaths_place();
    return place == LP_PYMEM_ON_TOP || place == LP_PYMEM_BENEATH;
}

void lp_hook_pymem_install(lp_pymem_domain domain) {
    LP_ASSERT_GIL();
    PyMemAllocatorEx now = top(domain), hook = now;
    *original(domain) = now;
    set_state(domain, hooked.state[domain]);   /* there was no root yet, perhaps */
    if (domain == LP_PYMEM_OBJ) {
        hook.malloc = obj_malloc, hook.calloc = obj_calloc, hook.realloc = obj_realloc, hook.free = obj_free;
    } else {
        hook.malloc = mem_malloc, hook.calloc = mem_calloc, hook.realloc = mem_realloc;
    }
    PyMem_SetAllocator(python_domain(domain), &hook);
}

void lp_hook_pymem_install_deaths(void) {
    LP_ASSERT_GIL();
    PyMemAllocatorEx hook = hooked.original_obj = top(LP_PYMEM_OBJ);
    hook.realloc = obj_realloc, hook.free = obj_free;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &hook);
}

void lp_hook_pymem_follow_large(int wanted) {
    LP_ASSERT_GIL();
    if (is_on_top(LP_PYMEM_OBJ) && !is_whole(LP_PYMEM_OBJ)) {
        PyMemAllocatorEx hook = top(LP_PYMEM_OBJ);
        hook.malloc = wanted ? obj_malloc_noting : hooked.original_obj.malloc;
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &hook);
    }
}

void lp_hook_pymem_uninstall(lp_pymem_domain domain) {
    LP_ASSERT_GIL();
    set_state(domain, STATE_INERT);
    if (is_on_top(domain)) {
        PyMem_SetAllocator(python_domain(domain), original(domain));
    }
}

void lp_hook_pymem_note_large(int wanted) { hooked.notes_large = wanted; }

void lp_hook_pymem_set_active(lp_pymem_domain domain, int active) {
    set_state(domain, active ? STATE_ACTIVE : STATE_INERT);
}

static int tracemalloc_is_tracing(void) {
    PyObject *module = PyImport_ImportModule("_tracemalloc");
    PyObject *tracing = module == NULL ? NULL : PyObject_CallMethod(module, "is_tracing", NULL);
    int result = tracing != NULL && PyObject_IsTrue(tracing) == 1;
    Py_XDECREF(tracing);
    Py_XDECREF(module);
    PyErr_Clear();
    return result;
}

/* 1 if the allocator of a domain lies in a library whose path has this word. */
static int is_allocator_of(lp_pymem_domain domain, const char *word) {
#ifdef HAS_DLADDR
    Dl_info info;
    void *(*function)(void *, size_t) = top(domain).malloc;
    return dladdr(*(void **)&function, &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, word) != NULL;
#else
    (void)domain, (void)word;
    return 0;
#endif
}

const char *lp_hook_pymem_why_not(const char **out_text) {
    if (tracemalloc_is_tracing()) {
        *out_text = "tracemalloc is tracing, and the allocator hook of leakprobe can't be put on top of it; "
                    "call tracemalloc.stop() first, or start leakprobe before tracemalloc.";
        return "tracemalloc_active";
    }
    if (is_allocator_of(LP_PYMEM_OBJ, "memray") || is_allocator_of(LP_PYMEM_MEM, "memray")) {
        *out_text = "memray is tracing Python's allocators, and the allocator hook of leakprobe can't be put on top of "
                    "it; end memray's tracker first, or start leakprobe before memray.";
        return "memray_active";
    }
    return NULL;
}
