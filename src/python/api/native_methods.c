/* native_install, native_uninstall, native_rescan, native_status: the hooks of torch's and numpy's memory.
 *
 * A medium is installed once its module is imported; nothing here imports one.  What was asked for and could not
 * be installed yet is tried again by native_rescan() when something new was loaded.  CUDA is never started: what
 * can't be proven before it is up serves unproven, and is proven at the first mark after. */
#include "python/api/methods.h"

#include "base/rawmem.h"        // lp_raw_calloc
#include "native/cuda_memory.h"  // lp_cuda_note_device
#include "native/hook_heap.h"  // lp_heap_end
#include "native/native.h"   // lp_native_install
#include "python/values/convert.h"  // lp_raise
#include "python/births/hooks.h"    // lp_hooks_prepare

typedef struct native_row {
    const char *name, *module;
    lp_medium medium;
    int is_wanted;
    uint64_t tried_at;         /* loaded count + 1 of the last try; 0: not tried */
    const char *why_not;
} native_row;

/* Protected by the GIL. */
static native_row rows[] = {
    {"numpy", "numpy", LP_MEDIUM_NUMPY, 0, 0, NULL},   {"cpu", "torch", LP_MEDIUM_CPU, 0, 0, NULL},
    {"shared", "torch", LP_MEDIUM_SHARED, 0, 0, NULL}, {"pinned", "torch", LP_MEDIUM_PINNED, 0, 0, NULL},
    {"cuda", "torch", LP_MEDIUM_CUDA0, 0, 0, NULL},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* The named module if it is imported to its end, else NULL and *out_why_not; no exception. */
static PyObject *find_module(const char *name, const char **out_why_not) {
    LP_ASSERT_GIL();
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

/* The answer of a function of a module without arguments; new reference, or NULL without an exception. */
static PyObject *ask(const char *module_name, const char *function) {
    PyObject *name = PyUnicode_FromString(module_name), *module = name == NULL ? NULL : PyImport_GetModule(name);
    PyObject *answer = module == NULL ? NULL : PyObject_CallMethod(module, function, NULL);
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(name);
    return answer;
}

/* 1 if the function says True. */
static int is_so(const char *module_name, const char *function) {
    PyObject *answer = ask(module_name, function);
    int is_true = answer == Py_True;
    Py_XDECREF(answer);
    return is_true;
}

/* 1 if a block may be made: the program has started CUDA, in this process, and no graph is being captured. */
static int cuda_is_up(void) {
    return is_so("torch.cuda", "is_initialized") && !is_so("torch._C", "_cuda_isCurrentStreamCapturing");
}

static void note_device(void) {
    PyObject *device = ask("torch._C", "_cuda_getDevice");
    long index = device == NULL || !PyLong_Check(device) ? 0 : PyLong_AsLong(device);
    PyErr_Clear();
    Py_XDECREF(device);
    lp_cuda_note_device((int)index);
}

/* A block on the device of this thread. */
static PyObject *make_cuda_storage(PyObject *torch, uint64_t bytes) {
    PyObject *type = PyObject_GetAttrString(torch, "UntypedStorage");
    PyObject *arguments = Py_BuildValue("(K)", (unsigned long long)bytes),
             *keywords = Py_BuildValue("{s:s}", "device", "cuda");
    PyObject *storage = NULL;
    note_device();
    if (type != NULL && arguments != NULL && keywords != NULL) {
        storage = PyObject_Call(type, arguments, keywords);
    }
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(type);
    return storage;
}

/* Pin memory of our own and let it go: torch's own allocator would serve a block from its cache, unseen. */
static int pin_and_unpin(uint64_t bytes) {
    void *memory = lp_raw_calloc(1, bytes);
    PyObject *runtime = memory == NULL ? NULL : ask("torch.cuda", "cudart"), *pinned = NULL, *unpinned = NULL;
    unsigned long long address = (uintptr_t)memory;
    if (runtime != NULL) {
        pinned = PyObject_CallMethod(runtime, lp_cuda_pin_name, "KKI", address, (unsigned long long)bytes, 0u);
        unpinned = pinned == NULL ? NULL : PyObject_CallMethod(runtime, lp_cuda_unpin_name, "K", address);
    }
    PyErr_Clear();
    if (pinned == NULL || unpinned != NULL) {
        lp_raw_free(memory);  // what could not be unpinned is never freed
    }
    int failed = pinned == NULL || unpinned == NULL;
    Py_XDECREF(pinned);
    Py_XDECREF(unpinned);
    Py_XDECREF(runtime);
    return failed ? -1 : 0;
}

static PyObject *make_block(PyObject *module, lp_medium medium, uint64_t bytes) {
    switch (medium) {
    case LP_MEDIUM_NUMPY:
        return PyObject_CallMethod(module, "empty", "Ks", (unsigned long long)bytes, "u1");
    case LP_MEDIUM_CUDA0:
        return make_cuda_storage(module, bytes);
    default:
        return make_storage(module, bytes, medium == LP_MEDIUM_SHARED);
    }
}

/* lp_native_canary_fn: make a block of the medium and free it. */
static int make_and_free(lp_medium medium, uint64_t bytes) {
    const char *why_not;
    if ((medium == LP_MEDIUM_PINNED || medium == LP_MEDIUM_CUDA0) && !cuda_is_up()) {
        return LP_NATIVE_WAIT;
    }
    if (medium == LP_MEDIUM_PINNED) {
        return pin_and_unpin(bytes);
    }
    PyObject *module = find_module(medium == LP_MEDIUM_NUMPY ? "numpy" : "torch", &why_not);
    PyObject *block = module == NULL ? NULL : make_block(module, medium, bytes);
    Py_XDECREF(module);
    PyErr_Clear();
    Py_XDECREF(block);
    /* a device that is full says nothing about the hook */
    return block != NULL ? 0 : medium == LP_MEDIUM_CUDA0 ? LP_NATIVE_WAIT : -1;
}

/* Why a CUDA medium is not served, where torch itself has no CUDA; else NULL. */
static const char *cuda_why_not(PyObject *torch) {
    PyObject *version = PyObject_GetAttrString(torch, "version");
    PyObject *cuda = version == NULL ? NULL : PyObject_GetAttrString(version, "cuda");
    int has_cuda = cuda != NULL && cuda != Py_None;
    PyErr_Clear();
    Py_XDECREF(cuda);
    Py_XDECREF(version);
    return has_cuda ? NULL : "no CUDA build of torch";
}

static int is_cuda(const native_row *row) { return row->medium == LP_MEDIUM_PINNED || row->medium == LP_MEDIUM_CUDA0; }

/* 1 if a hook records, proven or not. */
static int is_served(const native_row *row) { return lp_native_is_active(row->medium); }

static int is_active(const native_row *row) { return is_served(row) && !lp_native_is_waiting(row->medium); }

static const char *waiting_text(void) {
    if (is_so("torch.cuda", "_is_in_bad_fork")) {
        return "CUDA was started before this process was forked: it can't be used here";
    }
    return is_so("torch.cuda", "is_initialized")
               ? "the slots are patched; no block could be made for the canary yet (no memory, or a graph is being "
                 "captured)"
               : "CUDA is not initialised in this process: the slots are patched, and the canary waits for it";
}

/* Install a row if its module is there; 1 if that worked. */
static int try_row(native_row *row, const char *mechanism) {
    uint64_t loaded = lp_native_loaded_count() + 1;
    PyObject *module = find_module(row->module, &row->why_not);
    if (module == NULL) {
        return 0;
    }
    row->tried_at = loaded;
    if (!lp_native_has_hook(row->medium)) {
        row->why_not = "not available here";
    } else if (lp_native_install(row->medium, mechanism, make_and_free) == LP_OK) {
        row->why_not = NULL;
    } else {
        const char *no_cuda = is_cuda(row) ? cuda_why_not(module) : NULL;
        row->why_not = no_cuda != NULL ? no_cuda : lp_native_why_not(row->medium);
    }
    Py_DECREF(module);
    return is_active(row);
}

/* Prove a hook that serves unproven, if that can be done by now; 1 if it is proven or another one is. */
static int prove_row(native_row *row) {
    if (!lp_native_is_waiting(row->medium) || !cuda_is_up()) {
        return 0;
    }
    row->why_not = lp_native_verify(row->medium, make_and_free) == LP_OK ? NULL : lp_native_why_not(row->medium);
    return is_active(row);
}

static native_row *find_row(const char *name) {
    LP_ASSERT_GIL();
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
            (void)lp_raise("bad_argument", "unknown native medium %R: known are numpy, cpu, shared, pinned, cuda",
                           item);
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
        if (rows[i].is_wanted && !is_served(&rows[i])) {
            (void)try_row(&rows[i], mechanism);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *mod_native_uninstall(PyObject *module, PyObject *noargs) {
    (void)module, (void)noargs;
    (void)lp_heap_end();  // what was layered last goes first
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
        if (rows[i].is_wanted && rows[i].tried_at != loaded + 1 && !is_served(&rows[i])) {
            is_new |= try_row(&rows[i], NULL);
        }
        is_new |= prove_row(&rows[i]);
    }
    return PyBool_FromLong(is_new);
}

static PyObject *status_of(const native_row *row) {
    int active = is_active(row);
    const char *mechanism = is_served(row) ? lp_native_mechanism(row->medium) : NULL;
    const char *why_not = active ? NULL : row->is_wanted ? row->why_not : "not asked for";
    if (lp_native_is_waiting(row->medium)) {
        why_not = waiting_text();
    }
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
     "native_install($module, media, mechanism=None, /)\n--\n\n"
     "Hook the named media, now or once their module is imported."},
    {"native_uninstall", mod_native_uninstall, METH_NOARGS,
     "native_uninstall($module, /)\n--\n\n"
     "Turn all native hooks into pass-throughs."},
    {"native_rescan", mod_native_rescan, METH_NOARGS,
     "native_rescan($module, /)\n--\n\n"
     "Hook what was loaded since; True if a medium became active."},
    {"native_status", mod_native_status, METH_NOARGS,
     "native_status($module, /)\n--\n\n"
     "One dict per medium: medium, mechanism, active, why_not."},
    {NULL, NULL, 0, NULL},
};
