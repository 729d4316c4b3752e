/* leakprobe._core.Turn: a lock that its thread may take again, and that no exception leaves locked.
 *
 * `with lock:` on a threading.Lock leaves it locked if an exception comes right before its __exit__() is called.  held() gives
 * an object of its own for each block, which gives the lock back when it goes, whatever became of the block. */
#include "python/api/methods.h"

#include "python/watch/turn.h"
#include "python/values/convert.h"  // lp_add_type
#include "python/values/state.h"  // lp_state

typedef struct turn {
    PyObject_HEAD lp_turn turn;
    unsigned depth; /* times that the owner has taken it */
} turn;

typedef struct holder {
    PyObject_HEAD turn *of;
    unsigned long thread; /* that holds it through this object; 0: none */
} holder;

static int take(turn *self) {
    if (!lp_turn_is_mine(&self->turn) && lp_turn_take(&self->turn) < 0) {
        return -1;
    }
    self->depth++;
    return 0;
}

/* pre: mine. */
static void give(turn *self) {
    if (--self->depth == 0) {
        lp_turn_give(&self->turn);
    }
}

static PyObject *turn_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    turn *self = (turn *)type->tp_alloc(type, 0);
    if (self != NULL && lp_turn_init(&self->turn) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void turn_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_turn_destroy(&((turn *)op)->turn);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *turn_acquire(PyObject *op, PyObject *unused) {
    (void)unused;
    return take((turn *)op) < 0 ? NULL : Py_NewRef(Py_True);
}

static PyObject *turn_release(PyObject *op, PyObject *unused) {
    turn *self = (turn *)op;
    (void)unused;
    if (!lp_turn_is_mine(&self->turn)) {
        PyErr_SetString(PyExc_RuntimeError, "this thread has not taken the turn");
        return NULL;
    }
    give(self);
    Py_RETURN_NONE;
}

static PyObject *turn_held(PyObject *op, PyObject *unused) {
    (void)unused;
    holder *made = (holder *)lp_state.types.turn_holder->tp_alloc(lp_state.types.turn_holder, 0);
    if (made != NULL) {
        made->of = (turn *)Py_NewRef(op);
    }
    return (PyObject *)made;
}

static PyObject *holder_enter(PyObject *op, PyObject *unused) {
    holder *self = (holder *)op;
    (void)unused;
    if (self->thread == 0 && take(self->of) < 0) {
        return NULL;
    }
    self->thread = PyThread_get_thread_ident();
    return Py_NewRef(op);
}

static void let_go(holder *self) {
    if (self->thread != 0 && lp_turn_is_mine(&self->of->turn)) {
        give(self->of);
    }
    self->thread = 0;
}

static PyObject *holder_exit(PyObject *op, PyObject *args) {
    (void)args;
    let_go((holder *)op);
    Py_RETURN_NONE;
}

static void holder_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    holder *self = (holder *)op;
    let_go(self);
    Py_DECREF(self->of);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef turn_methods[] = {
    {"held", turn_held, METH_NOARGS, PyDoc_STR("held(): `with turn.held():` holds it for the block.")},
    {"acquire", turn_acquire, METH_NOARGS, PyDoc_STR("Wait for it; the same thread may take it again.")},
    {"release", turn_release, METH_NOARGS, PyDoc_STR("Undo one acquire().  Errors: RuntimeError.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot turn_slots[] = {
    {Py_tp_doc, "A lock that its thread may take again, and that no exception leaves locked."},
    {Py_tp_new, turn_new},
    {Py_tp_dealloc, turn_dealloc},
    {Py_tp_methods, turn_methods},
    {0, NULL},
};

static PyType_Spec turn_spec = {
    .name = "leakprobe._core.Turn",
    .basicsize = sizeof(turn),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = turn_slots,
};

static PyMethodDef holder_methods[] = {
    {"__enter__", holder_enter, METH_NOARGS, NULL},
    {"__exit__", holder_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot holder_slots[] = {
    {Py_tp_doc, "Holds a Turn for a block."},
    {Py_tp_dealloc, holder_dealloc},
    {Py_tp_methods, holder_methods},
    {0, NULL},
};

static PyType_Spec holder_spec = {
    .name = "leakprobe._core.TurnHolder",
    .basicsize = sizeof(holder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = holder_slots,
};

int lp_turn_type_init(PyObject *module) {
    return lp_add_type(NULL, &holder_spec, &lp_state.types.turn_holder) < 0
               ? -1
               : lp_add_type(module, &turn_spec, &lp_state.types.turn);
}
