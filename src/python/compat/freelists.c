/* Knows where each version keeps its free lists. They are touched only where an object of our own was found in
 * the place that the headers say. */
#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif

#include "python/compat/freelists.h"

#include <stdlib.h>  // getenv

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "internal/pycore_interp.h"  // free lists
#pragma GCC diagnostic pop

#if !LP_HAS_GENERIC_FREELISTS

#if LP_HAS_ARRAY_FREELISTS
#define FLOATS (&lp_home_interpreter->float_state)
#define FLOATS_HEAD FLOATS->free_list
#define TUPLES (&lp_home_interpreter->tuple)
#define TUPLES_HEAD(i) TUPLES->free_list[i]
#define CLOSED_FLOATS PyFloat_MAXFREELIST
#else
#define FLOATS (&lp_home_interpreter->object_state.freelists.floats)
#define FLOATS_HEAD FLOATS->items
#define TUPLES (&lp_home_interpreter->object_state.freelists.tuples)
#define TUPLES_HEAD(i) TUPLES->items[i]
#define CLOSED_FLOATS -1
#endif

#ifndef PyFloat_MAXFREELIST
#define PyFloat_MAXFREELIST 100      /* 3.10 has it in floatobject.c */
#endif

/* On 3.10 entry 0 is the empty tuple itself. */
#define FIRST_TUPLE (PY_VERSION_HEX < 0x030B0000 ? 1 : 0)
#define TUPLE_SIZES ((int)(sizeof(TUPLES->numfree) / sizeof(TUPLES->numfree[0])))

static void drain_floats(void) {
    PyFloatObject *op = FLOATS_HEAD;
    FLOATS_HEAD = NULL;
    while (op != NULL) {
        PyFloatObject *next = (PyFloatObject *)Py_TYPE(op);
        PyObject_Free(op);
        op = next;
    }
}

static void drain_tuples(int i) {
    PyTupleObject *op = TUPLES_HEAD(i);
    TUPLES_HEAD(i) = NULL;
    while (op != NULL) {
        PyTupleObject *next = (PyTupleObject *)op->ob_item[0];
        PyObject_GC_Del(op);
        op = next;
    }
}

#if LP_HAS_ARRAY_FREELISTS
lp_array_freelist lp_freelists_of_lists(void) {
    struct _Py_list_state *lists = &lp_home_interpreter->list;
    return (lp_array_freelist){(PyObject **)lists->free_list, &lists->numfree};
}

lp_array_freelist lp_freelists_of_dicts(void) {
    struct _Py_dict_state *dicts = &lp_home_interpreter->dict_state;
    return (lp_array_freelist){(PyObject **)dicts->free_list, &dicts->numfree};
}

static void set_arrays_closed(int closed) { (void)closed; }

static int64_t idle_arrays(void) {
    const PyInterpreterState *home = lp_home_interpreter;
    return home->list.numfree + home->dict_state.numfree + home->dict_state.keys_numfree;
}
#else
static void drain_array(PyObject **item, int *count) {
    while (*count > 0) {
        PyObject_GC_Del(item[--*count]);
    }
}

static void set_arrays_closed(int closed) {
    struct _Py_object_freelists *all = &lp_home_interpreter->object_state.freelists;
    drain_array((PyObject **)all->lists.items, &all->lists.numfree);
    drain_array((PyObject **)all->dicts.items, &all->dicts.numfree);
    all->lists.numfree = all->dicts.numfree = closed ? -1 : 0;
}

static int64_t at_least_0(int count) { return count < 0 ? 0 : count; }

static int64_t idle_arrays(void) {
    const struct _Py_object_freelists *all = &lp_home_interpreter->object_state.freelists;
    return at_least_0(all->lists.numfree) + at_least_0(all->dicts.numfree) + at_least_0(all->dictkeys.numfree);
}
#endif

/* A list that is closed says that it is full, and has no head. */
static int64_t count_idle(void) {
    int64_t count = (FLOATS_HEAD == NULL ? 0 : FLOATS->numfree) + idle_arrays();
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        count += TUPLES_HEAD(i) == NULL ? 0 : TUPLES->numfree[i];
    }
    return count;
}

static void close_lists(void) {
    drain_floats();
    FLOATS->numfree = CLOSED_FLOATS;
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        drain_tuples(i);
        TUPLES->numfree[i] = PyTuple_MAXFREELIST;
    }
    set_arrays_closed(1);
}

static int are_closed(void) {
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        if (TUPLES->numfree[i] != PyTuple_MAXFREELIST) {
            return 0;
        }
    }
    return FLOATS->numfree == CLOSED_FLOATS;
}

static void open_lists(void) {
    drain_floats();
    FLOATS->numfree = 0;
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        drain_tuples(i);
        TUPLES->numfree[i] = 0;
    }
    set_arrays_closed(0);
}

#else  /* 3.14+: one kind of list, linked through the first word */

static void free_entry(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    if (type->tp_flags & Py_TPFLAGS_HAVE_GC) {
        PyObject_GC_Del(op);
    } else {
        PyObject_Free(op);
    }
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        Py_DECREF(type);   /* the entry's own */
    }
}

static void set_size(struct _Py_freelist *list, Py_ssize_t size) {
    while (list->freelist != NULL) {
        PyObject *op = list->freelist;
        list->freelist = *(void **)op;
        free_entry(op);
    }
    list->size = size;
}

/* What is put on a list that holds no objects is freed as one: so a version with other lists does not build before
 * is_of_blocks() knows them. */
#if PY_VERSION_HEX >= 0x030F0000
enum { KNOWN_LISTS = 41 };
#else
enum { KNOWN_LISTS = 39 };
#endif
_Static_assert(sizeof(struct _Py_freelists) == KNOWN_LISTS * sizeof(struct _Py_freelist),
               "free lists that no one looked at: do they hold objects?");

/* 1 for the lists of blocks that are no objects. */
static int is_of_blocks(const struct _Py_freelists *all, const struct _Py_freelist *list) {
#if PY_VERSION_HEX >= 0x030F0000
    if (list == &all->bytes_writers) {
        return 1;
    }
#endif
    return list == &all->dictkeys || list == &all->object_stack_chunks || list == &all->unicode_writers;
}

static void set_sizes(Py_ssize_t size) {
    struct _Py_freelists *all = &lp_home_interpreter->object_state.freelists;
    struct _Py_freelist *list = (struct _Py_freelist *)all;
    for (size_t i = 0; i < sizeof(*all) / sizeof(*list); i++) {
        if (!is_of_blocks(all, &list[i])) {
            set_size(&list[i], size);
        }
    }
}

static int64_t count_idle(void) {
    const struct _Py_freelists *all = &lp_home_interpreter->object_state.freelists;
    const struct _Py_freelist *list = (const struct _Py_freelist *)all;
    int64_t count = 0;
    for (size_t i = 0; i < sizeof(*all) / sizeof(*list); i++) {
        count += list[i].size > 0 ? list[i].size : 0;
    }
    return count;
}

static void close_lists(void) { set_sizes(-1); }

static int are_closed(void) {
    const struct _Py_freelists *all = &lp_home_interpreter->object_state.freelists;
    const struct _Py_freelist *list = (const struct _Py_freelist *)all;
    for (size_t i = 0; i < sizeof(*all) / sizeof(*list); i++) {
        if (!is_of_blocks(all, &list[i]) && list[i].size != -1) {
            return 0;
        }
    }
    return 1;
}

static void open_lists(void) { set_sizes(0); }

#endif

/* ---- the blocks that lie in them ---- */

#define PRESIZE_GC 16

#if LP_HAS_GENERIC_FREELISTS
void lp_freelists_each_block(void (*visit)(const void *block)) {
    const struct _Py_freelists *all = &lp_home_interpreter->object_state.freelists;
    const struct _Py_freelist *list = (const struct _Py_freelist *)all;
    for (size_t i = 0; lp_freelists_are_known() && i < sizeof(*all) / sizeof(*list); i++) {
        int has_blocks = is_of_blocks(all, &list[i]);
        for (char *op = list[i].freelist; op != NULL; op = *(void **)op) {
            visit(has_blocks ? op : op - lp_presize(Py_TYPE((PyObject *)op)));
        }
    }
}
#else
static void each_in_array(PyObject *const *item, int count, void (*visit)(const void *block)) {
    for (int i = 0; i < count; i++) {
        visit((const char *)item[i] - PRESIZE_GC);
    }
}

static void each_in_arrays(void (*visit)(const void *block)) {
#if LP_HAS_ARRAY_FREELISTS
    lp_array_freelist lists = lp_freelists_of_lists(), dicts = lp_freelists_of_dicts();
    each_in_array(lists.item, *lists.count, visit);
    each_in_array(dicts.item, *dicts.count, visit);
#else
    const struct _Py_object_freelists *all = &lp_home_interpreter->object_state.freelists;
    each_in_array((PyObject *const *)all->lists.items, all->lists.numfree, visit);
    each_in_array((PyObject *const *)all->dicts.items, all->dicts.numfree, visit);
#endif
}

void lp_freelists_each_block(void (*visit)(const void *block)) {
    if (!lp_freelists_are_known()) {
        return;
    }
    for (PyFloatObject *op = FLOATS_HEAD; op != NULL; op = (PyFloatObject *)Py_TYPE(op)) {
        visit(op);
    }
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        for (PyTupleObject *op = TUPLES_HEAD(i); op != NULL; op = (PyTupleObject *)op->ob_item[0]) {
            visit((const char *)op - PRESIZE_GC);
        }
    }
    each_in_arrays(visit);
}
#endif

void lp_freelists_each_table(void (*visit)(const void *block)) {
#if LP_HAS_ARRAY_FREELISTS
    const struct _Py_dict_state *dicts = &lp_home_interpreter->dict_state;
    for (int i = 0; lp_freelists_are_known() && i < dicts->keys_numfree; i++) {
        visit(dicts->keys_free_list[i]);
    }
#else
    (void)visit;
#endif
}

/* ---- are they where the headers say? ---- */

/* The size of CPython's own struct is no proof: it differs between a build and its headers. */

/* 1 if the object, which dies here, is then the first of its list. */
static int is_found(PyObject *op, void *const *head) {
    const void *address = op;
    Py_XDECREF(op);
    PyErr_Clear();
    return address != NULL && *head == address;
}

#if LP_HAS_GENERIC_FREELISTS
#define LONGEST_FREELIST 2000

static int are_plausible(const struct _Py_freelists *all) {
    const struct _Py_freelist *list = (const struct _Py_freelist *)all;
    for (size_t i = 0; i < sizeof(*all) / sizeof(*list); i++) {
        if (list[i].size < -1 || list[i].size > LONGEST_FREELIST || (list[i].freelist != NULL) != (list[i].size > 0)) {
            return 0;
        }
    }
    return 1;
}

/* The first and the last one. */
static int are_all_found(void) {
    const struct _Py_freelists *all = &lp_home_interpreter->object_state.freelists;
    return are_plausible(all) && is_found(PyFloat_FromDouble(0.625), &all->floats.freelist) &&
           is_found(PyMethod_New((PyObject *)&PyType_Type, Py_None), &all->pymethodobjects.freelist);
}
#else
static int are_all_found(void) {
    return is_found(PyFloat_FromDouble(0.625), (void *const *)&FLOATS_HEAD) &&
           is_found(PyTuple_New(TUPLE_SIZES - FIRST_TUPLE), (void *const *)&TUPLES_HEAD(TUPLE_SIZES - 1));
}
#endif

/* For the benchmark of what it costs to close them. */
static int are_kept(void) {
    const char *value = getenv("LEAKPROBE_FREE_LISTS");
    return value != NULL && strcmp(value, "kept") == 0;
}

int lp_freelists_are_known(void) {
    static enum { UNSEEN, KNOWN, UNKNOWN } answer;
    if (answer == UNSEEN) {
        answer = are_all_found() ? KNOWN : UNKNOWN;
    }
    return answer == KNOWN && !are_kept();
}

void lp_freelists_close(void) {
    if (lp_freelists_are_known()) {
        close_lists();
    }
}

int lp_freelists_are_closed(void) { return !lp_freelists_are_known() || are_closed(); }

void lp_freelists_open(void) {
    if (lp_freelists_are_known()) {
        open_lists();
    }
}

int64_t lp_freelists_count(void) { return lp_freelists_are_known() ? count_idle() : 0; }
