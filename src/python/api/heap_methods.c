/* native_follow, native_unfollow, native_samples: blocks of the allocating functions, while native growth is suspected. */
#include "python/api/methods.h"

#include "base/preload.h" // lp_preload_find
#include "base/rawmem.h" // lp_raw_free
#include "ledger/site.h" // lp_site_base
#include "native/hook_heap.h" // lp_heap_begin
#include "native/samples.h" // lp_samples_copy
#include "native/symbols.h" // lp_symbol_of
#include "python/values/convert.h" // lp_raise_status
#include "python/births/hooks.h" // lp_hooks_prepare
#include "python/graph/path_out.h" // lp_append_steal

static PyObject *native_follow(PyObject *self, PyObject *arg) {
    (void)self;
    unsigned long long mean_bytes = PyLong_AsUnsignedLongLong(arg);
    void *interpreter = NULL;
    void *(*function)(size_t) = PyObject_Malloc;
    if (PyErr_Occurred() || lp_hooks_prepare() < 0) {
        return NULL;
    }
    memcpy(&interpreter, &function, sizeof(interpreter));
    return PyBool_FromLong(lp_heap_begin(mean_bytes, interpreter) == LP_OK);
}

static PyObject *native_unfollow(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromSize_t(lp_heap_end());
}

static PyObject *native_counts(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_samples_counts counts;
    lp_heap_refresh();
    lp_samples_count(&counts);
    return Py_BuildValue("KKKK", (unsigned long long)counts.taken, (unsigned long long)counts.live,
                         (unsigned long long)counts.missed_deaths, (unsigned long long)counts.dropped);
}

static PyObject *native_samples(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_sample *samples;
    size_t count;
    lp_status status = lp_samples_copy(&samples, &count);
    PyObject *rows = status == LP_OK ? PyList_New(0) : lp_raise_status(status, "reading the samples");
    for (size_t i = 0; rows != NULL && i < count; i++) {
        PyObject *row = Py_BuildValue("IIKK", lp_site_base(samples[i].site), samples[i].step,
                                      (unsigned long long)samples[i].bytes, (unsigned long long)samples[i].caller);
        if (lp_append_steal(rows, row) < 0) {
            Py_CLEAR(rows);
        }
    }
    lp_raw_free(samples);
    return rows;
}

static PyObject *native_symbol(PyObject *self, PyObject *arg) {
    (void)self;
    unsigned long long address = PyLong_AsUnsignedLongLong(arg);
    const char *library, *name;
    if (PyErr_Occurred()) {
        return NULL;
    }
    lp_symbol_of((const void *)(uintptr_t)address, &library, &name);
    return Py_BuildValue("NN", PyUnicode_DecodeFSDefault(library), PyUnicode_DecodeFSDefault(name));
}

static PyObject *is_preloaded(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyBool_FromLong(lp_preload_find() != NULL);
}

PyMethodDef lp_heap_methods[] = {
    {"native_follow", native_follow, METH_O,
     "native_follow($module, mean_bytes, /)\n--\n\n"
     "Sample what the allocating functions give out, one block in so many bytes; False where that can't be done."},
    {"native_unfollow", native_unfollow, METH_NOARGS,
     "native_unfollow($module, /)\n--\n\n"
     "Put the slots back and forget the samples; how many slots are left below another tool."},
    {"native_counts", native_counts, METH_NOARGS,
     "native_counts($module, /)\n--\n\n"
     "Follow libraries that were loaded since; (samples taken, live, whose death was missed, dropped)."},
    {"native_samples", native_samples, METH_NOARGS,
     "native_samples($module, /)\n--\n\n"
     "Live samples: (base site, step, bytes that it stands for, address of the caller)."},
    {"native_symbol", native_symbol, METH_O,
     "native_symbol($module, address, /)\n--\n\n"
     "(library, function) at an address, \"\" where it is not known."},
    {"is_preloaded", is_preloaded, METH_NOARGS,
     "is_preloaded($module, /)\n--\n\n"
     "Whether the program was started under the library that sees every call of the allocating functions."},
    {NULL, NULL, 0, NULL},
};
