/* Canaries: one block of each medium that has a hook, made and freed on purpose. */
#include "python/api/canaries.h"

#include "base/rawmem.h"         // lp_raw_calloc
#include "native/cuda_memory.h"  // lp_cuda_note_device
#include "native/native.h"       // LP_NATIVE_WAIT

static const char *const not_imported[LP_MEDIUM_FAMILIES] = {
#define LP_X(id, name, module, ...) module " is not imported",
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
};

static const char *const being_imported[LP_MEDIUM_FAMILIES] = {
#define LP_X(id, name, module, ...) module " is being imported",
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
};

static int is_loading(PyObject *module) {
    PyObject *spec = PyObject_GetAttrString(module, "__spec__");
    PyObject *flag = spec == NULL ? NULL : PyObject_GetAttrString(spec, "_initializing");
    int is_true = flag != NULL && PyObject_IsTrue(flag) == 1;
    PyErr_Clear();
    Py_XDECREF(flag);
    Py_XDECREF(spec);
    return is_true;
}

/* A new reference to an imported module; NULL where there is none, or where something stands in for it, such as a mock.
 * Unlike PyImport_GetModule(), it asks the module nothing and waits for no import. */
static PyObject *imported(const char *name) {
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), name);
    return found != NULL && PyModule_Check(found) ? Py_NewRef(found) : NULL;
}

PyObject *lp_canary_module(lp_medium medium, const char **out_why_not) {
    LP_ASSERT_GIL();
    PyObject *module = imported(lp_media[medium].module);
    *out_why_not = NULL;
    if (module == NULL) {
        *out_why_not = not_imported[medium];
    } else if (is_loading(module)) {
        *out_why_not = being_imported[medium];
        Py_CLEAR(module);
    }
    return module;
}

/* ---- torch ---- */

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
    PyObject *module = imported(module_name);
    PyObject *answer = module == NULL ? NULL : PyObject_CallMethod(module, function, NULL);
    PyErr_Clear();
    Py_XDECREF(module);
    return answer;
}

int lp_canary_asks(const char *module_name, const char *function) {
    PyObject *answer = ask(module_name, function);
    int is_true = answer == Py_True;
    Py_XDECREF(answer);
    return is_true;
}

int lp_canary_cuda_is_up(void) {
    return lp_canary_asks("torch.cuda", "is_initialized") &&
           !lp_canary_asks("torch._C", "_cuda_isCurrentStreamCapturing");
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

/* ---- how each medium makes a block ---- */

static PyObject *make_array(PyObject *numpy, uint64_t bytes) {
    return PyObject_CallMethod(numpy, "empty", "Ks", (unsigned long long)bytes, "u1");
}

static PyObject *make_cpu_storage(PyObject *torch, uint64_t bytes) { return make_storage(torch, bytes, 0); }

static PyObject *make_shared_storage(PyObject *torch, uint64_t bytes) { return make_storage(torch, bytes, 1); }

/* A new object that holds a block of the medium until it goes, given the medium's module. */
static PyObject *(*const make[LP_MEDIUM_FAMILIES])(PyObject *module, uint64_t bytes) = {
    [LP_MEDIUM_NUMPY] = make_array,
    [LP_MEDIUM_CPU] = make_cpu_storage,
    [LP_MEDIUM_SHARED] = make_shared_storage,
    [LP_MEDIUM_CUDA0] = make_cuda_storage,
};

int lp_canary_make_and_free(lp_medium medium, uint64_t bytes) {
    const char *why_not;
    if (lp_media[medium].on_cuda && !lp_canary_cuda_is_up()) {
        return LP_NATIVE_WAIT;
    }
    if (medium == LP_MEDIUM_PINNED) {
        return pin_and_unpin(bytes);
    }
    PyObject *module = lp_canary_module(medium, &why_not);
    PyObject *block = module == NULL || make[medium] == NULL ? NULL : make[medium](module, bytes);
    Py_XDECREF(module);
    PyErr_Clear();
    Py_XDECREF(block);
    /* a device that is full says nothing about the hook */
    return block != NULL ? 0 : lp_media[medium].on_cuda ? LP_NATIVE_WAIT : -1;
}
