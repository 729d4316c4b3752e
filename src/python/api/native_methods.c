/* native_install, native_uninstall, native_rescan, native_status: the hooks of torch's and numpy's memory.
 *
 * A medium is installed once its module is imported; nothing here imports one.  What was asked for and could not
 * be installed yet is tried again by native_rescan() when something new was loaded.  CUDA is never started: what
 * can't be proven before it is up serves unproven, and is proven at the first mark after. */
#include "python/api/methods.h"

#include <string.h>

#include "native/hook_heap.h"  // lp_heap_end
#include "native/hook_names.h"  // lp_names_end
#include "native/native.h"   // lp_native_install
#include "python/api/canaries.h"     // lp_canary_module
#include "python/values/convert.h"  // lp_raise
#include "python/births/hooks.h"    // lp_hooks_prepare

/* What was asked of each medium that has a module. */
typedef struct native_row {
    int is_wanted;
    uint64_t tried_at;         /* loaded count + 1 of the last try; 0: not tried */
    const char *why_not;
} native_row;

/* By medium; protected by the GIL. */
static native_row rows[LP_MEDIUM_FAMILIES];

/* The next medium with a module from `medium` on, LP_MEDIUM_FAMILIES if there is none. */
static lp_medium next_hooked(int medium) {
    while (medium < LP_MEDIUM_FAMILIES && lp_media[medium].module[0] == 0) {
        medium++;
    }
    return (lp_medium)medium;
}

#define FOR_HOOKED(medium)                                                                                             \
    for (lp_medium medium = next_hooked(0); medium < LP_MEDIUM_FAMILIES; medium = next_hooked(medium + 1))

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

/* 1 if a hook records and is proven. */
static int is_proven(lp_medium medium) { return lp_native_is_active(medium) && !lp_native_is_waiting(medium); }

static const char forked_text[] = "CUDA was started before this process was forked: it can't be used here";

/* 1 for a medium whose hook can see nothing any more, proven in the parent or not. */
static int is_cut_off(lp_medium medium) {
    return lp_media[medium].on_cuda && lp_native_is_active(medium) && lp_canary_asks("torch.cuda", "_is_in_bad_fork");
}

static const char *waiting_text(void) {
    return lp_canary_asks("torch.cuda", "is_initialized")
               ? "the slots are patched; no block could be made for the canary yet (no device is in use, it has no "
                 "memory left, or a graph is being captured)"
               : "CUDA is not initialised in this process: the slots are patched, and the canary waits for it";
}

/* Install a medium if its module is there; 1 if that worked. */
static int try_medium(lp_medium medium, const char *mechanism) {
    native_row *row = &rows[medium];
    uint64_t loaded = lp_native_loaded_count() + 1;
    PyObject *module = lp_canary_module(medium, &row->why_not);
    if (module == NULL) {
        return 0;
    }
    row->tried_at = loaded;
    if (!lp_native_has_hook(medium)) {
        row->why_not = "not available here";
    } else if (lp_native_install(medium, mechanism, lp_canary_make_and_free) == LP_OK) {
        row->why_not = NULL;
    } else {
        const char *no_cuda = lp_media[medium].on_cuda ? cuda_why_not(module) : NULL;
        row->why_not = no_cuda != NULL ? no_cuda : lp_native_why_not(medium);
    }
    Py_DECREF(module);
    return is_proven(medium);
}

/* Prove a hook that serves unproven, if that can be done by now; 1 if it is proven or another one is. */
static int prove(lp_medium medium) {
    if (!lp_native_is_waiting(medium) || !lp_canary_cuda_is_up()) {
        return 0;
    }
    lp_status status = lp_native_verify(medium, lp_canary_make_and_free);
    rows[medium].why_not = status == LP_OK ? NULL : lp_native_why_not(medium);
    return is_proven(medium);
}

static lp_medium find_hooked(const char *name) {
    FOR_HOOKED(medium) {
        if (strcmp(lp_media[medium].name, name) == 0) {
            return medium;
        }
    }
    return LP_MEDIUM_FAMILIES;
}

static void raise_unknown(PyObject *name) {
    PyObject *known = PyUnicode_FromString("");
    FOR_HOOKED(medium) {
        const char *comma = known != NULL && PyUnicode_GET_LENGTH(known) > 0 ? ", " : "";
        PyUnicode_AppendAndDel(&known, PyUnicode_FromFormat("%s%s", comma, lp_media[medium].name));
    }
    if (known != NULL) {
        (void)lp_raise("bad_argument", "unknown native medium %R: known are %U", name, known);
        Py_DECREF(known);
    }
}

/* Mark the media of the list as wanted; -1 with an exception if one is unknown. */
static int want(PyObject *names) {
    uint8_t is_named[LP_MEDIUM_FAMILIES] = {0};
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(names); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(names, i);
        const char *name = PyUnicode_Check(item) ? PyUnicode_AsUTF8(item) : NULL;
        lp_medium medium = name == NULL ? LP_MEDIUM_FAMILIES : find_hooked(name);
        if (medium == LP_MEDIUM_FAMILIES) {
            PyErr_Clear();
            raise_unknown(item);
            return -1;
        }
        is_named[medium] = 1;
    }
    FOR_HOOKED(medium) { rows[medium].is_wanted |= is_named[medium]; }
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
    FOR_HOOKED(medium) {
        if (rows[medium].is_wanted && !lp_native_is_active(medium)) {
            (void)try_medium(medium, mechanism);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *mod_native_uninstall(PyObject *module, PyObject *noargs) {
    (void)module, (void)noargs;
    (void)lp_heap_end();  // what was layered last goes first
    (void)lp_names_end();
    lp_native_uninstall();
    memset(rows, 0, sizeof(rows));
    Py_RETURN_NONE;
}

/* Called at every mark: a look at the slots when nothing new was loaded. */
static PyObject *mod_native_rescan(PyObject *module, PyObject *noargs) {
    int is_new = 0;
    uint64_t loaded = lp_native_loaded_count();
    (void)module, (void)noargs;
    lp_native_refresh();
    FOR_HOOKED(medium) {
        if (rows[medium].is_wanted && rows[medium].tried_at != loaded + 1 && !lp_native_is_active(medium)) {
            is_new |= try_medium(medium, NULL);
        }
        is_new |= prove(medium);
    }
    return PyBool_FromLong(is_new);
}

static const char *const not_tried[LP_MEDIUM_FAMILIES] = {
#define LP_X(id, name, module, ...) module " was imported, and no mark has come since",
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
};

/* Why a medium that was asked for is not served: as of now where nothing was tried, as marks may have ended. */
static const char *why_not_now(lp_medium medium) {
    if (rows[medium].tried_at != 0) {
        return rows[medium].why_not;
    }
    const char *why_not = NULL;
    PyObject *module = lp_canary_module(medium, &why_not);
    Py_XDECREF(module);
    return module == NULL ? why_not : not_tried[medium];
}

static PyObject *status_of(lp_medium medium) {
    int is_lost = is_cut_off(medium), active = is_proven(medium) && !is_lost;
    const char *mechanism = lp_native_is_active(medium) ? lp_native_mechanism(medium) : NULL;
    const char *why_not = active ? NULL : rows[medium].is_wanted ? why_not_now(medium) : "not asked for";
    if (is_lost || lp_native_is_waiting(medium)) {
        why_not = is_lost ? forked_text : waiting_text();
    }
    return Py_BuildValue("{s:s,s:z,s:O,s:z}", "medium", lp_media[medium].name, "mechanism", mechanism, "active",
                         active ? Py_True : Py_False, "why_not", why_not);
}

static PyObject *mod_native_status(PyObject *module, PyObject *noargs) {
    (void)module, (void)noargs;
    PyObject *list = PyList_New(0);
    FOR_HOOKED(medium) {
        PyObject *row = list == NULL ? NULL : status_of(medium);
        if (list != NULL && (row == NULL || PyList_Append(list, row) < 0)) {
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
