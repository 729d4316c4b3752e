/* Which hook serves each medium: tried in order, proven by a canary, installed and taken away together. */
#include "native/native.h"

#ifdef __linux__

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "native/hook.h"  // lp_hook

#define CANARY_BYTES 4099u        /* odd, so that few other blocks have it */
#define CANARY_ROUNDING 16384u    /* allocators may round up to a page or add a header */

static lp_hook *const hooks[] = {
#define LP_X(name) &lp_hook_##name,
    LP_HOOK_LIST(LP_X)
#undef LP_X
};
#define HOOK_COUNT (sizeof(hooks) / sizeof(hooks[0]))

/* Which hook serves a medium. */
typedef struct service {
    lp_hook *active;
    int is_waiting;            /* active, and its canary could not be run yet */
    const char *why_not;
} service;

static service services[LP_MEDIUM_COUNT];

/* All but `thread` is used by that thread only: it runs the canary. */
static struct {
    _Atomic(pthread_t) thread;
    const void *address;
    int born, died;
} canary_seen;

int lp_hook_canary_born(const void *address, uint64_t bytes) {
    if (!pthread_equal(atomic_load(&canary_seen.thread), pthread_self()) || bytes < CANARY_BYTES ||
        bytes - CANARY_BYTES > CANARY_ROUNDING) {
        return 0;
    }
    canary_seen.address = address;
    canary_seen.born++;
    return 1;
}

int lp_hook_canary_died(const void *address) {
    if (!pthread_equal(atomic_load(&canary_seen.thread), pthread_self()) || canary_seen.born == 0 ||
        canary_seen.address != address) {
        return 0;
    }
    canary_seen.died++;
    return 1;
}

static service *find(lp_medium medium) {
    for (size_t i = 0; i < HOOK_COUNT; i++) {
        if (hooks[i]->medium == medium) {
            return &services[medium];
        }
    }
    return NULL;
}

void lp_native_pin(void) {
    static int is_pinned;
    Dl_info info;
    if (!is_pinned && dladdr((void *)lp_native_pin, &info) != 0 && info.dli_fname != NULL) {
        void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle != NULL) {
            dlclose(handle);
        }
        is_pinned = 1;
    }
}

static const char waiting[] = "the canary waits";

/* NULL, `waiting`, or why the canary failed.  The hook's mode is `mode` from here on, until the caller sets the next:
 * what other threads free between the two must not be missed. */
static const char *run_canary(lp_hook *hook, lp_native_canary_fn canary, int mode) {
    canary_seen.address = NULL;
    canary_seen.born = canary_seen.died = 0;
    atomic_store(&canary_seen.thread, pthread_self());
    atomic_store(&hook->mode, mode);
    int result = canary(hook->medium, CANARY_BYTES);
    if (result == LP_NATIVE_WAIT) {
        return waiting;
    }
    if (result != 0) {
        return "the canary could not be run: making a block of this kind of memory failed";
    }
    return canary_seen.born == 1 && canary_seen.died == 1 ? NULL : "the hook did not see the canary's block";
}

static void forget(lp_hook *hook) {
    if (hook->clear != NULL) {
        hook->clear();
    }
}

/* What it knows of its blocks, and reports of memory that ran out, are of one watch. */
static void remove_hook(lp_hook *hook) {
    for (; hook != NULL; hook = hook->companion) {
        atomic_store(&hook->mode, LP_HOOK_OFF);
        (void)lp_slots_unpatch(hook->slots);
        forget(hook);
    }
}

static void switch_on(lp_hook *hook) {
    for (; hook != NULL; hook = hook->companion) {
        forget(hook);
        atomic_store(&hook->mode, LP_HOOK_ON);
    }
}

/* NULL or `waiting` where the hook serves now, or why it does not work here. */
static const char *try_hook(lp_hook *hook, lp_native_canary_fn canary) {
    if (lp_slots_patch(hook->slots) == 0) {
        return "no loaded library has the import slots that the hook needs";
    }
    for (lp_hook *next = hook->companion; next != NULL; next = next->companion) {
        (void)lp_slots_patch(next->slots);
    }
    const char *why_not = run_canary(hook, canary, LP_HOOK_CANARY);
    if (why_not != NULL && why_not != waiting) {
        remove_hook(hook);
        return why_not;
    }
    switch_on(hook);
    return why_not;
}

int lp_native_has_hook(lp_medium medium) { return find(medium) != NULL; }

/* Hooks of a medium from number `first` on, until one serves; with what is said of the last one where none does. */
static void try_hooks(lp_medium medium, size_t first, const char *mechanism, lp_native_canary_fn canary) {
    service *row = &services[medium];
    for (size_t i = first; i < HOOK_COUNT && row->active == NULL; i++) {
        lp_hook *hook = hooks[i];
        if (hook->medium == medium && (mechanism == NULL || strcmp(mechanism, hook->mechanism) == 0)) {
            row->why_not = try_hook(hook, canary);
            row->is_waiting = row->why_not == waiting;
            row->active = row->why_not == NULL || row->is_waiting ? hook : NULL;
        }
    }
}

lp_status lp_native_install(lp_medium medium, const char *mechanism, lp_native_canary_fn canary) {
    LP_ASSERT_GIL();
    service *row = find(medium);
    if (row == NULL) {
        return LP_UNSUPPORTED;
    }
    if (row->active != NULL) {
        return LP_OK;
    }
    lp_native_pin();
    row->why_not = "this medium has no mechanism of that name";
    try_hooks(medium, 0, mechanism, canary);
    return row->active != NULL ? LP_OK : LP_NOT_FOUND;
}

lp_status lp_native_verify(lp_medium medium, lp_native_canary_fn canary) {
    LP_ASSERT_GIL();
    service *row = find(medium);
    if (row == NULL || row->active == NULL || !row->is_waiting) {
        return row == NULL || row->active == NULL ? LP_NOT_FOUND : LP_OK;
    }
    lp_hook *hook = row->active;
    const char *why_not = run_canary(hook, canary, LP_HOOK_CHECK);
    if (why_not == NULL || why_not == waiting) {
        atomic_store(&hook->mode, LP_HOOK_ON);
        row->is_waiting = why_not == waiting;
        return LP_OK;
    }
    remove_hook(hook);
    row->active = NULL;
    row->is_waiting = 0;
    row->why_not = why_not;
    size_t next = 0;
    while (hooks[next++] != hook) {
    }
    try_hooks(medium, next, NULL, canary);
    return row->active != NULL ? LP_OK : LP_NOT_FOUND;
}

int lp_native_is_waiting(lp_medium medium) {
    service *row = find(medium);
    return row != NULL && row->active != NULL && row->is_waiting;
}

void lp_native_refresh(void) {
    LP_ASSERT_GIL();
    for (size_t i = 0; i < LP_MEDIUM_COUNT; i++) {
        for (lp_hook *hook = services[i].active; hook != NULL; hook = hook->companion) {
            (void)lp_slots_patch(hook->slots);
        }
    }
}

void lp_native_uninstall(void) {
    LP_ASSERT_GIL();
    for (size_t i = 0; i < LP_MEDIUM_COUNT; i++) {
        lp_hook *hook = services[i].active;
        services[i] = (service){0};
        remove_hook(hook);
    }
}

int lp_native_is_active(lp_medium medium) {
    service *row = find(medium);
    return row != NULL && row->active != NULL;
}

const char *lp_native_mechanism(lp_medium medium) {
    service *row = find(medium);
    return row == NULL || row->active == NULL ? NULL : row->active->mechanism;
}

const char *lp_native_why_not(lp_medium medium) {
    service *row = find(medium);
    return row == NULL ? NULL : row->why_not;
}

uint64_t lp_native_loaded_count(void) { return lp_slots_loaded_count(); }

static void for_each_lock(void (*act)(lp_lock *lock)) {
    for (size_t i = 0; i < HOOK_COUNT; i++) {
        for (lp_hook *hook = hooks[i]; hook != NULL; hook = hook->companion) {
            if (hook->lock != NULL) {
                act(hook->lock);
            }
        }
    }
}

/* The list's order is that of the ranks. */
void lp_native_before_fork(void) {
    lp_slots_before_fork();
    for_each_lock(lp_lock_take);
}

void lp_native_after_fork_in_parent(void) {
    for_each_lock(lp_lock_release);
    lp_slots_after_fork_in_parent();
}

void lp_native_reset_in_child(void) {
    lp_slots_reset_in_child();
    for_each_lock(lp_lock_reset_in_child);
}

#else

void lp_native_pin(void) {}

int lp_native_has_hook(lp_medium medium) {
    (void)medium;
    return 0;
}

lp_status lp_native_install(lp_medium medium, const char *mechanism, lp_native_canary_fn canary) {
    (void)medium, (void)mechanism, (void)canary;
    return LP_UNSUPPORTED;
}

lp_status lp_native_verify(lp_medium medium, lp_native_canary_fn canary) {
    (void)medium, (void)canary;
    return LP_UNSUPPORTED;
}

int lp_native_is_waiting(lp_medium medium) {
    (void)medium;
    return 0;
}

void lp_native_refresh(void) {}

void lp_native_uninstall(void) {}

int lp_native_is_active(lp_medium medium) {
    (void)medium;
    return 0;
}

const char *lp_native_mechanism(lp_medium medium) {
    (void)medium;
    return NULL;
}

const char *lp_native_why_not(lp_medium medium) {
    (void)medium;
    return NULL;
}

uint64_t lp_native_loaded_count(void) { return 0; }

void lp_native_before_fork(void) {}

void lp_native_after_fork_in_parent(void) {}

void lp_native_reset_in_child(void) {}

#endif
