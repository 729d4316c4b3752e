/* The collector's lists: every tracked object, and those that are younger than a mark.  Nothing is written to an object. */
#include "python/compat/heap_internal.h"

static struct _gc_runtime_state *gc_state(void) {
#if LP_HAS_DEBUG_OFFSETS
    return (struct _gc_runtime_state *)((char *)PyInterpreterState_Get() +
                                        _PyRuntime.debug_offsets.interpreter_state.gc);
#else
    return &PyInterpreterState_Get()->gc;
#endif
}

int lp_heap_is_collecting(void) {
#if LP_HAS_DEBUG_OFFSETS
    return *(int *)((char *)gc_state() + _PyRuntime.debug_offsets.gc.collecting);
#else
    return gc_state()->collecting;
#endif
}

#define FLAGS ((uintptr_t)3) /* below the addresses in the links */

static PyGC_Head *next_of(const PyGC_Head *gc) { return (PyGC_Head *)(gc->_gc_next & ~FLAGS); }

static PyGC_Head *previous_of(const PyGC_Head *gc) { return (PyGC_Head *)(gc->_gc_prev & ~FLAGS); }

int lp_heap_is_linked(PyObject *op) {
    const PyGC_Head *gc = _Py_AS_GC(op), *next = next_of(gc), *previous = previous_of(gc);
    return lp_heap_is_aligned(next) && lp_heap_is_aligned(previous) &&
           lp_mappings_has(&lp_heap_mappings, next, sizeof(*next)) && previous_of(next) == gc &&
           lp_mappings_has(&lp_heap_mappings, previous, sizeof(*previous)) && next_of(previous) == gc;
}

#define LISTS 4 /* three generations, and what is frozen */

static const PyGC_Head *head_of(int list) {
    struct _gc_runtime_state *gc = gc_state();
#if LP_HAS_AGES_IN_LISTS
    return list < LISTS - 1 ? &gc->generations[list].head : &gc->permanent_generation.head;
#else
    /* An array in some releases of 3.14, in others three members that lie like one. */
    const char *frozen = (const char *)gc + offsetof(struct _gc_runtime_state, permanent_generation);
    return &((const struct gc_generation *)(frozen - (LISTS - 1 - list) * sizeof(struct gc_generation)))->head;
#endif
}

/* Neighbours on a list are often neighbours in a pool: what comes a few objects later. */
#define PREFETCH_BYTES 512

/* From both ends to the middle: two chains of cache misses that do not wait for each other. */
static int walk_list(const PyGC_Head *head, int (*visit)(PyObject *, void *), void *arg) {
    PyGC_Head *front = next_of(head), *back = previous_of(head);
    if (front == head) {
        return 0;
    }
    for (;;) {
        __builtin_prefetch((const char *)front + PREFETCH_BYTES);
        __builtin_prefetch((const char *)back - PREFETCH_BYTES);
        int result = visit((PyObject *)(front + 1), arg);
        if (result != 0 || front == back) {
            return result;
        }
        result = visit((PyObject *)(back + 1), arg);
        front = next_of(front);
        if (result != 0 || front == back) {
            return result;
        }
        back = previous_of(back);
    }
}

static int are_lists_sane(void) {
#if !LP_HAS_AGES_IN_LISTS
    if (_PyRuntime.debug_offsets.gc.size != sizeof(struct _gc_runtime_state)) {
        return 0; /* a release with other members */
    }
#endif
    for (int i = 0; i < LISTS; i++) {
        const PyGC_Head *head = head_of(i), *first = next_of(head), *last = previous_of(head);
        if (first == NULL || last == NULL || previous_of(first) != head || next_of(last) != head) {
            return 0;
        }
    }
    return lp_heap_is_collecting() == 0 || lp_heap_is_collecting() == 1;
}

/* Frozen objects are on the permanent list, which CPython's own enumeration left out until 3.13.5. */
static void get_lists(const PyGC_Head *out_heads[LISTS]) {
    for (int i = 0; i < LISTS; i++) {
        out_heads[i] = head_of(i);
    }
}

static int walk_lists(const PyGC_Head *const *heads, int count, int (*visit)(PyObject *, void *), void *arg) {
    for (int i = 0; i < count; i++) {
        int result = walk_list(heads[i], visit, arg);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

#if LP_HAS_AGES_IN_LISTS
int lp_heap_lists_are_known(void) { return are_lists_sane(); }

static int walk_by_cpython(int (*visit)(PyObject *, void *), void *arg) {
    (void)visit, (void)arg;
    return LP_UNSUPPORTED;
}
#else
int lp_heap_lists_are_known(void) { return 1; }

typedef struct walk {
    int (*visit)(PyObject *, void *);
    void *arg;
    int result;
} walk;

static int walk_one(PyObject *op, void *arg) {
    walk *how = arg;
    how->result = how->visit(op, how->arg);
    return how->result == 0;
}

static int walk_by_cpython(int (*visit)(PyObject *, void *), void *arg) {
    walk how = {visit, arg, 0};
    PyUnstable_GC_VisitObjects(walk_one, &how);
    return how.result;
}
#endif

int lp_heap_each_tracked(int (*visit)(PyObject *, void *), void *arg) {
    LP_ASSERT_GIL();
    const PyGC_Head *heads[LISTS];
    if (lp_heap_is_collecting()) {
        return LP_UNSUPPORTED;
    }
    if (!are_lists_sane()) {
        return walk_by_cpython(visit, arg);
    }
    get_lists(heads);
    return walk_lists(heads, LISTS, visit, arg);
}

#if LP_HAS_AGES_IN_LISTS
/* ---- what is younger than a mark ---- */

static struct {
    PyObject *age_mark; /* a tracked object of our own */
    const PyGC_Head *last_frozen; /* at the mark: 3.12 freezes some objects of its own */
    int was_frozen; /* since the mark: gc.freeze() and gc.unfreeze() put old objects behind younger ones */
} mark;

static const PyGC_Head *find_last_frozen(void) { return previous_of(&gc_state()->permanent_generation.head); }

/* A full collection puts the youngest generation before the middle one: only in the oldest is a place that stays. */
static void move_to_oldest(PyObject *op) {
    PyGC_Head *gc = (PyGC_Head *)op - 1, *head = &gc_state()->generations[2].head;
    PyObject_GC_UnTrack(op);
    PyGC_Head *last = previous_of(head);
    _PyGCHead_SET_NEXT(last, gc);
    _PyGCHead_SET_PREV(gc, last);
    _PyGCHead_SET_NEXT(gc, head);
    _PyGCHead_SET_PREV(head, gc);
}

int lp_heap_set_age_mark(void) {
    LP_ASSERT_GIL();
    lp_heap_clear_age_mark();
    if (lp_heap_is_collecting()) {
        return 0;
    }
    mark.age_mark = PyList_New(0);
    if (mark.age_mark == NULL) {
        return -1;
    }
    move_to_oldest(mark.age_mark);
    mark.last_frozen = find_last_frozen();
    mark.was_frozen = 0;
    return 0;
}

void lp_heap_clear_age_mark(void) { Py_CLEAR(mark.age_mark); }

static int list_of_head(const PyGC_Head *const *heads, const PyGC_Head *at) {
    for (int i = 0; i < LISTS; i++) {
        if (heads[i] == at) {
            return i;
        }
    }
    return -1;
}

/* The collector adds to the ends of its lists only: what it starts to track, what outlives a collection of a younger
 * generation, and what it comes back to while it looks for garbage.  So nothing younger ever lies before the mark. */
int lp_heap_each_tracked_since_mark(int (*visit)(PyObject *, void *), void *arg) {
    const PyGC_Head *heads[LISTS];
    mark.was_frozen |= find_last_frozen() != mark.last_frozen;
    if (mark.age_mark == NULL || mark.was_frozen || lp_heap_is_collecting()) {
        return lp_heap_each_tracked(visit, arg);
    }
    get_lists(heads);
    const PyGC_Head *at = next_of((PyGC_Head *)mark.age_mark - 1);
    int list;
    for (; (list = list_of_head(heads, at)) < 0; at = next_of(at)) {
        __builtin_prefetch((const char *)at + PREFETCH_BYTES);
        int result = visit((PyObject *)(at + 1), arg);
        if (result != 0) {
            return result;
        }
    }
    return walk_lists(heads, list, visit, arg);
}
#else
int lp_heap_set_age_mark(void) { return 0; }

void lp_heap_clear_age_mark(void) {}

int lp_heap_each_tracked_since_mark(int (*visit)(PyObject *, void *), void *arg) {
    return lp_heap_each_tracked(visit, arg);
}
#endif
