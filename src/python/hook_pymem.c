#include "python/hook_pymem.h"

#include <string.h>

#if defined(__linux__) || defined(__APPLE__)
#include <dlfcn.h>          // dladdr
#define HAS_DLADDR 1
#endif

#include "ledger/alive.h"   // lp_alive_add
#include "python/frames.h"  // lp_frames_stamp_quick

typedef enum hook_state { STATE_INERT, STATE_ACTIVE, STATE_LOOKING } hook_state;

/* A size that nobody asks for by chance while a hook looks whether it is reached. */
#define LOOK_BYTES 331

/* The allocators that the hooks wrap; free and ctx stay in CPython's table. */
static PyMemAllocatorEx original_obj, original_mem;
static hook_state state[2];
static int is_quick[2];      /* active, and lp_frames_stamp_quick() may be used */
static const void *seen_block;

static void note_seen(const void *block, size_t bytes, lp_pymem_domain domain) {
    if (state[domain] == STATE_LOOKING && bytes == LOOK_BYTES) {
        seen_block = block;
    }
}

static LP_NOINLINE void *stamp(void *block) {
    if (block != NULL) {
        lp_frames_stamp(block, 0);
    }
    return block;
}

static LP_NOINLINE void *record(void *block, size_t bytes, lp_pymem_domain domain) {
    if (state[domain] != STATE_ACTIVE) {
        note_seen(block, bytes, domain);
    } else if (bytes > LP_SHADOW_SMALL_BYTES) {
        stamp(block);
    } else if (block != NULL && domain == LP_PYMEM_OBJ) {
        lp_frames_stamp(block, 1);
    }
    return block;
}

/* Nothing of the arguments is used after the original's call: what is not quick ends in a jump. */
#define LP_DEFINE_FUNCTION(name, function, domain, bytes, parameters, arguments)                                       \
    static void *name##_##function parameters {                                                                        \
        if (LP_UNLIKELY(!is_quick[domain] || (bytes) <= LP_SHADOW_SMALL_BYTES)) {                                      \
            return record(original_##name.function arguments, bytes, domain);                                          \
        }                                                                                                              \
        void *result = original_##name.function arguments;                                                             \
        return LP_LIKELY(lp_frames_stamp_quick(result)) ? result : stamp(result);                                      \
    }

#define LP_DEFINE_HOOK(name, domain)                                                                                   \
    LP_DEFINE_FUNCTION(name, malloc, domain, bytes, (void *ctx, size_t bytes), (ctx, bytes))                           \
    LP_DEFINE_FUNCTION(name, calloc, domain, n *bytes, (void *ctx, size_t n, size_t bytes), (ctx, n, bytes))           \
    LP_DEFINE_FUNCTION(name, realloc, domain, bytes, (void *ctx, void *block, size_t bytes), (ctx, block, bytes))

LP_DEFINE_HOOK(obj, LP_PYMEM_OBJ)
LP_DEFINE_HOOK(mem, LP_PYMEM_MEM)

/* ---- the escalation: which blocks are alive ---- */

static int follows_frees;

/* An interpreter with a GIL of its own runs at the same time, and its objects are in no census of this one. */
static inline int is_at_home(void) {
    PyThreadState *tstate = lp_tstate();
    return tstate != NULL && tstate->interp == lp_home_interpreter;
}

static inline void *note_alive(void *block) {
    if (block != NULL && follows_frees && is_at_home()) {
        lp_alive_add(block);
    }
    return block;
}

static void *obj_followed_malloc(void *ctx, size_t bytes) { return note_alive(obj_malloc(ctx, bytes)); }

static void *obj_followed_calloc(void *ctx, size_t count, size_t bytes) {
    return note_alive(obj_calloc(ctx, count, bytes));
}

static void *obj_followed_realloc(void *ctx, void *block, size_t bytes) {
    void *moved = obj_realloc(ctx, block, bytes);
    if (moved != NULL && block != NULL && follows_frees) {
        lp_alive_remove(block);
    }
    return note_alive(moved);
}

static inline void note_dead(const void *block) {
    if (block != NULL && follows_frees) {
        lp_alive_remove(block);
    }
}

static void obj_followed_free(void *ctx, void *block) {
    note_dead(block);
    original_obj.free(ctx, block);
}

/* Extensions give objects to PyMem_Free() too. */
static void mem_followed_free(void *ctx, void *block) {
    note_dead(block);
    original_mem.free(ctx, block);
}

static PyMemAllocatorDomain python_domain(lp_pymem_domain domain) {
    return domain == LP_PYMEM_OBJ ? PYMEM_DOMAIN_OBJ : PYMEM_DOMAIN_MEM;
}

static PyMemAllocatorEx *original(lp_pymem_domain domain) {
    return domain == LP_PYMEM_OBJ ? &original_obj : &original_mem;
}

static PyMemAllocatorEx top(lp_pymem_domain domain) {
    PyMemAllocatorEx now;
    PyMem_GetAllocator(python_domain(domain), &now);
    return now;
}

static int is_on_top(lp_pymem_domain domain) {
    void *(*function)(void *, size_t) = top(domain).malloc;
    return domain == LP_PYMEM_OBJ ? function == obj_malloc || function == obj_followed_malloc : function == mem_malloc;
}

static void set_state(lp_pymem_domain domain, hook_state now) {
    state[domain] = now;
    is_quick[domain] = now == STATE_ACTIVE && lp_frames_are_quick;
}

lp_pymem_place lp_hook_pymem_place(lp_pymem_domain domain) {
    LP_ASSERT_GIL();
    if (is_on_top(domain)) {
        return LP_PYMEM_ON_TOP;
    }
    hook_state before = state[domain];
    set_state(domain, STATE_LOOKING);
    seen_block = NULL;
    void *block = domain == LP_PYMEM_OBJ ? PyObject_Malloc(LOOK_BYTES) : PyMem_Malloc(LOOK_BYTES);
    /* A debug layer above asks for more bytes than its caller did, and shifts the block. */
    lp_pymem_place place = seen_block == NULL    ? LP_PYMEM_ABSENT
                           : seen_block == block ? LP_PYMEM_BENEATH
                                                 : LP_PYMEM_SHIFTED;
    if (domain == LP_PYMEM_OBJ) {
        PyObject_Free(block);
    } else {
        PyMem_Free(block);
    }
    set_state(domain, before);
    return place;
}

void lp_hook_pymem_install(lp_pymem_domain domain) {
    LP_ASSERT_GIL();
    PyMemAllocatorEx now = top(domain), hook = now;
    *original(domain) = now;
    if (domain == LP_PYMEM_OBJ) {
        hook.malloc = obj_malloc, hook.calloc = obj_calloc, hook.realloc = obj_realloc;
    } else {
        hook.malloc = mem_malloc, hook.calloc = mem_calloc, hook.realloc = mem_realloc;
    }
    PyMem_SetAllocator(python_domain(domain), &hook);
}

void lp_hook_pymem_uninstall(lp_pymem_domain domain) {
    LP_ASSERT_GIL();
    set_state(domain, STATE_INERT);
    if (is_on_top(domain)) {
        PyMem_SetAllocator(python_domain(domain), original(domain));
    }
}

int lp_hook_pymem_follow_frees(void) {
    LP_ASSERT_GIL();
    if (!is_on_top(LP_PYMEM_OBJ) || lp_alive_open() != LP_OK) {
        return 0;
    }
    PyMemAllocatorEx hook = original_obj;
    hook.malloc = obj_followed_malloc, hook.calloc = obj_followed_calloc, hook.realloc = obj_followed_realloc;
    hook.free = obj_followed_free;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &hook);
    if (is_on_top(LP_PYMEM_MEM)) {
        hook = original_mem;
        hook.malloc = mem_malloc, hook.calloc = mem_calloc, hook.realloc = mem_realloc, hook.free = mem_followed_free;
        PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &hook);
    }
    follows_frees = 1;
    return 1;
}

void lp_hook_pymem_forget_frees(void) {
    if (follows_frees) {
        follows_frees = 0;
        lp_alive_clear();
    }
}

int lp_hook_pymem_follows_frees(void) { return follows_frees; }

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
