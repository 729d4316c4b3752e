/* The type Watch: attributes, methods and how the collector sees it. What they do is in python/watch/. */
#include "python/api/methods.h"
#include "python/watch/parts.h"
#include "python/values/convert.h"  // lp_add_type
#include "python/values/state.h"  // lp_state

static PyObject *watch_enter(PyObject *op, PyObject *unused) {
    (void)unused;
    return lp_watch_begin((lp_watch *)op) < 0 ? NULL : Py_NewRef(op);
}

static PyObject *watch_exit(PyObject *op, PyObject *args) {
    PyObject *kind = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
    if (lp_watch_end((lp_watch *)op, kind) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *watch_is_active(PyObject *op, PyObject *unused) {
    const lp_watch *self = (lp_watch *)op;
    (void)unused;
    return PyBool_FromLong(lp_watch_is_active(self->state) && !lp_watch_is_foreign(self));
}

static PyObject *watch_state(PyObject *op, void *unused) {
    (void)unused;
    return PyUnicode_FromString(lp_watch_state_name(((lp_watch *)op)->state));
}

static PyObject *watch_has_begun(PyObject *op, void *unused) {
    (void)unused;
    return PyBool_FromLong(((lp_watch *)op)->has_begun);
}

static PyObject *watch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    lp_watch *self = (lp_watch *)type->tp_alloc(type, 0);
    if (self != NULL && lp_turn_init(&self->turn) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Nobody can reach it: it ends, as one whose block was never entered because a signal came in between. */
static void watch_finalize(PyObject *op) {
    lp_watch *self = (lp_watch *)op;
    lp_first_error first = {0};
    if (self->held == 0 || lp_watch_is_foreign(self)) {
        return;
    }
    lp_keep_first(&first);
    if (lp_watch_end(self, Py_None) < 0) {
        PyErr_WriteUnraisable(op);
    }
    lp_raise_first(&first);
}

static int watch_traverse(PyObject *op, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((lp_watch *)op)->resources);
    return 0;
}

static int watch_clear(PyObject *op) {
    Py_CLEAR(((lp_watch *)op)->resources);
    return 0;
}

static void watch_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_watch *self = (lp_watch *)op;
    PyObject_GC_UnTrack(op);
    lp_watch_active = lp_watch_active == self ? NULL : lp_watch_active;
    watch_clear(op);
    lp_turn_destroy(&self->turn);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", watch_enter, METH_NOARGS, PyDoc_STR("Begin the watch; what raises in here leaves it off.")},
    {"__exit__", watch_exit, METH_VARARGS, PyDoc_STR("End the watch; it is off after this, whatever is raised.")},
    {"step", lp_watch_step, METH_NOARGS,
     PyDoc_STR("step($self)\n--\n\nMark the end of a step, from any thread: marks are taken one after the other.\n\n"
               "Errors: LeakprobeError \"not_active\" outside of a watch.")},
    {"_step_if_on", lp_watch_step_if_on, METH_NOARGS, PyDoc_STR("step(), or nothing where the watch is not on.")},
    {"is_active", watch_is_active, METH_NOARGS,
     PyDoc_STR("is_active($self)\n--\n\nTrue between entering and leaving the watch.")},
    {"_in_turn", lp_watch_in_turn, METH_VARARGS, PyDoc_STR("_in_turn(function, *args): call it while nothing marks.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_state", watch_state, NULL, PyDoc_STR("The name of the state (watch/states.h)."), NULL},
    {"_has_begun", watch_has_begun, NULL, PyDoc_STR("True once all that it takes was taken."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A watch that begins and ends whole; the subclass says what it takes and what a mark does."},
    {Py_tp_new, watch_new},
    {Py_tp_finalize, watch_finalize},
    {Py_tp_dealloc, watch_dealloc},
    {Py_tp_traverse, watch_traverse},
    {Py_tp_clear, watch_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "leakprobe._core.Watch",
    .basicsize = sizeof(lp_watch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int lp_watch_init(PyObject *module) { return lp_add_type(module, &spec, &lp_state.types.watch); }

/* ---- functions ---- */

static PyObject *mod_start_watch(PyObject *module, PyObject *op) {
    (void)module;
    if (!PyObject_TypeCheck(op, lp_state.types.watch)) {
        PyErr_SetString(PyExc_TypeError, "start_watch() takes a Watch");
        return NULL;
    }
    if (lp_watch_begin((lp_watch *)op) < 0) {
        return NULL;
    }
    if (lp_watch_active == (lp_watch *)op) {
        Py_XSETREF(lp_watch_kept, Py_NewRef(op));
    }
    return Py_NewRef(op);
}

static PyObject *mod_stop_watch(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    if (lp_watch_active == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *op = Py_NewRef((PyObject *)lp_watch_active);
    if (lp_watch_end(lp_watch_active, Py_None) < 0) {
        Py_CLEAR(op);
    }
    return op;
}

static PyObject *mod_active_watch(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    int is_on = lp_watch_active != NULL && lp_watch_is_active(lp_watch_active->state);
    return Py_NewRef(is_on ? (PyObject *)lp_watch_active : Py_None);
}

static PyObject *mod_give_way(PyObject *module, PyObject *op) {
    (void)module;
    if (op != Py_None && !PyObject_TypeCheck(op, lp_state.types.watch)) {
        PyErr_SetString(PyExc_TypeError, "give_way() takes a Watch or None");
        return NULL;
    }
    Py_XSETREF(lp_watch_outer, op == Py_None ? NULL : Py_NewRef(op));
    Py_RETURN_NONE;
}

PyMethodDef lp_watch_methods[] = {
    {"start_watch", mod_start_watch, METH_O,
     PyDoc_STR("start_watch(watch): enter it, and keep it until it ends; the watch.")},
    {"stop_watch", mod_stop_watch, METH_NOARGS,
     PyDoc_STR("stop_watch()\n--\n\nEnd the watch that is on, from any thread, and return its probe, or None if "
               "there was none.\n\n"
               "From inside a mark (a signal handler), the watch ends as soon as the mark has.")},
    {"give_way", mod_give_way, METH_O,
     PyDoc_STR("give_way(watch): from now on it ends where another one is entered, and hears of each by its "
               "_gave_way_to(watch); None: none does.")},
    {"active_watch", mod_active_watch, METH_NOARGS, PyDoc_STR("The watch that is on in this process, or None.")},
    {NULL, NULL, 0, NULL},
};
