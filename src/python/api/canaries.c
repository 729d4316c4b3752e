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

/* The answer of a function of a module, to a number where there is a format; new reference, or NULL without an
 * exception. */
static PyObject *ask(const char *module_name, const char *function, const char *format, long number) {
    PyObject *module = imported(module_name);
    PyObject *answer = module == NULL ? NULL : PyObject_CallMethod(module, function, format, number);
    PyErr_Clear();
    Py_XDECREF(module);
    return answer;
}

int lp_canary_asks(const char *module_name, const char *function) {
    PyObject *answer = ask(module_name, function, NULL, 0);
    int is_true = answer == Py_True;
    Py_XDECREF(answer);
    return is_true;
}

int lp_canary_cuda_is_up(void) {
    return lp_canary_asks("torch.cuda", "is_initialized") &&
           !lp_canary_asks("torch._C", "_cuda_isCurrentStreamCapturing");
}

/* What torch's core says of its devices, or -1. */
static long ask_number(const char *function) {
    PyObject *answer = ask("torch._C", function, NULL, 0);
    long number = answer == NULL || !PyLong_Check(answer) ? -1 : PyLong_AsLong(answer);
    PyErr_Clear();
    Py_XDECREF(answer);
    return number;
}

/* 1 if the program uses a device, so that a block there makes no context; a torch that can't say so is asked for its
 * memory there. */
static int is_in_use(long device) {
    PyObject *answer = ask("torch._C", "_cuda_hasPrimaryContext", "l", device);
    if (answer == NULL) {
        answer = ask("torch.cuda", "memory_reserved", "l", device);
    }
    int is_true = answer != NULL && PyObject_IsTrue(answer) == 1;
    PyErr_Clear();
    Py_XDECREF(answer);
    return is_true;
}

/* A device that the program uses and that has a medium, this thread's if it is one; else -1. */
static long find_device(long now) {
    long count = ask_number("_cuda_getDeviceCount");
    if (now >= 0 && now < LP_CUDA_DEVICES && is_in_use(now)) {
        return now;
    }
    for (long device = 0; device < count && device < LP_CUDA_DEVICES; device++) {
        if (device != now && is_in_use(device)) {
            return device;
        }
    }
    return -1;
}

/* A storage on a device, or NULL. */
static PyObject *storage_on(PyObject *torch, long device, uint64_t bytes) {
    PyObject *type = PyObject_GetAttrString(torch, "UntypedStorage");
    PyObject *arguments = Py_BuildValue("(K)", (unsigned long long)bytes),
             *keywords = Py_BuildValue("{s:N}", "device", PyUnicode_FromFormat("cuda:%ld", device));
    PyObject *storage = NULL;
    if (type != NULL && arguments != NULL && keywords != NULL) {
        storage = PyObject_Call(type, arguments, keywords);
    }
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(type);
    return storage;
}

/* A block on a device that the program uses: on another one it would take hundreds of megabytes for a context. */
static PyObject *make_cuda_storage(PyObject *torch, uint64_t bytes) {
    long now = ask_number("_cuda_getDevice"), device = find_device(now);
    lp_cuda_note_device((int)now);
    return device < 0 ? NULL : storage_on(torch, device, bytes);
}

/* 1 if a function of the CUDA runtime says that it succeeded; takes the reference. */
static int has_succeeded(PyObject *error) {
    PyObject *number = error == NULL ? NULL : PyNumber_Long(error);
    int is_success = number != NULL && PyLong_AsLong(number) == 0;
    PyErr_Clear();
    Py_XDECREF(number);
    Py_XDECREF(error);
    return is_success;
}

/* Let torch pin memory of our own and let it go: its own allocator would serve a block from its cache, unseen.  The
 * hook answers in place of CUDA, which would start a device for it, or refuse and leave an error to the program. */
static int pin_and_unpin(uint64_t bytes) {
    void *memory = lp_raw_calloc(1, bytes);
    PyObject *runtime = memory == NULL ? NULL : ask("torch.cuda", "cudart", NULL, 0);
    unsigned long long address = (uintptr_t)memory, size = bytes;
    int is_pinned = 0, can_run = runtime != NULL;
    if (can_run && lp_cuda_answer_for(memory)) {
        is_pinned = has_succeeded(PyObject_CallMethod(runtime, lp_cuda_pin_name, "KKI", address, size, 0u));
        is_pinned = is_pinned && !has_succeeded(PyObject_CallMethod(runtime, lp_cuda_unpin_name, "K", address));
    }
    (void)lp_cuda_answer_for(NULL);
    PyErr_Clear();
    if (!is_pinned) {
        lp_raw_free(memory);  // what could not be unpinned is never freed
    }
    Py_XDECREF(runtime);
    return can_run ? 0 : -1;
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
