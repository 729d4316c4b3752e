/* Owns the wrappers of tp_dealloc and the entry in gc.callbacks. While they serve, no object comes from a free
 * list; afterwards all is as it was. */
#include "python/births/freelists.h"

#include "python/compat/freelists.h"  // lp_freelists_close
#include "python/values/state.h"  // lp_state

static int neutral;

#if LP_HAS_ARRAY_FREELISTS
typedef struct wrapped_type {
    PyTypeObject *type;
    destructor original;   /* never cleared: a subclass may hold on to ours for a moment */
    int in_chain;
    lp_array_freelist list;
} wrapped_type;

static wrapped_type lists = {.type = &PyList_Type}, dicts = {.type = &PyDict_Type};

static inline void drain(const wrapped_type *wrapped, PyThreadState *tstate) {
    /* Another interpreter's thread may get here with a GIL of its own. */
    if (LP_LIKELY(neutral && lp_is_home(tstate))) {
        while (*wrapped->list.count > 0) {
            PyObject_GC_Del(wrapped->list.item[--*wrapped->list.count]);
        }
    }
}

/* The original's own trashcan is off as soon as tp_dealloc is not the original: without this
 * one, a list nested a million deep would overflow the C stack. */
#define LP_DEFINE_DEALLOC(name)                                                                                        \
    static void dealloc_##name(PyObject *op) {                                                                         \
        PyThreadState *tstate = lp_tstate();                                                                           \
        /* A subclass has a trashcan of its own. */                                                                    \
        int guarded = Py_TYPE(op)->tp_dealloc == dealloc_##name;                                                       \
        if (guarded && lp_trash_enter(tstate, op)) {                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        name##s.original(op);                                                                                          \
        drain(&name##s, tstate);                                                                                       \
        if (guarded) {                                                                                                 \
            lp_trash_leave(tstate);                                                                                    \
        }                                                                                                              \
    }

LP_DEFINE_DEALLOC(list)
LP_DEFINE_DEALLOC(dict)

static void wrap(wrapped_type *wrapped, destructor ours, lp_array_freelist list) {
    wrapped->list = list;
    if (wrapped->type->tp_dealloc != ours) {
        /* Somebody who wrapped us earlier and is still there calls us: wrapping again would go in circles. */
        if (wrapped->in_chain) {
            return;
        }
        wrapped->original = wrapped->type->tp_dealloc;
        wrapped->in_chain = 1;
        wrapped->type->tp_dealloc = ours;
    }
    drain(wrapped, lp_tstate());
}

static void unwrap(wrapped_type *wrapped, destructor ours) {
    if (wrapped->type->tp_dealloc == ours) {
        wrapped->type->tp_dealloc = wrapped->original;
        wrapped->in_chain = 0;
    }
}

static void wrap_deallocs(void) {
    wrap(&lists, dealloc_list, lp_freelists_of_lists());
    wrap(&dicts, dealloc_dict, lp_freelists_of_dicts());
}

static void unwrap_deallocs(void) {
    unwrap(&lists, dealloc_list);
    unwrap(&dicts, dealloc_dict);
}
#else
static void wrap_deallocs(void) {}
static void unwrap_deallocs(void) {}
#endif

static PyObject *on_collection(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    if (neutral) {
        lp_freelists_close();
    }
    Py_RETURN_NONE;
}

static PyMethodDef callback_def = {"leakprobe_close_free_lists", on_collection, METH_VARARGS, NULL};

/* New reference to gc.callbacks, or NULL with an exception set. */
static PyObject *gc_callbacks(void) {
    PyObject *module = PyImport_ImportModule("gc");
    PyObject *list = module == NULL ? NULL : PyObject_GetAttrString(module, "callbacks");
    Py_XDECREF(module);
    return list;
}

static int add_callback(void) {
    if (lp_state.callbacks.after_collection == NULL) {
        lp_state.callbacks.after_collection = PyCFunction_New(&callback_def, NULL);
    }
    PyObject *list = lp_state.callbacks.after_collection == NULL ? NULL : gc_callbacks();
    /* In front: the other callbacks make objects too. */
    int result = list == NULL ? -1 : PyList_Insert(list, 0, lp_state.callbacks.after_collection);
    Py_XDECREF(list);
    return result;
}

static void remove_callback(void) {
    PyObject *list = gc_callbacks();
    for (Py_ssize_t i = list == NULL ? 0 : PyList_GET_SIZE(list); i-- > 0;) {
        if (PyList_GET_ITEM(list, i) == lp_state.callbacks.after_collection) {
            PyList_SetSlice(list, i, i + 1, NULL);
        }
    }
    Py_XDECREF(list);
    PyErr_Clear();
}

int lp_freelists_neutralise(void) {
    LP_ASSERT_GIL();
    if (neutral) {
        return 0;
    }
    if (add_callback() < 0) {
        return -1;
    }
    neutral = 1;
    wrap_deallocs();
    lp_freelists_close();
    return 0;
}

void lp_freelists_restore(void) {
    LP_ASSERT_GIL();
    if (neutral) {
        neutral = 0;
        remove_callback();
        unwrap_deallocs();
        lp_freelists_open();
    }
}

int lp_freelists_were_opened(void) {
    LP_ASSERT_GIL();
    if (!neutral || lp_freelists_are_closed()) {
        return 0;
    }
    /* Only our entry closes them again after a full collection: it has gone. */
    remove_callback();
    if (add_callback() < 0) {
        PyErr_Clear();
    }
    lp_freelists_close();
    return 1;
}
