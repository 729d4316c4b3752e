/* _core.keep_text(): a text in memory of the probe's own, so that no later look takes it for the program's. */
#include "python/api/methods.h"

#include <string.h>

#include "base/rawmem.h"     // lp_raw_malloc
#include "python/values/convert.h"  // lp_raise
#include "python/values/state.h"  // lp_state

typedef struct kept_text {
    PyObject_HEAD char *bytes;
    size_t size;
} kept_text;

static void dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_raw_free(((kept_text *)op)->bytes);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *get(PyObject *op, PyObject *unused) {
    const kept_text *self = (kept_text *)op;
    (void)unused;
    return PyUnicode_DecodeUTF8(self->bytes, (Py_ssize_t)self->size, "strict");
}

static PyMethodDef kept_text_methods[] = {
    {"get", get, METH_NOARGS,
     "get($self, /)\n--\n\n"
     "The text, as a new str."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot kept_text_slots[] = {
    {Py_tp_doc, "A text that is no str."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, kept_text_methods},
    {0, NULL},
};

static PyType_Spec kept_text_spec = {
    .name = "leakprobe._core.KeptText",
    .basicsize = sizeof(kept_text),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = kept_text_slots,
};

int lp_kept_text_type_init(PyObject *module) { return lp_add_type(module, &kept_text_spec, &lp_state.types.kept_text); }

static PyObject *mod_keep_text(PyObject *module, PyObject *text) {
    Py_ssize_t size;
    (void)module;
    if (!PyUnicode_Check(text)) {
        return lp_raise("bad_argument", "keep_text() takes a str, not %.80s", Py_TYPE(text)->tp_name);
    }
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    kept_text *self = bytes == NULL ? NULL : PyObject_New(kept_text, lp_state.types.kept_text);
    if (self != NULL) {
        size = PyBytes_GET_SIZE(bytes);
        self->size = (size_t)size;
        self->bytes = lp_raw_malloc((size_t)size + 1);
        if (self->bytes == NULL) {
            Py_CLEAR(self);
            lp_raise_status(LP_NO_MEMORY, "keeping a text");
        } else {
            memcpy(self->bytes, PyBytes_AS_STRING(bytes), (size_t)size);
        }
    }
    Py_XDECREF(bytes);
    return (PyObject *)self;
}

PyMethodDef lp_kept_text_methods[] = {
    {"keep_text", mod_keep_text, METH_O,
     "keep_text($module, text, /)\n--\n\n"
     "A KeptText; its get() gives the text back."},
    {NULL, NULL, 0, NULL},
};
