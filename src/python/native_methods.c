/* native_install, native_uninstall, native_rescan, native_status: the hooks of torch's and numpy's memory.
 *
 * A medium is installed once its module is imported; nothing here imports one.  What was asked for and could not
 * be installed yet is tried again by native_rescan() when something new was loaded. */
#include "python/methods.h"

#include "native/native.h"   // lp_native_install
#include "python/convert.h"  // lp_raise
#include "python/hooks.h"    // lp_hooks_prepare

typedef struct native_row {
    const char *name, *module;
    int medium;                /* -1: no hook in this version */
    int is_wanted;
    uint64_t tried_at;         /* loaded count + 1 of the last try; 0: not tried */
    const char *why_not;
} native_row;

/* Protected by the GIL. */
static native_row rows[] = {
    {"numpy", "numpy", LP_MEDIUM_NUMPY, 0, 0, NULL},  {"cpu", "torch", LP_MEDIUM_CPU, 0, 0, NULL},
    {"shared", "torch", LP_MEDIUM_SHARED, 0, 0, NULL}, {"pinned", "torch", -1, 0, 0, NULL},
    {"cuda", "torch", -1, 0, 0, NULL},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* The named module if it is imported to its end, else NULL and *out_why_not; no exception. */
static PyObject *find_module(const char *name, const char **out_why_not) {
    int is_torch = name[0] == 't', is_loading = 0;
    PyObject *key = PyUnicode_FromString(name), *spec = NULL, *flag = NULL;
    PyObject *module = key == NULL ? NULL : PyImport_GetModule(key);
    *out_why_not = is_torch ? "torch is not imported" : "numpy is not imported";
    if (module == NULL || module == Py_None) {
        Py_CLEAR(module);
        goto done;
    }
    spec = PyObject_GetAttrString(module, "__spec__");
    flag = spec == NULL ? NULL : PyObject_GetAttrString(spec, "_initializing");
    is_loading = flag != NULL && PyObject_IsTrue(flag) == 1;
    if (is_loading) {
        *out_why_not = is_torch ? "torch is being imported" : "numpy is being imported";
        Py_CLEAR(module);
    }
done:
    PyErr_Clear();
    Py_XDECREF(flag);
    Py_XDECREF(spec);
    Py_XDECREF(key);
    return module;
}

/* A block of CPU storage that neither a function mode nor a default device can redirect. */
static PyObject *make_storage(PyObject *torch, uint64_t bytes, int is_shared) {
    PyObject *type = PyObject_GetAttrString(torch, "UntypedStorage"), *storage = NULL, *result = NULL;
    if (type != NULL && is_shared && PyObject_HasAttrString(type, "_new_using_fd_cpu")) {
        storage = PyObject_CallMethod(type, "_new_using_fd_cpu", "K", (unsigned long long)bytes);
    } else if (type != NULL) {
        storage = PyObject_CallFunction(type, "K", (unsigned long long)bytes);
        if (storage != NULL && is_shared) {
            result = PyObject_CallMethod(storage, "share_memory_", NULL);
            if (result == NULL) {
                Py_CLEAR(storage);
            }
        }
    }
    Py_XDECREF(result);
    Py_XDECREF(type);
    return storage;
}

/* lp_native_canary_fn: make a block of the medium and free it. */
static int make_and_free(lp_medium medium, uint64_t bytes) {
    const char *why_not;
    PyObject *module = find_module(medium == LP_MEDIUM_NUMPY ? "numpy" : "torch", &why_not), *block = NULL;
    if (module == NULL) {
        return -1;
    }
    if (medium == LP_MEDIUM_NUMPY) {
        block = PyObject_CallMethod(module, "empty", "Ks", (unsigned long long)bytes, "u1");
    } else {
        block = make_storage(module, bytes, medium == LP_MEDIUM_SHARED);
    }
    Py_DECREF(module);
    if (block == NULL) {
        PyErr_Clear();
        return -1;
    }
    Py_DECREF(block);
    return 0;
}

/* Why a CUDA medium is not served: text that lives for ever. */
static const char *cuda_why_not(PyObject *torch) {
    PyObject *version = PyObject_GetAttrString(torch, "version");
    PyObject *cuda = version == NULL ? NULL : PyObject_GetAttrString(version, "cuda");
    int has_cuda = cuda != NULL && cuda != Py_None;
    PyErr_Clear();
    Py_XDECREF(cuda);
    Py_XDECREF(version);
    return has_cuda ? "this version does not hook CUDA memory yet" : "no CUDA build of torch";
}

static int is_active(const native_row *row) {
    return row->medium >= 0 && lp_native_is_active((lp_medium)row->medium);
}

/* Install a row if its module is there; 1 if that worked. */
static int try_row(native_row *row, const char *mechanism) {
    uint64_t loaded = lp_native_loaded_count() + 1;
    PyObject *module = find_module(row->module, &row->why_not);
    if (module == NULL) {
        return 0;
    }
    row->tried_at = loaded;
    if (row->medium < 0) {
        row->why_not = cuda_why_not(module);
    } else if (!lp_native_has_hook((lp_medium)row->medium)) {
        row->why_not = "not available here";
    } else if (lp_native_install((lp_medium)row->medium, mechanism, make_and_free) == LP_OK) {
        row->why_not = NULL;
    } else {
        row->why_not = lp_native_why_not((lp_medium)row->medium);
    }
    Py_DECREF(module);
    return is_active(row);
}

static native_row *find_row(const char *name) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Mark the media of the list as wanted; -1 with an exception if one is unknown. */
static int want(PyObject *names) {
    native_row *found[64];
    Py_ssize_t count = PySequence_Fast_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count && i < 64; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(names, i);
        const char *name = PyUnicode_Check(item) ? PyUnicode_AsUTF8(item) : NULL;
        found[i] = name == NULL ? NULL : find_row(name);
        if (found[i] == NULL) {
            PyErr_Clear();
            (void)lp_raise("bad_argument", "unknown native medium %R: known are numpy, cpu, shared, pinned, cuda", item);
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < count && i < 64; i++) {
        found[i]->is_wanted = 1;
    }
    return 0;
}

static PyObject *mod_native_install(PyObject *module, PyObject *args) {
    PyObject *media, *names;
    const char *mechanism = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O|z:native_install", &media, &mechanism)) {
        return NULL;
    }
    if (lp_hooks_prepare() < 0) {
        return NULL;
    }
    names = PySequence_Fast(media, "media must be a list of names");
    if (names == NULL || want(names) < 0) {
        Py_XDECREF(names);
        return NULL;
    }
    Py_DECREF(names);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].is_wanted && !is_active(&rows[i])) {
            (void)try_row(&rows[i], mechanism);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *mod_native_uninstall(PyObject *module, PyObject *noargs) {
    (void)module, (void)noargs;
    lp_native_uninstall();
    for (size_t i = 0; i < ROW_COUNT; i++) {
        rows[i].is_wanted = 0;
        rows[i].tried_at = 0;
        rows[i].why_not = NULL;
    }
    Py_RETURN_NONE;
}

/* Called at every mark: a look at the slots when nothing new was loaded. */
static PyObject *mod_native_rescan(PyObject *module, PyObject *noargs) {
    int is_new = 0;
    uint64_t loaded = lp_native_loaded_count();
    (void)module, (void)noargs;
    lp_native_refresh();
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].is_wanted && rows[i].tried_at != loaded + 1 && !is_active(&rows[i])) {
            is_new |= try_row(&rows[i], NULL);
        }
    }
    return PyBool_FromLong(is_new);
}

static PyObject *status_of(const native_row *row) {
    int active = is_active(row);
    const char *mechanism = active ? lp_native_mechanism((lp_medium)row->medium) : NULL;
    const char *why_not = active ? NULL : row->is_wanted ? row->why_not : "not asked for";
    return Py_BuildValue("{s:s,s:z,s:O,s:z}", "medium", row->name, "mechanism", mechanism, "active",
                         active ? Py_True : Py_False, "why_not", why_not);
}

static PyObject *mod_native_status(PyObject *module, PyObject *noargs) {
    (void)module, (void)noargs;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < ROW_COUNT; i++) {
        PyObject *row = status_of(&rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

PyMethodDef lp_native_methods[] = {
    {"native_install", mod_native_install, METH_VARARGS,
     "native_install(media, mechanism=None): hook the named media, now or once their module is imported."},
    {"native_uninstall", mod_native_uninstall, METH_NOARGS, "Turn all native hooks into pass-throughs."},
    {"native_rescan", mod_native_rescan, METH_NOARGS, "Hook what was loaded since; True if a medium became active."},
    {"native_status", mod_native_status, METH_NOARGS, "One dict per medium: medium, mechanism, active, why_not."},
    {NULL, NULL, 0, NULL},
};
