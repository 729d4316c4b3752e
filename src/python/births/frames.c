/* Owns the cache from running instructions to sites. An entry goes before its code object does; the GIL. */
#include "python/births/frames.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/numbers.h"           // LP_HASH_FACTOR
#include "python/compat/numbers.h"  // LP_TAG_SHIFT

__attribute__((aligned(64))) lp_frames_entry lp_frames_cache[1 << LP_FRAMES_CACHE_LG];

/* Of each entry's two code objects, or of those of an entry that was there: what tells most codes apart. */
static uint16_t tags[1 << LP_FRAMES_CACHE_LG], caller_tags[1 << LP_FRAMES_CACHE_LG];
/* 1 once an entry may name code without frames, which its death has to be looked for then too: full and crowded tables
 * keep shorter stacks than an entry has, or none.  The GIL protects it. */
static int has_bare_entries;

static uint32_t depth_max = 16;

/* Threads inside lp_frames_native_site(); once closed, no frame may be read any more. */
static _Atomic uint32_t reader_count;
static _Atomic int closed;

/* Write as few pages as possible: in the child of a fork they are shared. */
void lp_frames_clear(void) {
    LP_ASSERT_GIL();
    for (size_t i = 0; i < sizeof(lp_frames_cache) / sizeof(lp_frames_cache[0]); i++) {
        if (lp_frames_cache[i].top != 0) {
            lp_frames_cache[i] = (lp_frames_entry){0};
        }
    }
}

static uint16_t tag_of(const PyCodeObject *code) {
    return (uint16_t)((uint64_t)(uintptr_t)code / LP_CODE_ALIGNMENT * LP_HASH_FACTOR >> LP_TAG_SHIFT);
}

static uint32_t walk(const lp_pyframe *frame, lp_raw_frame *out, uint32_t max) {
    uint32_t count = 0;
    for (; frame != NULL && count < max; frame = lp_frame_previous(frame)) {
        const PyCodeObject *code = lp_frame_code(frame);
        if (code != NULL && !lp_code_is_init_shim(code)) {
            out[count++] = (lp_raw_frame){code, lp_frame_offset(frame, code)};
        }
    }
    return count;
}

/* Of a line that grows: the user's own code may lie beneath more frames of a framework than are kept else. */
static lp_site_id deep_site(lp_site_id base, const lp_pyframe *frame) {
    lp_raw_frame stack[LP_FRAMES_DEPTH_MAX];
    return lp_site_intern_child(base, stack, walk(frame, stack, LP_FRAMES_DEPTH_MAX));
}

lp_site_id lp_frames_site_slow(PyThreadState *tstate) {
    if (!lp_is_home(tstate)) {
        return LP_SITE_UNKNOWN;
    }
    LP_ASSERT_GIL();
    const lp_pyframe *frame = lp_frame_top(tstate);
    if (frame == NULL) {
        return LP_SITE_NATIVE;
    }
    lp_raw_frame pair[2];
    lp_site_id site = lp_site_intern(pair, walk(frame, pair, 2));
    if (lp_site_is_deep(site)) {
        return deep_site(site, frame);
    }
    const lp_pyframe *previous = lp_frame_previous(frame);
    uint64_t top = lp_frame_key(frame), caller = previous == NULL ? 0 : lp_frame_key(previous);
    lp_frames_entry *entry = lp_frames_slot(top, caller);
    *entry = (lp_frames_entry){.top = top, .caller = caller, .site = site};
    tags[entry - lp_frames_cache] = tag_of(lp_frame_code(frame));
    has_bare_entries |= site == LP_SITE_OVERFLOW || lp_site_is_crowded();
    caller_tags[entry - lp_frames_cache] = previous == NULL ? 0 : tag_of(lp_frame_code(previous));
    return site;
}

/* Of `count` entries from here those that name the code. */
static void drop_entries(size_t from, size_t count, const PyCodeObject *code) {
    uint64_t first, end;
    lp_code_key_range(code, &first, &end);
    for (lp_frames_entry *entry = &lp_frames_cache[from]; entry < &lp_frames_cache[from + count]; entry++) {
        if (entry->top - first < end - first || entry->caller - first < end - first) {
            *entry = (lp_frames_entry){0};
        }
    }
}

/* GIL held, or the last moments of the interpreter. */
static void on_code_death(const PyCodeObject *code) {
    if (!lp_site_code_dies(code) && !has_bare_entries) {
        return;
    }
    uint16_t wanted = tag_of(code);
    for (size_t from = 0; from < sizeof(tags) / sizeof(tags[0]); from += LP_TAGS_AT_ONCE) {
        unsigned any = 0;
        for (size_t i = from; i < from + LP_TAGS_AT_ONCE; i++) {
            any |= (unsigned)(tags[i] == wanted) | (unsigned)(caller_tags[i] == wanted);
        }
        if (any != 0) {
            drop_entries(from, LP_TAGS_AT_ONCE, code);
        }
    }
}

int lp_frames_init(uint32_t stack_depth) {
    depth_max = stack_depth < LP_FRAMES_DEPTH_MAX ? stack_depth : LP_FRAMES_DEPTH_MAX;
    return lp_code_watch_deaths(on_code_death);
}

void lp_frames_set_deep(lp_site_id site) {
    LP_ASSERT_GIL();
    if (!lp_site_is_deep(site)) {
        lp_site_set_deep(site);
        lp_frames_clear();
    }
}

static lp_site_id native_site(void) {
    if (!Py_IsInitialized()) {
        return LP_SITE_NATIVE;
    }
    /* The thread is inside C: its frames can't change, and they keep their code alive. */
    PyThreadState *tstate = PyGILState_GetThisThreadState();
    if (tstate == NULL || !lp_is_home(tstate)) {
        return LP_SITE_NATIVE;
    }
    lp_raw_frame stack[LP_FRAMES_DEPTH_MAX];
    const lp_pyframe *frame = lp_frame_top(tstate);
    lp_site_id site = lp_site_intern(stack, walk(frame, stack, depth_max));
    return LP_UNLIKELY(lp_site_is_deep(site)) ? deep_site(site, frame) : site;
}

lp_site_id lp_frames_native_site(void) {
    lp_site_id site = LP_SITE_NATIVE;
    atomic_fetch_add(&reader_count, 1);
    if (!atomic_load(&closed)) {
        site = native_site();
    }
    atomic_fetch_sub(&reader_count, 1);
    return site;
}

void lp_frames_close(void) {
    atomic_store(&closed, 1);
    while (atomic_load(&reader_count) != 0) {
        sched_yield();
    }
}

void lp_frames_reset_in_child(void) { atomic_store(&reader_count, 0); }
