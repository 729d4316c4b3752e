#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif

#include "python/compat_freelists.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "internal/pycore_interp.h"  // free lists
#pragma GCC diagnostic pop

#if PY_VERSION_HEX < 0x030E0000

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

static void set_arrays_closed(int closed) {
    (void)closed;
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
#endif

void lp_freelists_close(void) {
    drain_floats();
    FLOATS->numfree = CLOSED_FLOATS;
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        drain_tuples(i);
        TUPLES->numfree[i] = PyTuple_MAXFREELIST;
    }
    set_arrays_closed(1);
}

void lp_freelists_open(void) {
    drain_floats();
    FLOATS->numfree = 0;
    for (int i = FIRST_TUPLE; i < TUPLE_SIZES; i++) {
        drain_tuples(i);
        TUPLES->numfree[i] = 0;
    }
    set_arrays_closed(0);
}

#else  /* 3.14+: one kind of list, linked through the first word */

static void set_size(struct _Py_freelist *list, void (*free_one)(void *), Py_ssize_t size) {
    while (list->freelist != NULL) {
        void *op = list->freelist;
        list->freelist = *(void **)op;
        free_one(op);
    }
    list->size = size;
}

static void set_sizes(Py_ssize_t size) {
    struct _Py_freelists *all = &lp_home_interpreter->object_state.freelists;
    set_size(&all->floats, PyObject_Free, size);
    set_size(&all->ints, PyObject_Free, size);
    set_size(&all->lists, PyObject_GC_Del, size);
    set_size(&all->dicts, PyObject_GC_Del, size);
    for (size_t i = 0; i < sizeof(all->tuples) / sizeof(all->tuples[0]); i++) {
        set_size(&all->tuples[i], PyObject_GC_Del, size);
    }
}

void lp_freelists_close(void) {
    set_sizes(-1);
}

void lp_freelists_open(void) {
    set_sizes(0);
}

#endif
