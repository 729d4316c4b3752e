#include "python/births/hook_arena.h"

/* original: what we call; written before the hook is reachable.  The hook keeps the original
 * ctx, so that any mix of old and new words of the struct stays callable. */
static PyObjectArenaAllocator original;
static int is_layered;      /* our functions are in the chain */
static int is_counting;
static int64_t held_bytes;  /* atomic: interpreters with a GIL of their own share the arenas */

static void *arena_alloc(void *ctx, size_t size) {
    void *arena = original.alloc(ctx, size);
    if (arena != NULL && is_counting) {
        __atomic_fetch_add(&held_bytes, (int64_t)size, __ATOMIC_RELAXED);
    }
    return arena;
}

static void arena_free(void *ctx, void *arena, size_t size) {
    original.free(ctx, arena, size);
    if (is_counting) {
        __atomic_fetch_sub(&held_bytes, (int64_t)size, __ATOMIC_RELAXED);
    }
}

void lp_hook_arena_install(void) {
    LP_ASSERT_GIL();
    if (is_counting) {
        return;
    }
    __atomic_store_n(&held_bytes, 0, __ATOMIC_RELAXED);
    if (!is_layered) {
        PyObject_GetArenaAllocator(&original);
        PyObjectArenaAllocator hook = {original.ctx, arena_alloc, arena_free};
        PyObject_SetArenaAllocator(&hook);
        is_layered = 1;
    }
    is_counting = 1;
}

void lp_hook_arena_uninstall(void) {
    LP_ASSERT_GIL();
    PyObjectArenaAllocator top;
    is_counting = 0;
    PyObject_GetArenaAllocator(&top);
    if (is_layered && top.alloc == arena_alloc) {
        PyObject_SetArenaAllocator(&original);
        is_layered = 0;
    }
}

int lp_hook_arena_is_active(void) { return is_counting; }

int64_t lp_hook_arena_bytes(void) { return __atomic_load_n(&held_bytes, __ATOMIC_RELAXED); }
