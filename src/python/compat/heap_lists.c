/* The collector's lists: every tracked object.  Nothing is written to an object. */
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
