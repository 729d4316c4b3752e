/* Owns the layer over the arena allocator. It stays in the chain as a pass-through once others are above it. */
#include "python/births/hook_arena.h"

/* original: what we call; written before the hook is reachable.  The hook keeps the original
 * ctx, so that any mix of old and new words of the struct stays callable. */
static struct {
    PyObjectArenaAllocator original;
    int is_layered;  /* our functions are in the chain */
    int is_counting;
    int64_t held_bytes;  /* atomic: interpreters with a GIL of their own share the arenas */
} arenas;

static void *arena_alloc(void *ctx, size_t size) {
    void *arena = arenas.original.alloc(ctx, size);
    if (arena != NULL && arenas.is_counting) {
        __atomic_fetch_add(&arenas.held_bytes, (int64_t)size, __ATOMIC_RELAXED);
    }
    return arena;
}

static void arena_free(void *ctx, void *arena, size_t size) {
    arenas.original.free(ctx, arena, size);
    if (arenas.is_counting) {
        __atomic_fetch_sub(&arenas.held_bytes, (int64_t)size, __ATOMIC_RELAXED);
    }
}

/* Who saved the allocator before us may have put it back, and ours is in no chain any more. */
static int is_put_back(void) {
    PyObjectArenaAllocator top;
    PyObject_GetArenaAllocator(&top);
    return top.ctx == arenas.original.ctx && top.alloc == arenas.original.alloc && top.free == arenas.original.free;
}

void lp_hook_arena_install(void) {
    LP_ASSERT_GIL();
    if (arenas.is_counting) {
        return;
    }
    __atomic_store_n(&arenas.held_bytes, 0, __ATOMIC_RELAXED);
    if (!arenas.is_layered || is_put_back()) {
        PyObject_GetArenaAllocator(&arenas.original);
        PyObjectArenaAllocator hook = {arenas.original.ctx, arena_alloc, arena_free};
        PyObject_SetArenaAllocator(&hook);
        arenas.is_layered = 1;
    }
    arenas.is_counting = 1;
}

void lp_hook_arena_uninstall(void) {
    LP_ASSERT_GIL();
    PyObjectArenaAllocator top;
    arenas.is_counting = 0;
    PyObject_GetArenaAllocator(&top);
    if (arenas.is_layered && top.alloc == arena_alloc) {
        PyObject_SetArenaAllocator(&arenas.original);
        arenas.is_layered = 0;
    }
}

int lp_hook_arena_is_active(void) { return arenas.is_counting; }

int64_t lp_hook_arena_bytes(void) { return __atomic_load_n(&arenas.held_bytes, __ATOMIC_RELAXED); }
